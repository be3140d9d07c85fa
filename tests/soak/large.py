#!/usr/bin/env python3
"""Products of files with more than 2^31 elements, which are nearly all hole: little disk, many GiB read.
usage: large.py JASK-GEMM   (TAP on stdout)"""
import os
import struct
import subprocess
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'cli'))
sys.dont_write_bytecode = True

import tap  # noqa: E402

GEMM = os.path.abspath(sys.argv[1])
LONG = (1 << 31) + 16


def write_hole(name, rows, cols, marks):
    """rows x cols f32 zeros but for `marks`: {(row, column): value}."""
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }" % (rows, cols)
    header += ' ' * (-(len(header) + 11) % 64) + '\n'
    with open(name, 'wb') as out:
        out.write(b'\x93NUMPY\x01\0' + len(header).to_bytes(2, 'little') + header.encode())
        start = out.tell()
        out.truncate(start + rows * cols * 4)
        for (row, column), value in marks.items():
            out.seek(start + (row * cols + column) * 4)
            out.write(struct.pack('<f', value))


def product(rows, cols, *options):
    begin = time.monotonic()
    run = subprocess.run([GEMM, 'a.npy', 'b.npy', '-o', 'd.npy', '-b', '64MiB', '-q', *options],
                         capture_output=True, text=True, check=False)
    assert run.returncode == 0, 'exit %d: %s' % (run.returncode, run.stderr)
    with open('d.npy', 'rb') as file:
        values = struct.unpack('<%df' % (rows * cols), file.read()[-4 * rows * cols:])
    print('# %.0f s' % (time.monotonic() - begin))
    return values


def sums_over_more_than_2_31_elements():
    write_hole('a.npy', 1, LONG, {(0, 0): 2, (0, LONG - 1): 3})
    write_hole('b.npy', LONG, 1, {(0, 0): 7, (LONG - 1, 0): 5})
    assert product(1, 1) == (29,)


def rows_longer_than_2_31_elements():
    """A mark at the end of row 1 must meet the mark at the end of B, and row 0 must not."""
    write_hole('a.npy', 2, LONG, {(0, 0): 2, (1, LONG - 1): 3})
    write_hole('b.npy', LONG, 1, {(0, 0): 1, (LONG - 1, 0): 5})
    assert product(2, 1) == (2, 15)


tap.run([sums_over_more_than_2_31_elements, rows_longer_than_2_31_elements], 'large')
