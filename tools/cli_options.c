#include "cli_options.h"

#include "cli_numbers.h"
#include "cli_output.h"

#include <getopt.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

typedef struct row row;

struct row {
    const char *name;
    int letter;                                                /* 0: long only */
    bool (*read)(const row *r, const char *text, void *field); /* NULL: a flag, takes no value */
    size_t field;
    int tools;          /* those that have the option */
    int most;           /* of a count that begins at 1; of a flag that counts (an int) */
    const char *value;  /* as --help shows it; the words of a choice */
    const char *should; /* what a value must be, for the error */
    const char *help;
};

static bool read_text(const row *r, const char *text, void *field)
{
    (void)r;
    *(const char **)field = text;
    return *text != '\0';
}

static bool read_size(const row *r, const char *text, void *field)
{
    (void)r;
    return jask_parse_size(text, field, NULL) == JASK_OK;
}

static bool read_real(const row *r, const char *text, void *field)
{
    (void)r;
    return cli_read_real(text, field);
}

static bool read_count(const row *r, const char *text, void *field)
{
    int64_t value = 0;
    if (!cli_read_count(text, 1, r->most, &value))
        return false;
    *(int *)field = (int)value;
    return true;
}

static bool read_choice(const row *r, const char *text, void *field)
{
    return cli_read_choice(text, r->value, field);
}

static bool read_word(const row *r, const char *text, void *field)
{
    int which = 0;
    *(const char **)field = text;
    return cli_read_choice(text, r->value, &which);
}

static bool read_dtype(const row *r, const char *text, void *field)
{
    (void)r;
    jask_dtype *dtype = field;
    return jask_dtype_parse(text, dtype, NULL) == JASK_OK &&
           (*dtype == JASK_F32 || *dtype == JASK_F64);
}

static bool read_any_dtype(const row *r, const char *text, void *field)
{
    (void)r;
    return jask_dtype_parse(text, field, NULL) == JASK_OK;
}

static bool read_sizes(const row *r, const char *text, void *field)
{
    (void)r;
    return cli_read_sizes(text, field);
}

#define FIELD(name) offsetof(cli_options, name)
#define ALL (CLI_GEMM | CLI_INFO | CLI_ADD)
#define OPS (CLI_GEMM | CLI_ADD)
#define SIZE_SHOULD "a size above 0, such as 512MiB or 8G"
#define REAL_SHOULD "a finite decimal number, such as -1 or 2.5e-3"
#define FILE_SHOULD "the name of a file"

