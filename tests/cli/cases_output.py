"""Where results go, and what stays as it was."""
import os

from harness import case, check, check_equal

A = [1, 2, 3, 4]
SQUARE = [7, 10, 15, 22]


def square(box):
    box.npy("a.npy", (2, 2), A)


@case
def nothing_but_the_result_appears(box):
    """After a success there is one new file, and the scratch directory is empty or absent."""
    square(box)
    for sync in ("0", "1"):
        box.succeeds("a.npy", "a.npy", "-o", "d.npy", "-q", env={"JASK_SYNC": sync})
        check_equal(box.read("d.npy").values, SQUARE)
        check_equal(box.listing(), ["a.npy", "d.npy"])


@case
def results_replace_what_was_there(box):
    """An older file under the name is replaced, whole."""
    square(box)
    box.write("d.npy", b"x" * 1000000)
    check_equal(box.product("a.npy", "a.npy").values, SQUARE)
    check_equal(os.path.getsize(box.path("d.npy")), 128 + 16)


@case
def failures_leave_the_target_alone(box):
    """Whatever fails, an older result survives."""
    square(box)
    box.npy("b.npy", (3, 3), 1)
    box.write("d.npy", b"precious")
    box.fails(1, ["2 x 2"], "a.npy", "b.npy", "-o", "d.npy")
    box.fails(3, [], "a.npy", "a.npy", "-o", "d.npy", "-b", "1")
    with open(box.path("d.npy"), "rb") as file:
        check_equal(file.read(), b"precious")


@case
def results_may_replace_an_input(box):
    """Under its own name, ./ and //, through a symlink: right values, and a symlink stays one."""
    names = ("a.npy", "./a.npy", ".//a.npy", "link", box.path("a.npy"))
    os.symlink("a.npy", box.path("link"))
    for name in names:
        for options in ([], ["--verify"], ["--repeat", "2"]):
            square(box)
            result = box.succeeds("a.npy", "a.npy", "-o", name, *options)
            check(not options[:1] == ["--verify"] or "verified  yes" in result.out, result)
            check_equal(box.read("a.npy").values, SQUARE, f"{name} {options}")
            check(os.path.islink(box.path("link")), "the symlink was replaced")


@case
def a_hard_link_keeps_the_input(box):
    """A result that bears a second name of an input leaves the first as it was."""
    square(box)
    os.link(box.path("a.npy"), box.path("other.npy"))
    box.succeeds("a.npy", "a.npy", "-o", "other.npy", "-q")
    check_equal(box.read("a.npy").values, A)
    check_equal(box.read("other.npy").values, SQUARE)


@case
def a_dangling_link_names_the_result(box):
    """A symlink to a file that is not there yet: the file appears there."""
    square(box)
    os.symlink("target.npy", box.path("link"))
    box.succeeds("a.npy", "a.npy", "-o", "link", "-q")
    check(os.path.islink(box.path("link")), "the symlink was replaced")
    check_equal(box.read("target.npy").values, SQUARE)


@case
def impossible_outputs_are_refused(box):
    """A directory, a missing directory, a FIFO, a device, a name that is too long."""
    square(box)
    os.mkdir(box.path("dir"))
    os.mkfifo(box.path("fifo"))
    for name in ("dir", "none/d.npy", "fifo", "/dev/null", "a.npy/d.npy"):
        box.fails(1, [name], "a.npy", "a.npy", "-o", name)
    box.fails(1, ["too long"], "a.npy", "a.npy", "-o", "x" * 300)


@case
def repeated_runs_need_no_output(box):
    """--repeat and --size put results in scratch, and leave none."""
    square(box)
    box.succeeds("a.npy", "a.npy", "--repeat", "3", "-q")
    box.succeeds("--size", "5x6x7", "-q")
    check_equal(box.listing(), ["a.npy"])


@case
def made_inputs_have_the_asked_shapes(box):
    """--size MxNxK gives an M x N result for all transposes, with C when beta is not 0; the same
    numbers every time."""
    for options in ([], ["--ta"], ["--tb"], ["--ta", "--tb"], ["--beta", "0.5"], ["--size", "0"]):
        shape = (0, 0) if "--size" in options else (30, 20)
        kept = []
        for _ in range(2):
            box.succeeds("--size", "30x20x10", "--dtype", "f64", "-o", "d.npy", "-q", *options)
            kept.append(box.read("d.npy"))
        check_equal((kept[0].shape, kept[0].descr), (shape, "<f8"), options)
        check(kept[0].raw == kept[1].raw, "different numbers", options)
        check(shape == (0, 0) or 0 < max(map(abs, kept[0].values)) < 11, kept[0].values)


@case
def variables_of_other_programs_change_nothing(box):
    """Home and temp directories that do not exist, CUDA variables, a locale with decimal commas."""
    square(box)
    for name, value in (("TMPDIR", "/nonexistent"), ("HOME", "/nonexistent"),
                        ("LC_ALL", "de_DE.UTF-8"), ("CUDA_VISIBLE_DEVICES", "abc")):
        d = box.product("a.npy", "a.npy", "--alpha", "1.5", env={name: value})
        check_equal(d.values, [1.5 * v for v in SQUARE], name)
