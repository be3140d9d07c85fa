"""Random products against NumPy, in files that NumPy writes and reads.
usage: products.py JASK-GEMM [SEED]   (TAP on stdout)"""
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
PROBLEMS = 150
KEPT = ('JASK_DEVICE', 'JASK_CUBLAS') # where the products are to be made
ENV = {k: v for k, v in os.environ.items() if not k.startswith('JASK_') or k in KEPT}
ENV = advice.taken({**ENV, 'JASK_SYNC': '0'}, GEMM.replace('jask-gemm', 'jask-info'))


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
    options = ['-b', str(int(rng.choice([49152, 70000, 300000, 8 << 20])))]
    options += ['--planner', str(rng.choice(['auto', 'bytes', 'page']))]
    options += ['--ta'] * ta + ['--tb'] * tb + ['--no-pipeline'] * int(rng.integers(2))
    if rng.integers(3) == 0:
        c = whole_numbers(rng, product.shape, kind)
        alpha, beta = int(rng.integers(-2, 3)), int(rng.integers(-2, 3))
        options += ['--alpha', str(alpha), '--beta', str(beta), '--c', write(rng, 'c', c)]
        product = (alpha * product + beta * c).astype(kind)
    files = write(rng, 'a', a), write(rng, 'b', b)
    options += ['--verify'] * (number % 3 == 0)
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


def broadcast_along(rng, batch):
    """Batches of an operand: some of these dimensions are 1, or missing in front."""
    own = tuple(e if rng.integers(2) else 1 for e in batch)
    return own[int(rng.integers(0, len(own) + 1)) if rng.integers(3) == 0 else 0:]


def random_gradients(rng, number):
    m, n, k = (random_extent(rng) for _ in range(3))
    batch = tuple(int(e) for e in rng.integers(1, 4, size=rng.integers(0, 3))) if rng.integers(3) == 0 else ()
    kind = str(rng.choice(['f4', 'f8']))
    ta, tb = bool(rng.integers(2)), bool(rng.integers(2))
    a_shape = broadcast_along(rng, batch) + ((k, m) if ta else (m, k))
    b_shape = broadcast_along(rng, batch) + ((n, k) if tb else (k, n))
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


def gradients_are_summed_over_what_was_broadcast():
    """Batches that are not one matrix in either file, with panels that end within a batch and beyond it."""
    needs_numpy()
    rng = np.random.default_rng(SEED + 6)
    m, n, k = 50, 70, 30
    for a_batch, b_batch in (((2, 1), (3,)), ((3,), (2, 1)), ((), (2, 3)), ((2, 1, 2), (1, 3, 1)), ((1,), (5,))):
        for ta in (False, True):
            for tb in (False, True):
                a = whole_numbers(rng, a_batch + ((k, m) if ta else (m, k)), 'f8')
                b = whole_numbers(rng, b_batch + ((n, k) if tb else (k, n)), 'f8')
                g = whole_numbers(rng, np.matmul(swapped(a, ta), swapped(b, tb)).shape, 'f8')
                da, db = expected_gradients(a, b, g, 2, ta, tb)
                for name, values in zip('abg', (a, b, g)):
                    np.save(name, values)
                for budget in ('65536', '1MiB'):
                    gradients('a.npy', 'b.npy', 'g.npy', '--da', 'da.npy', '--db', 'db.npy', '-b', budget, '--alpha', '2',
                              *['--ta'] * ta, *['--tb'] * tb)
                    assert np.array_equal(np.load('da.npy'), da), (a_batch, b_batch, ta, tb, budget)
                    assert np.array_equal(np.load('db.npy'), db), (a_batch, b_batch, ta, tb, budget)


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


