/* A sum of two files under a budget, against a plain loop that reads and writes the same bytes: a block
 * of A, what there is of B to it, a block of the result, one after the other. The two alternate in one
 * process. One JSON line on stdout.
 *
 * usage: bench_add [OPTION...] MEBIBYTES BUDGET PAIRS [DIR]   (of A; in DIR) */
#include "common.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK = 1 << 20, COLUMNS = 4096, HEADER = 128 };

/* How B lies to A, which is rows x COLUMNS. */
typedef enum form { SAME, ROW, COLUMN, FORTRAN, FORMS } form;

static const char *const form_names[FORMS] = {"same", "row", "column", "fortran"};
static const char *const rule_names[] = {"refuse", "wrap", "saturate"};

typedef struct bench {
    jask_dtype a_dtype, b_dtype, d_dtype;
    form form;
    int64_t rows;
    jask_add_args args;
    int pairs, sync, cold;
    char a[512], b[512], d[512];
    jask_context *ctx;
} bench;

/* Element k of 64 is the number with the bits first + k * step, of `size` bytes each part. */
static const struct {
    jask_dtype dtype;
    const char *descr;
    size_t size;
    uint64_t first, step;
} types[] = {
    {JASK_F16, "<f2", 2, 0x3c00, 0x10},
    {JASK_BF16, "|V2", 2, 0x3f80, 1},
    {JASK_F32, "<f4", 4, 0x3f800000, 1 << 17},
    {JASK_F64, "<f8", 8, UINT64_C(0x3ff) << 52, UINT64_C(1) << 46},
    {JASK_C64, "<c8", 4, 0x3f800000, 1 << 17},
    {JASK_C128, "<c16", 8, UINT64_C(0x3ff) << 52, UINT64_C(1) << 46},
    {JASK_I8, "|i1", 1, 0, 1},
    {JASK_I16, "<i2", 2, 0, 1},
    {JASK_I32, "<i4", 4, 0, 1},
    {JASK_I64, "<i8", 8, 0, 1},
    {JASK_U8, "|u1", 1, 0, 1},
    {JASK_U16, "<u2", 2, 0, 1},
    {JASK_U32, "<u4", 4, 0, 1},
    {JASK_U64, "<u8", 8, 0, 1},
};

static int64_t b_elems(const bench *w)
{
    return w->form == ROW ? COLUMNS : w->form == COLUMN ? w->rows : w->rows * COLUMNS;
}

static void make_input(const bench *w, const char *path, jask_dtype dtype, form f, int64_t elems)
{
    static char block[BLOCK];
    char header[HEADER + 1];
    size_t t = 0, left = (size_t)elems * jask_dtype_size(dtype);
    FILE *file = fopen(path, "wb");
    int length;
    while (types[t].dtype != dtype)
        t++;
    for (size_t i = 0; i < BLOCK / types[t].size; i++) {
        uint64_t bits = types[t].first + i % 64 * types[t].step;
        memcpy(block + i * types[t].size, &bits, types[t].size);
    }
    memset(header, ' ', HEADER);
    length = snprintf(header, sizeof header,
                      "\x93NUMPY\x01___{'descr': '%s', 'fortran_order': %s, 'shape': (%" PRId64
                      ", %" PRId64 ")}",
                      types[t].descr, f == FORTRAN ? "True" : "False", f == ROW ? 1 : w->rows,
                      (int64_t)(f == COLUMN ? 1 : COLUMNS));
    header[length] = ' ';
    header[7] = header[9] = 0;
    header[8] = HEADER - 10;
    header[HEADER - 1] = '\n';
    if (!file || fwrite(header, HEADER, 1, file) != 1)
        bench_die("create", path);
    for (size_t part; left > 0; left -= part) {
        part = left < BLOCK ? left : BLOCK;
        if (fwrite(block, part, 1, file) != 1)
            bench_die("write", path);
    }
    if (fflush(file) || fsync(fileno(file)) || fclose(file))
        bench_die("write", path);
}

