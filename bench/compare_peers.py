"""What bench/compare runs, one peer a process: compare_peers.py NAME JOB. JOB is a JSON object: a, b, c
(.npy files), budget_bytes, chunk, work (a folder). Prints {"seconds": ...}: from opening the inputs to the
written result, imports and start of Python not counted."""
import json
import os
import sys
import time

import numpy
from numpy.lib.format import open_memmap


def shape_of(job):
    a, b = (numpy.load(job[key], mmap_mode='r') for key in 'ab')
    return a.shape[0], b.shape[1], a.shape[1], a.dtype


def in_memory(job):
    numpy.save(job['c'], numpy.load(job['a']) @ numpy.load(job['b']))


def memmap(job):
    """Mapped operands, and a mapped result."""
    m, n, _, dtype = shape_of(job)
    a, b = (numpy.load(job[key], mmap_mode='r') for key in 'ab')
    numpy.matmul(a, b, out=open_memmap(job['c'], 'w+', dtype, (m, n)))


def bands(job):
    """What a careful user writes: a band of rows of A and of C in memory, B streamed past it in slabs of
    whole rows, all within the budget."""
    m, n, k, dtype = shape_of(job)
    a, b = (numpy.load(job[key], mmap_mode='r') for key in 'ab')
    c = open_memmap(job['c'], 'w+', dtype, (m, n))
    elements = job['budget_bytes'] // dtype.itemsize
    slab = max(1, min(k, elements // 8 // n))
    height = max(1, min(m, (elements - slab * n) // (k + 2 * n)))  # of A, the sum and its next part
    part = numpy.empty((height, n), dtype)
    for i in range(0, m, height):
        rows = min(height, m - i)
        band = numpy.array(a[i:i + rows])
        total = numpy.zeros((rows, n), dtype)
        for p in range(0, k, slab):
            numpy.matmul(band[:, p:p + slab], numpy.array(b[p:p + slab]), out=part[:rows])
            total += part[:rows]
        c[i:i + rows] = total


def dask_array(job):
    import dask.array
    m, n, _, dtype = shape_of(job)
    chunks = (job['chunk'], job['chunk'])
    begin = time.perf_counter()
    a, b = (dask.array.from_array(numpy.load(job[key], mmap_mode='r'), chunks=chunks)
            for key in 'ab')
    dask.array.store(a @ b, open_memmap(job['c'], 'w+', dtype, (m, n)))
    return time.perf_counter() - begin


def cubed_array(job):
    """Reads the same files; its result is a Zarr array, as it makes them."""
    import cubed
    import cubed.array_api
    import zarr
    m, n, _, dtype = shape_of(job)
    chunks = (job['chunk'], job['chunk'])
    target = os.path.join(job['work'], 'c.zarr')
    begin = time.perf_counter()
    spec = cubed.Spec(work_dir=job['work'], allowed_mem=job['budget_bytes'], executor_name='threads',
                      zarr_compressor=None)
    a, b = (cubed.from_array(numpy.load(job[key], mmap_mode='r'), chunks=chunks, spec=spec)
            for key in 'ab')
    cubed.to_zarr(cubed.array_api.matmul(a, b), target)
    seconds = time.perf_counter() - begin
    result, out = zarr.open(target, mode='r'), open_memmap(job['c'], 'w+', dtype, (m, n))
    for i in range(0, m, job['chunk']):
        out[i:i + job['chunk']] = result[i:i + job['chunk']]
    return seconds


def cblas(job):
    """One call on matrices in memory; reading and writing files is not counted."""
    import ctypes
    library = ctypes.CDLL(job['blas'])
    a, b = (numpy.load(job[key]) for key in 'ab')
    (m, k), n = a.shape, b.shape[1]
    c = numpy.empty((m, n), a.dtype)
    real, name = {4: (ctypes.c_float, 'cblas_sgemm'), 8: (ctypes.c_double, 'cblas_dgemm')}[a.itemsize]
    pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in (a, b, c)]
    c.fill(0)  # its pages are there before the clock runs
    begin = time.perf_counter()
    getattr(library, name)(101, 111, 111, m, n, k, real(1), pointers[0], k, pointers[1], n, real(0),
                           pointers[2], n)
    seconds = time.perf_counter() - begin
    numpy.save(job['c'], c)
    return seconds


PEERS = {'numpy': in_memory, 'memmap': memmap, 'bands': bands, 'dask': dask_array, 'cubed': cubed_array,
         'cblas': cblas}


def main():
    peer, job = PEERS[sys.argv[1]], json.loads(sys.argv[2])
    begin = time.perf_counter()
    seconds = peer(job)
    print(json.dumps({'seconds': seconds or time.perf_counter() - begin}))


if __name__ == '__main__':
    main()