static const row rows[] = {
    {"output", 'o', read_text, FIELD(output), OPS, 0, "FILE", FILE_SHOULD,
     "write the result to FILE, a .npy, replacing what is there"},
    {"resume", 0, NULL, FIELD(resume), CLI_GEMM, 0, NULL, NULL,
     "keep finished parts beside FILE; go on with those of a run that ended early"},
    {"size", 0, read_sizes, FIELD(size), CLI_GEMM, 0, "N|MxNxK", "N or MxNxK, whole numbers",
     "no files: multiply random inputs made in scratch"},
    {"dtype", 0, read_dtype, FIELD(dtype), CLI_GEMM, 0, "f32|f64", "f32 or f64",
     "type of the inputs that --size makes [f32]"},
    {"out-dtype", 0, read_any_dtype, FIELD(out_dtype), CLI_GEMM, 0, "TYPE",
     "an element type, such as f64", "type of the result [as the inputs say]"},
    {"dtype", 0, read_any_dtype, FIELD(dtype), CLI_ADD, 0, "TYPE", "an element type, such as f64",
     "type of the result, one that holds every value of the inputs' types [the smallest]"},
    {"overflow", 0, read_choice, FIELD(overflow), CLI_ADD, 0, "refuse|wrap|saturate",
     "refuse, wrap or saturate",
     "what becomes of a sum that its integer type cannot hold [refuse]"},
    {"in-place", 0, NULL, FIELD(in_place), CLI_ADD, 0, NULL, NULL,
     "write the sum over A in its file; a crash leaves A half done"},
    {"repeat", 0, read_count, FIELD(repeat), OPS, 1000000, "N", "a whole number from 1 to 1000000",
     "run N times; without -o results go to scratch"},
    {"ta", 0, NULL, FIELD(transpose_a), CLI_GEMM, 0, NULL, NULL, "use the transpose of A"},
    {"tb", 0, NULL, FIELD(transpose_b), CLI_GEMM, 0, NULL, NULL, "use the transpose of B"},
    {"ca", 0, NULL, FIELD(adjoint_a), CLI_GEMM, 0, NULL, NULL, "use the conjugate transpose of A"},
    {"cb", 0, NULL, FIELD(adjoint_b), CLI_GEMM, 0, NULL, NULL, "use the conjugate transpose of B"},
    {"alpha", 0, read_real, FIELD(alpha), CLI_GEMM, 0, "X", REAL_SHOULD, "multiply A B by X [1]"},
    {"beta", 0, read_real, FIELD(beta), CLI_GEMM, 0, "X", REAL_SHOULD, "add X times C [0]"},
    {"c", 0, read_text, FIELD(c), CLI_GEMM, 0, "FILE", FILE_SHOULD,
     "the C that --beta adds; not read when beta is 0"},
    {"alpha", 0, read_real, FIELD(alpha), CLI_ADD, 0, "X", REAL_SHOULD, "multiply A by X [1]"},
    {"beta", 0, read_real, FIELD(beta), CLI_ADD, 0, "X", REAL_SHOULD, "multiply B by X [1]"},
    {"backward", 0, NULL, FIELD(backward), CLI_GEMM, 0, NULL, NULL,
     "make gradients of A B: the files are A B DD, the last that of the product"},
    {"da", 0, read_text, FIELD(da), CLI_GEMM, 0, "FILE", FILE_SHOULD,
     "write the gradient of A to FILE, a .npy"},
    {"db", 0, read_text, FIELD(db), CLI_GEMM, 0, "FILE", FILE_SHOULD,
     "write the gradient of B to FILE, a .npy"},
    {"accumulate", 0, NULL, FIELD(accumulate), CLI_GEMM, 0, NULL, NULL,
     "add gradients to what their files hold"},
    {"budget", 'b', read_size, FIELD(budget_bytes), ALL, 0, "SIZE", SIZE_SHOULD,
     "bytes in memory at once: tiles, staging, buffers [half of what is available]"},
    {"host-budget", 0, read_size, FIELD(host_budget_bytes), ALL, 0, "SIZE", SIZE_SHOULD,
     "host memory beside a GPU: pinned staging, inputs kept there, and sums"},
    {"scratch", 's', read_text, FIELD(scratch), ALL, 0, "DIR", "the name of a directory",
     "directory for files without a name"},
    {"allow-tmpfs", 0, NULL, FIELD(allow_tmpfs), ALL, 0, NULL, NULL,
     "accept a scratch directory that lies in RAM"},
    {"device", 'd', read_text, FIELD(device), ALL, 0, "DEV", "auto or a device of jask-info's list",
     "what computes: auto, or a device that jask-info lists"},
    {"planner", 0, read_word, FIELD(planner), ALL, 0, "auto|bytes|page", "auto, bytes or page",
     "least predicted time, fewest bytes moved, or square pages"},
    {"machine", 0, read_text, FIELD(machine), ALL, 0, "TEXT", "a machine as flops=51T,disk=2G",
     "rates to plan with; with gpu=SIZE or host=SIZE, for --plan, another machine"},
    {"precision", 0, read_word, FIELD(precision), ALL, 0, "f32|tf32", "f32 or tf32",
     "f32 products in IEEE arithmetic, or with rounded inputs, where the device can [f32]"},
    {"deterministic", 0, NULL, FIELD(deterministic), CLI_GEMM | CLI_INFO, 0, NULL, NULL,
     "the same bits whatever budget, planner, threads, device and BLAS are"},
    {"no-pipeline", 0, NULL, FIELD(no_pipeline), ALL, 0, NULL, NULL,
     "read, compute and write one after the other"},
    {"no-sync", 0, NULL, FIELD(no_sync), ALL, 0, NULL, NULL,
     "let the system choose when the result reaches the disk"},
    {"io-threads", 0, read_count, FIELD(io_threads), ALL, 64, "N", "a whole number from 1 to 64",
     "threads that read files"},
    {"io", 0, read_word, FIELD(io), ALL, 0, "auto|pread|direct", "auto, pread or direct",
     "read inputs and write products through the page cache, around it, or as suits "
     "them [auto]"},
    {"threads", 0, read_count, FIELD(threads), CLI_GEMM, 4096, "N", "a whole number from 1 to 4096",
     "threads of the BLAS library"},
    {"plan", 0, NULL, FIELD(plan), OPS, 0, NULL, NULL,
     "print the plan and stop; reads only headers"},
    {"verify", 0, NULL, FIELD(verify), CLI_GEMM, 0, NULL, NULL,
     "check the result by another way; reads every file once more"},
    {"trace", 0, read_text, FIELD(trace), OPS, 0, "FILE", FILE_SHOULD,
     "write a timeline of all stages to FILE, for chrome://tracing or Perfetto"},
    {"stats", 0, NULL, FIELD(stats), CLI_INFO, 0, NULL, NULL,
     "read the files: sum, mean, extremes, norm, NaN and infinities"},
    {"calibrate", 0, NULL, FIELD(calibrate), CLI_INFO, 0, NULL, NULL,
     "measure device and disk for some seconds, and keep the rates to plan with"},
    {"json", 0, NULL, FIELD(json), ALL, 0, NULL, NULL, "write JSON, one object a line"},
    {"progress", 0, read_choice, FIELD(progress), OPS, 0, "auto|always|never",
     "auto, always or never", "show progress on stderr; auto: when that is a terminal"},
    {"quiet", 'q', NULL, FIELD(quiet), OPS, 0, NULL, NULL,
     "no table, notes or bar; what --json and --plan print stays"},
    {"verbose", 'v', NULL, FIELD(verbose), OPS, 2, NULL, NULL,
     "say what was decided and why, and seconds of stages; twice: every setting"},
    {"version", 0, NULL, FIELD(version), ALL, 0, NULL, NULL, "print the version"},
    {"help", 'h', NULL, FIELD(help), ALL, 0, NULL, NULL, "print this text"},
};

