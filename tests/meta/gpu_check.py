#!/usr/bin/env python3
"""tools/gpu-check as far as a machine without a GPU can show it: what it packs runs elsewhere, without
a GPU it refuses, and on the simulated CUDA runtime every step works.
usage: gpu_check.py SOURCE-ROOT BUILD-ROOT   (TAP on stdout)"""
import json
import os
import subprocess
import sys
import tempfile

SCRIPT = os.path.join(sys.argv[1], 'tools', 'gpu-check')
BUILD = sys.argv[2]
STEPS = {'info', 'device', 'kernels', 'end-to-end', 'product', 'memcheck', 'memcheck-kernels', 'copies',
         'memory-f32-4GiB', 'memory-f32-1GiB', 'memory-f32-256MiB', 'memory-tf32', 'memory-f64',
         'files-f32'}
# Takes compute-sanitizer's options, checks nothing.
SANITIZER = '''#!/bin/sh
while [ "${1#--}" != "$1" ]; do
    case $1 in --tool | --error-exitcode | --target-processes) shift ;; esac
    shift
done
exec "$@"
'''


def run(*command, **env):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(('JASK_', 'CUSIM_'))}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=dict(kept, **env))


def pack(folder, *options):
    packed = os.path.join(folder, 'packed')
    made = run(SCRIPT, 'pack', *options, BUILD, packed)
    assert made.returncode == 0, made.stdout + made.stderr
    return packed


def what_is_packed_runs_elsewhere_and_is_small(folder):
    packed = pack(folder)
    size = sum(os.path.getsize(os.path.join(packed, name)) for name in os.listdir(packed))
    assert size <= 50 << 20, size
    tree = os.path.join(folder, 'elsewhere')
    os.mkdir(tree)
    assert run('tar', '-C', tree, '-xzf', os.path.join(packed, 'programs.tar.gz')).returncode == 0
    env = {'LD_LIBRARY_PATH': os.path.join(tree, 'lib')}
    for command in (('jask-info',), ('jask-gemm', '--version')):
        ran = run(os.path.join(tree, 'bin', command[0]), *command[1:], **env)
        assert ran.returncode == 0 and ran.stdout, ran
        linked = run('ldd', os.path.join(tree, 'bin', command[0]), **env).stdout
        assert tree + '/lib/' in linked and 'not found' not in linked, linked


def without_a_gpu_it_refuses_and_says_why(folder):
    ran = run(os.path.join(pack(folder), 'gpu-check'), 'run', os.path.join(folder, 'results'),
              CUDA_VISIBLE_DEVICES='')
    assert ran.returncode != 0, ran
    assert ran.stdout.splitlines()[-1] == '0 passed, 1 failed, 0 skipped', ran.stdout
    assert 'cuda' in ran.stdout.lower(), ran.stdout


def every_step_works_on_the_simulator(folder):
    packed, bin_folder = pack(folder, '--simulator'), os.path.join(folder, 'bin')
    os.mkdir(bin_folder)
    with open(os.path.join(bin_folder, 'compute-sanitizer'), 'w', encoding='utf-8') as out:
        out.write(SANITIZER)
    os.chmod(out.name, 0o755)
    results = os.path.join(folder, 'results')
    ran = run(os.path.join(packed, 'gpu-check'), 'run', results, '512', OPENBLAS_NUM_THREADS='1',
              JASK_HOST_BUDGET='4MiB', PATH=bin_folder + os.pathsep + os.environ['PATH'])
    assert ran.returncode == 0 and ' 0 failed, ' in ran.stdout.splitlines()[-1], ran.stdout + ran.stderr
    with open(os.path.join(results, 'steps.jsonl'), encoding='utf-8') as lines:
        steps = {step['step']: step['status'] for step in map(json.loads, lines)}
    assert steps == dict.fromkeys(STEPS, 'passed'), steps
    with open(os.path.join(results, 'bench.jsonl'), encoding='utf-8') as lines:
        assert len([json.loads(line) for line in lines]) >= 6


TESTS = [what_is_packed_runs_elsewhere_and_is_small, without_a_gpu_it_refuses_and_says_why,
         every_step_works_on_the_simulator]
failed = 0
print('1..%d' % len(TESTS))
for number, test in enumerate(TESTS, 1):
    with tempfile.TemporaryDirectory(dir='.') as work:
        try:
            test(os.path.abspath(work))
            print('ok %d - %s' % (number, test.__name__), flush=True)
        except AssertionError as fault:
            failed += 1
            print('not ok %d - %s\n# %s' % (number, test.__name__, str(fault).replace('\n', '\n# ')),
                  flush=True)
sys.exit(failed != 0)
