"""What the system grants a process: control groups, affinity. They are made for real, as root."""
import json
import os

from harness import Skipped, case, check, check_equal


def hierarchy(controller):
    """Where this process's group of a v1 controller lies, or of v2."""
    with open("/proc/self/cgroup", encoding="ascii") as lines:
        groups = [line.rstrip("\n").split(":", 2) for line in lines]
    for _, controllers, path in groups:
        if controller in controllers.split(","):
            return 1, f"/sys/fs/cgroup/{controllers}{path}"
    for _, controllers, path in groups:
        if controllers == "":
            return 2, f"/sys/fs/cgroup{path}"
    raise Skipped("no control groups")


class Group:
    """A control group below this process's own, or below another, for as long as a case needs it."""

    def __init__(self, controller, settings, parent=None):
        version, base = hierarchy(controller)
        self.path = os.path.join(parent.path if parent else base.rstrip("/"),
                                 f"jask-cli-{os.getpid()}")
        try:
            os.mkdir(self.path)
            for name, value in settings[version].items():
                with open(os.path.join(self.path, name), "w", encoding="ascii") as file:
                    file.write(value)
        except OSError as why:
            self.remove()
            raise Skipped(f"no control group can be made: {why}") from None

    def enter(self):
        with open(os.path.join(self.path, "cgroup.procs"), "w", encoding="ascii") as procs:
            procs.write(str(os.getpid()))

    def remove(self):
        if os.path.isdir(self.path):
            os.rmdir(self.path)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()


def limit(mib):
    return {1: {"memory.limit_in_bytes": str(mib << 20)}, 2: {"memory.max": str(mib << 20)}}


def quota(percent):
    return {1: {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": str(percent * 1000)},
            2: {"cpu.max": f"{percent * 1000} 100000"}}


def machine(box, group=None, **how):
    out = box.succeeds("--json", tool="info", preexec_fn=group and group.enter, **how).out
    return json.loads(out)


@case
def a_memory_group_limits_what_is_available(box):
    """jask-info names the group that sets the limit; of two nested ones the tighter."""
    with Group("memory", limit(96)) as outer:
        found = machine(box, outer)
        check_equal(found["available_source"], outer.path)
        check(0 < found["available_bytes"] <= 96 << 20, found)
        text = box.succeeds(tool="info", preexec_fn=outer.enter).out
        check(f"available ({outer.path})" in text, text)
        with Group("memory", limit(128), outer) as inner:
            check_equal(machine(box, inner)["available_source"], outer.path)
        with Group("memory", limit(64), outer) as inner:
            check_equal(machine(box, inner)["available_source"], inner.path)
            host = [d for d in machine(box, inner)["devices"] if d["name"] == "host"][0]
            check(host["free_bytes"] <= 64 << 20, host)


@case
def without_a_budget_half_of_the_group_is_taken(box):
    """Files larger than the group are multiplied in it with no budget given, and budgets beyond it are
    cut."""
    for name, shape in (("a.npy", (4096, 4000)), ("b.npy", (4000, 64))):
        box.npy(name, shape, 1)
    args = ("a.npy", "b.npy", "-o", "d.npy", "--json")
    with Group("memory", limit(56)) as group:
        none = {"JASK_MEMORY_BUDGET": None, "OPENBLAS_NUM_THREADS": "1"}
        result = box.gemm(*args, env=none, preexec_fn=group.enter)
        check(result.code == 0 and "half of the memory available" in result.err, result)
        check(group.path in result.err, result)
        check(json.loads(result.out)["budget_bytes"] <= 28 << 20, result)
        check_equal(set(box.read("d.npy").values), {4000})
        cut = box.gemm(*args, "-b", "1G", env=none, preexec_fn=group.enter)
        check(cut.code == 0 and "budget cut from 1GiB to" in cut.err and group.path in cut.err, cut)


@case
def a_cpu_quota_limits_the_threads(box):
    """Rounded up; the group is named; a tighter parent counts; --threads and the library's own
    variables go before it."""
    def threads(group, *options, env=None):
        result = box.gemm("a.npy", "a.npy", "-o", "d.npy", "-v", *options, preexec_fn=group.enter,
                          env={"OPENBLAS_NUM_THREADS": None, "OMP_NUM_THREADS": None, **(env or {})})
        check(result.code == 0, result)
        return [line for line in result.err.splitlines() if "BLAS threads" in line]
    box.npy("a.npy", (2, 2), 1)
    allowed = machine(box)["cpus"]["allowed"]
    with Group("cpu", quota(50)) as outer:
        cpus = machine(box, outer)["cpus"]
        check_equal((cpus["threads"], cpus["quota"], cpus["quota_source"]), (1, 0.5, outer.path))
        text = box.succeeds(tool="info", preexec_fn=outer.enter).out
        check(f"quota 0.50 ({outer.path}), 1 threads" in text, text)
        check("BLAS threads: 1 (" in threads(outer)[0] and outer.path in threads(outer)[0])
        check("BLAS threads: 2 (option)" in threads(outer, "--threads", "2")[0])
        check_equal(threads(outer, env={"OPENBLAS_NUM_THREADS": "2"}), [])
        check_equal(threads(outer, env={"OMP_NUM_THREADS": "2"}), [])
    with Group("cpu", quota(150)) as outer:
        check_equal(machine(box, outer)["cpus"]["threads"], min(allowed, 2))
        with Group("cpu", quota(50), outer) as inner:
            check_equal(machine(box, inner)["cpus"]["quota_source"], inner.path)


@case
def an_affinity_limits_the_threads(box):
    """One processor allowed is one thread."""
    cpu = min(os.sched_getaffinity(0))
    cpus = json.loads(box.succeeds("--json", tool="info",
                                   preexec_fn=lambda: os.sched_setaffinity(0, {cpu})).out)["cpus"]
    check_equal((cpus["allowed"], cpus["threads"]), (1, 1))
    check(cpus["machine"] >= 1 and cpus["quota_source"] is None or cpus["quota"] > 0, cpus)
