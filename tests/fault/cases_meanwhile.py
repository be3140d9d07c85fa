"""What happens to files while a run uses them, and runs that meet."""
import os
import shutil

from harness import case, check, check_equal
from trouble import all_equal, check_shrinking_is_an_error, fill, finish, held, start, start_long

SIDE = 1500
SLOWLY = ("-b", "1MiB", "--threads", "1")


@case
def an_input_that_shrinks_is_an_error(box):
    """Not a crash, and no result."""
    check_shrinking_is_an_error(box, start_long(box))


@case
def an_input_that_is_written_to_is_an_error(box):
    """A product of neither the old nor the new data is not given out."""
    fill(box, "a.npy", (SIDE, SIDE), 1)
    process = start(box, "a.npy", "a.npy", "-o", "d.npy", *SLOWLY)
    with held(process):
        with open(box.path("a.npy"), "r+b") as file:
            file.seek(-4, os.SEEK_END)
            file.write(b"\0\0\0\0")
    code, err = finish(process)
    check(code == 1 and "a.npy" in err and "modified" in err and err.count("\n") == 1, code, err)
    check_equal(box.listing(), ["a.npy"])


@case
def an_input_that_is_replaced_is_still_read(box):
    """A new file under its name, or none at all: what was opened is multiplied."""
    for replace in (True, False):
        fill(box, "a.npy", (SIDE, SIDE), 1)
        fill(box, "new.npy", (SIDE, SIDE), 2)
        process = start(box, "a.npy", "a.npy", "-o", "d.npy", "-q", *SLOWLY)
        with held(process):
            if replace:
                os.rename(box.path("new.npy"), box.path("a.npy"))
            else:
                os.remove(box.path("a.npy"))
        check_equal(finish(process), (0, ""))
        check(all_equal(box.path("d.npy"), (SIDE, SIDE), SIDE), "other data were read")
        os.remove(box.path("d.npy"))


@case
def scratch_may_be_emptied_meanwhile(box):
    """A cleaner that removes the scratch directory does not disturb a run that has begun."""
    process = start(box, "--size", "1500", "-o", "d.npy", "-s", "scr", "-q", "--verify", *SLOWLY)
    with held(process, count=16 << 20):
        check_equal(os.listdir(box.path("scr")), [])
        shutil.rmtree(box.path("scr"))
    check_equal(finish(process), (0, ""))
    check_equal(box.listing(), ["d.npy"])


@case
def runs_may_share_a_scratch_directory(box):
    """Eight at once, of different data, each right."""
    runs = [start(box, "--size", str(200 + 10 * i), "-s", "scr", "-q", "--verify", "--json")
            for i in range(8)]
    for process in runs:
        out, err = process.communicate(timeout=60)
        check(process.returncode == 0 and err == b"" and b'"verified":true' in
              out.replace(b" ", b""), process.returncode, out, err)
    check_equal(box.listing(), ["scr"])


@case
def of_two_writers_one_wins_whole(box):
    """20 rounds: the result is one product or the other, and no run fails for an unclear reason."""
    shape = (300, 300)
    fill(box, "one.npy", shape, 1)
    fill(box, "two.npy", shape, 2)
    for _ in range(20):
        runs = [start(box, name, name, "-o", "d.npy", "-q") for name in ("one.npy", "two.npy")]
        ends = [finish(process) for process in runs]
        check(any(code == 0 for code, _ in ends), ends)
        check(all(code == 0 or (code == 1 and "d.npy" in err) for code, err in ends), ends)
        check(any(all_equal(box.path("d.npy"), shape, value) for value in (300, 1200)),
              "a mixture", ends)
        check_equal(box.listing(), ["d.npy", "one.npy", "two.npy"])