#define ROW_COUNT (sizeof rows / sizeof *rows)

/* What getopt returns for row i: its letter, or else a number above all letters. */
static int row_value(size_t i)
{
    return rows[i].letter ? rows[i].letter : 256 + (int)i;
}

static const row *find_row(cli_tool tool, int value)
{
    for (size_t i = 0; i < ROW_COUNT; i++) {
        if (value == row_value(i) && (rows[i].tools & (int)tool))
            return &rows[i];
    }
    return NULL;
}

/* getopt's two tables for the rows that `tool` has. */
static void make_tables(cli_tool tool, struct option *longs, char *letters)
{
    *letters++ = ':'; /* tells a missing value from an unknown option */
    for (size_t i = 0; i < ROW_COUNT; i++) {
        const row *r = &rows[i];
        if (!(r->tools & (int)tool))
            continue;
        *longs++ = (struct option){.name = r->name,
                                   .has_arg = r->read ? required_argument : no_argument,
                                   .val = row_value(i)};
        if (r->letter)
            *letters++ = (char)r->letter;
        if (r->letter && r->read)
            *letters++ = ':';
    }
    *longs = (struct option){0};
    *letters = '\0';
}

static int refuse(const cli_options *o, const char *message)
{
    cli_error(o->tool, "%s; see --help", message);
    return CLI_USAGE;
}

/* What getopt could not take; `argument` is the word it stands in when that is a long option. */
static int refuse_option(const cli_options *o, cli_tool tool, int answer, const char *argument)
{
    const row *r = find_row(tool, optopt);
    if (answer == ':' && r)
        cli_error(o->tool, "--%s needs a value: %s", r->name, r->should);
    else if (r)
        cli_error(o->tool, "'%s': --%s takes no value", argument, r->name);
    else if (optopt)
        cli_error(o->tool, "unknown option '-%c'; see --help", optopt);
    else
        cli_error(o->tool, "unknown or ambiguous option '%s'; see --help", argument);
    return CLI_USAGE;
}

