"""Products in every type and pair of types against NumPy.
usage: product_types.py JASK-GEMM [SEED]   (TAP on stdout)"""
import os

from gemm import SEED, check, needs_numpy, np, run, succeeds, write

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


check([products_of_every_pair_of_types_follow_the_table, narrow_types_sum_in_f32_and_round_once,
       integers_are_exact_or_refused, vectors_of_f32_are_summed_in_f64])
