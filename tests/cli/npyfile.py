"""Write and read .npy files, well-formed or not, with the standard library alone."""
import ast
import itertools
import struct

FORMATS = {"f2": "e", "f4": "f", "f8": "d", "i2": "h", "i4": "i", "i8": "q", "u1": "B", "V2": "H"}


def count_of(shape):
    count = 1
    for extent in shape:
        count *= extent
    return count


def pack(values, descr):
    """The bytes of `values`, of NumPy type `descr` such as '<f4'."""
    order = ">" if descr[0] == ">" else "<"
    return struct.pack(f"{order}{len(values)}{FORMATS[descr.lstrip('<>|=')]}", *values)


def header(text, version=1, length=None, multiple=64):
    """Magic, version and `text` padded so that data begins at a multiple of `multiple`. `length` is
    written in place of the true length of the header."""
    before = 10 if version == 1 else 12
    encoded = text.encode("utf-8" if version == 3 else "latin-1")
    encoded += b" " * (-(before + len(encoded) + 1) % multiple) + b"\n"
    size = len(encoded) if length is None else length
    return (b"\x93NUMPY" + bytes([version, 0])
            + struct.pack("<H" if version == 1 else "<I", size) + encoded)


def describe(shape, descr="<f4", order="C"):
    return str({"descr": descr, "fortran_order": order == "F", "shape": tuple(shape)})


def in_fortran_order(shape, values):
    """`values`, given in C order, as a Fortran-order file holds them."""
    strides = [count_of(shape[d + 1:]) for d in range(len(shape))]
    indices = itertools.product(*(range(extent) for extent in reversed(shape)))
    return [values[sum(i * s for i, s in zip(reversed(index), strides))] for index in indices]


def make(shape, values, descr="<f4", order="C", version=1, multiple=64):
    """The bytes of a file; `values` are in C order, or one number for all."""
    if isinstance(values, (int, float)):
        values = [values] * count_of(shape)
    if order == "F":
        values = in_fortran_order(shape, values)
    return header(describe(shape, descr, order), version, None, multiple) + pack(values, descr)


def write_sparse(path, shape, descr="<f4"):
    """A file of zeros that takes no room on the disk."""
    head = header(describe(shape, descr))
    with open(path, "wb") as file:
        file.write(head)
        file.truncate(len(head) + count_of(shape) * int(descr[-1]))


class Npy:
    """A file as read: `raw`, the header's facts, and values in C order as a flat list."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.raw = file.read()
        assert self.raw[:6] == b"\x93NUMPY", f"{path} is no .npy"
        self.version = self.raw[6:8]
        self.offset = 10 + struct.unpack("<H", self.raw[8:10])[0]
        self.header_text = self.raw[10:self.offset]
        facts = ast.literal_eval(self.header_text.decode("latin-1"))
        self.shape, self.descr = facts["shape"], facts["descr"]
        self.fortran_order = facts["fortran_order"]
        data = self.raw[self.offset:]
        self.values = [v for (v,) in struct.iter_unpack("<" + FORMATS[self.descr[1:]], data)]
