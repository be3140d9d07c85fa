#!/usr/bin/env python3
"""Both gradients of a product in one pass against two products, in turn.

usage: gradients.py JASK-GEMM DIR M N K BUDGET [ROUNDS]

Makes A (M x K), B (K x N) and DD (M x N) of f32 in DIR, measures warm (files in the page cache) and cold (dropped
from it before every run), and prints what computes and a row of Markdown each: size, budget, cache, schedule, seconds in one pass, those of
dA alone and dB alone added up, the ratio of both, and that of bytes up; medians and ranges. Seconds are those that jask-gemm
reports. Needs NumPy."""
import json
import os
import statistics
import subprocess
import sys

import numpy as np

JASK, DIR, M, N, K, BUDGET = sys.argv[1:7]
ROUNDS = int(sys.argv[7]) if len(sys.argv) > 7 else 5
INPUTS = {'a': (M, K), 'b': (K, N), 'dd': (M, N)}
PATHS = {name: os.path.join(DIR, name + '.npy') for name in INPUTS}


def make_inputs():
    rng = np.random.default_rng(1)
    for name, shape in INPUTS.items():
        np.save(PATHS[name], rng.standard_normal([int(e) for e in shape], dtype='f4'))
        with open(PATHS[name], 'rb') as file:
            os.fsync(file.fileno())


def settle(cold):
    for path in PATHS.values():
        with open(path, 'rb') as file:
            if cold:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            else:
                while file.read(1 << 24):
                    pass


def run(wanted, cold):
    settle(cold)
    outputs = [arg for name in wanted for arg in ('--' + name, os.path.join(DIR, name + '.npy'))]
    done = subprocess.run([JASK, '--backward', *PATHS.values(), *outputs, '-b', BUDGET, '--json', '--no-sync', '-q', '-d', 'host'],
                          check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def measure(cold):
    joint, apart = [], []
    for _ in range(ROUNDS):
        both = run(['da', 'db'], cold)
        alone = [run([name], cold) for name in ('da', 'db')]
        joint.append(both['seconds'])
        apart.append(sum(report['seconds'] for report in alone))
    if not cold:
        print(both['device_description'])
    ratios = sorted(j / a for j, a in zip(joint, apart))
    print('| %s x %s x %s | %s | %s | %s | %.2f s (%.2f to %.2f) | %.2f s (%.2f to %.2f) | %.2f (%.2f to %.2f) | %.2f |' % (
        M, N, K, BUDGET, 'cold' if cold else 'warm', both['plan']['schedule'],
        statistics.median(joint), min(joint), max(joint), statistics.median(apart), min(apart), max(apart),
        statistics.median(ratios), ratios[0], ratios[-1], both['h2d_bytes'] / sum(report['h2d_bytes'] for report in alone)))


make_inputs()
for cold in (False, True):
    measure(cold)
for path in list(PATHS.values()) + [os.path.join(DIR, name + '.npy') for name in ('da', 'db')]:
    os.remove(path)
