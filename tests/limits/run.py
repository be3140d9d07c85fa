#!/usr/bin/env python3
"""Memory limits that are real: jask-gemm is watched while it runs, and put into a memory control group far
smaller than its files. usage: run.py JASK-GEMM JASK-ADD   (TAP on stdout)"""
import contextlib
import json
import os
import shutil
import struct
import subprocess
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'cli'))
sys.dont_write_bytecode = True

import advice  # noqa: E402
import group as group_of  # noqa: E402
import tap  # noqa: E402

GEMM, ADD = (os.path.abspath(path) for path in sys.argv[1:3])
MIB = 1 << 20
os.environ.update(advice.taken(dict(os.environ), os.path.join(os.path.dirname(GEMM), 'jask-info')))
ALLOWANCE = 32 * MIB  # the library, its threads' stacks and what the BLAS keeps for itself


def status_bytes(pid, keys):
    """The sum of rows of /proc/PID/status."""
    total = 0
    try:
        with open('/proc/%d/status' % pid, encoding='ascii') as status:
            for line in status:
                if line.startswith(keys):
                    total += int(line.split()[1]) << 10
    except (FileNotFoundError, ProcessLookupError):
        pass
    return total


def private_bytes(pid):
    """Anonymous and shared-memory pages: what a process holds that is no file's page cache."""
    return status_bytes(pid, ('RssAnon:', 'RssShmem:'))


def most_of(run, look):
    """The most that `look` sees until the process ends."""
    peak = 0
    while run.poll() is None:
        peak = max(peak, look(run.pid))
        time.sleep(0.005)
    return peak


def watch(args, preexec=None, look=private_bytes, sync=False):
    """Run jask-gemm; its JSON and the most that `look` saw of its process, by default private memory."""
    options = ['--json'] if sync else ['--json', '--no-sync']
    run = subprocess.Popen([GEMM] + options + args, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           text=True, preexec_fn=preexec)
    peak = most_of(run, look)
    out, err = run.communicate()
    assert run.returncode == 0, 'exit %d: %s%s' % (run.returncode, out, err)
    report = json.loads(out.splitlines()[-1])
    plan = report['plan']
    for key in ('h2d_bytes', 'd2h_bytes', 'file_read_bytes', 'file_write_bytes'):
        assert report[key] == plan[key], '%s: counted %d, planned %d' % (key, report[key], plan[key])
    assert report['peak_device_bytes'] == plan['peak_bytes'] <= report['budget_bytes']
    return report, peak


def write_ones(path, rows, cols):
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }" % (rows, cols)
    header += ' ' * (-(len(header) + 11) % 64) + '\n'
    chunk = b'\0\0\x80\x3f' * 65536
    with open(path, 'wb') as out:
        out.write(b'\x93NUMPY\x01\0' + len(header).to_bytes(2, 'little') + header.encode())
        left = rows * cols
        while left:
            out.write(chunk[:4 * min(left, 65536)])
            left -= min(left, 65536)


def budgets_hold():
    for mib in (8, 32, 128):
        _, peak = watch(['--size', '4096', '-b', '%dMiB' % mib, '-s', '.'])
        print('# %d MiB budget, 4096^3: %.1f MiB private at most' % (mib, peak / MIB))
        assert 0 < peak <= mib * MIB + ALLOWANCE, '%d MiB budget: %.1f MiB' % (mib, peak / MIB)


def memory_spare_for_the_next_run_counts_once():
    """What a run leaves for the next one is gone before the check in between takes memory of its own."""
    _, peak = watch(['--size', '1200000x64x64', '-b', '96MiB', '--planner', 'bytes', '-s', '.', '--verify',
                     '--repeat', '2'])
    print('# 96 MiB budget, twice, verified: %.1f MiB private at most' % (peak / MIB))
    assert 0 < peak <= 96 * MIB + ALLOWANCE, '%.1f MiB' % (peak / MIB)


