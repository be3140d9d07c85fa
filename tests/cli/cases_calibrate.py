"""Measuring the machine once, and what becomes of that later."""
import json
import os
import resource
import signal
import subprocess
import time

from harness import case, check, check_equal

PRODUCT = ("--size", "512", "--plan")


def machine(box, *options, **how):
    """The machine that jask-info shows: value and source."""
    rows = json.loads(box.succeeds("--json", *options, tool="info", **how).out)["settings"]
    return [(row["value"], row["source"]) for row in rows if row["name"] == "machine"][0]


def kept(box):
    """The file that keeps the calibration."""
    folder = box.path("cache/jask")
    names = os.listdir(folder)
    check_equal(len(names), 1, "files in the cache")
    return os.path.join(folder, names[0])


@case
def a_measured_machine_is_planned_with_until_told_otherwise(box):
    """Rates are shown and kept; jask-info and --plan say where they came from; JASK_MACHINE and
    --machine go before; what is in doubt is left with one note and the run goes on."""
    result = box.info("--calibrate", "--json", "-d", "host")
    check(result.code == 0 and "measuring host" in result.err and ".jask_scratch" in result.err, result)
    found = json.loads(result.out)
    for name in ("flops_f32", "flops_f64", "h2d", "d2h", "memory", "disk_read", "disk_write", "runs", "seconds"):
        check(found[name] and found[name] > 0, name, found)
    check(",runs=" in found["machine"], found["machine"])
    check_equal((found["device"], found["duplex"]), ("host", None))
    check_equal(found["path"], kept(box))
    check_equal(os.listdir(box.path(".jask_scratch")), [], "scratch")
    check_equal(os.stat(box.path("cache/jask")).st_mode & 0o77, 0, "others may look into the cache")

    check_equal(machine(box), (found["machine"], "calibration"))
    check(f"machine  {found['machine']} (calibration)\n" in box.succeeds(*PRODUCT).out, "--plan")
    check_equal(machine(box, "--machine", "disk=1G"), ("disk=1G", "option"))
    check_equal(machine(box, env={"JASK_MACHINE": "disk=2G"}), ("disk=2G", "environment"))
    check("(option)" in box.succeeds(*PRODUCT, "--machine", "gpu=80G,disk=1G").out, "--plan --machine")
    plan = json.loads(box.succeeds(*PRODUCT, "--json").out)
    told = json.loads(box.succeeds(*PRODUCT, "--json", "--machine", found["machine"]).out)
    check_equal(plan, told, "the plan of a calibration")

    with open(found["path"], encoding="utf-8") as file:
        text = file.read()
    for spoiled, word in ((text.replace("jask machine 1", "jask machine 0"), "version"),
                          (text.replace(" core", " Core"), "measured on"),
                          (text.replace("flops=", "flips="), "flips="),
                          ("", "begin"), ("\0" * 5000, "too long")):
        with open(found["path"], "w", encoding="utf-8") as file:
            file.write(spoiled)
        result = box.gemm("--size", "64", "--plan")
        check(result.code == 0 and "(calibration)" not in result.out, result)
        check(result.err.count("\n") == 1 and word in result.err and "--calibrate" in result.err, result)
        box.succeeds("--size", "64", "--plan", "--machine", "disk=1G")
        box.succeeds("--size", "64", "-q")
        check_equal(box.info("--json").code, 0)


@case
def without_a_home_nothing_is_kept_and_all_else_works(box):
    """Neither XDG_CACHE_HOME nor HOME: products run in silence, --calibrate says what to set."""
    nowhere = {"XDG_CACHE_HOME": None, "HOME": None}
    box.succeeds("--size", "64", "-q", env=nowhere)
    result = box.info("--calibrate", env=nowhere)
    check(result.code == 1 and "XDG_CACHE_HOME" in result.err and result.out == "", result)
    result = box.info("--calibrate", env={"XDG_CACHE_HOME": "relative", "HOME": None})
    check(result.code == 1 and "XDG_CACHE_HOME" in result.err, result)


@case
def a_calibration_that_cannot_be_made_is_refused_at_once(box):
    """Where nothing can be kept, where the disk takes no such file, too small a budget; and with files."""
    box.write("file", b"")
    start = time.monotonic()
    for needles, options, how in (
            (["file/jask"], [], {"env": {"XDG_CACHE_HOME": box.path("file")}}),
            (["536870912", "ulimit -f"], [],
             {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))}),
            (["file", "directory"], ["-s", "file"], {}),
            (["16MiB"], ["-b", "8MiB"], {})):
        result = box.info("--calibrate", "-d", "host", *options, **how)
        check(result.code in (1, 3) and result.out == "", result)
        for needle in needles:
            check(needle in result.err, needle, result)
    check(time.monotonic() - start < 10, "refusing takes too long")
    check(not os.path.exists(box.path("cache/jask")) or os.listdir(box.path("cache/jask")) == [], "cache")
    for options in (["file"], ["--stats"], ["--machine", "disk=1G"]):
        check_equal(box.info("--calibrate", *options).code, 2)


@case
def a_signal_ends_a_calibration_without_a_trace(box):
    """SIGINT and SIGTERM while the disk is measured: exit 128+n, no file left, nothing kept."""
    for number in (signal.SIGINT, signal.SIGTERM):
        process = box.start("info", "--calibrate", "-d", "host", stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)
        process.stderr.readline()
        time.sleep(0.2)
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
        check_equal((process.returncode, out), (128 + number, b""), err)
        check_equal(os.listdir(box.path(".jask_scratch")), [], "scratch")
        check_equal(os.listdir(box.path("cache/jask")), [], "cache")
