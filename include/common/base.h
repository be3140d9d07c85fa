/* What every part of jask shares: errors, checked size arithmetic, small helpers. Not installed. */
#ifndef JK_COMMON_BASE_H
#define JK_COMMON_BASE_H

#include <jask.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JK_PRINTF(fmt_index, first_arg) __attribute__((format(printf, fmt_index, first_arg)))

/* Fill `err` (which may be NULL) and return `code`. A message longer than the error can hold is
 * shortened in the middle, so that the reason at its end is never lost. */
jask_status jk_fail(jask_error *err, jask_status code, const char *fmt, ...) JK_PRINTF(3, 4);

/* JASK_ERR_IO with `: strerror(errno)` appended and sys_errno set. ENOMEM becomes JASK_ERR_NOMEM.
 * Reads errno on entry, so nothing may come between the failing call and this one. */
jask_status jk_fail_errno(jask_error *err, const char *fmt, ...) JK_PRINTF(2, 3);

/* Put "where: " in front of the message that `err` holds; returns `code` unchanged. */
jask_status jk_fail_in(jask_error *err, jask_status code, const char *fmt, ...) JK_PRINTF(3, 4);

/* True and *out = a*b when the product fits; sizes are multiplied through these at every edge. */
static inline bool jk_mul_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

static inline bool jk_add_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

/* For a >= 0, b > 0; no intermediate overflows. */
static inline int64_t jk_ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

static inline int64_t jk_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static inline int64_t jk_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

#endif
