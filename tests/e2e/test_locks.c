/* File systems that cannot lock. */
#include "e2e.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

TestSuite(locks, .init = e2e_init, .fini = e2e_cleanup);

static int locks_refused;

int __real_fcntl64(int fd, int what, long arg);
int __wrap_fcntl64(int fd, int what, long arg);

int __wrap_fcntl64(int fd, int what, long arg)
{
    if (what != F_OFD_SETLK)
        return __real_fcntl64(fd, what, arg);
    locks_refused++;
    errno = ENOLCK;
    return -1;
}

Test(locks, that_are_not_to_be_had_stop_no_product)
{
    e2e_form f64 = {.dtype = JASK_F64};
    jask_context *ctx = e2e_context(64 << 10, "auto", true);
    jask_dot_args args;
    jask_array *a, *d = NULL;
    double *x, *got;
    e2e_write(e2e_path("a.npy"), f64, 60, 60, 1, NULL);
    a = e2e_open(e2e_path("a.npy"));
    x = e2e_read(a);
    for (int resume = 0; resume < 2; resume++) {
        jask_report report = {.struct_size = sizeof report};
        jask_error err;
        jask_dot_args_init(&args, sizeof args);
        args.output = e2e_path("d.npy");
        args.resume = resume;
        cr_assert_eq(jask_dot(ctx, a, a, &args, &d, &report, &err), JASK_OK, "%s", err.msg);
        /* A plain product asks for no lock; one that can be resumed says what it lacks. */
        cr_assert_eq(locks_refused > 0, resume);
        cr_assert_eq(strstr(report.note, "lock") != NULL, resume, "%s", report.note);
        got = e2e_read(d);
        for (int i = 0; i < 60; i++)
            for (int j = 0; j < 60; j++) {
                double sum = 0;
                for (int p = 0; p < 60; p++)
                    sum += x[i * 60 + p] * x[p * 60 + j];
                if (got[i * 60 + j] != sum)
                    cr_assert_fail("element (%d, %d)", i, j);
            }
        free(got);
        jask_array_close(d);
    }
    cr_assert_neq(access(e2e_path("d.npy.jask-journal"), F_OK), 0);
    free(x);
    jask_array_close(a);
    jask_context_close(ctx);
}
