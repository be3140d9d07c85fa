"""Random products against NumPy, in files that NumPy writes and reads.
usage: products.py JASK-GEMM [SEED]   (TAP on stdout)"""
import json
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

GEMM = os.path.abspath(sys.argv[1])
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 20261130
PROBLEMS = 150


def run(*args):
    env = {k: v for k, v in os.environ.items() if not k.startswith('JASK_')}
    env['JASK_SYNC'] = '0'
    done = subprocess.run((GEMM,) + args, capture_output=True, text=True, env=env, check=False)
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
    return rng.integers(-9, 10, size=shape).astype(kind)


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


def random_problem(rng, number):
    m, n, k = (random_extent(rng) for _ in range(3))
    batch = tuple(int(e) for e in rng.integers(1, 5, size=rng.integers(0, 4))) if rng.integers(2) else ()
    if rng.integers(12) == 0:
        batch += (0,)
    kind = str(rng.choice(['f4', 'f8']))
    ta, tb = bool(rng.integers(2)), bool(rng.integers(2))
    a_shape = batches_of(rng, batch) + ((k, m) if ta else (m, k))
    b_shape = batches_of(rng, batch) + ((n, k) if tb else (k, n))
    if rng.integers(6) == 0:
        a_shape = (k,)
    if rng.integers(6) == 0:
        b_shape = (k,)
    a, b = whole_numbers(rng, a_shape, kind), whole_numbers(rng, b_shape, kind)
    product = np.matmul(swapped(a, ta), swapped(b, tb))
    options = ['-b', str(int(rng.choice([45056, 70000, 300000, 8 << 20])))]
    options += ['--planner', str(rng.choice(['auto', 'bytes', 'page']))]
    options += ['--ta'] * ta + ['--tb'] * tb + ['--no-pipeline'] * int(rng.integers(2))
    if rng.integers(3) == 0:
        c = whole_numbers(rng, product.shape, kind)
        alpha, beta = int(rng.integers(-2, 3)), int(rng.integers(-2, 3))
        options += ['--alpha', str(alpha), '--beta', str(beta), '--c', write(rng, 'c', c)]
        product = (alpha * product + beta * c).astype(kind)
    files = write(rng, 'a', a), write(rng, 'b', b)
    what = (number, a.shape, b.shape, options)
    succeeds(*files, '-o', 'd.npy', *options)
    d = np.load('d.npy')
    assert d.shape == product.shape and d.dtype == product.dtype, (what, d.shape, d.dtype)
    assert np.array_equal(d, product), (what, d, product)


def products_of_any_shape_are_numpys():
    needs_numpy()
    rng = np.random.default_rng(SEED)
    for number in range(PROBLEMS):
        random_problem(rng, number)


def shapes_that_numpy_refuses_are_refused():
    needs_numpy()
    for a, b in (((2, 3), (4, 2)), ((3,), (4,)), ((2, 5, 3), (3, 3, 4)), ((3,), (2, 4, 2))):
        np.save('a', np.ones(a, 'f4'))
        np.save('b', np.ones(b, 'f4'))
        code, _, err = run('a.npy', 'b.npy', '-o', 'd.npy', '-b', '1MiB')
        assert code == 1 and 'do not fit' in err and not os.path.exists('d.npy'), (a, b, code, err)


def batches_in_fortran_order_are_refused_in_words():
    needs_numpy()
    np.save('a', np.asfortranarray(np.ones((2, 3, 4), 'f4')))
    np.save('b', np.ones((4, 5), 'f4'))
    code, _, err = run('a.npy', 'b.npy', '-o', 'd.npy', '-b', '1MiB')
    assert code == 1 and 'Fortran order' in err and 'C order' in err, (code, err)


def one_b_for_all_batches_is_read_as_for_one_matrix():
    """The rows of a batched A are one taller matrix then."""
    needs_numpy()
    rng = np.random.default_rng(SEED)
    np.save('a', whole_numbers(rng, (8, 50, 300), 'f4'))
    np.save('b', whole_numbers(rng, (300, 200), 'f4'))
    report = succeeds('a.npy', 'b.npy', '-o', 'd.npy', '-b', '300000')
    flat = succeeds('a.npy@f4:400x300+128', 'b.npy', '-o', 'e.npy', '-b', '300000')
    assert (report['m'], report['plan']['batches']) == (400, 1), report
    assert report['h2d_bytes'] == flat['h2d_bytes'], (report, flat)
    assert np.array_equal(np.load('d.npy').reshape(400, 200), np.load('e.npy'))


