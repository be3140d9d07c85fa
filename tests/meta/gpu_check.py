#!/usr/bin/env python3
"""tools/gpu-check as far as a machine without a GPU can show it: what it packs runs elsewhere, without
a GPU it refuses, and on the simulated CUDA runtime every step works, and one that fails is told.
usage: gpu_check.py SOURCE-ROOT BUILD-ROOT   (TAP on stdout)"""
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

SCRIPT = os.path.join(sys.argv[1], 'tools', 'gpu-check')
BUILD = sys.argv[2]
MEMORY = ('f32-4GiB', 'f32-1GiB', 'f32-256MiB', 'tf32', 'bf16', 'f16', 'f64')
STEPS = ['info', 'device', 'kernels', 'end-to-end', 'product', 'memcheck', 'memcheck-kernels', 'copies',
         *('memory-' + name for name in MEMORY), 'files-f32', 'calibrate']
# All that a bare machine needs to have.
PROGRAMS = ('cat', 'date', 'dirname', 'env', 'grep', 'gzip', 'head', 'ls', 'mkdir', 'rm', 'sed', 'sh', 'tail', 'tar',
            'tee', 'timeout')
# Takes compute-sanitizer's options, checks nothing, and ends as told.
SANITIZER = '''#!/bin/sh
while [ "${1#--}" != "$1" ]; do
    case $1 in --tool | --error-exitcode | --target-processes) shift ;; esac
    shift
done
"$@"
exit $((%d | $?))
'''
# Of each test program one test, which the test suite runs in full; products of few tiles.
QUICK = {'CRITERION_TEST_PATTERN': '*/@(keeps_the_contract|the_probe*|gives_the*)', 'OPENBLAS_NUM_THREADS': '1',
         'JASK_HOST_BUDGET': '8MiB'}


def run(*command, **env):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(('JASK_', 'CUSIM_'))}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=dict(kept, **env))


@functools.lru_cache
def pack(*options):
    packed = os.path.join(ALL, 'packed' + ''.join(options))
    made = run(SCRIPT, 'pack', *options, BUILD, packed)
    assert made.returncode == 0, made.stdout + made.stderr
    return packed


def what_is_packed_runs_elsewhere_and_is_small(folder):
    packed = pack()
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
    ran = run(os.path.join(pack(), 'gpu-check'), 'run', os.path.join(folder, 'results'),
              CUDA_VISIBLE_DEVICES='')
    assert ran.returncode != 0, ran
    assert ran.stdout.splitlines()[-1] == '0 passed, 1 failed, 0 skipped', ran.stdout
    assert 'cuda' in ran.stdout.lower(), ran.stdout


def dry_run(folder, sanitizer_status):
    """On the simulator, with nothing but PROGRAMS and a compute-sanitizer: what it printed and left."""
    packed, tools = pack('--simulator'), os.path.join(folder, 'tools')
    os.mkdir(tools)
    for name in PROGRAMS:
        os.symlink(shutil.which(name), os.path.join(tools, name))
    sanitizer = os.path.join(tools, 'compute-sanitizer')
    with open(sanitizer, 'w', encoding='utf-8') as out:
        out.write(SANITIZER % sanitizer_status)
    os.chmod(sanitizer, 0o755)
    results = os.path.join(folder, 'results')
    command = (os.path.join(packed, 'gpu-check'), 'run', results, '128')
    ran = run(*command, **QUICK, PATH=tools)
    with open(os.path.join(results, 'steps.jsonl'), encoding='utf-8') as lines:
        steps = [json.loads(line) for line in lines]
    said = ran.stdout + ran.stderr
    assert [step['step'] for step in steps] == STEPS, said
    assert all(step['seconds'] >= 0 for step in steps), steps
    assert not os.path.exists(os.path.join(results, 'work')), 'programs are left'
    with open(os.path.join(results, 'summary.txt'), encoding='utf-8') as summary:
        assert summary.read().endswith(ran.stdout.splitlines()[-1] + '\n')
    again = run(*command, **QUICK, PATH=tools)
    assert again.returncode == 1 and 'is there already' in again.stderr, again
    return ran, results, {step['step']: step['status'] for step in steps}


def every_step_works_on_the_simulator(folder):
    ran, results, steps = dry_run(folder, 0)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert re.fullmatch(r'\d+ passed, 0 failed, \d+ skipped', ran.stdout.splitlines()[-1]), ran.stdout
    assert 'no figure below is a speed' in ran.stdout
    assert set(steps.values()) == {'passed'}, steps
    with open(os.path.join(results, 'bench.jsonl'), encoding='utf-8') as lines:
        benches = [json.loads(line) for line in lines]
    assert [b['bench'] for b in benches] == ['gpu_copies'] * 2 + ['gpu_memory'] * len(MEMORY) + ['gpu_files']
    assert [b['dtype'] for b in benches if b['bench'] == 'gpu_memory'] == 4 * ['f32'] + ['bf16', 'f16', 'f64']
    with open(os.path.join(results, 'calibrate.out'), encoding='utf-8') as out:
        assert 'flops_f16=' in out.read()


def a_step_that_fails_is_counted_and_the_others_go_on(folder):
    ran, _, steps = dry_run(folder, 9)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert re.fullmatch(r'\d+ passed, 2 failed, \d+ skipped', ran.stdout.splitlines()[-1]), ran.stdout
    failed_steps = sorted(name for name, status in steps.items() if status != 'passed')
    assert failed_steps == ['memcheck', 'memcheck-kernels'], steps


TESTS = [what_is_packed_runs_elsewhere_and_is_small, without_a_gpu_it_refuses_and_says_why,
         every_step_works_on_the_simulator, a_step_that_fails_is_counted_and_the_others_go_on]
failed = 0
print('1..%d' % len(TESTS))
with tempfile.TemporaryDirectory(dir='.') as top:
    ALL = os.path.abspath(top)
    for number, test in enumerate(TESTS, 1):
        work = os.path.join(ALL, str(number))
        os.mkdir(work)
        try:
            test(work)
            print('ok %d - %s' % (number, test.__name__), flush=True)
        except AssertionError as fault:
            failed += 1
            print('not ok %d - %s\n# %s' % (number, test.__name__, str(fault).replace('\n', '\n# ')),
                  flush=True)
sys.exit(failed != 0)
