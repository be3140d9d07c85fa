"""Kills and signals at any moment."""
import contextlib
import os
import random
import signal
import subprocess
import threading
import time

import npyfile
from harness import Skipped, case, check, check_equal
from trouble import (all_equal, check_stopped, fill, finish, free_bytes, moved, small_disk, start,
                     start_long, wait_until_moved)

SHAPE = (400, 400)
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Reader(threading.Thread):
    """Reads the target again and again; keeps what it finds that is no whole result."""

    def __init__(self, path):
        super().__init__()
        self.path, self.bad, self.reads, self.ends = path, [], 0, threading.Event()

    def run(self):
        while not self.ends.is_set():
            self.look()
            time.sleep(0.001)

    def look(self):
        with open(self.path, "rb") as file:
            raw = file.read()
        self.reads += 1
        if len(raw) != 128 + 4 * SHAPE[0] * SHAPE[1] or raw[128:] != raw[128:132] * (len(raw) // 4
                                                                                    - 32):
            self.bad.append(len(raw))


def begin(box, number):
    """A run whose result is all `number`."""
    return start(box, "a.npy", "b.npy", "-o", "d.npy", "-q", "--alpha", str(number),
                 env={"JASK_SYNC": "1"})


@case
def readers_and_kills_meet_whole_results_only(box):
    """20 runs replace the target, then 50 are killed at random moments, while a reader looks at it
    all the time: it is always one whole result, and only complete runs change it."""
    fill(box, "a.npy", (SHAPE[0], 1), 1)
    fill(box, "b.npy", (1, SHAPE[1]), 1)
    check_equal(finish(begin(box, 1)), (0, ""))
    reader = Reader(box.path("d.npy"))
    reader.start()
    try:
        took = replace_often(box)
        kill_often(box, took)
    finally:
        reader.ends.set()
        reader.join()
    check(not reader.bad and reader.reads > 20, reader.bad, reader.reads)


def replace_often(box):
    """The shortest run in seconds."""
    took = []
    for number in range(2, 22):
        begun = time.monotonic()
        check_equal(finish(begin(box, number)), (0, ""))
        took.append(time.monotonic() - begun)
        check(all_equal(box.path("d.npy"), SHAPE, number), f"run {number} is not there")
    return min(took)


def kill_often(box, took):
    chance = random.Random(1)
    old, killed = 21, 0
    for number in range(22, 72):
        process = begin(box, number)
        time.sleep(chance.uniform(0, 1.2 * took))
        process.kill()
        code = finish(process)[0]
        killed += code == -signal.SIGKILL
        new = all_equal(box.path("d.npy"), SHAPE, number)
        check(new or (code != 0 and all_equal(box.path("d.npy"), SHAPE, old)), f"run {number}")
        old = number if new else old
        # Killed between the two calls that replace a name, a run leaves the whole result under
        # another; the next one takes it away.
        left = [name for name in box.listing() if code == 0 or name != ".d.npy.jask-commit0"]
        check_equal(left, ["a.npy", "b.npy", "d.npy"])
    check(killed >= 20, f"only {killed} runs were killed")


@case
def kills_give_the_scratch_disk_back(box):
    """Blocks of nameless files are free again after kill -9."""
    with small_disk(box, 400) as disk:
        free = free_bytes(disk)
        process = start(box, "--size", "3000", "--dtype", "f64", "-s", disk, "--allow-tmpfs")
        wait_until_moved(process, "wchar", 10 << 20)
        check(free_bytes(disk) < free, "nothing was made there")
        process.kill()
        finish(process)
        check_equal((os.listdir(disk), free_bytes(disk)), ([], free))


