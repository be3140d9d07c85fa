"""Disks that are full, small, in memory or read-only, and limits of the process."""
import os
import subprocess
import time

import npyfile
from harness import Skipped, case, check, check_equal
from trouble import fill, free_bytes, mounted, small_disk


def fails_in_time(box, needles, *args, **how):
    start = time.monotonic()
    result = box.fails(1, needles, *args, **how)
    check(time.monotonic() - start < 2, "it took too long", result)
    return result


@case
def a_small_scratch_disk_is_refused_before_anything_is_made(box):
    """Need and free bytes are said, and every block is free again, also when the second file is the
    one that does not fit."""
    with small_disk(box, 8) as disk:
        free = free_bytes(disk)
        for size, need in ((2000, 2000 * 2000 * 8), (800, 800 * 800 * 8)):
            fails_in_time(box, [disk, need, "free", "No space left"], "--size", str(size),
                          "--dtype", "f64", "-s", disk, "--allow-tmpfs")
            check_equal((os.listdir(disk), free_bytes(disk)), ([], free))


@case
def a_full_scratch_disk_is_an_error(box):
    """Not a byte is free."""
    with small_disk(box, 8) as disk:
        with open(os.path.join(disk, "other"), "wb") as file:
            file.write(bytes(free_bytes(disk)))
        fails_in_time(box, ["No space left"], "--size", "100", "-s", disk, "--allow-tmpfs")
        check_equal(os.listdir(disk), ["other"])


@case
def a_small_or_read_only_disk_refuses_a_calibration(box):
    """Too small for its file: need and free bytes. A cache directory that takes no file is found out before
    anything is measured."""
    with small_disk(box, 8) as disk:
        free = free_bytes(disk)
        small = box.info("--calibrate", "-d", "host", "-s", disk, "--allow-tmpfs")
        check(small.code == 1 and f"needs {512 << 20} bytes, and {free} are free there" in small.err, small)
        check_equal((os.listdir(disk), free_bytes(disk)), ([], free))
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        locked = box.info("--calibrate", "-d", "host", env={"XDG_CACHE_HOME": disk})
        check(locked.code == 1 and disk + "/jask" in locked.err and "Read-only" in locked.err, locked)
        check("measured " not in locked.err, "only found out afterwards", locked)


@case
def a_full_output_disk_leaves_the_older_result(box):
    """A result that does not fit is refused with need and free bytes; no signal, no stub."""
    fill(box, "a.npy", (2048, 1), 1)
    npyfile.write_sparse(box.path("v.npy"), (1000000, 1), "<f8")
    with small_disk(box, 8) as disk:
        box.write("disk/d.npy", b"precious")
        free = free_bytes(disk)
        fails_in_time(box, ["disk/d.npy", 128 + (16 << 20), free], "a.npy", "a.npy", "--tb",
                      "-o", "disk/d.npy")
        fails_in_time(box, ["disk/e.npy", 4096 + 8 * 10 ** 12, free], "v.npy", "v.npy", "--tb",
                      "-o", "disk/e.npy")
        with open(os.path.join(disk, "other"), "wb") as file:
            file.write(bytes(free))
        fails_in_time(box, ["disk/e.npy", "No space left"], "a.npy", "a.npy", "--ta", "-o",
                      "disk/e.npy")
        with open(os.path.join(disk, "d.npy"), "rb") as file:
            check_equal(file.read(), b"precious")


@case
def a_result_in_memory_is_said_once(box):
    """Not with every run of --repeat."""
    fill(box, "a.npy", (2, 2), 1)
    with small_disk(box, 8):
        result = box.gemm("a.npy", "a.npy", "-o", "disk/d.npy", "--repeat", "3")
        check(result.code == 0 and result.err.count("\n") == 1 and "disk/d.npy" in result.err
              and "RAM" in result.err, result)


@case
def a_bind_mount_of_memory_is_still_memory(box):
    """Scratch in RAM is seen through another name."""
    fill(box, "a.npy", (2, 2), 1)
    with small_disk(box, 8) as disk, mounted(box.path("other"), "--bind", disk) as other:
        box.fails(1, [other, "tmpfs"], "a.npy", "a.npy", "-o", "d.npy", "-s", "other")
        box.succeeds("a.npy", "a.npy", "-o", "d.npy", "-q", "-s", "other", "--allow-tmpfs")


