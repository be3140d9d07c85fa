#!/usr/bin/env python3
"""What configuring says where CUDA cannot be built: without an nvcc, and with one that fails. A build
that leaves it to the machine goes on without CUDA and says why, and compiles what -Dcuda=disabled does,
whose tests .ci/run runs; one that asks for CUDA stops.
usage: check_cuda_option.py SOURCE-ROOT   (TAP on stdout)"""
import os
import re
import subprocess
import sys
import tempfile

ROOT = sys.argv[1]
FAILING = {
    'exits with 1': ('exit 1', 'exit status 1'),
    'refuses the host compiler': (
        'case "$*" in *--version*) echo "Cuda compilation tools, release 13.0, V13.0.1";; '
        '*--list-gpu-arch*) echo compute_75; echo compute_80; echo compute_90;; '
        '*) echo "host_config.h:133:2: error: #error -- unsupported GNU version!" >&2; exit 1;; esac',
        'unsupported GNU version'),
}


def path_without_nvcc(folder):
    """PATH, but where a folder has an nvcc, one of links to everything else in it."""
    entries = []
    for number, entry in enumerate(os.environ['PATH'].split(os.pathsep)):
        if os.path.exists(os.path.join(entry, 'nvcc')):
            stand_in = os.path.join(folder, 'bin%d' % number)
            os.mkdir(stand_in)
            for name in os.listdir(entry):
                if name != 'nvcc':
                    os.symlink(os.path.join(entry, name), os.path.join(stand_in, name))
            entry = stand_in
        entries.append(entry)
    return os.pathsep.join(entries)


def configure(folder, path, cuda):
    build = tempfile.mkdtemp(dir=folder)
    run = subprocess.run(['meson', 'setup', build, ROOT, '-Dcuda=' + cuda, '-Dtests=disabled',
                          '-Dtools=false', '-Dcblas=disabled'], capture_output=True, text=True,
                         check=False, env=dict(os.environ, PATH=path))
    made = ''
    for name in ('config.h', 'compile_commands.json') if run.returncode == 0 else ():
        with open(os.path.join(build, name), encoding='utf-8') as content:
            made += content.read().replace(build, 'BUILD')
    return run.returncode, run.stdout + run.stderr, made


def faults(folder, path, reason, disabled):
    status, text, made = configure(folder, path, 'auto')
    if status != 0 or not re.search(r'CUDA\s*: no \(.*%s.*\)' % re.escape(reason), text):
        yield 'auto: status %d, wanted "CUDA: no (...%s...)": %s' % (status, reason, text[-2000:])
    elif '#define JK_HAVE_CUDA 0' not in made or made != disabled:
        yield 'auto: what is compiled is not what -Dcuda=disabled compiles'
    status, text, config = configure(folder, path, 'enabled')
    if status == 0 or not re.search(r'ERROR: .*%s' % re.escape(reason), text):
        yield 'enabled: status %d, wanted an error telling "%s": %s' % (status, reason, text[-2000:])


def main():
    failed = 0
    print('1..%d' % (1 + len(FAILING)))
    with tempfile.TemporaryDirectory() as folder:
        without = path_without_nvcc(folder)
        cases = [('no nvcc', without, 'no nvcc on PATH')]
        for name, (script, reason) in FAILING.items():
            home = tempfile.mkdtemp(dir=folder)
            nvcc = os.path.join(home, 'nvcc')
            with open(nvcc, 'w', encoding='utf-8') as out:
                out.write('#!/bin/sh\n%s\n' % script)
            os.chmod(nvcc, 0o755)
            cases.append(('an nvcc that ' + name, home + os.pathsep + without, reason))
        _, _, disabled = configure(folder, os.environ['PATH'], 'disabled')
        for number, (name, path, reason) in enumerate(cases, 1):
            found = list(faults(folder, path, reason, disabled))
            failed += bool(found)
            print('%sok %d - %s' % ('not ' if found else '', number, name))
            for fault in found:
                print('# ' + fault.replace('\n', '\n# '))
    return failed != 0


sys.exit(main())
