"""Running jask-gemm on files that NumPy writes, and problems drawn at random: for the programs of this folder,
each of which is called with the path of jask-gemm and, if wanted, a seed."""
import json
import os
import subprocess
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'cli'))
sys.dont_write_bytecode = True
import advice  # noqa: E402
import tap  # noqa: E402

try:
    import numpy as np
except ImportError:
    np = None

GEMM = os.path.abspath(sys.argv[1])
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 20261130
KEPT = ('JASK_DEVICE', 'JASK_CUBLAS')  # where the products are to be made
ENV = {k: v for k, v in os.environ.items() if not k.startswith('JASK_') or k in KEPT}
ENV = advice.taken({**ENV, 'JASK_SYNC': '0'}, GEMM.replace('jask-gemm', 'jask-info'))


def check(tests):
    """Run them, report in TAP, exit."""
    tap.run(tests, 'numpy', 'seed %d' % SEED)


def run(*args):
    done = subprocess.run((GEMM,) + args, capture_output=True, text=True, env=ENV, check=False)
    return done.returncode, done.stdout, done.stderr


def succeeds(*args):
    """The report, after checking what every report must say."""
    code, out, err = run('--json', *args)
    assert code == 0 and err == '', (args, code, out, err)
    report = json.loads(out)
    plan = report['plan']
    for name in ('h2d_bytes', 'd2h_bytes', 'h2d_pages', 'd2h_pages', 'file_read_bytes',
                 'file_write_bytes'):
        assert report[name] == plan[name], (args, name, report[name], plan[name])
    assert report['peak_device_bytes'] == plan['peak_bytes'] <= report['budget_bytes'], (args, report)
    return report


def needs_numpy():
    if np is None:
        raise tap.Skip('no python3-numpy')


def random_extent(rng):
    return int(rng.choice([0, 1, 1, 2, 3, 7, 16, 33, 65])) if rng.integers(8) == 0 \
        else int(rng.integers(1, 40))


def batches_of(rng, shape):
    """Batch dimensions that broadcast to `shape`."""
    if rng.integers(2):
        return shape
    lead = int(rng.integers(0, len(shape) + 1))
    return tuple(1 if rng.integers(3) == 0 else e for e in shape[lead:])


def whole_numbers(rng, shape, kind):
    """Products and sums of these are exact, whatever their order."""
    values = rng.integers(-9, 10, size=shape)
    if kind.startswith('c'):
        values = values + 1j * rng.integers(-9, 10, size=shape)
    return values.astype(kind)


def write(rng, name, values):
    """Save in either byte order, matrices in either order."""
    if values.ndim == 2 and rng.integers(2):
        values = np.asfortranarray(values)
    if rng.integers(4) == 0:
        values = values.astype(values.dtype.newbyteorder('>'))
    np.save(name, values)
    return name + '.npy'


def swapped(values, transposed):
    return np.swapaxes(values, -1, -2) if transposed and values.ndim > 1 else values
