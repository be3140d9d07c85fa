"""Stopping a run from outside."""
import os
import signal
import subprocess
import time

import npyfile
from harness import Failed, case, check, check_equal


def start_long_run(box, *options, **how):
    """A product of zeros that takes far longer than any case waits; returns once it computes."""
    if not os.path.exists(box.path("zero.npy")):
        npyfile.write_sparse(box.path("zero.npy"), (12000, 12000), "<f8")
    box.write("d.npy", b"precious")
    process = box.start("gemm", "zero.npy", "zero.npy", "-o", "d.npy", "-b", "16MiB", "--threads",
                        "1", *options, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **how)
    wait_for_work(process)
    return process


def wait_for_work(process):
    """Until some of the input has been read."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with open(f"/proc/{process.pid}/statm", encoding="ascii") as file:
            resident_pages = int(file.read().split()[1])
        with open(f"/proc/{process.pid}/stat", encoding="ascii") as file:
            ticks = int(file.read().rsplit(")", 1)[1].split()[11])
        if ticks > 20 and resident_pages > 1000:
            return
        time.sleep(0.02)
    process.kill()
    raise Failed("the run did not get going")


def stop(box, process, *numbers):
    """Exit code and stderr after signals, and seconds until the end."""
    start = time.monotonic()
    for number in numbers:
        process.send_signal(number)
        time.sleep(0.05)
    try:
        _, err = process.communicate(timeout=20)
    except subprocess.TimeoutExpired as why:
        process.kill()
        raise Failed("the run did not stop") from why
    return process.returncode, err.decode(), time.monotonic() - start


def check_clean(box):
    check_equal(box.listing(), ["d.npy", "zero.npy"])
    with open(box.path("d.npy"), "rb") as file:
        check_equal(file.read(), b"precious")


@case
def signals_stop_a_run_cleanly(box):
    """SIGINT, SIGTERM and SIGHUP: within 2 seconds, exit 128+n, one line, nothing left behind, the
    older result untouched."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        code, err, took = stop(box, start_long_run(box), number)
        check_equal(code, 128 + number, err)
        check(took < 2, f"{took} s")
        check(err.startswith("jask-gemm: ") and err.count("\n") == 1, err)
        check_clean(box)


@case
def signals_are_heard_while_inputs_are_made(box):
    """--size stops in the middle of making its inputs, and leaves nothing."""
    process = box.start("gemm", "--size", "20000", stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    time.sleep(0.5)
    code, err, took = stop(box, process, signal.SIGINT)
    check(code == 130 and took < 2, code, err, took)
    check_equal(box.listing(), [])


@case
def a_stopped_run_can_be_run_again(box):
    """Nothing that a stopped run leaves is in the way of the next."""
    stop(box, start_long_run(box), signal.SIGINT)
    box.npy("a.npy", (2, 2), [1, 2, 3, 4])
    check_equal(box.product("a.npy", "a.npy").values, [7, 10, 15, 22])


@case
def kill_leaves_no_scratch(box):
    """Even SIGKILL leaves no file in scratch, and the older result as it was."""
    process = start_long_run(box)
    process.kill()
    process.communicate()
    check_clean(box)
    process = box.start("gemm", "--size", "20000", stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    time.sleep(0.5)
    process.kill()
    process.communicate()
    check_clean(box)


@case
def progress_leaves_no_half_line_before_an_error(box):
    """After a stop, what was shown of progress is whole lines, and the error has its own."""
    process = start_long_run(box, "--progress", "always")
    time.sleep(2.5)
    code, err, _ = stop(box, process, signal.SIGINT)
    check_equal(code, 130, err)
    lines = err.splitlines()
    check(len(lines) >= 2 and lines[-1].startswith("jask-gemm: "), err)
    check(all(line.startswith("product ") and "%" in line for line in lines[:-1]), err)


@case
def a_second_signal_ends_the_run_at_once(box):
    """It is not handled again but kills, and even so nothing stays."""
    process = start_long_run(box)
    code, err, _ = stop(box, process, signal.SIGSTOP, signal.SIGINT, signal.SIGTERM, signal.SIGCONT)
    check(code in (-signal.SIGINT, -signal.SIGTERM), code, err)
    check_clean(box)


@case
def ignored_hangups_stay_ignored(box):
    """Under nohup a run goes on when the terminal goes away."""
    def ignore_hangup():
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    process = start_long_run(box, preexec_fn=ignore_hangup)
    process.send_signal(signal.SIGHUP)
    time.sleep(0.5)
    check(process.poll() is None, "it stopped")
    check_equal(stop(box, process, signal.SIGINT)[0], 130)


@case
def a_file_size_limit_is_an_error(box):
    """ulimit -f ends in a message and a clean directory, not in SIGXFSZ."""
    box.npy("a.npy", (2000, 1), 1)
    command = f'ulimit -f 1000; exec {box.tools["gemm"]} a.npy a.npy --tb -o d.npy'
    result = subprocess.run(["sh", "-c", command], cwd=box.dir, env=box.env, capture_output=True,
                            check=False)
    check_equal(result.returncode, 1, result)
    check(b"too large" in result.stderr, result)
    check_equal(box.listing(), ["a.npy"])
