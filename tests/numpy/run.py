#!/usr/bin/env python3
"""Random problems against NumPy, in files that NumPy writes and reads.
usage: run.py JASK-ADD JASK-INFO [SEED]   (TAP on stdout)"""
import json
import math
import os
import subprocess
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'cli'))
sys.dont_write_bytecode = True
import tap  # noqa: E402

try:
    import numpy as np
except ImportError:
    np = None

ADD = os.path.abspath(sys.argv[1])
INFO = os.path.abspath(sys.argv[2])
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else 20261130
PROBLEMS = 300
WHOLE = ('u1', 'i1', 'u2', 'i2', 'u4', 'i4', 'u8', 'i8')
REAL = ('f2', 'f4', 'f8')
COMPLEX = ('c8', 'c16')
NAMES = {'u1': 'u8', 'i1': 'i8', 'u2': 'u16', 'i2': 'i16', 'u4': 'u32', 'i4': 'i32', 'u8': 'u64',
         'i8': 'i64', 'f2': 'f16', 'f4': 'f32', 'f8': 'f64', 'c8': 'c64', 'c16': 'c128', 'bf': 'bf16'}


def run(tool, *args, env=None):
    full = {k: v for k, v in os.environ.items() if not k.startswith('JASK_')}
    full.update(JASK_SYNC='0', **(env or {}))
    done = subprocess.run((tool,) + args, capture_output=True, text=True, env=full, check=False)
    return done.returncode, done.stdout, done.stderr


def succeeds(tool, *args):
    """The report, after checking what every report must say."""
    code, out, err = run(tool, '--json', *args)
    assert code == 0 and err == '', (args, code, out, err)
    report = json.loads(out)
    plan = report['plan']
    for name in ('file_read_bytes', 'file_write_bytes'):
        assert report[name] == plan[name], (args, name, report[name], plan[name])
    assert report['peak_device_bytes'] == plan['peak_bytes'] <= report['budget_bytes'], (args, report)
    return report


# ---- bfloat16, which NumPy does not have ----

def from_bf16(bits):
    return (np.atleast_1d(bits).astype('u4') << 16).view('f4').reshape(bits.shape)


def to_bf16(x):
    """Rounded to nearest, ties to even; no NaN in these tests."""
    bits = np.ascontiguousarray(x, dtype='f4').view('u4').astype('u8')
    return ((bits + 0x7fff + (bits >> 16 & 1)) >> 16).astype('u2').reshape(np.shape(x))


# ---- random problems ----

def random_shape(rng):
    kind = rng.integers(8)
    if kind == 0:
        return ()
    if kind == 1:
        return tuple(int(e) for e in rng.integers(1, 3, size=rng.integers(6, 33)))
    if kind == 2:
        return (int(rng.integers(1, 60000)),)
    if kind == 3:
        return (0,) + tuple(int(e) for e in rng.integers(0, 4, size=2))
    dims = int(rng.integers(2, 6))
    return tuple(int(e) for e in rng.integers(1, int(60000 ** (1 / dims)) + 2, size=dims))


def limited(shape):
    """At most some 2^16 elements."""
    out, count = [], 1
    for extent in shape:
        extent = extent if count * extent <= 65536 else 1
        count *= max(extent, 1)
        out.append(extent)
    return tuple(out)


def operand_shape(rng, shape):
    """A shape that broadcasts to `shape`."""
    if rng.integers(2):
        return shape
    lead = int(rng.integers(0, len(shape) + 1)) if rng.integers(3) == 0 else 0
    return tuple(1 if rng.integers(3) == 0 else extent for extent in shape[lead:])


def random_values(rng, shape, kind, small):
    if kind == 'bf':
        values = rng.integers(-64, 65, size=shape) if small else rng.standard_normal(shape)
        return to_bf16(np.asarray(values, dtype='f4')).reshape(shape)
    if kind in WHOLE:
        info = np.iinfo(kind)
        low, high = (max(info.min, -50), 50) if small else (info.min, info.max)
        return np.asarray(rng.integers(low, high, size=shape, endpoint=True, dtype=kind))
    if kind in COMPLEX:
        parts = [np.asarray(random_values(rng, shape, 'f8', small)) for _ in range(2)]
        return np.asarray(parts[0] + 1j * parts[1]).astype(kind)
    values = rng.integers(-50, 51, size=shape) if small else rng.standard_normal(shape)
    return np.asarray(values).astype(kind)


def numbers(values, kind):
    return from_bf16(values) if kind == 'bf' else values


