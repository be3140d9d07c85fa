#!/usr/bin/env python3
"""tools/gpu-check as far as a machine without a GPU can show it: what it packs runs elsewhere, and
without a GPU it refuses.
usage: gpu_check.py SOURCE-ROOT BUILD-ROOT   (TAP on stdout)"""
import os
import subprocess
import sys
import tempfile

SCRIPT = os.path.join(sys.argv[1], 'tools', 'gpu-check')
BUILD = sys.argv[2]


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


TESTS = [what_is_packed_runs_elsewhere_and_is_small, without_a_gpu_it_refuses_and_says_why]
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
