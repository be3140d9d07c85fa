"""Input files: well-formed ones in every dress, and everything else refused before any work."""
import json
import os
import struct

import npyfile
from harness import Skipped, case, check, check_equal

PLAIN = npyfile.make((2, 2), [1, 2, 3, 4])


def info_json(box, *files):
    result = box.succeeds("--json", *files, tool="info")
    return [json.loads(line) for line in result.out.splitlines()]


def refused(box, name, *needles):
    """Both tools refuse the file, and nothing appears."""
    box.fails(1, [name, *needles], name, name, "-o", "d.npy")
    box.fails(1, [name, *needles], name, tool="info")


@case
def missing_and_strange_files_are_refused(box):
    """Missing file, directory, device, text, archive, and a FIFO, which must not be waited for."""
    os.mkdir(box.path("dir"))
    os.mkfifo(box.path("fifo"))
    box.write("text", b"1 2 3\n4 5 6\n")
    box.write("a.npz", b"PK\003\004junk")
    box.write("empty", b"")
    refused(box, "none.npy", "No such file")
    refused(box, "dir")
    refused(box, "fifo")
    refused(box, "/dev/zero")
    refused(box, "text")
    refused(box, "a.npz", "zip")
    refused(box, "empty")


@case
def the_second_input_is_looked_at_too(box):
    """A wrong B and a wrong C are named before anything is written."""
    box.write("a.npy", PLAIN)
    box.fails(1, ["none.npy"], "a.npy", "none.npy", "-o", "d.npy")
    box.fails(1, ["none.npy"], "a.npy", "a.npy", "-o", "d.npy", "--c", "none.npy", "--beta", "1")


@case
def truncated_files_are_refused(box):
    """A file cut off in its magic, length, header or data, with the bytes that should be there."""
    whole = npyfile.make((3, 2), [1, 2, 3, 4, 5, 6])
    for size in (1, 5, 6, 8, 9, 10, 60, 127):
        box.write("a.npy", whole[:size])
        refused(box, "a.npy")
    for size in (128, len(whole) - 4, len(whole) - 1):
        box.write("a.npy", whole[:size])
        refused(box, "a.npy", len(whole), size)


@case
def unknown_versions_are_refused_by_number(box):
    """Format 9.0 is not guessed at."""
    box.write("a.npy", PLAIN[:6] + b"\x09" + PLAIN[7:])
    refused(box, "a.npy", "9.0")


@case
def damaged_headers_are_refused(box):
    """Types, shapes and structures that are not arrays of numbers, each without a crash."""
    texts = [
        "{'descr': [('i', '<i8'), ('k', '<f8')], 'fortran_order': False, 'shape': (3,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': 10, }",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (np.int64(1), np.int64(2)), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 2), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }",
        "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2, 2), }",
        "{'descr': '<f4', 'shape': (2, 2), }",
        "{'descr': '<f4', 'fortran_order': False}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)",
        "[]", "", "{}",
    ]
    for descr in ("|O", "<f1", "<f16", "<U4", "<M8[ns]", "|V2", "<ixy", "", "<", "<f",
                  "<f999999999"):
        texts.append(npyfile.describe((2, 2), descr))
    for text in texts:
        box.write("a.npy", npyfile.header(text) + bytes(64))
        refused(box, "a.npy")
    box.write("a.npy", npyfile.header(npyfile.describe((1,)), 2, 0xFFFFFFF0))
    refused(box, "a.npy")


@case
def headers_of_every_version_and_padding_are_read(box):
    """Versions 1.0 to 3.0, data at any offset, keys in any order, either boolean."""
    box.npy("i.npy", (2, 2), [1, 0, 0, 1])
    variants = [npyfile.make((2, 2), [1, 2, 3, 4], version=v) for v in (1, 2, 3)]
    variants += [npyfile.make((2, 2), [1, 2, 3, 4], multiple=m) for m in (1, 16, 16384, 65472)]
    shuffled = "{'shape':(2,2),   'fortran_order':True,'descr':'<f4'}"
    variants.append(npyfile.header(shuffled) + npyfile.pack([1, 3, 2, 4], "<f4"))
    for content in variants:
        box.write("a.npy", content)
        check_equal(box.product("a.npy", "i.npy").values, [1, 2, 3, 4], content[:100])


