#!/usr/bin/env python3
"""Products and sums of files with more than 2^31 elements, which are nearly all hole: little disk, many GiB
read. usage: large.py JASK-GEMM   (TAP on stdout; jask-add lies beside it)"""
import os
import struct
import subprocess
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'cli'))
sys.dont_write_bytecode = True

import tap  # noqa: E402

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'limits'))
import group as group_of  # noqa: E402

GEMM = os.path.abspath(sys.argv[1])
ADD = os.path.join(os.path.dirname(GEMM), 'jask-add')
GIB = 1 << 30
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


def write_bytes(name, count, marks):
    """count u8 zeros but for `marks`: {index: value}."""
    with open(name, 'wb') as out:
        out.truncate(count)
        for index, value in marks.items():
            out.seek(index)
            out.write(bytes([value]))


def bytes_at(name, index, count):
    with open(name, 'rb') as file:
        file.seek(index, os.SEEK_END if index < 0 else os.SEEK_SET)
        return file.read(count)


def add(*args, **popen):
    begin = time.monotonic()
    run = subprocess.run([ADD, '-b', '64MiB', '-q', *args], capture_output=True, text=True, check=False, **popen)
    assert run.returncode == 0, 'exit %d: %s' % (run.returncode, run.stderr)
    print('# %.0f s' % (time.monotonic() - begin))


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


def sums_of_more_than_2_31_elements():
    """Each element once, into a new file and in place."""
    marks = {0: 1, (1 << 31) - 1: 2, 1 << 31: 3, LONG - 1: 4}
    write_bytes('a.bin', LONG, marks)
    spec = 'a.bin@u8:%d' % LONG
    add(spec, spec, '-o', 'd.npy', '--no-sync')
    add(spec, spec, '--in-place', '--no-sync')
    for name, start in (('d.npy', os.path.getsize('d.npy') - LONG), ('a.bin', 0)):
        for index, value in marks.items():
            lo = max(index - 2, 0)
            got = bytes_at(name, start + lo, 5)
            expected = bytes(2 * marks.get(i, 0) for i in range(lo, min(lo + 5, LONG)))
            assert got == expected, (name, index, got, expected)


def sums_in_a_group_far_smaller_than_the_files():
    """Two files of 2 GiB in 128 MiB; their pages and those of the result count."""
    try:
        group = group_of.make(128 << 20, 'jask-large')
    except group_of.NoGroup as why:
        raise tap.Skip(str(why)) from None
    try:
        write_bytes('a.bin', 2 * GIB, {5: 7})
        write_bytes('b.bin', 2 * GIB, {5: 4, 2 * GIB - 1: 9})
        add('a.bin@u8:%d' % (2 * GIB), 'b.bin@u8:%d' % (2 * GIB), '-o', 'd.npy',
            preexec_fn=group_of.enter(group))
        assert bytes_at('d.npy', 128 + 5, 1) == b'\x0b' and bytes_at('d.npy', -1, 1) == b'\x09'
    finally:
        os.rmdir(group)


tap.run([sums_over_more_than_2_31_elements, rows_longer_than_2_31_elements, sums_of_more_than_2_31_elements,
         sums_in_a_group_far_smaller_than_the_files], 'large')