static int open_input(const char *path)
{
    int fd = open(path, O_RDONLY);
    if (fd < 0)
        bench_die("open", path);
    return fd;
}

/* Deleting the previous result is no part of making the next. */
static void prepare(const bench *w)
{
    const char *const inputs[] = {w->a, w->b};
    remove(w->d);
    for (int i = 0; w->cold && i < 2; i++)
        bench_drop(inputs[i]);
}

static void open_array(const char *path, jask_dtype dtype, jask_array **out)
{
    char spec[600];
    jask_error err;
    snprintf(spec, sizeof spec, "%s%s", path, dtype == JASK_BF16 ? "@bf16" : "");
    if (jask_array_open(spec, out, &err))
        bench_die("open", err.msg);
}

static double run_jask(void *user, jask_report *report)
{
    bench *w = user;
    jask_array *a, *b;
    jask_error err;
    double start;
    prepare(w);
    start = bench_now();
    open_array(w->a, w->a_dtype, &a);
    open_array(w->b, w->b_dtype, &b);
    w->args.output = w->d;
    if (jask_add(w->ctx, a, b, &w->args, NULL, report, &err))
        bench_die("add", err.msg);
    jask_array_close(a);
    jask_array_close(b);
    return bench_now() - start;
}

static void take(int fd, char *block, size_t bytes, int64_t *at)
{
    if (pread(fd, block, bytes, *at) != (ssize_t)bytes)
        bench_die("copy", "a read came short");
    *at += (int64_t)bytes;
}

static double run_copy(void *user)
{
    static char x[BLOCK], y[16 * BLOCK];
    const bench *w = user;
    size_t a_size = jask_dtype_size(w->a_dtype), b_size = jask_dtype_size(w->b_dtype);
    size_t d_size = jask_dtype_size(w->d_dtype);
    int64_t elems = w->rows * COLUMNS, per = BLOCK / (int64_t)a_size;
    int64_t a_at = HEADER, b_at = HEADER;
    int64_t small = b_elems(w) < elems ? b_elems(w) : 0;
    double start;
    int a, b, d;
    prepare(w);
    start = bench_now();
    a = open_input(w->a);
    b = open_input(w->b);
    d = open(w->d, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (d < 0)
        bench_die("create", w->d);
    if (small > 0)
        take(b, y, (size_t)small * b_size, &b_at);
    for (int64_t i = 0; i < elems; i += per) {
        size_t n = (size_t)(elems - i < per ? elems - i : per);
        take(a, x, n * a_size, &a_at);
        if (small == 0)
            take(b, y, n * b_size, &b_at);
        if (pwrite(d, y, n * d_size, i * (int64_t)d_size) != (ssize_t)(n * d_size))
            bench_die("copy", "a write came short");
    }
    if (w->sync && fsync(d) != 0)
        bench_die("copy", "fsync");
    close(a);
    close(b);
    close(d);
    return bench_now() - start;
}

static void usage(void)
{
    fprintf(stderr, "usage: bench_add [OPTION...] MEBIBYTES BUDGET PAIRS [DIR]   (of A; in DIR)\n"
                    "  --dtype A[,B]  types of the inputs (f32)\n"
                    "  --b FORM       same, row, column (broadcast), fortran (order)\n"
                    "  --alpha X --beta X   factors (1)\n"
                    "  --overflow RULE      of whole numbers: wrap, saturate, refuse\n"
                    "  --sync         results are made durable\n"
                    "  --cold         inputs are not in the page cache\n");
    exit(2);
}

static int choose(const char *word, const char *const *names, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(word, names[i]) == 0)
            return i;
    usage();
    return -1;
}

static void read_dtypes(bench *w, char *text)
{
    char *comma = strchr(text, ',');
    jask_error err;
    if (comma)
        *comma = 0;
    if (jask_dtype_parse(text, &w->a_dtype, &err) ||
        jask_dtype_parse(comma ? comma + 1 : text, &w->b_dtype, &err) ||
        jask_dtype_promote(w->a_dtype, w->b_dtype, &w->d_dtype, &err))
        bench_die("--dtype", err.msg);
}

