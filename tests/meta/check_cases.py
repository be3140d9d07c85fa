#!/usr/bin/env python3
"""Every test that CASES.md names exists. usage: check_cases.py SOURCE-ROOT   (TAP on stdout)"""
import os
import re
import sys

TESTS = os.path.join(sys.argv[1], 'tests')


def missing():
    with open(os.path.join(TESTS, 'CASES.md'), encoding='utf-8') as file:
        named = re.findall(r'`([\w./]+)::(\w+)`', file.read())
    for path, name in sorted(set(named)):
        try:
            with open(os.path.join(TESTS, path), encoding='utf-8') as file:
                if not re.search(r'\b%s\b' % name, file.read()):
                    yield '%s has no %s' % (path, name)
        except FileNotFoundError:
            yield '%s is not there' % path
    if len(named) < 100:
        yield 'only %d tests are named' % len(named)


faults = list(missing())
print('1..1\n%sok 1 - every test that CASES.md names exists' % ('not ' if faults else ''))
for fault in faults:
    print('# ' + fault)
sys.exit(bool(faults))