def write(rng, name, values, kind):
    """Save in a random order and byte order; how to name the file."""
    if values.ndim > 1 and rng.integers(2):
        values = np.asfortranarray(values)
    if kind == 'bf':
        if rng.integers(2) and values.ndim > 0:
            np.ascontiguousarray(values).astype('<u2').tofile(name + '.bin')
            return '%s.bin@bf16:%s' % (name, 'x'.join(map(str, values.shape)))
        np.save(name + '.npy', values.view('V2'))
        return name + '.npy@bf16'
    if rng.integers(2):
        values = values.astype(values.dtype.newbyteorder('>'))
    np.save(name + '.npy', values)
    return name + '.npy'


def holds(kind, value):
    """Whether every number of kind `value` is one of `kind`; independent of jask's table."""
    digits = {'bf': 8, 'f2': 11, 'f4': 24, 'f8': 53, 'c8': 24, 'c16': 53}
    reach = {'bf': 8, 'f2': 5, 'f4': 8, 'f8': 11, 'c8': 8, 'c16': 11}
    if kind in WHOLE:
        return value in WHOLE and np.iinfo(kind).min <= np.iinfo(value).min \
            and np.iinfo(kind).max >= np.iinfo(value).max
    if value in WHOLE:
        return np.iinfo(value).max < 2 ** digits[kind]
    if value in COMPLEX and kind not in COMPLEX:
        return False
    return digits[kind] >= digits[value] and reach[kind] >= reach[value]


def common(a, b):
    """The smallest kind that holds both; None when there is none."""
    order = ('u1', 'i1', 'u2', 'i2', 'f2', 'bf', 'u4', 'i4', 'f4', 'u8', 'i8', 'f8', 'c8', 'c16')
    return next((kind for kind in order if holds(kind, a) and holds(kind, b)), None)


def expected_whole(a, b, alpha, beta, kind, rule):
    """None when a value does not fit and is refused."""
    exact = np.asarray(alpha * a.astype(object) + beta * b.astype(object), dtype=object)
    low, high = int(np.iinfo(kind).min), int(np.iinfo(kind).max)
    if exact.size and (exact.min() < low or exact.max() > high):
        if rule == 'refuse':
            return None
        if rule == 'saturate':
            exact = np.clip(exact, low, high)
        else:
            exact = (exact - low) % (high - low + 1) + low
    return np.asarray(exact).astype(kind)


def expected_real(a, b, alpha, beta, kind):
    work = 'f4' if kind in ('bf', 'f2') else kind
    part = np.dtype(work).type
    if alpha == beta == 0: # neither is read, not even for its sign
        total = np.zeros(a.shape, work)
    elif alpha == 0:
        total = b.astype(work) * part(beta)
    elif beta == 0:
        total = a.astype(work) * part(alpha)
    else: # alpha is 1, or all is exact
        total = a.astype(work) * part(alpha) + b.astype(work) * part(beta)
    if kind == 'bf':
        return to_bf16(total)
    return total.astype(kind)


def one_sum(rng, number):
    kinds = WHOLE + REAL + COMPLEX + ('bf',)
    a_kind = str(rng.choice(kinds))
    b_kind = a_kind if rng.integers(2) else str(rng.choice(kinds))
    kind = common(a_kind, b_kind)
    shape = limited(random_shape(rng))
    small = bool(rng.integers(2))
    a = random_values(rng, operand_shape(rng, shape), a_kind, small)
    b = random_values(rng, operand_shape(rng, shape), b_kind, small)
    alpha, beta = 1, int(rng.integers(-3, 4))
    if small or kind in WHOLE:
        alpha = int(rng.integers(-3, 4))
    if rng.integers(3) == 0:
        alpha = beta = 1
    rule = str(rng.choice(['refuse', 'wrap', 'saturate']))
    budget = int(rng.choice([45056, 70000, 300000, 8 << 20]))
    options = ['-b', str(budget), '--alpha', str(alpha), '--beta', str(beta), '--overflow', rule]
    options += ['--no-pipeline'] * int(rng.integers(2))
    names = write(rng, 'a', a, a_kind), write(rng, 'b', b, b_kind)
    what = (number, a_kind, a.shape, b_kind, b.shape, alpha, beta, rule, budget, names)
    if kind is None:
        code, _, err = run(ADD, *names, '-o', 'd.npy', *options)
        row = 'no row %s + %s' % (NAMES[a_kind], NAMES[b_kind])
        assert code == 1 and row in err, (what, code, err)
        return
    x, y = np.broadcast_arrays(numbers(a, a_kind), numbers(b, b_kind))
    expected = expected_whole(x, y, alpha, beta, kind, rule) if kind in WHOLE \
        else expected_real(x, y, alpha, beta, kind)
    if expected is None:
        code, _, err = run(ADD, *names, '-o', 'd.npy', *options)
        assert code == 1 and 'does not fit %s' % NAMES[kind] in err, (what, code, err)
        return
    report = succeeds(ADD, *names, '-o', 'd.npy', *options)
    d = np.load('d.npy')
    assert report['dtype'] == NAMES[kind] and d.flags.c_contiguous, (what, report)
    got = d.view('u2').reshape(d.shape) if kind == 'bf' else d
    assert got.shape == expected.shape and got.dtype == expected.dtype, (what, got.dtype, got.shape)
    same = got == expected
    assert same.all(), (what, np.argwhere(~same)[:3], got[~same][:3], expected[~same][:3])


