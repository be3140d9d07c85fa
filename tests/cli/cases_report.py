"""What the tools say about a run."""
import json
import os
import pty
import re
import subprocess
import time

import npyfile
from harness import Skipped, case, check, check_equal

TEXTS = ("op", "dtype", "device", "planner", "cache", "io_engine", "write_engine")
COUNTS = ("run", "m", "n", "k", "budget_bytes", "peak_device_bytes", "peak_host_bytes", "h2d_pages",
          "h2d_bytes", "d2h_pages", "d2h_bytes", "file_read_bytes", "file_write_bytes",
          "disk_read_bytes", "disk_write_bytes")
SECONDS = ("seconds", "read_seconds", "compute_seconds", "write_seconds", "commit_seconds",
           "stall_seconds", "read_stall_seconds", "write_stall_seconds")
PLAN = ("schedule", "bm", "bn", "bk", "h2d_bytes", "d2h_bytes", "file_read_bytes",
        "lower_bound_bytes", "peak_bytes", "seconds")
ROWS = ("op", "shape", "dtype", "device", "plan", "seconds", "gflops", "budget", "peak", "h2d",
        "d2h", "file", "disk", "cache", "verified", "output")


def inputs(box, m=200, n=100, k=150):
    box.npy("a.npy", (m, k), 1)
    box.npy("b.npy", (k, n), 1)
    return ("a.npy", "b.npy", "-o", "d.npy")


def report_of(box, *args, **how):
    lines = box.succeeds("--json", *args, **how).out.splitlines()
    check_equal(len(lines), 1, "objects")
    return json.loads(lines[0])


@case
def the_table_has_every_row_once(box):
    """One fact a line, in a fixed order, and nothing else on stdout."""
    out = box.succeeds(*inputs(box)).out
    check_equal(tuple(line.split()[0] for line in out.splitlines()), ROWS, out)
    check("200 x 100, k 150" in out and "f32" in out and "d.npy" in out, out)
    check("not asked" in out, out)


@case
def quiet_says_nothing(box):
    """-q leaves stdout and stderr empty."""
    result = box.succeeds(*inputs(box), "-q")
    check_equal(result.out, "")


@case
def verbose_says_what_was_decided(box):
    """-v tells budget, device, plan, threads and the seconds of each stage, -vv also every setting; a
    line is 'jask-gemm: LEVEL: text'. Without -v nothing of it."""
    result = box.gemm(*inputs(box), "-v", "--threads", "1")
    check(result.code == 0 and "stages" in result.out, result)
    for text in ("info: memory budget 16MiB (environment); ", " available (", "info: device host (",
                 "info: plan c-stationary (auto): 200 x 100 x 150 in tiles of ",
                 "info: BLAS threads: 1 (option)"):
        check(text in result.err, f"no {text!r}", result)
    check("debug" not in result.err, result)
    for line in result.err.splitlines():
        check(line.startswith("jask-gemm: info: "), result)
    more = box.gemm(*inputs(box), "-vv", "-v").err
    check("debug: setting planner: auto (default)" in more and "info: plan" in more, more)
    check("debug: setting memory_budget: 16MiB (environment)" in more, more)
    named = box.gemm(*inputs(box), env={"JASK_LOG_LEVEL": "info"}).err
    check("info: plan" in named and "stages" not in named, named)
    box.succeeds(*inputs(box), "-q", "-vv", env={"JASK_LOG_LEVEL": "debug"})


@case
def json_has_every_member(box):
    """One valid object with all members, in the right types."""
    report = report_of(box, *inputs(box))
    for names, kind in ((TEXTS, str), (COUNTS, int), (SECONDS, (int, float))):
        for name in names:
            check(isinstance(report.get(name), kind), f"{name} is {report.get(name)!r}")
    for name in PLAN:
        check(name in report["plan"], f"the plan has no {name}", report["plan"])
    check_equal((report["op"], report["m"], report["n"], report["k"], report["dtype"]),
                ("dot", 200, 100, 150, "f32"))
    check_equal((report["device"], report["verified"], report["verification"], report["output"]),
                ("host", None, None, "d.npy"))
    check(report["gflops"] > 0, report)


