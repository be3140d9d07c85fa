#!/usr/bin/env python3
"""kill -9 at random moments, with --resume: the target is absent or complete, whatever the moment, and the
run that is started again ends with the bits of one that nobody disturbed.
usage: kill_resume.py JASK-GEMM [KILLS]   (TAP on stdout)"""
import array
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'cli'))
sys.dont_write_bytecode = True

import advice  # noqa: E402
import tap  # noqa: E402

GEMM = os.path.abspath(sys.argv[1])
KILLS = int(sys.argv[2]) if len(sys.argv) > 2 else 50
SEED = int(os.environ.get('JASK_TEST_SEED', time.time_ns() % 1000000))
SIDE = 2000
ENV = {k: v for k, v in os.environ.items() if not k.startswith('JASK_')}
ENV = advice.taken({**ENV, 'OPENBLAS_NUM_THREADS': '1'}, os.path.join(os.path.dirname(GEMM), 'jask-info'))
FILES = ['c.npy.jask-journal', 'c.npy.jask-partial']


def write_random(path, seed):
    generator = random.Random(seed)
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }" % (SIDE, SIDE)
    header += ' ' * (-(len(header) + 11) % 64) + '\n'
    block = array.array('f', (generator.uniform(-1, 1) for _ in range(SIDE * 8)))
    with open(path, 'wb') as out:
        out.write(b'\x93NUMPY\x01\0' + len(header).to_bytes(2, 'little') + header.encode())
        for row in range(0, SIDE, 8):  # other values in every block of rows
            block[row % len(block)] = generator.uniform(-1, 1)
            block.append(block.pop(0))
            block.tofile(out)


def start(output, *options):
    return subprocess.Popen([GEMM, 'a.npy', 'b.npy', '-o', output, '-b', '4MiB',
                             '--no-sync', '--json', '-d', 'host', *options],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENV)


def finish(process):
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, 'exit %d: %s' % (process.returncode, err.decode())
    return json.loads(out)


def digest(path):
    with open(path, 'rb') as file:
        return hashlib.sha256(file.read()).hexdigest()


def check_report(report):
    left = 1 - report['resumed_tiles'] / report['plan']['tiles']
    assert 0 < left <= 1 or report['file_write_bytes'] == 0, report
    if report['resumed_tiles'] == 0:
        assert report['file_read_bytes'] == report['plan']['file_read_bytes'], report
    else:
        assert report['file_write_bytes'] < report['plan']['file_write_bytes'], report


def kill_after(process, seconds, number):
    """Whether the signal found the run at work."""
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(number)
    out, err = process.communicate(timeout=60)
    return process.returncode != 0, out, err.decode()


def kills_change_no_bit():
    write_random('a.npy', 1)
    write_random('b.npy', 2)
    begin = time.monotonic()
    finish(start('whole.npy'))
    whole = time.monotonic() - begin
    expected = digest('whole.npy')
    generator = random.Random(SEED)
    done = hits = resumed = 0
    while hits < KILLS:
        killed, out, err = kill_after(start('c.npy', '--resume'),
                                      generator.uniform(0, whole), signal.SIGKILL)
        hits += killed
        if killed:
            assert not err, err
        names = set(os.listdir('.')) - {'a.npy', 'b.npy', 'whole.npy', 'c.npy', '.jask_scratch'}
        assert names <= set(FILES), names
        if os.path.exists('c.npy'):
            assert digest('c.npy') == expected, 'other bits, or a part'
            if not killed:
                report = json.loads(out)
                check_report(report)
                resumed += report['resumed_tiles'] > 0
                assert not names, names
            done += 1
            os.remove('c.npy')
    report = finish(start('c.npy', '--resume'))
    check_report(report)
    resumed += report['resumed_tiles'] > 0
    assert digest('c.npy') == expected, 'other bits at the end'
    assert not [name for name in FILES if os.path.exists(name)]
    assert resumed > 0, 'no run went on with anything'
    print('# seed %d: %d kills in runs of %.2f s; %d runs ended, %d of them resumed'
          % (SEED, hits, whole, done + 1, resumed))


def a_stopped_run_says_how_to_go_on():
    """SIGINT: what is finished stays, and the message says so."""
    write_random('a.npy', 1)
    write_random('b.npy', 2)
    begin = time.monotonic()
    finish(start('whole.npy'))
    whole = time.monotonic() - begin
    for _ in range(20):
        killed, _, err = kill_after(start('c.npy', '--resume'), whole / 2, signal.SIGINT)
        if killed and os.path.exists(FILES[0]):
            break
        if os.path.exists('c.npy'):
            os.remove('c.npy')
    else:
        raise AssertionError('it was never stopped in its middle')
    assert 'goes on from there' in err and err.count('\n') == 1, err
    assert not os.path.exists('c.npy')
    report = finish(start('c.npy', '--resume'))
    assert report['resumed_tiles'] > 0
    check_report(report)
    assert digest('c.npy') == digest('whole.npy')


tap.run([kills_change_no_bit, a_stopped_run_says_how_to_go_on], 'kill-resume', 'seed %d' % SEED)
