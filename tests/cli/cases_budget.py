"""Budgets, settings from the environment, scratch directories."""
import json
import os
import re
import time

from harness import Skipped, case, check, check_equal

GOOD_16M = ("16MiB", "16M", "16mb", "16777216", " 16 MiB ", "0.015625GiB", "1.6777216e7", "+16MB",
            "16384K", "16Mi")
BAD = ("", " ", "-1", "-4GB", "-0", "GB", "5foos", "4G4", "4.4.4G", "1e400", "99999999999G", "nan",
       "inf", "nanGB", "0", "0.5", "0x10", "1,5GiB", "1_000MB", "1KBB")


def inputs(box):
    box.npy("a.npy", (2, 2), [1, 2, 3, 4])
    return ("a.npy", "a.npy", "-o", "d.npy")


@case
def sizes_are_powers_of_1024(box):
    """The same 16 MiB in ten spellings, as option and as variable."""
    args = inputs(box)
    for text in GOOD_16M:
        for given in ({"env": {"JASK_MEMORY_BUDGET": text}}, {"option": ["-b", text]}):
            out = box.succeeds(*args, "--json", *given.get("option", []), env=given.get("env")).out
            check_equal(json.loads(out)["budget_bytes"], 16777216, given)


@case
def unreadable_sizes_are_refused(box):
    """As option: usage error quoting option and value. As variable: failure quoting both."""
    args = inputs(box)
    for text in BAD:
        box.fails(2, ["--budget", f"'{text}'"], *args, "-b", text)
        box.fails(2, ["--host-budget", f"'{text}'"], *args, "--host-budget", text)
        box.fails(1, ["JASK_MEMORY_BUDGET", f"'{text}'"], *args, env={"JASK_MEMORY_BUDGET": text})


@case
def other_variables_are_refused_by_name(box):
    """What cannot be read or had in any variable is said, with its name and value."""
    args = inputs(box)
    for name, text in (("JASK_DEVICE", "gpu9"), ("JASK_PLANNER", "fast"), ("JASK_IO_THREADS", "0"),
                       ("JASK_PIPELINE", "perhaps"), ("JASK_SYNC", "2"), ("JASK_HOST_BUDGET", "x"),
                       ("JASK_ALLOW_TMPFS", "")):
        needles = [f"'{text}'"] if name == "JASK_DEVICE" else [name, f"'{text}'"]
        box.fails(1, needles, *args, env={name: text})


@case
def options_go_before_the_environment(box):
    """-b wins over JASK_MEMORY_BUDGET, --planner over JASK_PLANNER."""
    out = box.succeeds(*inputs(box), "--json", "-b", "8M", "--planner", "page",
                       env={"JASK_PLANNER": "bytes"}).out
    report = json.loads(out)
    check_equal((report["budget_bytes"], report["planner"]), (8 << 20, "page"))


@case
def too_small_a_budget_names_the_least_that_works(box):
    """Exit 3 with need and budget, and nothing written; the printed need works, one byte less does
    not."""
    for shape, options in (((2, 2), []), ((300, 300), []), ((300, 300), ["--planner", "page"]),
                           ((300, 300), ["--planner", "bytes", "--no-pipeline"])):
        box.npy("a.npy", shape, 1)
        args = ("a.npy", "a.npy", "-o", "d.npy", *options)
        result = box.fails(3, ["1"], *args, "-b", "1")
        need = max(int(n) for n in re.findall(r"\b\d+\b", result.err))
        box.fails(3, [need, need - 1], *args, "-b", str(need - 1))
        box.succeeds(*args, "-b", str(need), "-q")
        check_equal(set(box.read("d.npy").values), {shape[0]}, need)
        os.remove(box.path("d.npy"))
    start = time.monotonic()
    box.fails(3, [], "--size", "20000", "-b", "1")
    check(time.monotonic() - start < 2, "inputs were made before the budget was looked at")


@case
def without_a_budget_half_the_memory_is_taken(box):
    """One line says so, -q does not; the budget in the report is a part of what there is."""
    args = inputs(box)
    none = {"JASK_MEMORY_BUDGET": None}
    result = box.gemm(*args, "--json", env=none)
    check(result.code == 0 and result.err.count("\n") == 1 and "half" in result.err, result)
    budget = json.loads(result.out)["budget_bytes"]
    available = json.loads(box.info("--json", env=none).out)["available_bytes"]
    check(available / 4 < budget < available, f"{budget} of {available}")
    box.succeeds(*args, "-q", env=none)


