"""What the numbers mean."""
import itertools
import math

from harness import case, check, check_equal

NAN, INF = math.nan, math.inf


def same(got, expected):
    return len(got) == len(expected) and all(
        g == e or (math.isnan(g) and math.isnan(e)) for g, e in zip(got, expected))


def product_of(box, a_shape, a, b_shape, b, *options, descr="<f4"):
    box.npy("a.npy", a_shape, a, descr=descr)
    box.npy("b.npy", b_shape, b, descr=descr)
    return box.product("a.npy", "b.npy", *options)


@case
def small_products_are_exact(box):
    """Non-square products in both types, against values known by hand."""
    for descr in ("<f4", "<f8"):
        d = product_of(box, (3, 2), [1, 2, 3, 4, 5, 6], (2, 1), [1, 2], descr=descr)
        check_equal((d.shape, d.values), ((3, 1), [5, 11, 17]))
        d = product_of(box, (2, 3), [1, 2, 3, 4, 5, 6], (3, 2), [1, 2, 3, 4, 5, 6], descr=descr)
        check_equal((d.shape, d.values), ((2, 2), [22, 28, 49, 64]))
        d = product_of(box, (1, 3), [1, 2, 3], (3, 1), [4, 5, 6], descr=descr)
        check_equal(d.values, [32])


@case
def every_pair_of_transposes_works(box):
    """--ta and --tb, for files of either order."""
    a, b = [1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]
    a_turned = [a[p * 2 + i] for i in range(2) for p in range(3)]
    b_turned = [b[j * 3 + p] for p in range(3) for j in range(4)]
    for ta, tb, order in itertools.product((0, 1), (0, 1), "CF"):
        box.npy("a.npy", (3, 2) if ta else (2, 3), a, order=order)
        box.npy("b.npy", (4, 3) if tb else (3, 4), b, order=order)
        left, right = a_turned if ta else a, b_turned if tb else b
        expected = [sum(left[i * 3 + p] * right[p * 4 + j] for p in range(3))
                    for i in range(2) for j in range(4)]
        d = box.product("a.npy", "b.npy", *["--ta"] * ta, *["--tb"] * tb)
        check_equal((d.shape, d.values), ((2, 4), expected), f"{ta} {tb} {order}")


@case
def one_file_can_be_both_operands(box):
    """A'A and A A' from one file."""
    box.npy("a.npy", (4096, 8), 1)
    check_equal(box.product("a.npy", "a.npy", "--ta").values, [4096] * 64)
    box.npy("a.npy", (8, 4096), 1)
    check_equal(box.product("a.npy", "a.npy", "--tb").values, [4096] * 64)


@case
def f32_means_f32(box):
    """No operand is rounded to fewer bits: 1024.5, 2049, 4097 times 1 stay what they are."""
    for value in (1024.5, 2049, 4097, 16777215):
        check_equal(product_of(box, (1, 1), [value], (1, 1), [1]).values, [value])


@case
def ones_count_k(box):
    """All-ones products give k everywhere, for k around block sizes, under a budget that forces
    many tiles."""
    for k in (1, 2, 17, 63, 65, 129, 1000, 4097):
        d = product_of(box, (65, k), 1, (k, 67), 1, "-b", "256KiB")
        check_equal((d.shape, set(d.values)), ((65, 67), {k}), k)


@case
def infinities_and_nan_follow_ieee(box):
    """0 x Inf is NaN wherever it stands, and padding of tiles touches no row but its own."""
    check(same(product_of(box, (1, 1), [INF], (1, 1), [0]).values, [NAN]), "Inf x 0")
    check(same(product_of(box, (1, 1), [0], (1, 1), [INF]).values, [NAN]), "0 x Inf")
    check(same(product_of(box, (1, 2), [0, 1], (2, 1), [NAN, 2]).values, [NAN]), "0 x NaN")
    check(same(product_of(box, (1, 2), [INF, 1], (2, 1), [1, 1]).values, [INF]), "Inf x 1 + 1")
    a = [1.0] * 25
    a[24] = INF
    d = product_of(box, (5, 5), a, (5, 5), 1)
    check(same(d.values, [5.0] * 20 + [INF] * 5), d.values)
    d = product_of(box, (5, 5), a, (5, 5), 1, "--ta")
    check(same(d.values, [5.0] * 20 + [INF] * 5), d.values)