def memory_does_not_grow_with_k():
    peaks = []
    for exponent in (16, 18, 20):
        k = 1 << exponent
        a, b, c = (name + '.npy' for name in 'abc')
        write_ones(a, 64, k)
        write_ones(b, k, 64)
        _, peak = watch([a, b, '-o', c, '-b', '16MiB'])
        peaks.append(peak)
        with open(c, 'rb') as result:
            data = result.read()[-64 * 64 * 4:]
        assert set(struct.unpack('<4096f', data)) == {float(k)}, 'K = %d: wrong elements' % k
    print('# K = 2^16, 2^18, 2^20: %s MiB private' % ', '.join('%.1f' % (p / MIB) for p in peaks))
    assert max(peaks) - min(peaks) <= 5 * MIB


def make_group(limit):
    try:
        return group_of.make(limit, 'jask-test')
    except group_of.NoGroup as why:
        raise tap.Skip(str(why)) from None


def files_far_larger_than_the_group():
    group = make_group(192 * MIB)
    try:
        a, b, c = (name + '.npy' for name in 'abc')
        write_ones(a, 8192, 8192)
        write_ones(b, 8192, 8192)
        group_of.drop_cache(a)
        group_of.drop_cache(b)
        report, peak = watch([a, b, '-o', c, '-b', '64MiB', '--verify'], group_of.enter(group))
        assert report['verified'] is True
        assert report['disk_read_bytes'] >= 2 * 8192 * 8192 * 4, 'the cache was not cold'
        print('# 8192^3, 768 MiB of files, 64 MiB budget, 192 MiB group: %.1f MiB private, %.1f s'
              % (peak / MIB, report['seconds']))
    finally:
        os.rmdir(group)


def write_holes(path, rows, cols, descr='<f4', order='False'):
    """Zeros that take no room on the disk, but as much page cache as others when they are read."""
    header = "{'descr': '%s', 'fortran_order': %s, 'shape': (%d, %d), }" % (descr, order, rows, cols)
    header += ' ' * (-(len(header) + 11) % 64) + '\n'
    with open(path, 'wb') as out:
        out.write(b'\x93NUMPY\x01\0' + len(header).to_bytes(2, 'little') + header.encode())
        out.truncate(10 + len(header) + rows * cols * int(descr[-1]))


def default_budget_keeps_to_the_group():
    """Nobody names a budget in a group of 128 MiB: files of 1 GiB are read, and one of 256 MiB is
    written, without a kill."""
    group = make_group(128 * MIB)
    try:
        a, b, c, thin = (name + '.npy' for name in ('a', 'b', 'c', 'thin'))
        write_holes(a, 65536, 4096)
        write_holes(b, 4096, 16)
        write_ones(thin, 8192, 8)
        for args in ([a, b, '-o', c], [thin, thin, '--tb', '-o', c]):
            report, peak = watch(args, group_of.enter(group))
            print('# %.0f MiB group: took a budget of %.1f MiB, %.1f MiB private'
                  % (128, report['budget_bytes'] / MIB, peak / MIB))
            assert 32 * MIB <= report['budget_bytes'] < 128 * MIB
        with open(c, 'rb') as result:
            result.seek(4096)
            assert result.read(4096) == b'\0\0\0\x41' * 1024, 'wrong elements'
    finally:
        os.rmdir(group)


@contextlib.contextmanager
def memory_disk(mebibytes):
    """A directory that lies in RAM."""
    if os.geteuid() != 0:
        raise tap.Skip('only root can mount')
    os.mkdir('ram')
    done = subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=%dm' % mebibytes, 'none', 'ram'],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        raise tap.Skip('cannot mount: ' + done.stderr.strip())
    try:
        yield 'ram'
    finally:
        subprocess.run(['umount', 'ram'], check=True)