# ---- gradients ----

PLANNED = ('h2d_bytes', 'd2h_bytes', 'h2d_pages', 'd2h_pages', 'file_read_bytes', 'file_write_bytes')


def gradients(*args):
    """The report; its counts are those of both plans."""
    code, out, err = run('--json', '--backward', *args)
    assert code == 0 and err == '', (args, code, out, err)
    report = json.loads(out)
    plans = [report['plan']] + ([report['second_plan']] if 'second_plan' in report else [])
    for name in PLANNED:
        assert report[name] == sum(plan[name] for plan in plans), (args, name, report)
    assert report['peak_device_bytes'] == max(plan['peak_bytes'] for plan in plans), (args, report)
    assert report['peak_device_bytes'] <= report['budget_bytes'], (args, report)
    return report


def summed_to(shape, values):
    """Sum over what was broadcast."""
    lead = values.ndim - len(shape)
    values = values.sum(axis=tuple(range(lead)))
    axes = tuple(d for d, e in enumerate(shape) if e == 1 and values.shape[d] != 1)
    return values.sum(axis=axes, keepdims=True)


def expected_gradients(a, b, g, alpha, ta, tb):
    """By the definition of matmul on matrices, with the dimensions of vectors put in and taken out."""
    left = a[None, :] if a.ndim == 1 else swapped(a, ta)
    right = b[:, None] if b.ndim == 1 else swapped(b, tb)
    g = g[..., None] if b.ndim == 1 else g
    g = g[..., None, :] if a.ndim == 1 else g
    da = summed_to(left.shape, alpha * np.matmul(g, np.swapaxes(right, -1, -2)))
    db = summed_to(right.shape, alpha * np.matmul(np.swapaxes(left, -1, -2), g))
    da = da[0] if a.ndim == 1 else swapped(da, ta)
    db = db[:, 0] if b.ndim == 1 else swapped(db, tb)
    return da.astype(a.dtype), db.astype(b.dtype)


def random_gradients(rng, number):
    m, n, k = (random_extent(rng) for _ in range(3))
    batch = tuple(int(e) for e in rng.integers(1, 4, size=rng.integers(0, 3))) if rng.integers(3) == 0 else ()
    kind = str(rng.choice(['f4', 'f8']))
    ta, tb = bool(rng.integers(2)), bool(rng.integers(2))
    one_b = bool(batch) and bool(rng.integers(2))
    if one_b: # the sum over batches that jask makes
        ta = tb = False
    a_shape = batch + ((k, m) if ta else (m, k))
    b_shape = (() if one_b else batch) + ((n, k) if tb else (k, n))
    if not batch and rng.integers(4) == 0:
        a_shape = (k,)
    if not batch and rng.integers(4) == 0:
        b_shape = (k,)
    a, b = whole_numbers(rng, a_shape, kind), whole_numbers(rng, b_shape, kind)
    g = whole_numbers(rng, np.matmul(swapped(a, ta), swapped(b, tb)).shape, kind)
    alpha = int(rng.integers(-2, 3))
    da, db = expected_gradients(a, b, g, alpha, ta, tb)
    options = ['-b', str(int(rng.choice([65536, 100000, 300000, 8 << 20]))), '--alpha', str(alpha)]
    options += ['--planner', str(rng.choice(['auto', 'bytes', 'page']))] + ['--ta'] * ta + ['--tb'] * tb
    if rng.integers(3) == 0:
        before = whole_numbers(rng, da.shape, kind), whole_numbers(rng, db.shape, kind)
        for name, values in zip(('da', 'db'), before):
            write(rng, name, values)
        da, db = da + before[0], db + before[1]
        options += ['--accumulate']
    which = int(rng.integers(1, 4))
    outputs = ['--da', 'da.npy'] * (which & 1) + ['--db', 'db.npy'] * (which >> 1)
    what = (number, a.shape, b.shape, g.shape, options, outputs)
    gradients(write(rng, 'a', a), write(rng, 'b', b), write(rng, 'g', g), *options, *outputs)
    for name, values, made in (('da', da, which & 1), ('db', db, which >> 1)):
        if made:
            got = np.load(name + '.npy')
            assert got.shape == values.shape and got.dtype == kind, (what, name, got.shape, got.dtype)
            assert np.array_equal(got, values), (what, name, got, values)


