"""What the cases share: running a tool in a directory of its own, checking what it left there."""
import os
import shutil
import subprocess
import sys
import tempfile
import traceback

import advice
import npyfile
import tap

CASES = []


class Failed(Exception):
    """A case found what must not be."""


class Skipped(Exception):
    """This machine cannot show what the case is about."""


def case(function):
    """Register a case; its docstring says what holds."""
    CASES.append(function)
    return function


def check(condition, *details):
    if not condition:
        raise Failed("\n".join(str(d) for d in details))


def check_equal(got, expected, what=""):
    check(got == expected, f"{what}: got {got!r}", f"expected {expected!r}")


class Result:
    def __init__(self, args, code, out, err):
        self.args, self.code, self.out, self.err = args, code, out, err

    def __str__(self):
        return f"$ {' '.join(map(str, self.args))}\nexit {self.code}\n{self.out}{self.err}"


class Box:
    """A directory with inputs, in which tools run. JASK_* variables from outside do not reach them, nor
    does a machine that the user has measured.
    Unless a case says otherwise the budget is 16 MiB, and no result is waited for on the disk."""

    def __init__(self, gemm_path, info_path, wrong_blas_path=None):
        add_path = os.path.join(os.path.dirname(gemm_path), "jask-add")
        self.tools = {"gemm": gemm_path, "info": info_path, "add": add_path}
        self.wrong_blas_path = wrong_blas_path
        self.dir = tempfile.mkdtemp(prefix="jask-cli-", dir=os.environ.get("JASK_TEST_TMP", "."))
        self.dir = os.path.abspath(self.dir)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("JASK_")}
        self.env.update(JASK_MEMORY_BUDGET="16MiB", JASK_SYNC="0", XDG_CACHE_HOME=self.path("cache"))
        self.env = advice.taken(self.env, info_path)

    def close(self):
        shutil.rmtree(self.dir, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, content):
        with open(self.path(name), "wb") as file:
            file.write(content)
        return name

    def npy(self, name, shape, values, **how):
        return self.write(name, npyfile.make(shape, values, **how))

    def read(self, name):
        return npyfile.Npy(self.path(name))

    def listing(self):
        """Every name below the box but an empty scratch directory."""
        found = []
        for top, dirs, files in os.walk(self.dir):
            for name in dirs + files:
                found.append(os.path.relpath(os.path.join(top, name), self.dir))
        return sorted(name for name in found if name != ".jask_scratch")

    def environment(self, env):
        merged = {**self.env, **(env or {})}
        return {k: v for k, v in merged.items() if v is not None}

    def start(self, tool, *args, env=None, **popen):
        return subprocess.Popen([self.tools[tool], *args], cwd=self.dir, env=self.environment(env),
                                stdin=subprocess.DEVNULL, **popen)

    def run(self, tool, *args, env=None, **popen):
        popen.setdefault("stdout", subprocess.PIPE)
        popen.setdefault("stderr", subprocess.PIPE)
        with self.start(tool, *args, env=env, **popen) as process:
            out, err = process.communicate(timeout=120)
        return Result((os.path.basename(self.tools[tool]), *args), process.returncode,
                      (out or b"").decode("utf-8", "surrogateescape"),
                      (err or b"").decode("utf-8", "surrogateescape"))

    def gemm(self, *args, **how):
        return self.run("gemm", *args, **how)

    def info(self, *args, **how):
        return self.run("info", *args, **how)

    def succeeds(self, *args, tool="gemm", **how):
        """Exit 0 and not a word on stderr."""
        result = self.run(tool, *args, **how)
        check(result.code == 0 and result.err == "", result)
        return result

    def fails(self, code, needles, *args, tool="gemm", **how):
        """Exit `code`, one line on stderr that holds every needle, no file made or changed."""
        before = self.snapshot()
        result = self.run(tool, *args, **how)
        check(result.code == code, f"expected exit {code}", result)
        check(result.err.startswith(f"jask-{tool}: ") and result.err.count("\n") == 1
              and result.err.endswith("\n"), "expected one line on stderr", result)
        for needle in needles:
            check(str(needle) in result.err, f"expected {needle!r} in the message", result)
        check_equal(self.snapshot(), before, "files")
        return result

    def snapshot(self):
        """Names with size and time, which tell whether anything was touched."""
        facts = {}
        for name in self.listing():
            status = os.lstat(self.path(name))
            facts[name] = (status.st_ino, status.st_size, status.st_mtime_ns)
        for name, fact in facts.items():
            if os.path.isdir(self.path(name)):
                facts[name] = fact[:1]
        return facts

    def sum(self, a, b, *options, **how):
        """The values of A plus B."""
        self.succeeds(a, b, "-o", "d.npy", "-q", *options, tool="add", **how)
        return self.read("d.npy")

    def product(self, a, b, *options, **how):
        """The values of A times B."""
        self.succeeds(a, b, "-o", "d.npy", "-q", *options, **how)
        return self.read("d.npy")


def outcome(function, tools):
    """"ok", "not ok" or "skip", and why."""
    box = Box(*tools)
    try:
        function(box)
    except Skipped as why:
        return "skip", str(why)
    except Failed as why:
        return "not ok", str(why)
    except Exception:
        return "not ok", traceback.format_exc()
    finally:
        box.close()
    return "ok", ""


def run_cases(tools, names):
    """Run the registered cases whose names hold one of `names` (none: all), report in TAP, exit."""
    tap.default_signals()
    cases = [c for c in CASES if not names or any(n in c.__name__ for n in names)]
    failed = 0
    print(f"TAP version 13\n1..{len(cases)}", flush=True)
    for number, function in enumerate(cases, 1):
        verdict, why = outcome(function, tools)
        failed += verdict == "not ok"
        title = f"{function.__name__}: {' '.join(function.__doc__.split())}"
        if verdict == "skip":
            print(f"ok {number} - {title} # SKIP {why}", flush=True)
            continue
        print(f"{verdict} {number} - {title}", flush=True)
        for line in why.splitlines():
            print(f"# {line}", flush=True)
    sys.exit(1 if failed else 0)
