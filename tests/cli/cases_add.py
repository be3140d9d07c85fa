"""Sums of files: jask-add."""
import json
import math
import os
import struct

import npyfile
from harness import case, check, check_equal


@case
def small_sums_are_exact(box):
    """Both orders and byte orders, broadcast or not, against values known by hand."""
    for order, descr in (("C", "<f4"), ("F", "<f4"), ("C", ">f4"), ("F", ">f4"), ("C", ">f8")):
        box.npy("a.npy", (2, 3), [1, 2, 3, 4, 5, 6], order=order, descr=descr)
        box.npy("b.npy", (2, 3), [10, 20, 30, 40, 50, 60])
        box.npy("row.npy", (3,), [100, 200, 300])
        box.npy("column.npy", (2, 1), [1000, 2000])
        d = box.sum("a.npy", "b.npy")
        check_equal((d.shape, d.values), ((2, 3), [11, 22, 33, 44, 55, 66]), (order, descr))
        check(not d.fortran_order and d.descr[0] == "<", "C order, little-endian", d.header_text)
        check_equal(box.sum("row.npy", "a.npy").values, [101, 202, 303, 104, 205, 306])
        check_equal(box.sum("a.npy", "column.npy", "--alpha", "2", "--beta", "-0.5").values,
                    [-498, -496, -494, -992, -990, -988])
        d = box.sum("row.npy", "column.npy")
        check_equal((d.shape, d.values), ((2, 3), [1100, 1200, 1300, 2100, 2200, 2300]))


@case
def a_sum_may_replace_its_input(box):
    """D under A's name, through a link as well; a hard link keeps the old A."""
    for target in ("a.npy", "./a.npy", "link"):
        box.npy("a.npy", (3,), [1, 2, 3])
        box.npy("b.npy", (3,), [5, 5, 5])
        if not os.path.lexists(box.path("link")):
            os.symlink("a.npy", box.path("link"))
        os.link(box.path("a.npy"), box.path("old.npy"))
        box.succeeds("a.npy", "b.npy", "-o", target, "-q", tool="add")
        check_equal(box.read("a.npy").values, [6, 7, 8], target)
        check_equal(box.read("old.npy").values, [1, 2, 3], target)
        os.unlink(box.path("old.npy"))


@case
def in_place_needs_its_word_and_no_overlap(box):
    """A sum over A's own bytes; regions of one file that lie across each other are refused."""
    box.npy("a.npy", (2, 2), [1, 2, 3, 4], order="F", descr=">f8")
    box.npy("b.npy", (2,), [10, 20], descr="<i2")
    box.succeeds("a.npy", "b.npy", "--in-place", "-q", tool="add")
    a = box.read("a.npy")
    check(a.fortran_order and a.descr == ">f8", a.header_text)
    check_equal(struct.unpack(">4d", a.raw[a.offset:]), (11, 13, 22, 24))
    box.write("raw.bin", struct.pack("<4f", 1, 2, 3, 4))
    os.link(box.path("raw.bin"), box.path("same.bin"))
    for other in ("raw.bin@f4:1+12", "same.bin@f4:1+12", "raw.bin@>f4:4"):
        box.fails(1, ["overlap"], "raw.bin@f4:4", other, "--in-place", tool="add")
    box.fails(2, ["--output"], "a.npy", "b.npy", "--in-place", "-o", "d.npy", tool="add")
    box.fails(1, ["shape and type"], "b.npy", "a.npy", "--in-place", tool="add")


@case
def integer_sums_never_wrap_in_silence(box):
    """2147483647 + 1 is refused with the element's name; wrapping and saturating are a choice."""
    box.npy("a.npy", (2,), [5, 2147483647], descr="<i4")
    box.npy("b.npy", (2,), [5, 1], descr="<i4")
    box.fails(1, ["element (1,)", "i32"], "a.npy", "b.npy", "-o", "d.npy", tool="add")
    check_equal(box.sum("a.npy", "b.npy", "--overflow", "wrap").values, [10, -2147483648])
    check_equal(box.sum("a.npy", "b.npy", "--overflow", "saturate").values, [10, 2147483647])
    check_equal(box.sum("a.npy", "b.npy", "--dtype", "i64").values, [10, 2147483648])
    box.npy("u.npy", (2,), [255, 1], descr="|u1")
    box.npy("f.npy", (2,), [0.5, 1], descr="<f4")
    check_equal(box.sum("u.npy", "f.npy").values, [255.5, 2])
    box.npy("long.npy", (2,), [1, 2], descr="<i8")
    box.fails(1, ["no row i64 + f32"], "long.npy", "f.npy", "-o", "d.npy", tool="add")
    box.fails(1, ["whole number"], "a.npy", "b.npy", "-o", "d.npy", "--alpha", "0.5", tool="add")