@case
def beta_zero_never_reads_c(box):
    """Neither a C full of NaN nor an output full of NaN leaves a trace."""
    box.npy("a.npy", (65, 33), 1)
    box.npy("b.npy", (33, 67), 1)
    box.npy("c.npy", (65, 67), NAN)
    box.write("d.npy", b"\xff" * (128 + 65 * 67 * 4))
    d = box.product("a.npy", "b.npy", "--c", "c.npy", "--beta", "0", "-b", "64KiB")
    check_equal(set(d.values), {33})
    check_equal(set(box.product("a.npy", "b.npy", "--c", "none.npy", "--beta", "0").values), {33})


@case
def alpha_and_beta_scale(box):
    """D = alpha A B + beta C, for C in either order and byte order, also when D replaces C."""
    for order, descr in (("C", "<f8"), ("F", "<f8"), ("C", ">f8"), ("F", ">f8")):
        box.npy("c.npy", (2, 2), [10, 20, 30, 40], order=order, descr=descr)
        d = product_of(box, (2, 2), [1, 2, 3, 4], (2, 2), [1, 2, 3, 4], "--alpha", "2", "--beta",
                       "-0.5", "--c", "c.npy", descr="<f8")
        check_equal(d.values, [9, 10, 15, 24], f"{order} {descr}")
    box.succeeds("a.npy", "b.npy", "--c", "c.npy", "--beta", "1", "-o", "c.npy", "-q")
    check_equal(box.read("c.npy").values, [17, 30, 45, 62])


@case
def empty_extents_give_empty_or_zero_results(box):
    """All seven patterns of zeros in m, n, k: the shape is kept, and an empty sum is +0."""
    for m, n, k in itertools.product((0, 3), repeat=3):
        if m and n and k:
            continue
        box.write("d.npy", b"\xff" * 200)
        d = product_of(box, (m, k), 1, (k, n), 1)
        check_equal(d.shape, (m, n), (m, n, k))
        check_equal(d.raw[d.offset:], bytes(4 * m * n), (m, n, k))
    box.npy("a.npy", (2, 0), [])
    box.npy("c.npy", (2, 2), [1, 2, 3, 4])
    d = box.product("a.npy", "a.npy", "--tb", "--c", "c.npy", "--beta", "2")
    check_equal(d.values, [2, 4, 6, 8])


@case
def empty_files_of_zero_bytes_are_arrays(box):
    """A raw file without a byte can be 0 x 4; the result is a header and nothing else."""
    box.write("a.bin", b"")
    box.npy("b.npy", (4, 5), 1)
    d = box.product("a.bin@f32:0x4", "b.npy")
    check_equal((d.shape, len(d.raw)), ((0, 5), 128))


@case
def results_repeat_to_the_last_bit(box):
    """The same inputs and options give the same file."""
    values = [math.sin(i * i) for i in range(150 * 170)]
    box.npy("a.npy", (150, 170), values)
    box.npy("b.npy", (170, 150), values)
    seen = {box.product("a.npy", "b.npy", "-b", "128KiB").raw for _ in range(3)}
    check_equal(len(seen), 1, "different results")


@case
def planners_agree_on_integers(box):
    """Every planner, with and without overlap, one reader or many: the same exact result."""
    a = [(i * 7 + 3) % 11 - 5 for i in range(90 * 70)]
    b = [(i * 5 + 1) % 13 - 6 for i in range(70 * 110)]
    box.npy("a.npy", (90, 70), a)
    box.npy("b.npy", (70, 110), b)
    expected = box.product("a.npy", "b.npy").raw
    rows = [sum(a[i * 70 + p] * b[p * 110] for p in range(70)) for i in range(90)]
    check_equal(box.read("d.npy").values[::110], rows)
    for options in (["--planner", "auto"], ["--planner", "bytes"], ["--planner", "page"],
                    ["--no-pipeline"], ["--io-threads", "5"], ["--threads", "1"], ["-d", "host"]):
        got = box.product("a.npy", "b.npy", "-b", "64KiB", *options).raw
        check(got == expected, f"{options} gives another result")
