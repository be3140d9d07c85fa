"""The command line itself."""
import os
import re
import subprocess

from harness import case, check, check_equal

MAN_DIR = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools")


def options_of(box, tool):
    return re.findall(r"^  (?:-\w,| {3}) (--[a-z-]+)", box.run(tool, "--help").out, re.M)


@case
def help_names_options_and_variables(box):
    """--help lists options and environment variables, on stdout, within 80 columns."""
    for tool in ("gemm", "info"):
        result = box.succeeds("--help", tool=tool)
        for word in ("--budget", "--json", "--scratch", "JASK_MEMORY_BUDGET", "JASK_SCRATCH_DIR",
                     "JASK_IO_THREADS", "Usage:", "Exit:"):
            check(word in result.out, f"no {word}", result)
        for line in result.out.splitlines():
            check(len(line) <= 80, f"too long: {line}")
    check(len(options_of(box, "gemm")) >= 27, options_of(box, "gemm"))


@case
def man_pages_name_every_option(box):
    """What --help lists, the manual page explains."""
    for tool in ("gemm", "info"):
        with open(os.path.join(MAN_DIR, f"jask-{tool}.1"), encoding="utf-8") as file:
            page = file.read().replace("\\-", "-")
        options = options_of(box, tool)
        check(len(options) >= 10, options)
        missing = [o for o in options if not re.search(re.escape(o) + r"\b", page)]
        check_equal(missing, [], f"jask-{tool}.1 lacks")


@case
def version_is_one_line(box):
    """--version prints name and number."""
    for tool in ("gemm", "info"):
        result = box.succeeds("--version", tool=tool)
        check(re.fullmatch(rf"jask-{tool} \d+\.\d+\.\d+\n", result.out), result)


@case
def usage_errors_name_option_value_and_remedy(box):
    """What makes no sense exits 2 before any file is looked at."""
    ab = ["a.npy", "b.npy"]
    wrong = [
        ([], ["two input files"]),
        (["a.npy"], ["two input files"]),
        ([*ab, "c.npy", "-o", "d.npy"], ["too many"]),
        (ab, ["--output"]),
        ([*ab, "-o"], ["--output", "needs a value"]),
        ([*ab, "-o", ""], ["--output", "''"]),
        ([*ab, "-o", "d.npy", "--fast"], ["--fast"]),
        ([*ab, "-o", "d.npy", "-z"], ["-z"]),
        ([*ab, "-o", "d.npy", "--json=yes"], ["--json", "takes no value"]),
        ([*ab, "-o", "d.npy", "--quiet=yes"], ["--quiet", "takes no value"]),
        ([*ab, "-o", "d.npy", "--planner", "fast"], ["--planner", "'fast'", "auto, bytes or page"]),
        ([*ab, "-o", "d.npy", "--planner", "aut"], ["'aut'"]),
        ([*ab, "-o", "d.npy", "--progress", "yes"], ["'yes'", "auto, always or never"]),
        ([*ab, "-o", "d.npy", "--io-threads", "0"], ["--io-threads", "'0'", "1 to 64"]),
        ([*ab, "-o", "d.npy", "--io-threads", "65"], ["'65'"]),
        ([*ab, "-o", "d.npy", "--threads", "2x"], ["--threads", "'2x'"]),
        ([*ab, "-o", "d.npy", "--threads", "-1"], ["'-1'"]),
        ([*ab, "-o", "d.npy", "--repeat", "0"], ["--repeat", "'0'"]),
        ([*ab, "-o", "d.npy", "--repeat", "99999999999999999999"], ["--repeat"]),
        ([*ab, "-o", "d.npy", "--dtype", "f32"], ["--dtype", "--size"]),
        ([*ab, "-o", "d.npy", "--c", "c.npy"], ["--c", "--beta"]),
        ([*ab, "-o", "d.npy", "--beta", "2"], ["--beta", "--c"]),
        (["--size", "8", "a.npy"], ["--size"]),
        (["--size", "8", "--c", "c.npy", "--beta", "1"], ["--size", "--c"]),
        (["--size", "8", "--dtype", "f16"], ["--dtype", "'f16'", "f32 or f64"]),
        (["--budget"], ["--budget", "needs a value"]),
        ([*ab, "--repeat", "1", "--resume"], ["--resume", "--output"]),
    ]
    for size in ("", "x", "8x8", "8x8x8x8", "8x8x", "x8x8", "-8", "8.0", "1e3", " 8", "8 ",
                 "9223372036854775808", "8xx8x8"):
        wrong.append((["--size", size], ["--size", f"'{size}'", "MxNxK"]))
    for args, needles in wrong:
        box.fails(2, needles, *args)


