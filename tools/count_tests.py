#!/usr/bin/env python3
"""Count single tests from Meson's JSON log: the points of TAP programs, one for any other program.

A program that fails without a failing point of its own (a crash, a leak found at exit) counts as one
failure more, so that the sum never looks better than the run was."""
import json
import re
import sys

POINT = re.compile(r'^(not )?ok\b(?:[^#]*)(#\s*skip)?', re.IGNORECASE)
GOOD = ('OK', 'EXPECTEDFAIL')


def count(test):
    passed = failed = skipped = 0
    for line in test.get('stdout', '').splitlines():
        point = POINT.match(line)
        if not point:
            continue
        if point.group(2):
            skipped += 1
        elif point.group(1):
            failed += 1
        else:
            passed += 1
    result = test['result']
    if result == 'SKIP' and not skipped:
        skipped += 1
    elif result in GOOD and passed + skipped == 0:
        passed += 1
    elif result not in GOOD + ('SKIP',) and failed == 0:
        failed += 1
    return passed, failed, skipped


def main(path):
    totals = [0, 0, 0]
    with open(path, encoding='utf-8') as log:
        for line in log:
            totals = [a + b for a, b in zip(totals, count(json.loads(line)))]
    print('%d passed, %d failed, %d skipped' % tuple(totals))
    return 1 if totals[1] or totals[0] == 0 else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