@case
def signals_stop_the_check(box):
    """The product is done, and reading it all again for --verify is what is stopped."""
    npyfile.write_sparse(box.path("a.npy"), (12000, 12000), "<f8")
    npyfile.write_sparse(box.path("b.npy"), (12000, 1), "<f8")
    data = 12000 * 12000 * 8
    for number in STOPS:
        process = start(box, "a.npy", "b.npy", "-o", "d.npy", "--verify", "--io-threads", "1")
        wait_until_moved(process, "rchar", data + data // 10)
        check_stopped(process, number)
        check_equal(box.listing(), ["a.npy", "b.npy", "d.npy"])


@case
def signals_stop_the_making_of_inputs(box):
    """Every one of them, and nothing stays."""
    for number in STOPS:
        process = start(box, "--size", "20000")
        wait_until_moved(process, "wchar", 1 << 20)
        check_stopped(process, number)
        check_equal(box.listing(), [])


def traced_child(tracer, name):
    """The run below a tracer, as soon as it is there; tracers start others before it."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and tracer.poll() is None:
        with open(f"/proc/{tracer.pid}/task/{tracer.pid}/children", encoding="ascii") as file:
            children = file.read().split()
        for pid in children:
            with contextlib.suppress(OSError), open(f"/proc/{pid}/comm", encoding="utf-8") as comm:
                if comm.read().strip() == name:
                    return int(pid)
        time.sleep(0.01)
    raise Skipped("strace may not trace here")


class Child:
    """A process that another one started."""

    def __init__(self, pid):
        self.pid = pid

    def poll(self):
        return None if os.path.exists(f"/proc/{self.pid}") else 0


@case
def signals_stop_the_commit(box):
    """While the result is being made durable a signal is still heard: the name is not given."""
    if subprocess.run(["sh", "-c", "command -v strace"], capture_output=True,
                      check=False).returncode:
        raise Skipped("there is no strace to hold a sync")
    fill(box, "a.npy", (SHAPE[0], 1), 1)
    box.write("d.npy", b"precious")
    command = ["strace", "-f", "-o", "/dev/null", "-e", "trace=fsync", "-e",
               "inject=fsync:delay_enter=1000000", box.tools["gemm"], "a.npy", "a.npy", "--tb",
               "-o", "d.npy", "-q"]
    with subprocess.Popen(command, cwd=box.dir, env=box.environment({"JASK_SYNC": "1"}),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as tracer:
        run = Child(traced_child(tracer, os.path.basename(box.tools["gemm"])))
        while moved(run, "wchar") < 4 * SHAPE[0] * SHAPE[0] and tracer.poll() is None:
            time.sleep(0.01)
        time.sleep(0.3)
        if tracer.poll() is None:
            os.kill(run.pid, signal.SIGINT)
        code, err = finish(tracer)
    if "ptrace" in err.lower():
        raise Skipped("strace may not trace here")
    check(code == 130 and err.startswith("jask-gemm: ") and err.count("\n") == 1, code, err)
    with open(box.path("d.npy"), "rb") as file:
        check_equal(file.read(), b"precious")
    check_equal(box.listing(), ["a.npy", "d.npy"])


@case
def a_reader_of_progress_that_goes_away_is_no_trouble(box):
    """A closed pipe on stderr does not kill a run."""
    fill(box, "a.npy", (1500, 1500), 1)
    read_end, write_end = os.pipe()
    with open(write_end, "wb") as pipe:
        process = box.start("gemm", "a.npy", "a.npy", "-o", "d.npy", "-q", "--progress", "always",
                            "-b", "1MiB", "--threads", "1", stdout=subprocess.DEVNULL, stderr=pipe)
    os.close(read_end)
    check_equal(process.wait(timeout=60), 0)
    check(all_equal(box.path("d.npy"), (1500, 1500), 1500), "wrong result")


@case
def a_second_signal_is_not_waited_for(box):
    """It ends even a run that cannot stop by itself, at once and without a trace."""
    process = start_long(box)
    wait_until_moved(process, "rchar", 2 << 20)
    for number in (signal.SIGSTOP, signal.SIGINT, signal.SIGTERM, signal.SIGCONT):
        process.send_signal(number)
        time.sleep(0.02)
    code, _ = finish(process)
    check(code in (-signal.SIGINT, -signal.SIGTERM), code)
    check_equal(box.listing(), ["zero.npy"])