@case
def read_only_places_are_refused(box):
    """As scratch with its setting, as place of the result with its name."""
    fill(box, "a.npy", (2, 2), 1)
    with mounted(box.path("ro"), "-t", "tmpfs", "-o", "ro", "none"):
        box.fails(1, ["JASK_SCRATCH_DIR", "Read-only"], "a.npy", "a.npy", "-o", "d.npy",
                  env={"JASK_SCRATCH_DIR": "ro/scratch", "JASK_ALLOW_TMPFS": "1"})
        box.fails(1, ["JASK_SCRATCH_DIR", "Read-only"], "a.npy", "a.npy", "-o", "d.npy",
                  env={"JASK_SCRATCH_DIR": "ro", "JASK_ALLOW_TMPFS": "1"})
        box.fails(1, ["ro/d.npy", "Read-only"], "a.npy", "a.npy", "-o", "ro/d.npy")


def under_limit(box, limit, *args):
    """A run below a limit of the shell, watched: exit code, stderr, largest page tables in KiB."""
    command = ["sh", "-c", f'ulimit {limit} && exec "$0" "$@"', box.tools["gemm"], *args]
    env = box.environment({"OPENBLAS_NUM_THREADS": "2"})
    with subprocess.Popen(command, cwd=box.dir, env=env, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE) as process:
        tables = 0
        while process.poll() is None:
            with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
                tables = max([tables] + [int(line.split()[1]) for line in file
                                         if line.startswith("VmPTE:")])
            time.sleep(0.01)
        return process.returncode, process.stderr.read().decode(), tables


@case
def files_need_no_address_space(box):
    """Two files that each are larger than ulimit -v are multiplied, and page tables stay small."""
    count = 300 << 20
    for name, shape in (("a.npy", (1, count)), ("b.npy", (count, 1))):
        npyfile.write_sparse(box.path(name), shape)
        with open(box.path(name), "r+b") as file:
            file.seek(-4, os.SEEK_END)
            file.write(npyfile.pack([3], "<f4"))
    code, err, tables = under_limit(box, "-v 1000000", "a.npy", "b.npy", "-o", "d.npy", "-q")
    check_equal((code, err), (0, ""))
    check_equal(box.read("d.npy").values, [9])
    check(tables < 16 << 10, f"{tables} KiB of page tables")


@case
def too_little_address_space_is_an_error(box):
    """A budget that ulimit -v does not allow ends in words."""
    npyfile.write_sparse(box.path("a.npy"), (12000, 12000), "<f8")
    before = box.snapshot()
    code, err, _ = under_limit(box, "-v 500000", "a.npy", "a.npy", "-o", "d.npy", "-b", "1GiB")
    check(code == 1 and "memory" in err and err.count("\n") == 1, code, err)
    check_equal(box.snapshot(), before)


@case
def a_file_size_limit_holds_for_scratch(box):
    """ulimit -f ends in a message that names it, not in a signal."""
    code, err, _ = under_limit(box, "-f 1000", "--size", "2000")
    check(code == 1 and "ulimit -f" in err and err.count("\n") == 1, code, err)
    check_equal(box.listing(), [])


@case
def all_files_are_made_in_scratch_and_beside_the_result(box):
    """Whatever the environment says of temporary and home directories."""
    if subprocess.run(["sh", "-c", "command -v strace"], capture_output=True,
                      check=False).returncode:
        raise Skipped("there is no strace")
    os.mkdir(box.path("out"))
    command = ["strace", "-f", "-y", "-o", box.path("log"), "-e",
               "trace=open,openat,creat,mkdir,mkdirat,mknod,linkat,renameat,memfd_create",
               box.tools["gemm"], "--size", "300", "-o", "out/d.npy", "-s", "scr", "-q", "--verify"]
    env = box.environment({"TMPDIR": "/nonexistent", "HOME": "/nonexistent"})
    done = subprocess.run(command, cwd=box.dir, env=env, capture_output=True, text=True,
                          check=False)
    if "ptrace" in done.stderr.lower():
        raise Skipped("strace may not trace here")
    check_equal((done.returncode, done.stderr), (0, ""))
    with open(box.path("log"), encoding="utf-8") as file:
        made = [line for line in file if "= -1 " not in line
                and any(word in line for word in ("O_CREAT", "O_TMPFILE", "mkdir", "mknod", "creat(",
                                                 "link", "rename", "memfd"))]
    check(len(made) >= 4, "nothing was traced", *made)
    for line in made:
        check(box.path("scr") in line or box.path("out") in line, line)