@case
def counted_bytes_are_the_planned_ones(box):
    """For every planner and transpose under a small budget; and the peak keeps to it."""
    for options in ([], ["--planner", "bytes"], ["--planner", "page"], ["--no-pipeline"],
                    ["--beta", "1", "--c", "c.npy"]):
        args = inputs(box)
        box.npy("c.npy", (200, 100), 1, order="F")
        report = report_of(box, *args, "-b", "128KiB", *options)
        for name in ("h2d_bytes", "d2h_bytes", "file_read_bytes", "file_write_bytes"):
            check_equal(report[name], report["plan"].get(name, report[name]), f"{name} {options}")
        check(report["peak_device_bytes"] <= report["budget_bytes"] == 131072, report)
        check_equal(report["file_write_bytes"], 200 * 100 * 4, options)
        check_equal(report["plan"], json.loads(
            box.succeeds(*args, "-b", "128KiB", *options, "--plan", "--json").out), options)


@case
def repeated_runs_report_each(box):
    """--repeat 3 writes three objects, or three tables."""
    args = inputs(box)
    lines = box.succeeds(*args, "--repeat", "3", "--json").out.splitlines()
    check_equal([json.loads(line)["run"] for line in lines], [1, 2, 3])
    out = box.succeeds(*args, "--repeat", "3").out
    check_equal(re.findall(r"^run +(.*)$", out, re.M), ["1 of 3", "2 of 3", "3 of 3"])


@case
def verification_is_reported(box):
    """--verify gives true with its deviations, for named results and for those in scratch."""
    report = report_of(box, *inputs(box), "--verify")
    check_equal(report["verified"], True)
    check(0 <= report["verification"]["max_z"] <= 8, report)
    report = report_of(box, "--size", "100x50x70", "--verify", "--beta", "2", "--alpha", "-1")
    check_equal((report["verified"], report["output"]), (True, None))
    args = inputs(box)
    out = box.succeeds(*args, "--verify").out
    check(re.search(r"^verified +yes", out, re.M) and "not checked" not in out, out)
    box.npy("a.npy", (200, 150), float("inf"))
    out = box.succeeds(*args, "--verify").out
    check(re.search(r"^verified +yes.* 200 rows of Inf or NaN not checked", out, re.M), out)


def wrong_blas(box):
    """The environment of a tool whose BLAS is that of wrong_blas.c."""
    if not box.wrong_blas_path:
        raise Skipped("built without a BLAS library")
    asan = os.environ.get("ASAN_OPTIONS", "")
    return {"LD_PRELOAD": box.wrong_blas_path, "ASAN_OPTIONS": asan + ":verify_asan_link_order=0"}


@case
def a_blas_that_does_not_know_the_processor_is_told(box):
    """OpenBLAS with kernels of before AVX2 on a processor that has it: jask-info names them and what to do, a
    product warns once and reports it, -q is silent; and so are all where OPENBLAS_CORETYPE is set."""
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        flags = next((line.split() for line in lines if line.startswith("flags")), [])
    if "avx2" not in flags or "fma" not in flags:
        raise Skipped("a processor without AVX2 and FMA")
    env = {**wrong_blas(box), "WRONG_BLAS_CORE": "Nehalem", "OPENBLAS_CORETYPE": None}
    out = box.succeeds(tool="info", env=env).out
    check(re.search(r"^device +host: .*\(Nehalem kernels\).*\n +.*its Nehalem kernels.*", out, re.M), out)
    rows = json.loads(box.succeeds("--json", tool="info", env=env).out)["devices"]
    note = next(row["note"] for row in rows if row["name"] == "host")
    check("its Nehalem kernels make no use of AVX2" in note, note)
    args = inputs(box)
    result = box.gemm(*args, "--repeat", "2", "--json", env=env)
    check_equal((result.code, result.err), (0, f"jask-gemm: warning: {note}\n"))
    check_equal([json.loads(line)["note"] for line in result.out.splitlines()], [note] * 2)
    check_equal(report_of(box, *args, "-q", env=env)["note"], note)
    env["OPENBLAS_CORETYPE"] = "Nehalem"
    check_equal(report_of(box, *args, env=env)["note"], "")
    out = box.succeeds(tool="info", env=env).out
    check("(Nehalem kernels)" in out and "AVX2" not in out, out)


@case
def wrong_results_are_found(box):
    """A BLAS that gets one element wrong: unnoticed without --verify, exit 4 with it, and said on
    stderr, in the table and in JSON."""
    env = wrong_blas(box)
    args = inputs(box)
    check_equal(report_of(box, *args, env=env)["verified"], None)
    first, second = box.read("d.npy").values[:2]
    check(first > 150 and second == 150, "the wrong BLAS is not in use", first, second)
    result = box.gemm(*args, "--verify", "--json", env=env)
    check(result.code == 4 and result.err.count("\n") == 1, result)
    check("'d.npy' is not the product" in result.err and "row 0" in result.err, result)
    report = json.loads(result.out)
    check_equal((report["verified"], report["verification"]["worst_row"]), (False, 0))
    result = box.gemm(*args, "--verify", "--repeat", "2", env=env)
    check(result.code == 4 and len(re.findall(r"^verified +NO", result.out, re.M)) == 2, result)


