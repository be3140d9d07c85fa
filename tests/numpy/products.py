"""Random products against NumPy, in files that NumPy writes and reads.
usage: products.py JASK-GEMM [SEED]   (TAP on stdout)"""
import os

from gemm import (SEED, batches_of, check, needs_numpy, np, random_extent, run, succeeds, swapped,
                  whole_numbers, write)

PROBLEMS = 150


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


check([products_of_any_shape_are_numpys, shapes_that_numpy_refuses_are_refused,
       batches_in_fortran_order_are_refused_in_words, one_b_for_all_batches_is_read_as_for_one_matrix])