def gradients_of_any_shape_are_those_of_the_definition():
    needs_numpy()
    rng = np.random.default_rng(SEED + 1)
    for number in range(100):
        random_gradients(rng, number)


def known_gradients():
    """Values from the field: a matrix times a vector, and matrices that are not square."""
    needs_numpy()
    for values in (([[1, 2], [3, 4]], [5, 6], [1, 1], [[5, 6], [5, 6]], [4, 6]),
                   ([[1, 2, 3], [4, 5, 6]], [[1, 2], [3, 4], [5, 6]], [[1, 2], [3, 4]],
                    [[5, 11, 17], [11, 25, 39]], [[13, 18], [17, 24], [21, 30]])):
        for name, value in zip('abg', values):
            np.save(name, np.array(value, 'f4'))
        gradients('a.npy', 'b.npy', 'g.npy', '--da', 'da.npy', '--db', 'db.npy', '-b', '1MiB')
        assert np.load('da.npy').tolist() == values[3], np.load('da.npy')
        assert np.load('db.npy').tolist() == values[4], np.load('db.npy')


def one_array_has_one_gradient_of_both_terms():
    needs_numpy()
    rng = np.random.default_rng(SEED + 2)
    for ta in (False, True):
        a, g = whole_numbers(rng, (30, 30), 'f8'), whole_numbers(rng, (30, 30), 'f8')
        np.save('a', a)
        np.save('g', g)
        terms = expected_gradients(a, a, g, 1, ta, False)
        options = ['-b', '65536'] + ['--ta'] * ta
        code, _, err = run('--backward', 'a.npy', 'a.npy', 'g.npy', '--da', 'd.npy', '--db', 'e.npy', *options)
        assert code == 1 and 'one array' in err and not os.path.exists('e.npy'), (code, err)
        code, out, err = run('--backward', 'a.npy', 'a.npy', 'g.npy', '--da', 'd.npy', *options)
        assert code == 0, (code, out, err)
        assert np.array_equal(np.load('d.npy'), terms[0] + terms[1])
        os.remove('d.npy')


def gradients_agree_with_differences():
    """Of sum(G * (A B)): what changes with each element, in f64."""
    needs_numpy()
    rng = np.random.default_rng(SEED + 3)
    a, b, g = rng.standard_normal((7, 9)), rng.standard_normal((9, 5)), rng.standard_normal((7, 5))
    for name, values in zip('abg', (a, b, g)):
        np.save(name, values)
    gradients('a.npy', 'b.npy', 'g.npy', '--da', 'da.npy', '--db', 'db.npy', '-b', '1MiB')
    for name, x in (('da', a), ('db', b)):
        made = np.load(name + '.npy')
        for index in np.ndindex(x.shape):
            step, kept = 2.0 ** -20, x[index]
            x[index] = kept + step
            up = (g * (a @ b)).sum()
            x[index] = kept - step
            down = (g * (a @ b)).sum()
            x[index] = kept
            assert abs((up - down) / (2 * step) - made[index]) < 1e-8, (name, index)


def the_page_planner_shares_memory_as_the_reference_does():
    """Six blocks for gradients, twelve with a pipeline; the side of a page is the root of its share."""
    needs_numpy()
    for name, shape in zip('abg', ((400, 400),) * 3):
        np.save(name, np.ones(shape, 'f4'))
    for option, blocks in ((['--no-pipeline'], 6), ([], 12)):
        report = gradients('a.npy', 'b.npy', 'g.npy', '--da', 'da.npy', '-b', '400000',
                           '--planner', 'page', *option)
        side = int((400000 // blocks // 4096 * 4096 / 4) ** 0.5)
        assert abs(report['plan']['bm'] - side) <= 1, (report['plan'], side)


tap.run([products_of_any_shape_are_numpys, shapes_that_numpy_refuses_are_refused,
         batches_in_fortran_order_are_refused_in_words, one_b_for_all_batches_is_read_as_for_one_matrix,
         gradients_of_any_shape_are_those_of_the_definition, known_gradients,
         one_array_has_one_gradient_of_both_terms, gradients_agree_with_differences,
         the_page_planner_shares_memory_as_the_reference_does],
        'numpy', 'seed %d' % SEED)
