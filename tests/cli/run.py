"""Run the command-line cases and report in TAP:

    run.py JASK_GEMM JASK_INFO [WRONG_BLAS.so] [PART_OF_A_NAME...]

The library, made from wrong_blas.c, serves the cases in which products go wrong."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

import cases_add  # noqa: E402,F401 (importing registers the cases)
import cases_budget  # noqa: E402,F401
import cases_calibrate  # noqa: E402,F401
import cases_files  # noqa: E402,F401
import cases_limits  # noqa: E402,F401
import cases_numbers  # noqa: E402,F401
import cases_options  # noqa: E402,F401
import cases_output  # noqa: E402,F401
import cases_report  # noqa: E402,F401
import cases_scale  # noqa: E402,F401
import cases_settings  # noqa: E402,F401
import cases_signals  # noqa: E402,F401
import harness  # noqa: E402


def main():
    count = 4 if sys.argv[3:4] and sys.argv[3].endswith(".so") else 3
    harness.run_cases([os.path.abspath(path) for path in sys.argv[1:count]], sys.argv[count:])


main()