def a_result_in_memory_takes_its_part():
    """In a group of 256 MiB a result that lies in RAM leaves the rest to the budget, and is refused where
    it leaves nothing; what an earlier run of a resumable product left there is not counted twice."""
    group = make_group(256 * MIB)
    try:
        with memory_disk(512) as ram:
            write_ones('thin.npy', 5000, 8)
            size = 5000 * 5000 * 4
            for args in ([], ['--resume']):
                asked = ['thin.npy', 'thin.npy', '--tb', '-b', '200MiB', '-o', ram + '/c.npy']
                report, _ = watch(asked + args, group_of.enter(group))
                print('# asked for 200 MiB beside a result of %.1f MiB: took %.1f MiB'
                      % (size / MIB, report['budget_bytes'] / MIB))
                assert 100 * MIB < report['budget_bytes'] <= 0.8 * (256 * MIB - size)
                os.remove(ram + '/c.npy')
            run = subprocess.run([GEMM] + asked, capture_output=True, text=True, check=True,
                                 preexec_fn=group_of.enter(group))
            assert 'cut from 200MiB' in run.stderr and 'takes 97656KiB of' in run.stderr, run.stderr
            os.remove(ram + '/c.npy')
            write_ones('flat.npy', 5000, 5000)
            run = subprocess.run([ADD, 'flat.npy', 'flat.npy', '-b', '200MiB', '-o', ram + '/c.npy', '--json'],
                                 capture_output=True, text=True, check=True, preexec_fn=group_of.enter(group))
            assert json.loads(run.stdout)['budget_bytes'] <= 0.8 * (256 * MIB - size), run.stdout
            os.remove(ram + '/c.npy')
            write_ones('thin.npy', 8190, 8)
            run = subprocess.run([GEMM] + asked, capture_output=True, text=True, check=False,
                                 preexec_fn=group_of.enter(group))
            assert run.returncode == 3 and os.listdir(ram) == [], run
            assert run.stderr.count('\n') == 2 and 'lies in RAM and takes 255.875MiB' in run.stderr, run
    finally:
        os.rmdir(group)


def every_form_of_input_takes_the_same_memory():
    """Byte order and Fortran order are undone piece by piece, never in a copy of the whole."""
    peaks = {}
    for descr, order in (('<f4', 'False'), ('>f4', 'False'), ('<f4', 'True'), ('>f4', 'True')):
        a, b, c = (name + '.npy' for name in 'abc')
        write_holes(a, 4096, 6144, descr, order)
        write_holes(b, 6144, 1024, descr, order)
        write_holes(c, 4096, 1024, descr, order)
        _, peak = watch([a, b, '--c', c, '--beta', '1', '-o', 'd.npy', '-b',
                         '16MiB'])
        peaks[descr, order] = peak
    print('# 16 MiB budget: %s MiB private' % ', '.join('%.1f' % (p / MIB) for p in peaks.values()))
    assert max(peaks.values()) <= 16 * MIB + ALLOWANCE, peaks
    assert max(peaks.values()) - min(peaks.values()) <= 5 * MIB, peaks


def inputs_that_do_not_fit_go_around_the_page_cache():
    """512 MiB, of which 64 KiB or more lie together: by default through the page cache where there is
    room, around it in a group of 192 MiB, and then the disk gives what was asked for and no more."""
    a, b, c = (name + '.npy' for name in 'abc')
    write_ones(a, 1 << 17, 512)
    write_ones(b, 1 << 17, 512)
    for path in (a, b):
        group_of.drop_cache(path)
    args = [a, b, '--ta', '-o', c, '-b', '64MiB']
    group = make_group(192 * MIB)
    try:
        for options, preexec in ((['--io', 'direct'], None), ([], group_of.enter(group))):
            report, _ = watch(args + options, preexec)
            if report['io_engine'] == 'pread' and report['note']:
                raise tap.Skip(report['note'])
            ratio = report['disk_read_bytes'] / report['file_read_bytes']
            print('# %s: %.4f bytes from the disk for one asked of files, in %.2f s'
                  % (options or 'auto, 192 MiB group', ratio, report['seconds']))
            assert report['io_engine'] == 'direct'
            assert 0.99 <= ratio <= 1.01, report
            with open(c, 'rb') as result:
                assert set(struct.unpack('<262144f', result.read()[-1048576:])) == {131072.0}
        report, _ = watch(args)
        assert report['io_engine'] == 'pread', report
        # What is in the page cache is taken from there, also where it would not fit.
        report, _ = watch(args, group_of.enter(group))
        assert report['io_engine'] == 'pread' and report['disk_read_bytes'] < 32 * MIB, report
    finally:
        os.rmdir(group)


