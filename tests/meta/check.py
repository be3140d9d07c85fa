#!/usr/bin/env python3
"""The house rules that a machine can check: layers, forbidden calls, exported symbols, headers that stand
alone. usage: check.py SOURCE-ROOT BUILD-ROOT CC   (TAP on stdout)"""
import os
import re
import subprocess
import sys
import tempfile

ROOT, BUILD, CC = sys.argv[1], sys.argv[2], sys.argv[3:]

# Who may include whose headers, beside itself.
LAYERS = {
    'planner': {'common'},
    'kernels': {'common'},
    'runtime': {'planner', 'kernels', 'common'},
    'tools': set(),
    'bench': set(),
    'tests/e2e': set(),
}
# What only these files may call; the rest of the library goes through them.
ONLY = {
    'getenv': r'runtime/settings\.c',
    'secure_getenv': r'runtime/settings\.c',
    'clock_gettime': r'runtime/clock\.c',
    'open|openat|open64|mkdir|unlink|unlinkat|linkat|renameat|fopen|statfs|realpath|ftruncate|fallocate':
        r'runtime/(file|file_direct|output|scratch|mounts|memory|cgroup|process_io|array|resume|output_name)\.c',
    'printf|puts|fputs|fprintf|perror|exit|abort|signal|sigaction|setlocale': r'(?!)',
}
ALLOWED_FROM_PLANNER = re.compile(
    r'^(jk_fail|jk_fail_in|jk_fail_errno|jask_dtype_size|jask_dtype_name|jask_format_size|'
    r'mem(cpy|set|cmp|move)|str\w+|v?snprintf|'
    r'sqrtl?|ceill?|floorl?|roundl?|powl?|cbrtl?|fmax|fmin|fabs|llroundl?|lroundl?|isfinite|'
    r'_GLOBAL_OFFSET_TABLE_|__\w+)$')


def sources(folder, suffixes=('.c', '.h')):
    for base, _, names in os.walk(os.path.join(ROOT, folder)):
        for name in sorted(names):
            if name.endswith(suffixes):
                path = os.path.join(base, name)
                yield os.path.relpath(path, ROOT), open(path, encoding='utf-8').read()


def without_comments(text):
    text = re.sub(r'/\*.*?\*/', ' ', text, flags=re.S)
    return re.sub(r'"(\\.|[^"\\])*"', '""', text)


def layers():
    for folder, allowed in LAYERS.items():
        for path, text in sources(folder, ('.c', '.h', '.cu')):
            for target in re.findall(r'#include\s+"([^"]+)"', text):
                top = target.split('/')[0] if '/' in target else folder
                if top not in allowed | {folder, folder.split('/')[-1]} and target != 'config.h':
                    yield '%s includes "%s"' % (path, target)


def cuda_headers():
    """CUDA is known to the kernels and to the CUDA device alone."""
    may = r'kernels/(\w+\.cu|launch\.h|device_\w+\.h)|runtime/(cuda|cublas|device_cuda)\w*\.[ch]'
    for folder in ('planner', 'kernels', 'runtime', 'tools', 'include'):
        for path, text in sources(folder, ('.c', '.h', '.cu')):
            if not re.fullmatch(may, path):
                for target in re.findall(r'#include\s+[<"](cu\w+\.h)[>"]', text):
                    yield '%s includes %s' % (path, target)


def forbidden_calls():
    for folder in ('planner', 'kernels', 'runtime'):
        for path, text in sources(folder, ('.c',)):
            code = without_comments(text)
            for names, where in ONLY.items():
                if re.fullmatch(where, path):
                    continue
                for call in re.findall(r'(?<![\w.>])(%s)\s*\(' % names, code):
                    yield '%s calls %s' % (path, call)


def long_files():
    for folder in ('planner', 'kernels', 'runtime', 'tools', 'bench', 'tests', 'include/common'):
        for path, text in sources(folder, ('.c', '.h', '.cpp', '.cu')):
            if text.count('\n') > 500:
                yield '%s has %d lines' % (path, text.count('\n'))


def nm(*args):
    return subprocess.run(('nm',) + args, capture_output=True, text=True, check=True).stdout


def exports():
    library = os.path.join(BUILD, 'libjask.so')
    for line in nm('-D', '--defined-only', library).splitlines():
        name = line.split()[-1]
        # Sanitizers and profilers add symbols of their own.
        if not name.startswith(('jask_', '__asan', '__ubsan', '__odr_asan', '_fini', '_init')):
            yield 'libjask.so exports %s' % name


def needs_no_cuda_library():
    library = os.path.join(BUILD, 'libjask.so')
    dynamic = subprocess.run(('readelf', '-d', library), capture_output=True, text=True,
                             check=True).stdout
    for name in re.findall(r'NEEDED.*\[(libcu[^]]*)\]', dynamic):
        yield 'libjask.so cannot start without %s' % name


def declared_but_missing():
    header = without_comments(open(os.path.join(ROOT, 'include/jask.h'), encoding='utf-8').read())
    declared = set(re.findall(r'JASK_API[^;(]*?\**(jask_\w+)\s*\(', header))
    library = os.path.join(BUILD, 'libjask.so')
    defined = {line.split()[-1] for line in nm('-D', '--defined-only', library).splitlines()}
    for name in sorted(declared - defined):
        yield 'jask.h declares %s, the library lacks it' % name


def planner_is_pure():
    archive = os.path.join(BUILD, 'planner', 'libjk_planner.a')
    own = {line.split()[-1] for line in nm('--defined-only', archive).splitlines() if ' ' in line}
    for line in nm('-u', archive).splitlines():
        name = line.split()[-1] if line.strip().startswith('U ') else None
        if name and name not in own and not ALLOWED_FROM_PLANNER.match(name):
            yield 'the planner needs %s' % name


def headers_stand_alone():
    with tempfile.TemporaryDirectory() as folder:
        for suffix, language in (('.c', 'c'), ('.cc', 'c++')):
            source = os.path.join(folder, 'alone' + suffix)
            with open(source, 'w', encoding='utf-8') as out:
                out.write('#include <jask.h>\nint main(void) { return (int)JASK_OK; }\n')
            if language == 'c++' and subprocess.run(['sh', '-c', 'command -v c++'],
                                                    capture_output=True, check=False).returncode:
                continue
            compiler = CC if language == 'c' else ['c++']
            flags = ['-Wall', '-Wextra', '-Werror', '-pedantic', '-fsyntax-only', '-I',
                     os.path.join(ROOT, 'include')]
            flags += ['-std=c11'] if language == 'c' else []
            run = subprocess.run(compiler + flags + [source], capture_output=True, text=True,
                                 check=False)
            if run.returncode:
                yield 'jask.h alone as %s: %s' % (language, run.stderr.strip())


RULES = [layers, cuda_headers, forbidden_calls, long_files, exports, needs_no_cuda_library,
         declared_but_missing, planner_is_pure, headers_stand_alone]
failed = 0
print('1..%d' % len(RULES))
for number, rule in enumerate(RULES, 1):
    faults = list(rule())
    failed += bool(faults)
    print('%sok %d - %s' % ('not ' if faults else '', number, rule.__name__))
    for fault in faults:
        print('# ' + fault)
sys.exit(failed != 0)