@case
def factors_are_finite_decimal_numbers(box):
    """--alpha and --beta refuse nan, inf, hexadecimal, blanks, commas and what overflows."""
    for text in ("nan", "inf", "-inf", "NaN", "infinity", "0x10", "1,5", " 1", "1 ", "", "1e", "e5",
                 ".", "+", "--1", "1e999", "-1e999", "1e-999", "1.2.3", "1f", "1_0"):
        box.fails(2, ["--alpha", f"'{text}'", "decimal"], "a", "b", "-o", "d", "--alpha", text)
        box.fails(2, ["--beta", f"'{text}'"], "a", "b", "-o", "d", "--c", "c", "--beta", text)


@case
def factors_are_read_exactly(box):
    """Signs, fractions and exponents reach the product."""
    box.npy("one.npy", (1, 1), [1], descr="<f8")
    for text in ("2", "-1.5", "+3", ".5", "5.", "1e3", "1.25E-2", "-0", "0.1"):
        got = box.product("one.npy", "one.npy", "--alpha", text).values
        check_equal(got, [float(text)], text)


@case
def info_refuses_options_of_other_tools(box):
    """jask-info has no --output, and says so."""
    box.fails(2, ["-o"], "-o", "x", tool="info")
    box.fails(2, ["--size"], "--size", "3", tool="info")


@case
def full_disk_on_stdout_fails(box):
    """A result that cannot be printed is a failure, not a success."""
    for tool, args in (("gemm", ["--help"]), ("info", []), ("gemm", ["--size", "4", "--plan"])):
        with open("/dev/full", "wb") as full:
            result = box.run(tool, *args, stdout=full)
        check(result.code == 1 and "standard output" in result.err, result)


@case
def closed_pipe_on_stdout_fails(box):
    """A reader that went away is an error of writing: exit 1, not death by SIGPIPE."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    with open(write_end, "wb") as pipe:
        result = box.run("info", stdout=pipe)
    check(result.code == 1 and "Broken pipe" in result.err, result)


@case
def closed_descriptors_do_not_reach_the_result(box):
    """Started without stdout and stderr, what they would have got does not end in the result."""
    box.npy("a.npy", (2, 2), [1, 2, 3, 4])
    command = f'exec {box.tools["gemm"]} a.npy a.npy -o d.npy --progress always -v >&- 2>&-'
    code = subprocess.call(["sh", "-c", command], cwd=box.dir, env=box.env)
    check_equal(code, 1, "exit: the table could not be written")
    check_equal(box.read("d.npy").values, [7, 10, 15, 22])


@case
def dashes_end_the_options(box):
    """A file whose name begins with a dash can be given after --."""
    box.npy("-a.npy", (1, 1), [3])
    box.succeeds("-q", "-o", "d.npy", "--", "-a.npy", "-a.npy")
    check_equal(box.read("d.npy").values, [9])


@case
def starts_look_for_no_cuda_library(box):
    """Neither the driver nor cuBLAS is looked for where nothing is computed."""
    searched = box.gemm("--version", env={"LD_DEBUG": "libs"})
    check(searched.code == 0 and "find library=" in searched.err, searched)
    check("libcu" not in searched.err, searched)