def sums():
    rng = np.random.default_rng(SEED)
    for number in range(PROBLEMS):
        one_sum(rng, number)


def sums_in_place():
    rng = np.random.default_rng(SEED + 1)
    for number in range(60):
        kind = str(rng.choice(('i4', 'f4', 'f8', 'c16', 'f2')))
        shape = limited(random_shape(rng))
        a = random_values(rng, shape, kind, True)
        b = random_values(rng, operand_shape(rng, shape), kind, True)
        a_name, b_name = write(rng, 'a', a, kind), write(rng, 'b', b, kind)
        stored = np.load('a.npy')
        order, byte_order = stored.flags.f_contiguous, stored.dtype.str
        succeeds(ADD, a_name, b_name, '--in-place', '--beta', '2', '-b', '70000')
        got = np.load('a.npy')
        assert (got == a + 2 * b).all(), (number, kind, shape)
        assert got.flags.f_contiguous == order and got.dtype.str == byte_order, (number, kind)


def results_replace_inputs():
    rng = np.random.default_rng(SEED + 2)
    a, b = rng.standard_normal((2, 300, 200))
    np.save('a.npy', np.asfortranarray(a))
    np.save('b.npy', b)
    succeeds(ADD, 'a.npy', 'b.npy', '-o', 'a.npy', '-b', '100000')
    succeeds(ADD, 'a.npy', 'a.npy', '-o', 'b.npy', '-b', '100000')
    assert (np.load('a.npy') == a + b).all() and (np.load('b.npy') == 2 * (a + b)).all()


def one_summary(rng, number):
    kind = str(rng.choice(WHOLE + REAL + COMPLEX + ('bf',)))
    values = random_values(rng, limited(random_shape(rng)), kind, False)
    if kind in REAL and values.size and rng.integers(2):
        flat = values.reshape(-1)
        flat[rng.integers(flat.size, size=3)] = rng.choice([np.nan, np.inf, -np.inf], size=3)
    name = write(rng, 'a', values, kind)
    code, out, err = run(INFO, '--stats', '--json', name, '-b', str(int(rng.choice([40960, 1 << 20]))))
    assert code == 0 and err == '', (number, kind, values.shape, err)
    stats, x = json.loads(out)['stats'], numbers(values, kind)
    what = (number, kind, x.shape, stats)
    if kind in COMPLEX:
        exact = np.asarray([math.fsum(x.real.ravel().astype('f8')), math.fsum(x.imag.ravel().astype('f8'))])
        assert (stats['sum'], stats['sum_imaginary']) == tuple(exact), (what, exact)
        assert math.isclose(stats['norm'], math.sqrt(math.fsum(np.abs(x.astype('c16')).ravel() ** 2)),
                            rel_tol=1e-14), what
        return
    bad = ~np.isfinite(x.astype('f8'))
    assert stats['nans'] == np.isnan(x.astype('f8')).sum(), what
    assert stats['infinities'] == np.isinf(x.astype('f8')).sum(), what
    for key, where in (('first_nan', np.isnan), ('first_infinity', np.isinf)):
        places = np.flatnonzero(where(x.astype('f8').ravel()))
        assert stats[key] == (places[0] if places.size else -1), (what, key, places[:3])
    finite = [int(v) if kind in WHOLE else float(v) for v in x.ravel()]
    if bad.any():
        assert stats['sum'] is None, what
    else:
        total = float(sum(finite)) if kind in WHOLE else math.fsum(finite)
        assert stats['sum'] == total, (what, total)
        assert math.isclose(stats['norm'], math.sqrt(math.fsum(float(v) ** 2 for v in finite)),
                            rel_tol=1e-14), what
        if x.size:
            assert stats['mean'] == total / x.size, what
            assert (stats['min'], stats['max']) == (float(min(finite)), float(max(finite))), what
    assert json.loads(out)['elements'] * x.dtype.itemsize >= stats['file_read_bytes'], what


def summaries():
    rng = np.random.default_rng(SEED + 3)
    for number in range(100):
        one_summary(rng, number)


def with_numpy(test):
    def checked():
        if np is None:
            raise tap.Skip('no NumPy: install python3-numpy')
        test()
    checked.__name__ = test.__name__
    return checked


tap.run([with_numpy(t) for t in (sums, sums_in_place, results_replace_inputs, summaries)], 'jask-numpy',
        'seed %d' % SEED)