@case
def failures_are_objects_too(box):
    """With --json a failure writes {"error": ...} on stdout and its line on stderr."""
    result = box.fails(3, [], *inputs(box), "--json", "-b", "1")
    error = json.loads(result.out)["error"]
    check_equal((error["code"], error["exit"]), ("budget", 3))
    check(error["message"] in result.err, result)


@case
def times_are_those_of_the_clock(box):
    """Reported seconds are no more than the process took, and GFLOP/s follow from them."""
    start = time.monotonic()
    report = report_of(box, "--size", "1200", "-b", "4MiB")
    wall = time.monotonic() - start
    check(0 < report["seconds"] <= wall, report["seconds"], wall)
    flops = 2 * 1200 ** 3 / report["seconds"] / 1e9
    check(abs(report["gflops"] - flops) < 1e-3 * flops, report["gflops"], flops)


@case
def a_second_run_is_warm(box):
    """Files just read come from memory, and the report says so."""
    args = inputs(box)
    report_of(box, *args)
    report = report_of(box, *args)
    check_equal((report["cache"], report["disk_read_bytes"]), ("warm", 0))


@case
def plans_are_printed_and_nothing_is_done(box):
    """--plan as text and as JSON, for files and for sizes that no disk here could hold."""
    args = inputs(box)
    before = box.snapshot()
    text = box.succeeds(*args, "--plan").out
    check("c-stationary" in text and "200 x 100 x 150" in text, text)
    plan = json.loads(box.succeeds("--plan", "--json", *args[:2]).out)
    check(all(name in plan for name in PLAN), plan)
    start = time.monotonic()
    plan = json.loads(box.succeeds("--size", "2000000x3000000x4000000", "--plan", "--json").out)
    check(time.monotonic() - start < 1, "planning took too long")
    check(plan["h2d_bytes"] > 1 << 50, plan)
    check_equal(box.snapshot(), before, "files")


@case
def plans_for_sizes_are_those_of_files(box):
    """--size --plan gives what the same shapes on disk give."""
    inputs(box)
    for options in ([], ["--planner", "page"], ["-b", "64KiB"], ["--no-pipeline"]):
        files = box.succeeds("a.npy", "b.npy", "--plan", "--json", *options).out
        sizes = box.succeeds("--size", "200x100x150", "--plan", "--json", *options).out
        check_equal(json.loads(sizes), json.loads(files), options)


def slow_run(box, side):
    """Arguments of a product that takes its time: zeros, so that no input has to be made."""
    npyfile.write_sparse(box.path("zero.npy"), (side, side), "<f8")
    return ("zero.npy", "zero.npy", "-o", "d.npy", "-b", "8MiB", "--threads", "1")


@case
def progress_is_silent_unless_asked(box):
    """Without a terminal nothing is shown by itself."""
    box.succeeds(*inputs(box), "--progress", "auto")
    box.succeeds(*inputs(box), "--progress", "never")


@case
def progress_lines_rise_to_100_percent(box):
    """A plain line at least every 2 seconds when asked, on stderr, without control characters."""
    start = time.monotonic()
    result = box.gemm(*slow_run(box, 2500), "--progress", "always", "-q")
    took = time.monotonic() - start
    check(result.code == 0 and result.out == "", result)
    lines = result.err.splitlines()
    form = re.compile(r"product +(\d+)%  step \d+ of \d+  [\d.]+ GB/s  ")
    percents = [int(form.match(line)[1]) for line in lines]
    check(percents == sorted(percents) and percents[-1] == 100, result)
    check(percents.count(100) == 1, result)
    check(len(lines) >= int(took / 2.5), f"{len(lines)} lines in {took} s", result)
    check(all(" " <= c or c == "\n" for c in result.err), repr(result.err))


def on_a_terminal(box, *args):
    """Exit code and what the tool wrote to the terminal that was its stderr."""
    master, slave = pty.openpty()
    with box.start("gemm", *args, stdout=subprocess.PIPE, stderr=slave) as process:
        os.close(slave)
        written = b""
        while True:
            try:
                chunk = os.read(master, 65536)
            except OSError:
                break
            if not chunk:
                break
            written += chunk
        process.communicate()
    os.close(master)
    return process.returncode, written.decode()


