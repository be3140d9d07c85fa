#!/usr/bin/env python3
"""kill -9 at random moments: the target holds the old result or the whole new one, a reader that looks all
the time never sees anything else, and no file is left. usage: kill.py JASK-GEMM [ROUNDS]   (TAP on stdout)"""
import hashlib
import os
import random
import subprocess
import sys
import threading
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'cli'))
sys.dont_write_bytecode = True

import tap  # noqa: E402

GEMM = os.path.abspath(sys.argv[1])
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 50
SEED = int(os.environ.get('JASK_TEST_SEED', time.time_ns() % 1000000))
RUN = [GEMM, '--size', '700', '--dtype', 'f64', '-b', '1MiB', '-q', '-o', 'd.npy']


def digest():
    with open('d.npy', 'rb') as file:
        return hashlib.sha256(file.read()).hexdigest()


class Reader(threading.Thread):
    """Collects every content that the target ever shows."""

    def __init__(self):
        super().__init__()
        self.seen, self.ended = set(), False

    def run(self):
        while not self.ended:
            self.seen.add(digest())


def kill_rounds():
    environment = {k: v for k, v in os.environ.items() if not k.startswith('JASK_')}
    generator = random.Random(SEED)
    begin = time.monotonic()
    subprocess.run(RUN, check=True, env=environment)
    whole = time.monotonic() - begin
    new = digest()
    old = hashlib.sha256(b'old').hexdigest()
    reader = Reader()
    reader.start()
    killed = complete = 0
    try:
        for _ in range(ROUNDS):
            with open('next', 'wb') as file:
                file.write(b'old')
            os.rename('next', 'd.npy')
            run = subprocess.Popen(RUN, env=environment)
            try:
                run.wait(generator.uniform(0, 1.2 * whole))
            except subprocess.TimeoutExpired:
                run.kill()
            code = run.wait()
            killed += code != 0
            found = digest()
            complete += found == new
            assert found in (old, new), 'a part of a result under the name of the whole'
            # Killed between the two calls that replace a name, a run leaves one that the next removes.
            may = {'d.npy'} if code == 0 else {'d.npy', '.d.npy.jask-commit0'}
            left = [n for _, _, names in os.walk('.') for n in names if n not in may]
            assert not left, 'left behind: %s' % left
    finally:
        reader.ended = True
        reader.join()
    assert reader.seen <= {old, new}, 'the reader saw a part of a result'
    print('# seed %d: %d of %d killed, %d complete' % (SEED, killed, ROUNDS, complete))


tap.run([kill_rounds], 'kill', 'seed %d' % SEED)
