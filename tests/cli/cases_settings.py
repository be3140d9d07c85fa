"""Every setting: default, environment before default, option before environment; and budgets as people
write them."""
import json
import os
import re

from harness import case, check, check_equal

# name -> default, a value in the environment, options that say otherwise, what is then in force
SETTINGS = {
    "memory_budget": (None, "24 MiB", ["-b", "8M"], "8MiB"),
    "host_budget": (None, "64MB", ["--host-budget", "32Ki"], "32KiB"),
    "scratch_dir": (".jask_scratch", "here", ["-s", "there"], "there"),
    "allow_tmpfs": ("0", "no", ["--allow-tmpfs"], "1"),
    "device": ("auto", "host", ["-d", "host:0"], "host:0"),
    "planner": ("auto", "page", ["--planner", "bytes"], "bytes"),
    "machine": (None, "disk=1G", ["--machine", "flops=51T,disk=2G"], "flops=51T,disk=2G"),
    "pipeline": ("1", "TRUE", ["--no-pipeline"], "0"),
    "sync": ("1", "on", ["--no-sync"], "0"),
    "io_threads": ("4", "7", ["--io-threads", "3"], "3"),
    "io": ("auto", "direct", ["--io", "pread"], "pread"),
    "precision": ("f32", "tf32", ["--precision", "f32"], "f32"),
    "deterministic": ("0", "no", ["--deterministic"], "1"),
    "cublas": (None, "/no/such/libcublas.so", None, None),
    "log_level": ("warn", "debug", None, None),
}


def in_force(box, name, *options, env=None):
    """The rows of jask-info, read with nothing else set."""
    clean = {"JASK_MEMORY_BUDGET": None, "JASK_SYNC": None}
    result = box.info("--json", *options, env={**clean, **(env or {})})
    rows = {s["name"]: s for s in json.loads(result.out.splitlines()[0])["settings"]}
    check_equal(sorted(rows), sorted(SETTINGS), "settings")
    return rows[name]["value"], rows[name]["source"], rows[name]["environment"]


@case
def every_setting_is_taken_from_its_variable_and_options_go_before(box):
    """For each row of the table, as jask-info shows it."""
    for name, (default, text, options, value) in SETTINGS.items():
        got, source, variable = in_force(box, name)
        check_equal((got, source, variable), (default, "default", "JASK_" + name.upper()))
        check_equal(in_force(box, name, env={variable: text})[:2], (text, "environment"), name)
        if options:
            got = in_force(box, name, *options, env={variable: text})
            check_equal(got[:2], (value, "option"), name)


@case
def settings_act_and_are_not_only_shown(box):
    """Variables reach the product: scratch is made there, the plan is of that planner and budget."""
    box.npy("a.npy", (300, 300), 1)
    out = box.succeeds("a.npy", "a.npy", "-o", "d.npy", "--json",
                       env={"JASK_SCRATCH_DIR": "deep/er", "JASK_PLANNER": "page",
                            "JASK_MEMORY_BUDGET": "0.5MiB", "JASK_IO_THREADS": "5",
                            "JASK_PIPELINE": "off", "JASK_DEVICE": "host"}).out
    report = json.loads(out)
    check(os.path.isdir(box.path("deep/er")), "no scratch directory")
    check_equal((report["planner"], report["budget_bytes"], report["plan"]["schedule"]),
                ("page", 1 << 19, "page"))