@case
def orders_and_byte_orders_keep_their_meaning(box):
    """Fortran order and big-endian inputs mean element [i][j], and the result is C order and
    little-endian whatever they were."""
    for descr in ("<f4", ">f4", "<f8", ">f8"):
        for order in ("C", "F"):
            native = "<" + descr[1:]
            box.npy("a.npy", (2, 3), [1, 2, 3, 4, 5, 6], descr=descr, order=order)
            box.npy("b.npy", (3, 2), [1, 2, 3, 4, 5, 6], descr=native,
                    order="F" if order == "C" else "C")
            d = box.product("a.npy", "b.npy")
            check_equal(d.values, [22, 28, 49, 64], f"{descr} {order}")
            check_equal((d.descr, d.fortran_order, d.shape), (native, False, (2, 2)), order)
    box.npy("f.npy", (2, 2), [1, 2, 3, 4], order="F")
    box.npy("i.npy", (2, 2), [1, 0, 0, 1], order="F")
    d = box.product("f.npy", "i.npy")
    check_equal((d.values, d.fortran_order), ([1, 2, 3, 4], False))


@case
def results_are_plain_npy(box):
    """Version 1.0, data aligned to 64 bytes, header ended by a newline, no byte too many."""
    for rows, cols in ((1, 1), (3, 5), (0, 5), (100, 1)):
        box.npy("a.npy", (rows, 2), 1)
        box.npy("b.npy", (2, cols), 1)
        d = box.product("a.npy", "b.npy")
        check_equal((d.version, d.offset % 64, d.header_text[-1:]), (b"\x01\x00", 0, b"\n"))
        check_equal(d.shape, (rows, cols))
        check_equal(len(d.raw), d.offset + 4 * rows * cols, "bytes")


@case
def raw_files_need_their_exact_size(box):
    """FILE@DTYPE:SHAPE is taken when the bytes are what it says, and refused with both numbers."""
    box.write("a.bin", npyfile.pack([1, 2, 3, 4, 5, 6], "<f4"))
    box.npy("v.npy", (2, 1), [1, 2])
    check_equal(box.product("a.bin@f32:3x2", "v.npy").values, [5, 11, 17])
    box.write("be.bin", b"head" + npyfile.pack([1, 2, 3, 4, 5, 6], ">f4"))
    check_equal(box.product("be.bin@>f4:3x2+4", "v.npy").values, [5, 11, 17])
    for spec, size in (("f32:3x1", 12), ("f32:3x3", 36), ("f64:3x2", 48), ("f32:3x2+4", 28)):
        box.fails(1, ["a.bin", "24", size], f"a.bin@{spec}", "v.npy", "-o", "d.npy")
    for spec in ("f32:", "f32", ":3x2", "f99:3x2", "f32:3x", "f32:-3x2", "f32:3x2+x", "f32:3.0x2"):
        box.fails(1, ["a.bin"], f"a.bin@{spec}", "v.npy", "-o", "d.npy")


@case
def integers_whose_sums_may_not_be_exact_are_refused(box):
    """jask-info shows them; the product refuses in words, with the way out, rather than wrapping."""
    for descr, name in (("<i4", "i32"), ("<i8", "i64")):
        box.npy("a.npy", (2, 2), 1, descr=descr)
        check_equal(info_json(box, "a.npy")[0]["dtype"], name)
        box.fails(1, ["a.npy", f"{name} x {name}", "f64"], "a.npy", "a.npy", "-o", "d.npy")


@case
def mixed_types_without_a_common_one_are_refused(box):
    """f32 times i64 names both."""
    box.npy("a.npy", (2, 2), 1)
    box.npy("b.npy", (2, 2), 1, descr="<i8")
    box.fails(1, ["f32", "i64", "no row"], "a.npy", "b.npy", "-o", "d.npy")


