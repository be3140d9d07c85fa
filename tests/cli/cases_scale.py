"""Shapes that stretch one dimension, and what may not grow with them."""
import itertools
import json
import math
import os

import npyfile
from harness import case, check, check_equal

NAN, INF = math.nan, math.inf


def ones(box, name, count, descr="<f4"):
    """A raw file of ones; which shape they have is a matter of its specification."""
    one = npyfile.pack([1], descr)
    block = one * 65536
    with open(box.path(name), "wb") as file:
        for _ in range(count // 65536):
            file.write(block)
        file.write(one * (count % 65536))


def report_of(box, *args):
    return json.loads(box.succeeds("--json", *args, "-o", "d.npy").out)


def check_all(box, count, value, descr="<f4"):
    """d.npy holds `count` times `value` behind its header, and nothing else."""
    one = npyfile.pack([value], descr)
    with open(box.path("d.npy"), "rb") as file:
        head = file.read(10)
        offset = 10 + int.from_bytes(head[8:], "little")
        check_equal(os.fstat(file.fileno()).st_size, offset + count * len(one), "bytes")
        file.seek(offset)
        left = count
        while left:
            part = min(left, 1 << 20)
            check(file.read(part * len(one)) == one * part, f"not all are {value}")
            left -= part


def planned(box, *args):
    return json.loads(box.succeeds(*args, "--plan", "--json").out)


@case
def a_long_k_writes_nothing_but_the_result(box):
    """Partial sums of a short and fat product stay in memory, however long k is."""
    ones(box, "x.bin", 8 << 20)
    report = report_of(box, "x.bin@f32:8x1048576", "x.bin@f32:1048576x8", "-b", "4MiB")
    check_equal(report["file_write_bytes"], 8 * 8 * 4)
    check_all(box, 64, 1 << 20)


@case
def a_wide_result_is_written_once(box):
    """A thin k is bound by its result: each byte of it goes out once."""
    ones(box, "a.bin", 1100 * 16, "<f8")
    ones(box, "b.bin", 16 * 6500, "<f8")
    report = report_of(box, "a.bin@f64:1100x16", "b.bin@f64:16x6500", "-b", "16MiB")
    check_equal(report["file_write_bytes"], 1100 * 6500 * 8)
    check_all(box, 1100 * 6500, 16, "<f8")


@case
def arrays_far_larger_than_the_budget_are_the_normal_case(box):
    """64 MB of operands through 1 MiB."""
    ones(box, "x.bin", 2000 * 2000, "<f8")
    report = report_of(box, "x.bin@f64:2000x2000", "x.bin@f64:2000x2000", "-b", "1MiB")
    check(report["peak_device_bytes"] <= 1 << 20, report)
    check_all(box, 2000 * 2000, 2000, "<f8")


@case
def bytes_read_follow_the_known_law(box):
    """About 2 n^3 / sqrt(M) elements go in: within 4 times of it, and a quarter of the memory costs
    about twice as much, not 4 times."""
    reads = {}
    for mib in (64, 16, 4):
        reads[mib] = planned(box, "--size", "4096", "-b", f"{mib}MiB")["file_read_bytes"]
        law = 4 * 2 * 4096 ** 3 / math.sqrt(mib * (1 << 20) / 4)
        check(reads[mib] <= 4 * law, f"{mib} MiB: {reads[mib]}, the law says {law}")
    for mib in (16, 4):
        check(reads[mib] <= 3 * reads[4 * mib], reads)


@case
def transposes_and_orders_cost_about_the_same(box):
    """Every pair of transposes and of file orders reads within 2 times the same bytes."""
    for order in "CF":
        text = npyfile.header(npyfile.describe((4096, 4096), "<f4", order))
        box.write(f"{order}.npy", text)
        os.truncate(box.path(f"{order}.npy"), len(text) + 4096 * 4096 * 4)
    reads = [planned(box, f"{a}.npy", f"{b}.npy", "-b", "8MiB", *ta, *tb)["file_read_bytes"]
             for a, b in itertools.product("CF", repeat=2)
             for ta in ([], ["--ta"]) for tb in ([], ["--tb"])]
    check(max(reads) <= 2 * min(reads), reads)


@case
def one_file_times_itself_makes_no_copy(box):
    """A'A reads one file and writes the result, no transposed copy."""
    ones(box, "x.bin", 4096 * 64)
    report = report_of(box, "x.bin@f32:4096x64", "x.bin@f32:4096x64", "--ta", "-b", "256KiB")
    check_equal(report["file_write_bytes"], 64 * 64 * 4)
    check_all(box, 64 * 64, 4096)


@case
def long_sums_of_ones_are_counted_beyond_24_bits(box):
    """20 million ones: no sum gets stuck at 2^24, where f32 stops counting by ones."""
    ones(box, "x.bin", 20000000)
    report_of(box, "x.bin@f32:1x20000000", "x.bin@f32:20000000x1")
    value = box.read("d.npy").values[0]
    check(abs(value - 20000000) <= 64, value)
    os.truncate(box.path("x.bin"), 16777217 * 4)
    report_of(box, "x.bin@f32:1x16777217", "x.bin@f32:16777217x1")
    check(box.read("d.npy").values[0] in (16777216, 16777218), box.read("d.npy").values)


@case
def long_thin_arrays_are_right_to_the_last_element(box):
    """2^23 + 1 rows."""
    rows = (1 << 23) + 1
    ones(box, "x.bin", 2 * rows)
    box.npy("pair.npy", (2, 1), 1)
    report_of(box, f"x.bin@f32:{rows}x2", "pair.npy")
    check_all(box, rows, 2)
    report_of(box, "pair.npy", f"x.bin@f32:2x{rows}", "--ta")
    check_all(box, rows, 2)


@case
def results_of_more_than_2_31_elements_are_planned(box):
    """46341^2 elements: 64-bit bytes in the plan."""
    check_equal(planned(box, "--size", "46341x46341x1")["d2h_bytes"], 8589953124)


@case
def the_order_of_a_sum_is_fixed_but_depends_on_the_plan(box):
    """1e30 - 1e30 + 1 is 1 or 0, never anything else, and the same each time."""
    box.npy("a.npy", (1, 3), [1e30, -1e30, 1])
    box.npy("b.npy", (3, 1), 1)
    seen = {box.product("a.npy", "b.npy", "-b", "32KiB").raw for _ in range(3)}
    check_equal(len(seen), 1, "results")
    check(box.read("d.npy").values[0] in (0, 1), box.read("d.npy").values)
    box.npy("a.npy", (1, 1025), [16777216] + [1] * 1024)
    box.npy("b.npy", (1025, 1), 1)
    value = box.product("a.npy", "b.npy").values[0]
    check(16777216 <= value <= 16778240, value)


@case
def zero_times_nan_is_nan_on_either_side(box):
    """Also transposed, and in either order of the operands."""
    for bad in (NAN, INF):
        box.npy("row.npy", (1, 2), [0, 1])
        box.npy("bad.npy", (1, 2), [bad, 2])
        for a, b in (("row.npy", "bad.npy"), ("bad.npy", "row.npy")):
            value = box.product(a, b, "--tb").values[0]
            check(math.isnan(value), a, b, value)
            box.npy("col.npy", (2, 1), box.read(b).values)
            value = box.product(a, "col.npy").values[0]
            check(math.isnan(value), a, "column", value)


@case
def data_at_odd_offsets_is_read(box):
    """Rows of f8 that begin at an odd byte, in .npy and raw files, and are longer than a page."""
    values = [i % 7 for i in range(3 * 700)]
    expected = [sum(values[r * 700:(r + 1) * 700]) for r in range(3)]
    box.npy("v.npy", (700, 1), 1, descr="<f8")
    text = npyfile.describe((3, 700), "<f8")
    head = npyfile.header(text + " " * (len(text) % 2 == 1), multiple=1)
    check_equal(len(head) % 2, 1, "the offset is odd")
    box.write("a.npy", head + npyfile.pack(values, "<f8"))
    check_equal(box.product("a.npy", "v.npy", "-b", "32KiB").values, expected)
    box.write("a.bin", b"x" + npyfile.pack(values, "<f8"))
    check_equal(box.product("a.bin@f64:3x700+1", "v.npy", "-b", "32KiB").values, expected)


@case
def names_in_other_alphabets_are_refused_as_structured(box):
    """A 3.0 header whose columns have names beyond Latin."""
    text = "{'descr': [('\u0434\u0430', '<f8'), ('\u65e5', '<f4')], 'fortran_order': False, 'shape': (3,), }"
    box.write("a.npy", npyfile.header(text, 3) + bytes(36))
    box.fails(1, ["a.npy", "structured"], "a.npy", "a.npy", "-o", "d.npy")


@case
def bare_bytes_are_bfloat16_only_by_name(box):
    """V2, as NumPy stores bfloat16, is refused; named as bf16 it is described, never f16."""
    box.write("a.npy", npyfile.header(npyfile.describe((2, 2), "|V2")) + bytes.fromhex(
        "0000803f00404040"))
    box.fails(1, ["V2", "bf16"], "a.npy", "a.npy", "-o", "d.npy")
    for name in ("a.npy@bf16", f"a.npy@bf16:2x2+{os.path.getsize(box.path('a.npy')) - 8}"):
        out = box.succeeds("--json", name, tool="info").out
        check_equal(json.loads(out)["dtype"], "bf16")