@case
def bare_bytes_add_as_bfloat16_on_a_word(box):
    """0, 1, 2, 3 in bfloat16 with themselves are 0, 2, 4, 6; without the word V2 is refused."""
    box.write("a.npy", npyfile.header(npyfile.describe((4,), "|V2"))
              + bytes.fromhex("0000803f00404040"))
    box.fails(1, ["V2", "bf16"], "a.npy", "a.npy", "-o", "d.npy", tool="add")
    d = box.sum("a.npy@bf16", "a.npy@bf16")
    check_equal((d.descr, d.raw[d.offset:].hex()), ("<V2", "000000408040c040"))
    box.npy("f.npy", (4,), [0.5, 0.5, 0.5, 0.5])
    check_equal(box.sum("a.npy@bf16", "f.npy").values, [0.5, 1.5, 2.5, 3.5])


@case
def empty_sums_are_headers_and_scalars_have_no_shape(box):
    """(0, 4) + (0, 4) keeps its shape in 128 bytes; 0-d + 0-d is 0-d."""
    box.npy("a.npy", (0, 4), [])
    box.write("b.bin", b"")
    d = box.sum("a.npy", "b.bin@f32:0x4")
    check_equal((d.shape, len(d.raw)), ((0, 4), 128))
    box.npy("s.npy", (), [1.5])
    d = box.sum("s.npy", "s.npy")
    check_equal((d.shape, d.values), ((), [3]))
    check_equal(box.sum("s.npy", "a.npy").shape, (0, 4))


@case
def a_sum_reports_what_it_planned(box):
    """--json: counted bytes equal the plan's, memory keeps to the budget; --plan reads no data."""
    values = [float(i % 97) for i in range(90 * 1000)]
    box.npy("a.npy", (90, 1000), values, order="F")
    box.npy("b.npy", (90, 1000), values)
    plan = json.loads(box.succeeds("a.npy", "b.npy", "--plan", "--json", "-b", "128KiB",
                                   tool="add").out)
    report = json.loads(box.succeeds("a.npy", "b.npy", "-o", "d.npy", "--json", "-b", "128KiB",
                                     tool="add").out)
    check_equal(report["plan"], plan)
    check(plan["blocks"] > 10, plan)
    check_equal((report["op"], report["shape"], report["dtype"]), ("add", [90, 1000], "f32"))
    check_equal(report["file_read_bytes"], 2 * 360000)
    check_equal(report["file_write_bytes"], 360000)
    check(plan["peak_bytes"] == report["peak_device_bytes"] <= 131072, report)
    check_equal(box.read("d.npy").values, [2 * v for v in values])
    result = box.fails(3, ["too small", "raise the memory budget to"], "a.npy", "b.npy", "-o", "e.npy",
                       "-b", "1000", tool="add")
    least = result.err.rsplit(" ", 1)[1].strip()
    box.succeeds("a.npy", "b.npy", "-o", "e.npy", "-q", "-b", least, tool="add")
    check_equal(box.read("e.npy").raw, box.read("d.npy").raw)


@case
def the_command_line_of_sums_is_strict(box):
    """Usage errors exit 2 with one line; --help and --version answer."""
    box.npy("a.npy", (2,), [1, 2])
    for args in (["a.npy"], ["a.npy", "a.npy"], ["a.npy"] * 3 + ["-o", "d.npy"],
                 ["a.npy", "a.npy", "-o", "d.npy", "--ta"], ["a.npy", "a.npy", "--overflow", "maybe"],
                 ["a.npy", "a.npy", "-o", "d.npy", "--dtype", "f99"],
                 ["a.npy", "a.npy", "--in-place", "--repeat", "2"]):
        box.fails(2, [], *args, tool="add")
    check("--in-place" in box.succeeds("--help", tool="add").out, "--help")
    check(box.succeeds("--version", tool="add").out.startswith("jask-add "), "--version")
    check(math.isclose(box.sum("a.npy", "a.npy", "--repeat", "2").values[1], 4), "--repeat")


@case
def a_trace_of_a_sum_agrees_with_the_report(box):
    """One span a window and a block, of every thread; a file that cannot be made refuses the sum."""
    npyfile.write_sparse(box.path("a.npy"), (300, 1000))
    npyfile.write_sparse(box.path("row.npy"), (1000,))
    args = ("a.npy", "row.npy", "-o", "d.npy", "-b", "100KiB")
    run = box.succeeds(*args, "--json", "--trace", "t.json", tool="add")
    report = json.loads(run.out)
    with open(box.path("t.json"), encoding="utf-8") as file:
        spans = [event for event in json.load(file)["traceEvents"] if event["ph"] == "X"]
    count = {name: sum(event["name"] == name for event in spans) for name in ("A", "B", "block", "write")}
    check_equal(count["block"], report["plan"]["blocks"], report)
    check_equal(count["A"] + count["B"], report["h2d_pages"], report)
    check_equal(count["write"], report["d2h_pages"], report)
    check(count["B"] == 1 and count["A"] > 5, count)
    result = box.run("add", *args, "--trace", "none/t.json")
    check(result.code == 1 and "none/t.json" in result.err, result)