@case
def shapes_that_do_not_fit_are_refused(box):
    """The message has both shapes; so for C."""
    box.npy("a.npy", (2, 3), 1)
    box.npy("b.npy", (4, 5), 1)
    box.npy("c.npy", (3, 5), 1)
    box.npy("e.npy", (3, 4), 1)
    box.npy("v.npy", (5,), 1)
    box.fails(1, ["2 x 3", "4 x 5"], "a.npy", "b.npy", "-o", "d.npy")
    box.fails(1, ["3 x 5", "2 x 4"], "a.npy", "e.npy", "-o", "d.npy", "--c", "c.npy", "--beta", "1")
    box.fails(1, ["v.npy"], "a.npy", "v.npy", "-o", "d.npy")


@case
def info_shows_what_a_header_says(box):
    """Path, format, type, byte order, order, shape, offset and bytes, as text and as JSON."""
    box.npy("f.npy", (2, 3), [1, 2, 3, 4, 5, 6], descr=">f8", order="F", version=2)
    box.npy("s.npy", (), [1], descr="<i8")
    box.npy("z.npy", (0, 7), [])
    box.write("a.bin", bytes(24))
    text = box.succeeds("f.npy", tool="info").out
    for word in ("f.npy", "npy 2.0", "f64", "big", "Fortran", "2 x 3", "128", "48"):
        check(word in text, f"no {word} in", text)
    f, s, z, raw = info_json(box, "f.npy", "s.npy", "z.npy", "a.bin@f32:3x2")
    check_equal(f, {"path": "f.npy", "format": "npy 2.0", "data_offset": 128, "dtype": "f64",
                    "byte_order": "big", "order": "Fortran", "shape": [2, 3], "elements": 6,
                    "data_bytes": 48})
    check_equal((s["shape"], s["elements"], s["dtype"]), ([], 1, "i64"))
    check_equal((z["shape"], z["data_bytes"]), ([0, 7], 0))
    check_equal((raw["format"], raw["shape"], raw["data_offset"]), ("raw", [3, 2], 0))


@case
def info_goes_on_after_a_bad_file(box):
    """The others are shown, and the exit code tells."""
    box.write("a.npy", PLAIN)
    result = box.info("none.npy", "a.npy")
    check(result.code == 1 and "none.npy" in result.err and "2 x 2" in result.out, result)
    lines = [json.loads(line) for line in box.info("--json", "none.npy", "a.npy").out.splitlines()]
    check_equal(["error" in line for line in lines], [True, False])


@case
def plan_and_info_read_headers_only(box):
    """A pair of 1 TB files is planned and described in an instant, from less than 1 MiB."""
    try:
        npyfile.write_sparse(box.path("a.npy"), (500000, 500000))
        npyfile.write_sparse(box.path("b.npy"), (500000, 500000))
    except OSError as why:
        raise Skipped(f"no sparse file of 1 TB here: {why.strerror}") from why
    before = bytes_read()
    box.succeeds("a.npy", "b.npy", "--plan")
    box.succeeds("a.npy", "b.npy", tool="info")
    check(bytes_read() - before < 1 << 20, f"{bytes_read() - before} bytes were read")


def bytes_read():
    """By this process and the children it has waited for."""
    with open("/proc/self/io", encoding="ascii") as file:
        return int(file.readline().split()[1])


@case
def names_of_files_do_not_break_the_output(box):
    """Quotes, newlines, bytes that are no characters: one line on stderr, valid JSON on stdout."""
    strange = os.fsdecode(b'a"\\\n\x1b[31m\xff.npy')
    with open(os.path.join(os.fsencode(box.dir), os.fsencode(strange)), "wb") as file:
        file.write(PLAIN)
    box.succeeds(strange, strange, "-o", "d.npy", "-q")
    check_equal(box.read("d.npy").values, [7, 10, 15, 22])
    check_equal(info_json(box, strange)[0]["path"], 'a"\\\n\x1b[31m\ufffd.npy')
    result = box.gemm("--json", "no\n\xe4\x1b.npy", strange, "-o", "e.npy")
    check(result.err.count("\n") == 1 and "\x1b" not in result.err, result)
    check("no\n" in json.loads(result.out)["error"]["message"], result)


@case
def info_of_a_huge_header_length_stays_small(box):
    """A claimed header of 4 GB in a file of 12 bytes is refused without being fetched."""
    box.write("a.npy", b"\x93NUMPY\x02\x00" + struct.pack("<I", 0xFFFFFFF0))
    refused(box, "a.npy")