def need_memory(mebibytes):
    with open('/proc/meminfo', encoding='ascii') as lines:
        found = [int(line.split()[1]) >> 10 for line in lines if line.startswith('MemAvailable:')][0]
    if found < mebibytes:
        raise tap.Skip('%d MiB of memory are available, %d are needed' % (found, mebibytes))


FAST, SLOW = ['--machine', 'disk=100G'], ['--machine', 'disk=500M']


def engine_of(args, outputs=('-o', 'd.npy')):
    """How inputs are read that memory could hold, and not because direct reads were refused."""
    command = [GEMM, *args, *outputs, '-b', '64MiB', '--no-sync', '--json']
    report = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert 'page cache' not in report['note'], report['note']
    return report['io_engine']


def large_inputs_that_pass_once_go_around_the_page_cache():
    """1 GiB that fits in memory and is read once: around the page cache where the plan says that reading hides
    behind products, through it where the disk is what takes longest. Through it also what is cached already, what is
    smaller, and what is read twice: as A and as B, by two batches, or for both gradients."""
    if os.major(os.stat('.').st_dev) == 0:
        raise tap.Skip('this folder lies on no block device')
    need_memory(4096)
    write_holes('x.npy', 1 << 24, 16)
    write_holes('less.npy', (1 << 24) - 64, 16)
    write_holes('one.npy', 1 << 24, 1)
    write_holes('row.npy', 1, 16)
    write_holes('two.npy', 2, 1 << 24)
    gram = ['x.npy', 'x.npy', '--ta']
    report, _ = watch(['one.npy', 'one.npy', '--ta', '-o', 'd.npy', '-b', '64MiB', '--io', 'direct'])
    if report['io_engine'] == 'pread':
        raise tap.Skip(report['note'])
    assert report['io_engine'] == 'direct', 'B, which is A, is not read'
    assert engine_of(gram + FAST) == 'direct'
    assert group_of.cached_share('x.npy') <= 0.1
    # A vector of 64 MiB goes through the page cache.
    assert engine_of(['one.npy', 'x.npy', '--ta'] + FAST) == 'mixed'
    backward, da = ['one.npy', 'row.npy', '--backward', 'x.npy'] + FAST, ('--da', 'da.npy')
    assert engine_of(backward, da) == 'mixed'
    for planner in 'auto', 'bytes':  # two plans, and a joint one
        assert engine_of(backward + ['--planner', planner], da + ('--db', 'db.npy')) == 'pread', planner
        group_of.drop_cache('x.npy')
    vector = 'x.npy@f32:%s+128'
    for args in ([vector % '1x268435456', vector % '268435456x1'] + FAST,
                 ['two.npy@f32:2x16777216x1+128', 'x.npy', '--ta'] + FAST, gram + SLOW,
                 gram + ['--io', 'pread'] + FAST, ['less.npy', 'less.npy', '--ta'] + FAST):
        assert engine_of(args) == 'pread', args
        group_of.drop_cache('x.npy')
    assert group_of.cached_share('less.npy') >= 0.95
    assert engine_of(gram + SLOW) == 'pread' and engine_of(gram + FAST) == 'pread'


