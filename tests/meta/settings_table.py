#!/usr/bin/env python3
"""README.md's table of settings is the one that the library has, whose rows also make --help and jask-info.
usage: settings_table.py PRINTER JASK-GEMM JASK-INFO SOURCE-ROOT [--write]   (TAP on stdout)"""
import os
import re
import subprocess
import sys

PRINTER, GEMM, INFO, ROOT = sys.argv[1:5]
README = os.path.join(ROOT, 'README.md')
MARKED = re.compile(r'(<!-- settings -->\n)(.*?)(<!-- /settings -->)', re.S)


def output(*command):
    clean = {k: v for k, v in os.environ.items() if not k.startswith('JASK_')}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=clean).stdout


def cells(table):
    return [[cell.strip('` ') for cell in line.strip('|').split('|')] for line in table.splitlines()[2:]]


TABLE = output(PRINTER)
with open(README, encoding='utf-8') as file:
    text = file.read()
if sys.argv[5:] == ['--write']:
    with open(README, 'w', encoding='utf-8') as file:
        file.write(MARKED.sub(lambda m: m[1] + TABLE + m[3], text))
    sys.exit(0)


def readme_has_the_table():
    found = MARKED.search(text)
    if not found:
        yield 'README.md has no marked table'
    elif found[2] != TABLE:
        yield 'README.md differs; run this script with --write'


def help_has_every_row():
    words = ' '.join(output(GEMM, '--help').split())
    for variable, _, _, default, meaning in cells(TABLE):
        entry = '%s %s%s' % (variable, meaning, ' [%s]' % default if default else '')
        if entry not in words:
            yield 'jask-gemm --help lacks: ' + entry


def info_has_every_row():
    shown = output(INFO)
    for variable, field, _, default, _ in cells(TABLE):
        line = '%-14s %s (default; %s)' % (field.removesuffix('_bytes'), default or 'not set', variable)
        if line not in shown.splitlines():
            yield 'jask-info lacks: ' + line


def header_explains_every_row():
    with open(os.path.join(ROOT, 'include/jask.h'), encoding='utf-8') as header:
        declared = header.read()
    for variable, field, _, _, _ in cells(TABLE):
        if not re.search(r'\b%s;\s*/\*\*< %s;' % (field, variable), declared):
            yield 'jask.h does not say that %s is %s' % (field, variable)


def manual_names_every_variable():
    with open(os.path.join(ROOT, 'tools/jask-gemm.1'), encoding='utf-8') as page:
        manual = page.read()
    for variable, *_ in cells(TABLE):
        if not re.search(r'\b%s\b' % variable, manual):
            yield 'jask-gemm.1 lacks ' + variable


RULES = [readme_has_the_table, help_has_every_row, info_has_every_row, header_explains_every_row,
         manual_names_every_variable]
failed = 0
print('1..%d' % len(RULES))
for number, rule in enumerate(RULES, 1):
    faults = list(rule()) if len(cells(TABLE)) > 5 else ['no table: ' + TABLE]
    failed += bool(faults)
    print('%sok %d - %s' % ('not ' if faults else '', number, rule.__name__))
    for fault in faults:
        print('# ' + fault)
sys.exit(failed != 0)