@case
def a_budget_beyond_the_memory_is_cut(box):
    """To 0.8 of what is available, and one line says so."""
    result = box.gemm(*inputs(box), "--json", "-b", "999T")
    check(result.code == 0 and result.err.count("\n") == 1, result)
    check("warning: memory budget cut from 999TiB to " in result.err, result)
    available = json.loads(box.info("--json").out)["available_bytes"]
    check(json.loads(result.out)["budget_bytes"] < available, result)
    box.succeeds(*inputs(box), "-q", "-b", "999T")


@case
def info_shows_settings_and_where_they_come_from(box):
    """Option, environment, default or not set; as text and as JSON."""
    def settings(*args, env=None):
        out = box.succeeds("--json", *args, tool="info", env=env).out
        return {s["name"]: (s["value"], s["source"]) for s in json.loads(out)["settings"]}
    check_equal(settings()["memory_budget"], ("16MiB", "environment"))
    check_equal(settings()["planner"], ("auto", "default"))
    check_equal(settings(env={"JASK_PLANNER": "page"})["planner"], ("page", "environment"))
    check_equal(settings("--planner", "bytes")["planner"], ("bytes", "option"))
    check_equal(settings(env={"JASK_MEMORY_BUDGET": None})["memory_budget"], (None, "default"))
    text = box.succeeds(tool="info", env={"JASK_MEMORY_BUDGET": None}).out
    for word in ("jask ", "device ", "host", "memory ", "not set", "JASK_SCRATCH_DIR"):
        check(word in text, f"no {word!r} in", text)


@case
def info_shows_what_cannot_be_honoured(box):
    """A bad variable is shown among the settings, and the reason follows."""
    result = box.info(env={"JASK_MEMORY_BUDGET": "5foos"})
    check(result.code == 1 and "5foos" in result.out and "JASK_MEMORY_BUDGET" in result.err, result)


@case
def scratch_directories_that_cannot_be_used_are_refused(box):
    """A file, a path that cannot be made, the empty name: named with the setting and the reason."""
    args = inputs(box)
    box.write("file", b"x")
    for directory in ("file", "/proc/no/such", "/proc", "file/below"):
        box.fails(1, [directory, "JASK_SCRATCH_DIR"], *args, env={"JASK_SCRATCH_DIR": directory})
        box.fails(1, [directory], *args, "-s", directory)
    box.fails(1, ["JASK_SCRATCH_DIR"], *args, env={"JASK_SCRATCH_DIR": ""})
    box.fails(2, ["--scratch"], *args, "-s", "")


@case
def scratch_in_memory_needs_a_word(box):
    """tmpfs is refused by path and type, also behind a symlink; --allow-tmpfs accepts it."""
    directory = "/dev/shm"
    with open("/proc/mounts", encoding="utf-8") as mounts:
        if not any(line.split()[1:3] == [directory, "tmpfs"] for line in mounts):
            raise Skipped("/dev/shm is no tmpfs here")
    args = inputs(box)
    os.symlink(directory, box.path("link"))
    box.fails(1, [directory, "tmpfs"], *args, "-s", directory)
    box.fails(1, ["tmpfs"], *args, "-s", "link")
    box.fails(1, [directory, "tmpfs"], *args, env={"JASK_SCRATCH_DIR": directory})
    box.succeeds(*args, "-q", "-s", directory, "--allow-tmpfs")
    box.succeeds(*args, "-q", "-s", "link", env={"JASK_ALLOW_TMPFS": "1"})


@case
def results_larger_than_the_disk_are_refused_at_once(box):
    """An outer product of small vectors can need more than there is: bytes needed and free are said
    before any work."""
    disk = os.statvfs(box.dir)
    side = int((disk.f_bavail * disk.f_frsize / 2) ** 0.5)
    if side > 2000000:
        raise Skipped("the disk is too large for small inputs")
    box.npy("a.npy", (side, 1), 1, descr="<f8")
    start = time.monotonic()
    box.fails(1, [4096 + side * side * 8], "a.npy", "a.npy", "--tb", "-o", "d.npy")
    check(time.monotonic() - start < 10, "took too long")


@case
def unknown_devices_are_refused_with_a_list(box):
    """A named device that cannot be had is an error that lists those there are."""
    box.fails(1, ["'gpu9'", "host"], *inputs(box), "-d", "gpu9")