@case
def every_size_that_is_shown_can_be_given(box):
    """Sizes out of help, tables, notes and errors parse, to the size that they stand for."""
    box.npy("a.npy", (300, 300), 1)
    args = ("a.npy", "a.npy", "-o", "d.npy")
    shown = box.gemm("--help").out + box.info(env={"JASK_MEMORY_BUDGET": None}).out
    for how in ({"env": {"JASK_MEMORY_BUDGET": None}}, {"env": {"JASK_MEMORY_BUDGET": "99T"}},
                {"env": {"JASK_MEMORY_BUDGET": "1234567"}}, {"env": {"JASK_MEMORY_BUDGET": "1"}},
                {"env": {"JASK_MEMORY_BUDGET": "5foos"}}):
        result = box.gemm(*args, "-vv", **how)
        shown += result.out + result.err
    sizes = sorted(set(re.findall(r"(?<![\w.])\d[\d.]*\s?[KMGT]i?B?\b", shown)))
    check(len(sizes) > 10, sizes)
    for size in sizes:
        # What the disk moved may be less than the least budget; too little is read all the same.
        result = box.gemm(*args, "-q", "-b", size)
        check(result.code == 0 or (result.code == 3 and "is too small" in result.err), result)
        result = box.succeeds("--json", "-b", size, tool="info")
        value = [s["value"] for s in json.loads(result.out)["settings"]
                 if s["name"] == "memory_budget"][0]
        number, unit = re.fullmatch(r"([\d.]+)\s?([KMGT]).*", size).groups()
        expected = float(number) * 1024 ** (" KMGT".index(unit))
        got, got_unit = re.fullmatch(r"([\d.]+)([KMGT])?.*", value).groups()
        check(abs(float(got) * 1024 ** " KMGT".index(got_unit or " ") - expected) <= 1, size, value)


@case
def a_described_machine_is_planned_for_and_not_run_on(box):
    """A card that is not there: its memory, its rates, and what binds; a slow disk binds what is run, too."""
    card = "gpu=4G,host=1T,flops=51T,h2d=55G,disk=2G,memory=4T"
    plan = json.loads(box.succeeds("--size", "65536", "--plan", "--json", "--machine", card).out)
    check_equal((plan["budget_bytes"], plan["bottleneck"]), (4 << 30, "read"))
    check_equal(plan["compute_bound_budget_bytes"], None, "the inputs are read once already")
    check(abs(plan["stage_seconds"]["read"] - 2 * 4 * 65536 ** 2 / 2e9) < 0.01, plan)
    plan = json.loads(box.succeeds("--size", "512", "--plan", "--json", env={"JASK_MACHINE": "disk=1M"}).out)
    check_equal(plan["bottleneck"], "read")
    box.succeeds("--size", "64", "-q", "--machine", "disk=1M")
    box.fails(1, ["machine", "planned for it"], "--size", "64", "-q", "--machine", card)
    box.fails(1, ["'speed=1'", "disk_read"], "--size", "64", "-q", "--machine", "disk=2G,speed=1")


@case
def a_budget_of_one_block_is_enough(box):
    """4096^3 in the memory of one 1024 x 1024 tile: smaller tiles are taken."""
    for planner in ("auto", "bytes", "page"):
        out = box.succeeds("--size", "4096", "--plan", "--json", "-b", "4194304", "--planner",
                           planner).out
        plan = json.loads(out)
        check(plan["peak_bytes"] <= 4194304, plan)


@case
def refusals_say_what_a_budget_counts(box):
    """Need, budget, what is counted and the least that works, for every way of running; it works."""
    box.npy("a.npy", (40, 40), 1)
    box.npy("f.npy", (40, 40), 1, order="F")
    ways = [[], ["--planner", "page"], ["--planner", "bytes"], ["--no-pipeline"],
            ["--io-threads", "64"], ["--c", "a.npy", "--beta", "2"],
            ["--c", "f.npy", "--beta", "2"], ["--c", "f.npy", "--beta", "2", "--io-threads", "64"],
            ["--c", "f.npy", "--beta", "2", "--planner", "page", "--no-pipeline"], ["--ta", "--tb"],
            ["--alpha", "0", "--beta", "2", "--c", "f.npy"]]
    for way in ways:
        args = ("a.npy", "f.npy", "-o", "d.npy", *way)
        result = box.fails(3, ["1 bytes", "tiles of A, B and C", "raise the memory budget to"], *args,
                           "-b", "1")
        need = re.search(r"raise the memory budget to (\d+)", result.err).group(1)
        check(f"needs at least {need} bytes" in result.err, result)
        box.fails(3, [need], *args, "-b", str(int(need) - 1))
        box.succeeds(*args, "-q", "-b", need)
        expected = (0 if "--alpha" in way else 40) + (2 if "--c" in way else 0)
        check_equal(set(box.read("d.npy").values), {expected}, way)
        os.remove(box.path("d.npy"))