def what_lies_on_no_disk_goes_through_the_page_cache():
    """The same in a file system that has no block device, as those of networks have none."""
    need_memory(4096)
    with memory_disk(2048) as ram:
        write_holes(ram + '/x.npy', 1 << 24, 16)
        assert engine_of([ram + '/x.npy', ram + '/x.npy', '--ta'] + FAST) == 'pread'


def long_streams_leave_no_page_tables():
    """256 MiB go through a budget of 16 MiB, the result is one number: nothing of them stays mapped, which
    would take 512 KiB."""
    a, b, c = (name + '.npy' for name in 'abc')
    write_holes(a, 1, 1 << 25)
    write_holes(b, 1 << 25, 1)
    for engine in ('pread', 'direct'):
        report, peak = watch([a, b, '-o', c, '-b', '16MiB', '--io', engine],
                             look=lambda pid: status_bytes(pid, ('VmPTE:',)))
        print('# %s: %.2f MiB of page tables, %.1f s' % (engine, peak / MIB, report['seconds']))
        assert report['file_read_bytes'] == 256 * MIB
        assert 0 < peak <= MIB // 4, '%d bytes of page tables' % peak


def dirty_bytes(group):
    """Written by the group's processes and not on the disk yet."""
    total = 0
    with open(os.path.join(group, 'memory.stat'), encoding='ascii') as stat:
        for line in stat:
            key, value = line.split()
            if key in ('dirty', 'writeback', 'file_dirty', 'file_writeback'):
                total += int(value)
    return total


def long_sums_keep_dirty_pages_few():
    """The same for a sum of 512 MiB of zeros that take no room."""
    group = make_group(128 * MIB)
    try:
        write_holes('flat.npy', 16384, 8192)
        for options in ([], ['--no-sync']):
            run = subprocess.Popen([ADD, 'flat.npy', 'flat.npy', '-o', 'c.npy', '-b', '32MiB', '-q']
                                   + options, preexec_fn=group_of.enter(group))
            peak = most_of(run, lambda pid: dirty_bytes(group))
            print('# %s: %.1f MiB dirty or on the way at most' % (options or 'durable', peak / MIB))
            assert run.returncode == 0, 'exit %d' % run.returncode
            assert 0 < peak <= 48 * MIB, '%.1f MiB dirty' % (peak / MIB)
    finally:
        os.rmdir(group)


def long_writes_keep_dirty_pages_few():
    """A result of 512 MiB from a group of 128 MiB, durable or not, around the page cache or through it: nobody
    is killed, and what waits for the disk is bounded by what is written behind, not by the group's limit."""
    group = make_group(128 * MIB)
    try:
        write_ones('tall.npy', 16384, 8)
        write_ones('wide.npy', 8, 8192)
        for sync, through in ((True, []), (False, []), (False, ['--io', 'pread'])):
            report, peak = watch(['tall.npy', 'wide.npy', '-o', 'c.npy', '-b', '32MiB'] + through,
                                 group_of.enter(group), look=lambda pid: dirty_bytes(group),
                                 sync=sync)
            print('# %s: 512 MiB in %.1f s: %.1f MiB dirty or on the way at most'
                  % ('durable' if sync else 'not', report['seconds'], peak / MIB))
            assert peak <= 48 * MIB, '%.1f MiB dirty' % (peak / MIB)
            refused = 'page cache' in report['note']
            assert report['write_engine'] == ('pwrite' if through or refused else 'direct'), report
            assert not through or peak > 0, 'no page was seen dirty'
        with open('c.npy', 'rb') as result:
            for offset in (4096, 4096 + (256 << 20), 512 << 20):
                result.seek(offset)
                assert result.read(4096) == b'\0\0\0\x41' * 1024, 'wrong elements'
    finally:
        os.rmdir(group)


