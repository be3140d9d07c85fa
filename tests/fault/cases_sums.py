"""Sums, whose threads and files are their own: full disks, files that change, signals and kills."""
import os
import signal
import subprocess

import npyfile
from harness import case, check, check_equal
from trouble import check_shrinking_is_an_error, finish, free_bytes, held, small_disk, zeros

SMALL = ("-b", "40KiB", "--no-pipeline", "--no-sync")


def start_sum(box, *options):
    zeros(box)
    return box.start("add", "zero.npy", "zero.npy", *options, *SMALL, stdout=subprocess.PIPE,
                     stderr=subprocess.PIPE)


@case
def a_full_disk_refuses_a_sum(box):
    """Need and free bytes are said; the older result stays."""
    npyfile.write_sparse(box.path("a.npy"), (2048, 2048), "<f4")
    with small_disk(box, 8) as disk:
        box.write("disk/d.npy", b"precious")
        free = free_bytes(disk)
        box.fails(1, ["disk/d.npy", 128 + (16 << 20), free], "a.npy", "a.npy", "-o", "disk/d.npy",
                  tool="add")
        check_equal((sorted(os.listdir(disk)), free_bytes(disk)), (["d.npy"], free))
        with open(os.path.join(disk, "d.npy"), "rb") as file:
            check_equal(file.read(), b"precious")


@case
def a_sum_of_an_input_that_shrinks_is_an_error(box):
    """Not a crash, and no result."""
    check_shrinking_is_an_error(box, start_sum(box, "-o", "d.npy"))


@case
def signals_and_kills_of_a_sum_leave_the_older_result(box):
    """And nothing else."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        box.write("d.npy", b"precious")
        process = start_sum(box, "-o", "d.npy")
        with held(process):
            process.send_signal(number)
        code, err = finish(process)
        if number == signal.SIGKILL:
            check_equal((code, err), (-number, ""))
        else:
            check(code == 128 + number and err.count("\n") == 1, code, err)
        check_equal(box.listing(), ["d.npy", "zero.npy"], number)
        with open(box.path("d.npy"), "rb") as file:
            check_equal(file.read(), b"precious", number)


@case
def a_sum_in_place_that_is_killed_leaves_old_and_new_elements(box):
    """1 + 1 is 2: nothing else is there, and the header and the length are as they were."""
    one = npyfile.pack([1], "<f4")
    content = npyfile.header(npyfile.describe((4000, 4000))) + one * (4000 * 4000)
    box.write("a.npy", content)
    process = box.start("add", "a.npy", "a.npy", "--in-place", *SMALL, stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE)
    with held(process, "wchar"):
        process.kill()
    check_equal(finish(process)[0], -signal.SIGKILL)
    with open(box.path("a.npy"), "rb") as file:
        found = file.read()
    two = npyfile.pack([2], "<f4")
    check_equal((len(found), found[:128]), (len(content), content[:128]))
    news = found[128:].count(two)
    check(0 < news < 4000 * 4000, "it was killed before or after its work", news)
    check_equal(found[128:].replace(two, one), content[128:])
    check_equal(box.listing(), ["a.npy"])
