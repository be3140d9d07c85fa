"""Run the command-line cases and report in TAP:

    run.py JASK_GEMM JASK_INFO [WRONG_BLAS.so] [PART_OF_A_NAME...]

The library, made from wrong_blas.c, serves the cases in which products go wrong."""
import os
import sys
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

import cases_budget  # noqa: E402,F401 (importing registers the cases)
import cases_files  # noqa: E402,F401
import cases_numbers  # noqa: E402,F401
import cases_options  # noqa: E402,F401
import cases_output  # noqa: E402,F401
import cases_report  # noqa: E402,F401
import cases_scale  # noqa: E402,F401
import cases_signals  # noqa: E402,F401
import harness  # noqa: E402


def outcome(case, tools):
    """"ok", "not ok" or "skip", and why."""
    box = harness.Box(*tools)
    try:
        case(box)
    except harness.Skipped as why:
        return "skip", str(why)
    except harness.Failed as why:
        return "not ok", str(why)
    except Exception:
        return "not ok", traceback.format_exc()
    finally:
        box.close()
    return "ok", ""


def main():
    count = 4 if sys.argv[3:4] and sys.argv[3].endswith(".so") else 3
    tools = [os.path.abspath(path) for path in sys.argv[1:count]]
    names = sys.argv[count:]
    cases = [c for c in harness.CASES if not names or any(n in c.__name__ for n in names)]
    failed = 0
    print(f"TAP version 13\n1..{len(cases)}", flush=True)
    for number, case in enumerate(cases, 1):
        verdict, why = outcome(case, tools)
        failed += verdict == "not ok"
        title = f"{case.__name__}: {' '.join(case.__doc__.split())}"
        if verdict == "skip":
            print(f"ok {number} - {title} # SKIP {why}", flush=True)
            continue
        print(f"{verdict} {number} - {title}", flush=True)
        for line in why.splitlines():
            print(f"# {line}", flush=True)
    sys.exit(1 if failed else 0)


main()
