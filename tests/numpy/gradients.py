"""Random gradients of products against their definition, in files that NumPy writes and reads.
usage: gradients.py JASK-GEMM [SEED]   (TAP on stdout)"""
import json
import os

from gemm import SEED, check, needs_numpy, np, random_extent, run, swapped, tap, whole_numbers, write

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


def gradients_of_complex_numbers_use_adjoints():
    """Of Re sum(conj(G) (op(A) op(B))): the gradients are G op(B)' and op(A)' G, turned back."""
    needs_numpy()
    rng = np.random.default_rng(SEED + 5)
    for flags in ((), ('--ta',), ('--ca',), ('--tb',), ('--cb', '--ta')):
        a = whole_numbers(rng, (9, 7) if {'--ta', '--ca'} & set(flags) else (7, 9), 'c16')
        b = whole_numbers(rng, (5, 9) if {'--tb', '--cb'} & set(flags) else (9, 5), 'c16')
        g = whole_numbers(rng, (7, 5), 'c16')
        op = lambda x, t, c: x.T if t in flags else x.conj().T if c in flags else x  # noqa: E731
        for name, values in zip('abg', (a, b, g)):
            np.save(name, values)
        gradients('a.npy', 'b.npy', 'g.npy', '--da', 'da.npy', '--db', 'db.npy', '-b', '1MiB', *flags)
        da = op(g @ op(b, '--tb', '--cb').conj().T, '--ta', '--ca')
        db = op(op(a, '--ta', '--ca').conj().T @ g, '--tb', '--cb')
        assert np.array_equal(np.load('da.npy'), da), (flags, np.load('da.npy'), da)
        assert np.array_equal(np.load('db.npy'), db), (flags, np.load('db.npy'), db)


check([gradients_of_any_shape_are_those_of_the_definition, known_gradients,
       one_array_has_one_gradient_of_both_terms, gradients_of_a_flat_product_read_dd_once,
       gradients_are_summed_over_what_was_broadcast, gradients_agree_with_differences,
       the_page_planner_shares_memory_as_the_reference_does, gradients_of_complex_numbers_use_adjoints])