def gradients_of_a_flat_product_read_dd_once():
    """The plan is joint, says what two products would move, and is what is followed."""
    needs_numpy()
    rng = np.random.default_rng(SEED + 4)
    a, b, g = (whole_numbers(rng, shape, 'f4') for shape in ((1500, 8), (8, 2000), (1500, 2000)))
    for name, values in zip('abg', (a, b, g)):
        np.save(name, values)
    args = ['a.npy', 'b.npy', 'g.npy', '--da', 'da.npy', '--db', 'db.npy', '-b', '300KiB']
    code, text, _ = run('--plan', '--backward', *args)
    assert code == 0 and '\nplan     joint, ' in text and '\napart    two products: up ' in text, text
    assert text.count('\nplan ') == 1, text
    code, out, _ = run('--plan', '--json', '--backward', *args)
    plan = json.loads(out)
    assert code == 0 and plan['schedule'] == 'joint', out
    assert plan['h2d_bytes'] < 0.6 * plan['apart']['h2d_bytes'], plan
    report = gradients(*args)
    assert report['plan'] == plan and 'second_plan' not in report, report
    assert report['file_read_bytes'] < 1.1 * g.nbytes, report
    one = gradients('a.npy', 'b.npy', 'g.npy', '--da', 'ea.npy', '-b', '300KiB')
    two = gradients('a.npy', 'b.npy', 'g.npy', '--db', 'eb.npy', '-b', '300KiB')
    assert one['h2d_bytes'] + two['h2d_bytes'] == plan['apart']['h2d_bytes'], (one, two)
    assert np.array_equal(np.load('da.npy'), g @ b.T) and np.array_equal(np.load('db.npy'), a.T @ g)
    paged = gradients(*args, '--planner', 'page')
    assert paged['plan']['schedule'] == 'page' and 'second_plan' in paged, paged


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
    if os.environ.get('JASK_DEVICE'):
        raise tap.Skip('a workspace takes part of the memory there')
    for name, shape in zip('abg', ((400, 400),) * 3):
        np.save(name, np.ones(shape, 'f4'))
    for option, blocks in ((['--no-pipeline'], 6), ([], 12)):
        report = gradients('a.npy', 'b.npy', 'g.npy', '--da', 'da.npy', '-b', '400000',
                           '--planner', 'page', *option)
        side = int((400000 // blocks // 4096 * 4096 / 4) ** 0.5)
        assert abs(report['plan']['bm'] - side) <= 1, (report['plan'], side)


# ---- types ----

NAMES = {'u1': 'u8', 'i1': 'i8', 'u2': 'u16', 'i2': 'i16', 'u4': 'u32', 'i4': 'i32', 'u8': 'u64', 'i8': 'i64',
         'f2': 'f16', 'f4': 'f32', 'f8': 'f64', 'c8': 'c64', 'c16': 'c128', 'bf': 'bf16'}
WHOLE = ('u1', 'i1', 'u2', 'i2', 'u4', 'i4', 'u8', 'i8')


def from_bf16(bits):
    return (bits.astype('u4') << 16).view('f4').reshape(bits.shape)


def to_bf16(x):
    """Rounded to nearest, ties to even; no NaN in these tests."""
    bits = np.ascontiguousarray(x, dtype='f4').view('u4').astype('u8')
    return ((bits + 0x7fff + (bits >> 16 & 1)) >> 16).astype('u2').reshape(np.shape(x))


def typed(rng, shape, kind):
    """Small whole numbers in a type: every sum of products is exact in all that compute."""
    low, high = (0, 5) if kind in ('u1', 'u2', 'u4', 'u8') else (-4, 5)
    values = rng.integers(low, high, size=shape)
    if kind in ('c8', 'c16'):
        return (values + 1j * rng.integers(-4, 5, size=shape)).astype(kind)
    return to_bf16(values.astype('f4')) if kind == 'bf' else values.astype(kind)


def numbers(values, kind):
    return from_bf16(values) if kind == 'bf' else values


def store(rng, name, values, kind):
    """Save; how to name the file."""
    if kind == 'bf':
        np.save(name, values.view('V2'))
        return name + '.npy@bf16'
    return write(rng, name, values)


def read_back(kind):
    d = np.load('d.npy')
    return from_bf16(d.view('u2')) if kind == 'bf' else d


def result_kind(a, b):
    """Of a product of these, by the manual; None when it is refused."""
    if a in WHOLE and b in WHOLE:
        widest = max(np.dtype(a).itemsize, np.dtype(b).itemsize)
        return {1: 'i4', 2: 'i8'}.get(widest)
    if any(kind in ('u8', 'i8') for kind in (a, b)):
        return None
    bits = {'bf': 8, 'f2': 11, 'f4': 24, 'f8': 53, 'c8': 24, 'c16': 53, 'u1': 8, 'i1': 7, 'u2': 16, 'i2': 15,
            'u4': 32, 'i4': 31}
    need = max(bits[a], bits[b])
    if 'c8' in (a, b) or 'c16' in (a, b):
        return 'c8' if need <= 24 else 'c16'
    for kind in ('f2', 'bf'):
        if {a, b} <= {kind, 'u1', 'i1'}:
            return kind
    return 'f4' if need <= 24 else 'f8'


def one_typed_product(rng, number):
    kinds = tuple(NAMES)
    a_kind = str(rng.choice(kinds))
    b_kind = a_kind if rng.integers(2) else str(rng.choice(kinds))
    kind = result_kind(a_kind, b_kind)
    m, n, k = (int(rng.integers(1, 24)) for _ in range(3))
    flags = [str(f) for f in (rng.choice(['', '--ta', '--ca']), rng.choice(['', '--tb', '--cb']))]
    a = typed(rng, (k, m) if flags[0] else (m, k), a_kind)
    b = typed(rng, (n, k) if flags[1] else (k, n), b_kind)
    used = [numbers(a, a_kind), numbers(b, b_kind)]
    for i, flag in enumerate(flags):
        used[i] = used[i].T if flag else used[i]
        used[i] = np.conj(used[i]) if flag.startswith('--c') else used[i]
    options = [flag for flag in flags if flag] + ['-b', str(int(rng.choice([65536, 300000])))]
    files = store(rng, 'a', a, a_kind), store(rng, 'b', b, b_kind)
    what = (number, a_kind, b_kind, kind, a.shape, b.shape, options)
    if kind is None:
        code, _, err = run(*files, '-o', 'd.npy', *options)
        row = 'no row %s' % NAMES[a_kind]
        assert code == 1 and row in err and NAMES[b_kind] in err, (what, code, err)
        return
    product = np.matmul(*(u.astype('c16') for u in used))
    if kind not in ('c8', 'c16'):
        product = product.real
    if rng.integers(3) == 0:
        c = typed(rng, (m, n), kind if kind != 'i8' else 'i4')
        options += ['--beta', '-2', '--c', store(rng, 'c', c, kind)]
        product = product - 2 * numbers(c, kind)
    report = succeeds(*files, '-o', 'd.npy', *options)
    assert report['dtype'] == NAMES[kind], (what, report)
    d = read_back(kind)
    assert kind == 'bf' or d.dtype == np.dtype(kind), (what, d.dtype)
    expected = product if kind not in ('f2', 'bf') else \
        from_bf16(to_bf16(product.astype('f4'))) if kind == 'bf' else product.astype('f2')
    assert np.array_equal(d, expected), (what, d, expected)
    if kind not in ('c8', 'c16') and rng.integers(4) == 0:
        code, _, err = run(*files, '-o', 'd.npy', '--verify', *options)
        assert code == 0, (what, code, err)


def products_of_every_pair_of_types_follow_the_table():
    needs_numpy()
    rng = np.random.default_rng(SEED + 4)
    for number in range(150):
        one_typed_product(rng, number)


def narrow_types_sum_in_f32_and_round_once():
    """4096 and 4097 ones, which an f16 sum could not count; and a sum beyond the type is infinite."""
    needs_numpy()
    for count, value in ((4096, 4096), (4097, 4096), (70000, np.inf)):
        np.save('a', np.ones((1, count), 'f2'))
        np.save('b', np.ones((count, 1), 'f2'))
        succeeds('a.npy', 'b.npy', '-o', 'd.npy', '-b', '1MiB')
        assert np.load('d.npy').tolist() == [[value]], np.load('d.npy')
        succeeds('a.npy', 'b.npy', '-o', 'd.npy', '-b', '1MiB', '--out-dtype', 'f32')
        assert np.load('d.npy').tolist() == [[count]], np.load('d.npy')


def integers_are_exact_or_refused():
    """The values that wrapped elsewhere; a result that its type cannot hold is named with its number."""
    needs_numpy()
    np.save('a', np.full((2, 3), 3201, 'i2'))
    succeeds('a.npy', 'a.npy', '--ta', '-o', 'd.npy', '-b', '1MiB')
    assert np.load('d.npy').tolist() == [[20492802] * 3] * 3
    np.save('b', np.array([0, 0, 175702, 173294], 'i4'))
    code, _, err = run('b.npy', 'b.npy', '-o', 'e.npy', '-b', '1MiB')
    assert code == 1 and 'i32 x i32' in err and 'f64' in err, err
    succeeds('b.npy', 'b.npy', '-o', 'e.npy', '-b', '1MiB', '--out-dtype', 'f64')
    assert np.load('e.npy').tolist() == 60902003240
    code, _, err = run('a.npy', 'a.npy', '--ta', '-o', 'f.npy', '-b', '1MiB', '--out-dtype', 'i16')
    assert code == 1 and '20492802' in err and 'i16' in err and not os.path.exists('f.npy'), err


def vectors_of_f32_are_summed_in_f64():
    """A sum at which f32 gets stuck; and one at which f64 does."""
    needs_numpy()
    np.save('a', np.concatenate(([16777216], np.ones(1024))).astype('f4'))
    np.save('b', np.ones(1025, 'f4'))
    succeeds('a.npy', 'b.npy', '-o', 'd.npy', '-b', '1MiB')
    assert np.load('d.npy') == 16778240 and np.load('d.npy').dtype == np.dtype('f4')
    if os.environ.get('JASK_DEVICE'):
        return # f64 has its compensated sum on the host alone
    np.save('a', np.array([1e16, 1, -1e16, 1, 2.0 ** -60]))
    np.save('b', np.ones(5))
    succeeds('a.npy', 'b.npy', '-o', 'd.npy', '-b', '1MiB')
    assert np.load('d.npy') == 2, np.load('d.npy')


def gradients_of_complex_numbers_use_adjoints():
    """Of Re sum(conj(G) (op(A) op(B))): the gradients are G op(B)' and op(A)' G, turned back."""
    needs_numpy()
    rng = np.random.default_rng(SEED + 5)
    for flags in ((), ('--ta',), ('--ca',), ('--tb',), ('--cb', '--ta')):
        a = typed(rng, (9, 7) if {'--ta', '--ca'} & set(flags) else (7, 9), 'c16')
        b = typed(rng, (5, 9) if {'--tb', '--cb'} & set(flags) else (9, 5), 'c16')
        g = typed(rng, (7, 5), 'c16')
        op = lambda x, t, c: x.T if t in flags else x.conj().T if c in flags else x  # noqa: E731
        for name, values in zip('abg', (a, b, g)):
            np.save(name, values)
        gradients('a.npy', 'b.npy', 'g.npy', '--da', 'da.npy', '--db', 'db.npy', '-b', '1MiB', *flags)
        da = op(g @ op(b, '--tb', '--cb').conj().T, '--ta', '--ca')
        db = op(op(a, '--ta', '--ca').conj().T @ g, '--tb', '--cb')
        assert np.array_equal(np.load('da.npy'), da), (flags, np.load('da.npy'), da)
        assert np.array_equal(np.load('db.npy'), db), (flags, np.load('db.npy'), db)


tap.run([products_of_any_shape_are_numpys, shapes_that_numpy_refuses_are_refused,
         batches_in_fortran_order_are_refused_in_words, one_b_for_all_batches_is_read_as_for_one_matrix,
         gradients_of_any_shape_are_those_of_the_definition, known_gradients,
         one_array_has_one_gradient_of_both_terms, gradients_of_a_flat_product_read_dd_once,
         gradients_are_summed_over_what_was_broadcast, gradients_agree_with_differences,
         the_page_planner_shares_memory_as_the_reference_does,
         products_of_every_pair_of_types_follow_the_table, narrow_types_sum_in_f32_and_round_once,
         integers_are_exact_or_refused, vectors_of_f32_are_summed_in_f64,
         gradients_of_complex_numbers_use_adjoints],
        'numpy', 'seed %d' % SEED)
