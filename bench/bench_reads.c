/* Ways to bring pieces of a file into memory, side by side: pread, copying out of a mapping with
 * process_vm_readv, and O_DIRECT through an aligned block, each by several threads that take pieces
 * in turn. No part of jask runs; this is what its choice of engines rests on. One JSON line a case
 * on stdout.
 *
 * usage: bench_reads [--threads N] [--piece BYTES] [--rounds N] FILE MIB RUN ROW
 *
 * FILE of MIB MiB is made and removed. It is read as rows of ROW bytes in panels RUN bytes wide,
 * panel after panel: RUN equal to ROW is the whole file from start to end. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { THREADS_MAX = 64, ALIGN = 4096, HEADER = 128, HUGE = 2 << 20, VECTORS = 1024 };

typedef struct bench {
    const char *path;
    int threads, rounds;
    size_t piece, run, row;
    int64_t rows, panels, runs_a_piece; /* a piece is so many runs of one panel */
    _Atomic int64_t next;
    int fd, direct_fd;
    int way;
} bench;

static void die(const char *what)
{
    fprintf(stderr, "bench_reads: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Bytes that the disk gave this process so far. */
static uint64_t disk_bytes(void)
{
    char line[128];
    unsigned long long bytes = 0;
    FILE *io = fopen("/proc/self/io", "r");
    while (io && fgets(line, sizeof line, io))
        if (sscanf(line, "read_bytes: %llu", &bytes) == 1)
            break;
    if (io)
        fclose(io);
    return bytes;
}

static void read_all(int fd, char *to, size_t bytes, uint64_t at)
{
    while (bytes > 0) {
        ssize_t got = pread(fd, to, bytes, (off_t)at);
        if (got <= 0)
            die("pread");
        to += got, at += (uint64_t)got, bytes -= (size_t)got;
    }
}

/* `count` runs of `run` bytes, `row` apart, from `at`: to follow one another at `to`. */
typedef struct piece {
    char *to, *bounce;
    uint64_t at;
    int64_t count;
    size_t run, row;
} piece;

static void by_pread(const bench *b, const piece *p)
{
    for (int64_t i = 0; i < p->count; i++)
        read_all(b->fd, p->to + (size_t)i * p->run, p->run, p->at + (uint64_t)i * p->row);
}

/* The same, after telling the system of all runs at once, so that it fetches them together. */
static void by_pread_told(const bench *b, const piece *p)
{
    for (int64_t i = 0; i < p->count; i++)
        (void)posix_fadvise(b->fd, (off_t)(p->at + (uint64_t)i * p->row), (off_t)p->run,
                            POSIX_FADV_WILLNEED);
    by_pread(b, p);
}

/* The same, after telling of all that lies between them too: it is read once for all panels, if it
 * stays in memory that long. */
static void by_pread_span_told(const bench *b, const piece *p)
{
    (void)posix_fadvise(b->fd, (off_t)p->at, (off_t)((uint64_t)p->count * p->row),
                        POSIX_FADV_WILLNEED);
    by_pread(b, p);
}

static void by_mapping(const bench *b, const piece *p)
{
    size_t lead = (size_t)(p->at % ALIGN);
    size_t bytes = lead + (size_t)(p->count - 1) * p->row + p->run;
    char *map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, b->fd, (off_t)(p->at - lead));
    struct iovec from[VECTORS];
    if (map == MAP_FAILED)
        die("mmap");
    for (int64_t i = 0; i < p->count;) {
        char *to = p->to + (size_t)i * p->run;
        struct iovec into = {to, 0};
        int vectors = 0;
        for (; vectors < VECTORS && i < p->count; i++, vectors++) {
            from[vectors] = (struct iovec){map + lead + (size_t)i * p->row, p->run};
            into.iov_len += p->run;
        }
        if (process_vm_readv(getpid(), &into, 1, from, (unsigned long)vectors, 0) !=
            (ssize_t)into.iov_len)
            die("process_vm_readv");
    }
    munmap(map, bytes);
}

static void by_direct(const bench *b, const piece *p)
{
    for (int64_t i = 0; i < p->count; i++) {
        uint64_t at = p->at + (uint64_t)i * p->row, start = at / ALIGN * ALIGN;
        size_t lead = (size_t)(at - start);
        size_t bytes = (lead + p->run + ALIGN - 1) / ALIGN * ALIGN;
        size_t done = 0;
        while (done < lead + p->run) {
            ssize_t got =
                pread(b->direct_fd, p->bounce + done, bytes - done, (off_t)(start + done));
            if (got <= 0)
                die("pread with O_DIRECT");
            done += (size_t)got;
        }
        memcpy(p->to + (size_t)i * p->run, p->bounce + lead, p->run);
    }
}

static const struct {
    const char *name;
    void (*read)(const bench *b, const piece *p);
} ways[] = {{"pread", by_pread},
            {"pread, told", by_pread_told},
            {"pread, span told", by_pread_span_told},
            {"mapping", by_mapping},
            {"direct", by_direct}};
enum { WAYS = sizeof ways / sizeof *ways };

static void *reader(void *arg)
{
    bench *b = arg;
    int64_t a_panel = (b->rows + b->runs_a_piece - 1) / b->runs_a_piece;
    piece p = {.run = b->run, .row = b->row};
    int64_t number;
    if (posix_memalign((void **)&p.to, HUGE, b->piece) ||
        posix_memalign((void **)&p.bounce, HUGE, b->piece + 2 * ALIGN))
        die("memory");
    (void)madvise(p.to, b->piece, MADV_HUGEPAGE);
    (void)madvise(p.bounce, b->piece + 2 * ALIGN, MADV_HUGEPAGE);
    memset(p.to, 1, b->piece);
    memset(p.bounce, 1, b->piece + 2 * ALIGN);
    while ((number = b->next++) < a_panel * b->panels) {
        int64_t panel = number / a_panel, row = number % a_panel * b->runs_a_piece;
        p.count = row + b->runs_a_piece < b->rows ? b->runs_a_piece : b->rows - row;
        p.at = HEADER + (uint64_t)row * b->row + (uint64_t)panel * b->run;
        ways[b->way].read(b, &p);
    }
    free(p.to);
    free(p.bounce);
    return NULL;
}

static void measure(bench *b, int way, int cold)
{
    pthread_t threads[THREADS_MAX];
    uint64_t before;
    double start, seconds;
    double bytes = (double)b->rows * (double)b->row;
    b->way = way;
    b->next = 0;
    b->fd = open(b->path, O_RDONLY);
    b->direct_fd = open(b->path, O_RDONLY | O_DIRECT);
    if (b->fd < 0 || b->direct_fd < 0)
        die(b->path);
    if (cold && posix_fadvise(b->fd, 0, 0, POSIX_FADV_DONTNEED))
        die("empty the page cache");
    before = disk_bytes();
    start = now();
    for (int i = 0; i < b->threads; i++)
        if ((errno = pthread_create(&threads[i], NULL, reader, b)))
            die("thread");
    for (int i = 0; i < b->threads; i++)
        pthread_join(threads[i], NULL);
    seconds = now() - start;
    printf("{\"bench\": \"reads\", \"way\": \"%s\", \"cache\": \"%s\", \"threads\": %d, "
           "\"piece_bytes\": %zu, \"run_bytes\": %zu, \"row_bytes\": %zu, \"seconds\": %.4f, "
           "\"mib_per_second\": %.0f, \"disk_over_file_bytes\": %.3f}\n",
           ways[way].name, cold ? "cold" : "warm", b->threads, b->piece, b->run, b->row, seconds,
           bytes / seconds / (1 << 20), (double)(disk_bytes() - before) / bytes);
    fflush(stdout);
    close(b->fd);
    close(b->direct_fd);
}

/* The whole file into the page cache. */
static void warm(const bench *b)
{
    char *block = malloc(b->piece);
    int fd = open(b->path, O_RDONLY);
    if (fd < 0 || !block)
        die(b->path);
    while (read(fd, block, b->piece) > 0)
        ;
    close(fd);
    free(block);
}

static void make_file(const bench *b, uint64_t mib)
{
    size_t bytes = 1 << 20;
    char *block = malloc(bytes);
    int fd = open(b->path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    uint64_t seed = 1;
    if (fd < 0 || !block)
        die(b->path);
    for (uint64_t i = 0; i <= mib; i++) { /* one more, for the header */
        for (size_t at = 0; at < bytes; at += 8) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            memcpy(block + at, &seed, 8);
        }
        if (write(fd, block, bytes) != (ssize_t)bytes)
            die("write");
    }
    if (fsync(fd))
        die("fsync");
    close(fd);
    free(block);
}

static void usage(void)
{
    fprintf(stderr, "usage: bench_reads [--threads N] [--piece BYTES] [--rounds N] FILE MIB RUN "
                    "ROW\n");
    exit(2);
}

int main(int argc, char **argv)
{
    bench b = {.threads = 2, .rounds = 3, .piece = (size_t)4 << 20};
    uint64_t mib;
    argv++, argc--;
    for (; argc > 1 && argv[0][0] == '-'; argv += 2, argc -= 2) {
        if (strcmp(argv[0], "--threads") == 0)
            b.threads = atoi(argv[1]);
        else if (strcmp(argv[0], "--piece") == 0)
            b.piece = (size_t)atoll(argv[1]);
        else if (strcmp(argv[0], "--rounds") == 0)
            b.rounds = atoi(argv[1]);
        else
            usage();
    }
    if (argc != 4)
        usage();
    b.path = argv[0];
    mib = strtoull(argv[1], NULL, 10);
    b.run = strtoull(argv[2], NULL, 10);
    b.row = strtoull(argv[3], NULL, 10);
    if (b.threads < 1 || b.threads > THREADS_MAX || mib < 1 || b.run < 1 || b.row % b.run != 0 ||
        b.run > b.piece)
        usage();
    b.rows = (int64_t)((mib << 20) / b.row);
    b.panels = (int64_t)(b.row / b.run);
    b.runs_a_piece = (int64_t)(b.piece / b.run);
    make_file(&b, mib);
    for (int round = 0; round < b.rounds; round++) {
        for (int way = 0; way < WAYS; way++)
            measure(&b, (way + round) % WAYS, 1); /* no way is always the first */
        warm(&b);
        for (int way = 0; way < WAYS; way++)
            measure(&b, way, 0);
    }
    remove(b.path);
    return 0;
}
