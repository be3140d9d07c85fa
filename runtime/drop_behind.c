/* A file is cut into chunks, and a chunk goes once as much has been read of it as it is long: read once
 * from end to end, in whatever order. Runs are no use for that: the end of one and the beginning of the
 * next share a page, and the next may be of a panel that is read much later.
 *
 * What the page cache held before the run was somebody's, perhaps of the run before this one: such chunks
 * stay, so that what was warm is warm afterwards. */
#include "runtime/drop_behind.h"

#include <fcntl.h>
#include <stdlib.h>

/* Little beside any memory that such files are read in; smaller chunks make the system read in more and
 * smaller requests where runs are short (bench/README.md). */
#define CHUNK_MIN ((uint64_t)16 << 20)
/* Counters take 256 KiB at most. */
#define CHUNKS_MAX 32768
#define CACHED_BEFORE 0.5 /* of some pages in its middle */

/* As far as it is read. */
static int64_t chunk_size(const jk_drop_behind *behind, uint64_t chunk)
{
    uint64_t start = chunk * behind->chunk_bytes, end = start + behind->chunk_bytes;
    start = start > behind->from ? start : behind->from;
    end = end < behind->file->bytes ? end : behind->file->bytes;
    return start < end ? (int64_t)(end - start) : 0;
}

jk_drop_behind *jk_drop_behind_open(jk_drop_behind *set, int count, const jk_file *file,
                                    uint64_t from)
{
    jk_drop_behind *b = set;
    while (b < set + count && b->file && !jk_file_same(b->file, file))
        b++;
    if (b == set + count)
        return NULL;
    if (b->file)
        return b;
    b->chunk_bytes = CHUNK_MIN;
    while (file->bytes / b->chunk_bytes >= CHUNKS_MAX)
        b->chunk_bytes *= 2;
    uint64_t chunks = file->bytes / b->chunk_bytes + 1;
    b->chunks = calloc(chunks, sizeof *b->chunks);
    if (!b->chunks)
        return NULL;
    b->file = file;
    b->from = from;
    for (uint64_t i = 0; i < chunks; i++) {
        int64_t size = chunk_size(b, i);
        uint64_t end = i == chunks - 1 ? file->bytes : (i + 1) * b->chunk_bytes;
        bool cached = jk_file_cached_at(file, end - (uint64_t)size / 2) >= CACHED_BEFORE;
        atomic_init(&b->chunks[i], cached ? INT64_MAX : size);
    }
    return b;
}

void jk_drop_behind_close(jk_drop_behind *set, int count)
{
    for (int i = 0; i < count; i++) {
        free(set[i].chunks);
        set[i] = (jk_drop_behind){0};
    }
}

void jk_drop_behind_add(jk_drop_behind *behind, uint64_t offset, uint64_t bytes)
{
    if (!behind)
        return;
    for (uint64_t end = offset + bytes, part; offset < end; offset += part) {
        uint64_t chunk = offset / behind->chunk_bytes, start = chunk * behind->chunk_bytes;
        uint64_t chunk_end = start + behind->chunk_bytes;
        int64_t before;
        part = (chunk_end < end ? chunk_end : end) - offset;
        before = atomic_fetch_sub(&behind->chunks[chunk], (int64_t)part);
        if (before <= 0 || before > (int64_t)part)
            continue;
        atomic_fetch_add(&behind->chunks[chunk], chunk_size(behind, chunk));
        (void)posix_fadvise(behind->file->fd, (off_t)start, (off_t)behind->chunk_bytes,
                            POSIX_FADV_DONTNEED);
    }
}
