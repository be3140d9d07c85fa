"""Troubles that are real: full disks, limits, files that change, signals and kills. Report in TAP:

    real.py JASK_GEMM JASK_INFO [PART_OF_A_NAME...]

What needs root or another program is skipped with the reason where it is missing."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "cli")]
sys.dont_write_bytecode = True

import cases_disk  # noqa: E402,F401 (importing registers the cases)
import cases_kill  # noqa: E402,F401
import cases_meanwhile  # noqa: E402,F401
import cases_resume  # noqa: E402,F401
import cases_sums  # noqa: E402,F401
import harness  # noqa: E402

harness.run_cases([os.path.abspath(path) for path in sys.argv[1:3]], sys.argv[3:])
