"""What makes trouble: small disks, other mounts, and runs stopped at a known point."""
import contextlib
import os
import signal
import subprocess
import time

import npyfile
from harness import Failed, Skipped, check, check_equal


@contextlib.contextmanager
def mounted(path, *args):
    """A mount at `path`, which is made, and gone afterwards."""
    if os.geteuid() != 0:
        raise Skipped("only root can mount")
    os.mkdir(path)
    done = subprocess.run(["mount", *args, path], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Skipped(f"cannot mount: {done.stderr.strip()}")
    try:
        yield path
    finally:
        if subprocess.run(["umount", path], check=False).returncode:
            subprocess.run(["umount", "-l", path], check=True)


def small_disk(box, mebibytes):
    """A file system of its own, in memory: as full as it says."""
    return mounted(box.path("disk"), "-t", "tmpfs", "-o", f"size={mebibytes}m", "none")


def free_bytes(path):
    disk = os.statvfs(path)
    return disk.f_bavail * disk.f_frsize


def fill(box, name, shape, value):
    """A file of one f32 value."""
    content = npyfile.header(npyfile.describe(shape)) + \
        npyfile.pack([value], "<f4") * npyfile.count_of(shape)
    return box.write(name, content)


def all_equal(path, shape, value):
    """The file is this whole f32 array of one value."""
    with open(path, "rb") as file:
        raw = file.read()
    data = npyfile.pack([value], "<f4") * npyfile.count_of(shape)
    return len(raw) == 128 + len(data) and raw.endswith(data)


def moved(process, key):
    """Bytes a run has read ("rchar") or written ("wchar") so far."""
    try:
        with open(f"/proc/{process.pid}/io", encoding="ascii") as file:
            facts = dict(line.split(": ") for line in file.read().splitlines())
        return int(facts[key])
    except (FileNotFoundError, ProcessLookupError):
        return 0


def wait_until_moved(process, key, count):
    deadline = time.monotonic() + 30
    while moved(process, key) < count:
        if process.poll() is not None or time.monotonic() > deadline:
            _, err = finish(process)
            raise Failed(f"the run did not get that far: exit {process.returncode}", err)
        time.sleep(0.002)


@contextlib.contextmanager
def held(process, key="rchar", count=2 << 20):
    """Stop a run for a moment once it has moved that much."""
    wait_until_moved(process, key, count)
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


def finish(process):
    """Exit code and stderr."""
    try:
        _, err = process.communicate(timeout=60)
    except subprocess.TimeoutExpired as why:
        process.kill()
        raise Failed("the run does not end") from why
    return process.returncode, err.decode()


def start(box, *args, **how):
    return box.start("gemm", *args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **how)


def zeros(box):
    """zero.npy, 1.1 GiB: what is made of it takes far longer than a case waits before it meddles."""
    if not os.path.exists(box.path("zero.npy")):
        npyfile.write_sparse(box.path("zero.npy"), (12000, 12000), "<f8")


def start_long(box, *options, **how):
    """A product of zeros that takes far longer than any case waits."""
    zeros(box)
    return start(box, "zero.npy", "zero.npy", "-o", "d.npy", "--threads", "1", *options, **how)


def check_stopped(process, number, seconds=2):
    """The signal ends the run in time, in one line, with exit 128+n."""
    begin = time.monotonic()
    process.send_signal(number)
    code, err = finish(process)
    took = time.monotonic() - begin
    check(code == 128 + number and took < seconds, f"exit {code} after {took:.1f} s", err)
    check(err.startswith("jask-gemm: ") and err.count("\n") == 1, err)


def check_shrinking_is_an_error(box, process):
    """Of zero.npy, under a run that reads it: not a crash, and no result."""
    with held(process):
        os.truncate(box.path("zero.npy"), 1 << 20)
    code, err = finish(process)
    check(code == 1 and "zero.npy" in err and "shrank" in err and err.count("\n") == 1, code, err)
    check_equal(box.listing(), ["zero.npy"])