static int read_option(cli_options *o, const row *r)
{
    void *field = (char *)o + r->field;
    if (!r->read && r->most > 0) {
        *(int *)field += *(int *)field < r->most;
        return -1;
    }
    if (!r->read) {
        *(bool *)field = true;
        return -1;
    }
    if (r->read(r, optarg, field))
        return -1;
    cli_error(o->tool, "--%s '%s': should be %s", r->name, optarg, r->should);
    return CLI_USAGE;
}

static int check_backward(const cli_options *o)
{
    if (o->size.m >= 0 || o->c || !isnan(o->beta) || o->output || o->resume || o->verify ||
        o->trace)
        return refuse(o, "--backward goes with files, --da and --db alone: no --size, --c, --beta, "
                         "--output, --resume, --trace or --verify");
    if (o->file_count != 3)
        return refuse(o, "--backward needs three input files: A B DD");
    if (!o->da && !o->db)
        return refuse(o, "--backward needs --da or --db: which gradient, and where to?");
    return -1;
}

/* What jask-gemm cannot make sense of together. */
static int check_gemm(const cli_options *o)
{
    bool sized = o->size.m >= 0;
    if (o->backward)
        return check_backward(o);
    if (o->da || o->db || o->accumulate)
        return refuse(o, "--da, --db and --accumulate go with --backward");
    if (sized && o->file_count > 0)
        return refuse(o, "--size makes its own inputs: no files go with it");
    if (sized && o->c)
        return refuse(o, "--size makes its own inputs: no --c goes with it");
    if (!sized && o->dtype != JASK_DTYPE_NONE)
        return refuse(o, "--dtype is for --size: files say their own type");
    if (!sized && o->file_count != 2)
        return refuse(o, o->file_count < 2 ? "two input files are needed: A B"
                                           : "too many input files: A B are taken");
    if (!sized && !o->output && !o->plan && o->repeat == 0)
        return refuse(o, "no --output: where should the result go?");
    if (o->resume && !o->output)
        return refuse(o, "--resume needs --output: it keeps what is finished beside it");
    if (o->c && isnan(o->beta))
        return refuse(o, "--c needs --beta: how much of C is added");
    if (!sized && !o->c && !isnan(o->beta) && o->beta != 0.0)
        return refuse(o, "--beta needs --c: the array that is added");
    return -1;
}

static int check_add(const cli_options *o)
{
    if (o->file_count != 2)
        return refuse(o, o->file_count < 2 ? "two input files are needed: A B"
                                           : "too many input files: A B are taken");
    if (o->in_place && o->output)
        return refuse(o, "--in-place writes over A: no --output goes with it");
    if (o->in_place && o->repeat > 1)
        return refuse(o, "--in-place changes A at every run: no --repeat goes with it");
    if (!o->in_place && !o->output && !o->plan && o->repeat == 0)
        return refuse(o, "no --output: where should the result go?");
    return -1;
}

static int check_info(const cli_options *o)
{
    if (o->calibrate && (o->file_count > 0 || o->stats || o->machine))
        return refuse(o, "--calibrate measures the machine: no files, --stats or --machine go with "
                         "it");
    return o->stats && o->file_count == 0 ? refuse(o, "--stats needs files") : -1;
}

/* A name and its text, broken between words so that no line passes 80 columns. */
static void print_entry(const char *name, const char *text)
{
    enum { TEXT_COLUMN = 24, COLUMNS = 80 };
    int column = printf("  %-*s", TEXT_COLUMN - 3, name);
    if (column > TEXT_COLUMN - 1)
        column = printf("\n%*s", TEXT_COLUMN - 1, "") - 1;
    for (; *text; text += strspn(text, " ")) {
        int len = (int)strcspn(text, " ");
        if (column + 1 + len > COLUMNS)
            column = printf("\n%*s", TEXT_COLUMN - 1, "") - 1;
        column += printf(" %.*s", len, text);
        text += len;
    }
    putchar('\n');
}