def cached_bytes(group):
    """Page cache that is charged to the group."""
    with open(os.path.join(group, 'memory.stat'), encoding='ascii') as stat:
        return sum(int(line.split()[1]) for line in stat if line.startswith(('cache ', 'file ')))


def run_beside(group, command, bystander):
    """Run a command in the group after somebody there has read a file: its report, and the most page
    cache of the group meanwhile."""
    group_of.drop_cache(bystander)
    subprocess.run(['cat', bystander], stdout=subprocess.DEVNULL, check=True, preexec_fn=group_of.enter(group))
    run = subprocess.Popen(command + ['--json', '--no-sync'], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           text=True, preexec_fn=group_of.enter(group))
    peak = most_of(run, lambda pid: cached_bytes(group))
    out, err = run.communicate()
    assert run.returncode == 0, 'exit %d: %s%s' % (run.returncode, out, err)
    return json.loads(out), peak


def what_others_have_cached_stays():
    """A product of 256 MiB and a sum of 512 MiB are read through the page cache in a group of 192 MiB: a file that was read
    there before is still cached then, theirs are not, and the page cache does not fill the group, as it would."""
    group = make_group(192 * MIB)
    try:
        inputs, thin, bystander = ['a.npy', 'b.npy'], 'thin.npy', 'bystander'
        for path in inputs:
            write_ones(path, 8192, 8192)
        write_ones(thin, 8192, 16)
        write_ones(bystander, 1024, 8192)
        product = [GEMM, inputs[0], thin, '--io', 'pread', '-o', 'd.npy', '-b', '32MiB']
        for command in product, [ADD] + inputs + ['-o', 'd.npy', '-b', '32MiB']:
            for path in inputs:
                group_of.drop_cache(path)
            report, peak = run_beside(group, command, bystander)
            print('# %s: at most %.1f MiB cached, then %.2f of the other file, %.2f and %.2f of the inputs'
                  % (report['op'], peak / MIB, *map(group_of.cached_share, [bystander] + inputs)))
            assert report['disk_read_bytes'] >= 240 * MIB, 'the cache was not cold'
            assert group_of.cached_share(bystander) >= 0.9
            assert max(map(group_of.cached_share, inputs)) <= 0.1
            assert peak <= 128 * MIB, '%.1f MiB cached' % (peak / MIB)
    finally:
        os.rmdir(group)


def what_is_warm_or_fits_stays_warm():
    """Inputs stay cached that fit, and so do those that were cached before, though they do not fit in the
    group: the next run need not wait for the disk."""
    group = make_group(192 * MIB)
    try:
        write_ones('small.npy', 1024, 4096)
        write_ones('large.npy', 16384, 4096)
        for name, cold in (('small.npy', True), ('large.npy', False)):
            if cold:
                group_of.drop_cache(name)
            for _ in range(2):
                run = subprocess.run([ADD, name, name, '-o', 'd.npy', '-b', '32MiB', '--json', '--no-sync'],
                                     capture_output=True, text=True, check=True, preexec_fn=group_of.enter(group))
                report = json.loads(run.stdout)
                assert group_of.cached_share(name) >= 0.95, name
            assert report['disk_read_bytes'] < MIB, report
    finally:
        os.rmdir(group)


TESTS = [budgets_hold, memory_spare_for_the_next_run_counts_once, memory_does_not_grow_with_k,
         files_far_larger_than_the_group,
         default_budget_keeps_to_the_group,
         inputs_that_do_not_fit_go_around_the_page_cache,
         large_inputs_that_pass_once_go_around_the_page_cache,
         what_lies_on_no_disk_goes_through_the_page_cache, long_streams_leave_no_page_tables,
         long_writes_keep_dirty_pages_few, long_sums_keep_dirty_pages_few,
         what_others_have_cached_stays, what_is_warm_or_fits_stays_warm,
         a_result_in_memory_takes_its_part,
         every_form_of_input_takes_the_same_memory]
tap.run(TESTS, 'limits')