/* Returns the first argument that is no option. */
static char **read_options(bench *w, char **argv)
{
    for (; argv[0] && argv[0][0] == '-'; argv++) {
        if (strcmp(argv[0], "--sync") == 0) {
            w->sync = 1;
            continue;
        } else if (strcmp(argv[0], "--cold") == 0) {
            w->cold = 1;
            continue;
        } else if (!argv[1]) {
            usage();
        } else if (strcmp(argv[0], "--dtype") == 0) {
            read_dtypes(w, argv[1]);
        } else if (strcmp(argv[0], "--b") == 0) {
            w->form = (form)choose(argv[1], form_names, FORMS);
        } else if (strcmp(argv[0], "--overflow") == 0) {
            w->args.overflow = (jask_overflow)choose(argv[1], rule_names, 3);
        } else if (strcmp(argv[0], "--alpha") == 0) {
            w->args.alpha = atof(argv[1]);
        } else if (strcmp(argv[0], "--beta") == 0) {
            w->args.beta = atof(argv[1]);
        } else {
            usage();
        }
        argv++;
    }
    return argv;
}

int main(int argc, char **argv)
{
    bench w = {.a_dtype = JASK_F32, .b_dtype = JASK_F32, .d_dtype = JASK_F32};
    bench_race race = {.other_name = "copy", .other = run_copy, .jask = run_jask, .user = &w};
    jask_options options;
    jask_error err;
    const char *dir;
    char **rest;
    jask_add_args_init(&w.args, sizeof w.args);
    w.args.overflow = JASK_OVERFLOW_WRAP;
    rest = read_options(&w, argv + 1);
    if (argv + argc - rest < 3)
        usage();
    w.rows = (atoll(rest[0]) << 20) / (int64_t)jask_dtype_size(w.a_dtype) / COLUMNS;
    race.pairs = atoi(rest[2]);
    dir = rest[3] ? rest[3] : ".";
    if (w.rows < 1 || race.pairs < 1)
        usage();
    jask_options_init(&options, sizeof options);
    options.sync = w.sync ? 1 : -1;
    options.device = "host";
    if (jask_parse_size(rest[1], &options.memory_budget_bytes, &err) ||
        jask_context_open(&options, &w.ctx, &err))
        bench_die("context", err.msg);
    snprintf(w.a, sizeof w.a, "%s/bench_a.npy", dir);
    snprintf(w.b, sizeof w.b, "%s/bench_b.npy", dir);
    snprintf(w.d, sizeof w.d, "%s/bench_d.npy", dir);
    make_input(&w, w.a, w.a_dtype, SAME, w.rows * COLUMNS);
    make_input(&w, w.b, w.b_dtype, w.form, b_elems(&w));
    bench_run_race(&race);
    printf("{\"bench\": \"add\", \"dtype\": \"%s,%s\", \"b\": \"%s\", \"alpha\": %g, \"beta\": %g, "
           "\"overflow\": \"%s\", \"rows\": %" PRId64 ", \"budget_bytes\": %" PRIu64
           ", \"sync\": %d, \"cold\": %d, \"pairs\": %d, \"copy_seconds\": %.4f, "
           "\"jask_seconds\": %.4f, \"ratio\": %.4f, \"least\": %.4f, \"most\": %.4f}\n",
           jask_dtype_name(w.a_dtype), jask_dtype_name(w.b_dtype), form_names[w.form], w.args.alpha,
           w.args.beta, rule_names[w.args.overflow], w.rows, race.report.budget_bytes, w.sync,
           w.cold, race.pairs, race.other_seconds, race.jask_seconds, race.ratio, race.least_ratio,
           race.most_ratio);
    remove(w.a);
    remove(w.b);
    remove(w.d);
    jask_context_close(w.ctx);
    return 0;
}