@case
def a_terminal_gets_a_bar(box):
    """Drawn over itself, at most 5 times a second, ended by a whole line; none with never or -q."""
    args = slow_run(box, 2200)
    start = time.monotonic()
    code, text = on_a_terminal(box, *args)
    took = time.monotonic() - start
    check_equal(code, 0, text)
    draws = text.split("\r")[1:]
    check("100%" in text and text.endswith("\n"), repr(text))
    check(text.count("\n") == 1, repr(text))
    check(took < 1 or 2 <= len(draws) <= 5 * took + 2, repr(text), took)
    check(all(len(draw.rstrip()) <= 80 for draw in draws), repr(text))
    for silent in (["--progress", "never"], ["-q"]):
        check_equal(on_a_terminal(box, *inputs(box), *silent), (0, ""), silent)


@case
def the_report_names_the_device_that_worked(box):
    """The host, when no other can be had."""
    for env in ({}, {"CUDA_VISIBLE_DEVICES": ""}, {"CUDA_VISIBLE_DEVICES": "99"}):
        check_equal(report_of(box, *inputs(box), env=env)["device"], "host", env)


def spans_of(path):
    """track -> what happened on it, in order of time; checks that spans lie in or after one another."""
    with open(path, encoding="ascii") as file:
        events = json.load(file)["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in events
             if e["ph"] == "M" and e["name"] == "thread_name"}
    tracks = {}
    for event in events:
        if event["ph"] == "X":
            check(event["ts"] >= 0 and event["dur"] >= 0, event)
            tracks.setdefault(names[event["tid"]], []).append(event)
    for spans in tracks.values():
        spans.sort(key=lambda e: (e["ts"], -e["dur"]))
        open_ends = []
        for event in spans:
            end = event["ts"] + event["dur"]
            while open_ends and open_ends[-1] <= event["ts"] + 0.002:
                open_ends.pop()
            # Times are cut to nanoseconds.
            check(not open_ends or end <= open_ends[-1] + 0.002, "overlap", event)
            open_ends.append(end)
    return tracks


@case
def traces_agree_with_the_report(box):
    """--trace: one span a step, pieces and bands of every thread, and their seconds add up to what the
    report says; its bytes do not depend on the locale."""
    args = inputs(box, 700, 600, 500)
    report = report_of(box, *args, "-b", "1MiB", "--trace", "t.json", "--io-threads", "3")
    plain = report_of(box, *args, "-b", "1MiB")
    check_equal(report["plan"], plain["plan"])
    tracks = spans_of(box.path("t.json"))
    check_equal(sorted(tracks), ["operation", "products", "reader 1", "reader 2", "reader 3",
                                 "writer"])
    by_name = {}
    for track, spans in tracks.items():
        for event in spans:
            key = (track.split()[0], event["name"].split()[0])
            by_name.setdefault(key, []).append(event)
    steps = [e["args"]["step"] for e in by_name["products", "step"]]
    check_equal(steps, list(range(report["plan"]["steps"])))
    bands = [e["args"]["band"] for e in by_name["writer", "write"]]
    check_equal(bands, list(range(len(bands))))
    for key, seconds in ((("operation", "dot"), "seconds"), (("operation", "commit"), "commit_seconds"),
                         (("products", "product"), "compute_seconds"),
                         (("products", "wait"), "stall_seconds"), (("reader", "read"), "read_seconds"),
                         (("reader", "wait"), "read_stall_seconds"),
                         (("writer", "write"), "write_seconds"),
                         (("writer", "wait"), "write_stall_seconds")):
        spans = by_name.get(key, [])
        total = sum(e["dur"] for e in spans) / 1e6
        slack = 1e-3 if key[1] == "dot" else 1e-8 * (1 + len(spans))
        check(abs(total - report[seconds]) <= slack, key, total, report[seconds])


@case
def a_trace_that_cannot_be_had(box):
    """A place that takes no file stops the run before it begins; a run that fails leaves its timeline."""
    args = inputs(box)
    result = box.gemm(*args, "--trace", "none/t.json")
    check(result.code == 1 and "'none" in result.err, result)
    check(not os.path.exists(box.path("d.npy")), "a result")
    result = box.gemm(*args[:2], "-o", "none/d.npy", "--trace", "t.json")
    check_equal(result.code, 1, result)
    check_equal([e["name"] for e in spans_of(box.path("t.json"))["operation"]], ["dot"])
