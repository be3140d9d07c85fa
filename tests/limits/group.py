"""Memory control groups, v1 or v2, and cold files, for tests and benchmarks."""
import contextlib
import ctypes
import mmap
import os


class NoGroup(Exception):
    """Why none can be had."""


def parent_group():
    """The group this process is in, and what its kind calls the limit, memory, then memory and swap."""
    with open('/proc/self/cgroup', encoding='ascii') as lines:
        groups = [line.rstrip('\n').split(':', 2) for line in lines]
    for _, controllers, path in groups:
        if 'memory' in controllers.split(','):
            return '/sys/fs/cgroup/memory' + path, ('memory.limit_in_bytes',
                                                    'memory.memsw.limit_in_bytes')
    for _, controllers, path in groups:
        if controllers == '':
            return '/sys/fs/cgroup' + path, ('memory.max', 'memory.swap.max')
    raise NoGroup('this process is in no control group')


def make(limit, name):
    """A group of `limit` bytes and no swap below this process's own: its directory."""
    try:
        base, (memory, swap) = parent_group()
        group = os.path.join(base, '%s-%d' % (name, os.getpid()))
        os.mkdir(group)
    except OSError as error:
        raise NoGroup('no memory control group can be made: %s' % error) from None
    try:
        write(group, memory, limit)
        if os.path.exists(os.path.join(group, swap)):
            with contextlib.suppress(OSError):  # some kernels do not count swap
                write(group, swap, 0 if swap == 'memory.swap.max' else limit)
    except OSError as error:
        os.rmdir(group)
        raise NoGroup('no memory control group can be limited: %s' % error) from None
    return group


def write(group, file, value):
    with open(os.path.join(group, file), 'w', encoding='ascii') as out:
        out.write(str(value))


def enter(group):
    """For preexec_fn."""
    return lambda: write(group, 'cgroup.procs', os.getpid())


def drop_cache(path):
    """Its pages are on the disk, and no longer in memory."""
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def cached_share(path):
    """How much of a file lies in the page cache, 0 to 1."""
    with open(path, 'rb') as file:
        size = os.fstat(file.fileno()).st_size
        # Writable, because ctypes takes the address of no other memory; what is written would be private.
        with mmap.mmap(file.fileno(), size, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE) as data:
            pages = ctypes.create_string_buffer(-(-size // mmap.PAGESIZE))
            start = ctypes.c_char.from_buffer(data)
            failed = ctypes.CDLL(None, use_errno=True).mincore(ctypes.byref(start), ctypes.c_size_t(size), pages)
            del start
            if failed:
                raise OSError(ctypes.get_errno(), 'mincore', path)
    return sum(page & 1 for page in pages.raw) / len(pages)
