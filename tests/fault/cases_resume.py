"""The troubles of the other files, in runs that are to be resumed: what is kept, and what is not."""
import contextlib
import os
import resource
import signal
import time

import npyfile
from harness import case, check, check_equal
from trouble import (all_equal, fill, finish, free_bytes, held, mounted, small_disk,
                     start, wait_until_moved)

SIDE = 2000
KEPT = ["d.npy.jask-journal", "d.npy.jask-partial"]
SLOWLY = ("-b", "512KiB", "--threads", "1", "--resume")


def begin(box, *options):
    """Many tiles, each small."""
    return start(box, "a.npy", "a.npy", "-o", "d.npy", *SLOWLY, *options)


def has_record(journal):
    """A whole header, and more."""
    try:
        with open(journal, "rb") as file:
            raw = file.read()
    except FileNotFoundError:
        return False
    return len(raw) > 24 and len(raw) > 24 + int.from_bytes(raw[12:16], "little")


def wait_until_recorded(box, process):
    """A tile is in the journal."""
    wait_until_moved(process, "wchar", 1)
    while process.poll() is None:
        if has_record(box.path(KEPT[0])):
            return
    check(False, "the run ended before a tile was recorded", finish(process))


@contextlib.contextmanager
def stopped_run(box):
    """A run that stands still with a tile recorded; on a busy machine the first ones may end before."""
    for _ in range(10):
        process = begin(box, "-q")
        wait_until_recorded(box, process)
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.05)
        if process.poll() is None and has_record(box.path(KEPT[0])):
            break
        process.send_signal(signal.SIGCONT)
        check_equal(finish(process), (0, ""))
    try:
        yield process
    finally:
        process.send_signal(signal.SIGCONT)


@case
def signals_keep_what_is_finished(box):
    """Each stops the run, with what is kept in the message; the next run goes on to the result."""
    fill(box, "a.npy", (SIDE, SIDE), 1)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        box.write("d.npy", b"precious")
        process = begin(box)
        wait_until_recorded(box, process)
        process.send_signal(number)
        code, err = finish(process)
        check(code == 128 + number and "goes on from there" in err and err.count("\n") == 1, code, err)
        check_equal(box.listing(), ["a.npy", "d.npy", *KEPT])
        with open(box.path("d.npy"), "rb") as file:
            check_equal(file.read(), b"precious")
        result = box.gemm("a.npy", "a.npy", "-o", "d.npy", *SLOWLY, "--json")
        check(result.code == 0 and '"resumed_tiles":0,' not in result.out, result)
        check(all_equal(box.path("d.npy"), (SIDE, SIDE), SIDE), "wrong result")
        check_equal(box.listing(), ["a.npy", "d.npy"])


@case
def a_second_signal_ends_a_resumable_run_at_once(box):
    """What was recorded is there for the next run."""
    fill(box, "a.npy", (SIDE, SIDE), 1)
    process = begin(box)
    wait_until_recorded(box, process)
    for number in (signal.SIGSTOP, signal.SIGINT, signal.SIGTERM, signal.SIGCONT):
        process.send_signal(number)
    check(finish(process)[0] in (-signal.SIGINT, -signal.SIGTERM, 130), "another end")
    check_equal(box.listing(), ["a.npy", *KEPT])
    box.succeeds("a.npy", "a.npy", "-o", "d.npy", "-q", *SLOWLY)
    check(all_equal(box.path("d.npy"), (SIDE, SIDE), SIDE), "wrong result")


@case
def a_full_disk_leaves_no_partial_result(box):
    """Where the result does not fit, or only the journal does not, both numbers or the reason are said
    and every block is free again."""
    fill(box, "a.npy", (2048, 1), 1)
    with small_disk(box, 20) as disk:
        box.write("disk/d.npy", b"precious")
        free = free_bytes(disk)
        fill(box, "b.npy", (2400, 1), 1)
        box.fails(1, ["disk/d.npy", 128 + 2400 * 2400 * 4, free], "b.npy", "b.npy", "--tb", "-o",
                  "disk/d.npy", "--resume")
        check_equal((os.listdir(disk), free_bytes(disk)), (["d.npy"], free))
        with open(os.path.join(disk, "other"), "wb") as file:
            file.write(bytes(free - 128 - (16 << 20) - 4096))
        free = free_bytes(disk)
        box.fails(1, ["jask-journal", "No space left"], "a.npy", "a.npy", "--tb", "-o", "disk/d.npy",
                  "--resume", "-q")
        check_equal((sorted(os.listdir(disk)), free_bytes(disk)), (["d.npy", "other"], free))
        with open(os.path.join(disk, "d.npy"), "rb") as file:
            check_equal(file.read(), b"precious")


@case
def limits_and_read_only_places_are_refused_for_partial_results(box):
    """As for others, and nothing is left."""
    fill(box, "a.npy", (2048, 1), 1)
    before = box.snapshot()
    result = box.run("gemm", "a.npy", "a.npy", "--tb", "-o", "d.npy", "--resume",
                     preexec_fn=limit_file_size)
    check(result.code == 1 and "ulimit -f" in result.err and result.err.count("\n") == 1, result)
    check_equal(box.snapshot(), before)
    with mounted(box.path("ro"), "-t", "tmpfs", "-o", "ro", "none"):
        box.fails(1, ["ro/d.npy", "Read-only"], "a.npy", "a.npy", "--tb", "-o", "ro/d.npy", "--resume")


def limit_file_size():
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))


@case
def an_input_that_shrinks_or_changes_is_an_error_and_refused_later(box):
    """What was made of the old data does not become part of a result of the new."""
    for change, word in ((shrink, "shrank"), (modify, "modified")):
        fill(box, "a.npy", (SIDE, SIDE), 1)
        process = begin(box)
        wait_until_recorded(box, process)
        with held(process):
            change(box.path("a.npy"))
        code, err = finish(process)
        check(code == 1 and "a.npy" in err and word in err and err.count("\n") == 1, code, err)
        check_equal(box.listing(), ["a.npy", *KEPT])
        fill(box, "a.npy", (SIDE, SIDE), 2)
        box.fails(1, ["cannot resume", "A was", *KEPT], "a.npy", "a.npy", "-o", "d.npy", *SLOWLY)
        for name in KEPT:
            os.remove(box.path(name))


def shrink(path):
    os.truncate(path, 1 << 20)


def modify(path):
    with open(path, "r+b") as file:
        file.seek(-4, os.SEEK_END)
        file.write(npyfile.pack([2], "<f4"))


@case
def of_two_resumable_runs_the_second_is_refused(box):
    """The first is not disturbed; nor is it by a plain run, of which either may come last."""
    fill(box, "a.npy", (SIDE, SIDE), 1)
    with stopped_run(box) as first:
        result = box.gemm("a.npy", "a.npy", "-o", "d.npy", *SLOWLY)
        check(result.code == 1 and "another run" in result.err, result)
        box.succeeds("a.npy", "a.npy", "-o", "d.npy", "-q", "-b", "64MiB")
        check(all_equal(box.path("d.npy"), (SIDE, SIDE), SIDE), "wrong result")
    check_equal(finish(first), (0, ""))
    check(all_equal(box.path("d.npy"), (SIDE, SIDE), SIDE), "wrong result")
    check_equal(box.listing(), ["a.npy", "d.npy"])