static void print_rows(cli_tool tool)
{
    puts("Options:");
    for (const row *r = rows; r < rows + ROW_COUNT; r++) {
        char name[64];
        if (!(r->tools & (int)tool))
            continue;
        snprintf(name, sizeof name, "%c%c%c --%s %s", r->letter ? '-' : ' ',
                 r->letter ? r->letter : ' ', r->letter ? ',' : ' ', r->name,
                 r->value ? r->value : "");
        print_entry(name, r->help);
    }
}

static void print_environment(void)
{
    puts("\nEnvironment (an option goes before it):");
    for (int i = 0; i < jask_setting_count(); i++) {
        const jask_setting *s = jask_setting_get(i);
        bool with_default = s->default_value && *s->default_value;
        char text[256];
        snprintf(text, sizeof text, "%s%s%s%s", s->help, with_default ? " [" : "",
                 with_default ? s->default_value : "", with_default ? "]" : "");
        print_entry(s->environment, text);
    }
}

static void print_help(cli_tool tool)
{
    puts(tool == CLI_GEMM  ? "Usage: jask-gemm [options] A B -o D\n"
                             "       jask-gemm [options] --size MxNxK\n"
                             "       jask-gemm [options] --backward A B DD --da DA --db DB\n"
                             "D = alpha A B + beta C, on files that need not fit in memory.\n"
         : tool == CLI_ADD ? "Usage: jask-add [options] A B -o D\n"
                             "       jask-add [options] A B --in-place\n"
                             "D = alpha A + beta B, on files that need not fit in memory.\n"
                           : "Usage: jask-info [options] [FILE...]\n"
                             "       jask-info [options] --calibrate\n"
                             "Devices, memory and settings in force; or the headers of files.\n");
    print_rows(tool);
    print_environment();
    puts("\nA file is .npy, or raw: FILE@DTYPE:D0xD1[+OFFSET], such as a.bin@f32:1000x50.\n"
         "In sizes K, KB and KiB are 1024 bytes, and so on up to T.");
    puts(tool == CLI_GEMM  ? "Exit: 0 done, 1 failed, 2 usage, 3 does not fit the budget,\n"
                             "4 the check found a wrong result, 128+n stopped by signal n."
         : tool == CLI_ADD ? "Exit: 0 done, 1 failed, 2 usage, 3 does not fit the budget,\n"
                             "128+n stopped by signal n."
                           : "Exit: 0 done, 1 failed, 2 usage.");
}

/* Answer --help and --version; check the rest and fill in what was not said. */
static int settle(cli_options *o, cli_tool tool)
{
    if (o->help || o->version) {
        if (o->help)
            print_help(tool);
        else
            printf("%s %s\n", o->tool, jask_version());
        return cli_finish(o->tool, CLI_OK);
    }
    int code = tool == CLI_GEMM ? check_gemm(o) : tool == CLI_ADD ? check_add(o) : check_info(o);
    if (o->dtype == JASK_DTYPE_NONE && tool != CLI_ADD)
        o->dtype = JASK_F32;
    if (isnan(o->beta))
        o->beta = tool == CLI_ADD ? 1.0 : 0.0;
    if (o->repeat == 0)
        o->repeat = 1;
    return code;
}

int cli_options_parse(cli_options *out, cli_tool tool, int argc, char **argv)
{
    struct option longs[ROW_COUNT + 1];
    char letters[2 * ROW_COUNT + 2];
    /* Not-a-number is what no --beta can say. */
    cli_options o = {.tool = tool == CLI_GEMM  ? "jask-gemm"
                             : tool == CLI_ADD ? "jask-add"
                                               : "jask-info",
                     .alpha = 1.0,
                     .beta = NAN,
                     .size = {-1, -1, -1}};
    make_tables(tool, longs, letters);
    opterr = 0;
    for (int value; (value = getopt_long(argc, argv, letters, longs, NULL)) != -1;) {
        const row *r = value == '?' || value == ':' ? NULL : find_row(tool, value);
        int code = r ? read_option(&o, r) : refuse_option(&o, tool, value, argv[optind - 1]);
        if (code >= 0)
            return code;
    }
    o.files = argv + optind;
    o.file_count = argc - optind;
    int code = settle(&o, tool);
    *out = o;
    return code;
}
