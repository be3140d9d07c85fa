#include "runtime/product_types.h"

#include "runtime/dtype.h"

#include <inttypes.h>
#include <math.h>

/* Whole numbers up to this, and their sums, are exact in f64. */
#define EXACT 0x1p53

static bool is_whole(jask_dtype dtype)
{
    jk_kind kind = jk_dtype_kind(dtype);
    return kind == JK_SIGNED || kind == JK_UNSIGNED;
}

/* Sums of 16-bit numbers are made in f32, whose products of them are exact. */
static jask_dtype sums_of(jask_dtype dtype)
{
    return dtype == JASK_F16 || dtype == JASK_BF16 ? JASK_F32 : dtype;
}

static jask_status whole_types(jask_dtype a, jask_dtype b, jask_dtype asked, jk_product_types *out,
                               jask_error *err)
{
    size_t widest = (size_t)jk_max((int64_t)jask_dtype_size(a), (int64_t)jask_dtype_size(b));
    if (widest > 2)
        return jk_fail(err, JASK_ERR_UNSUPPORTED,
                       "the table of products has no row %s x %s: sums of such products need more "
                       "than the 53 bits that are exact; integers of up to 16 bits are taken, and "
                       "up to 32 bits for a result in f64 (--out-dtype f64)",
                       jask_dtype_name(a), jask_dtype_name(b));
    out->compute = JASK_F64;
    out->output = asked ? asked : widest == 1 ? JASK_I32 : JASK_I64;
    out->whole = true;
    return JASK_OK;
}

/* A result narrower than the sums is rounded once, so that it must be the next narrower type. */
static bool gives(jask_dtype compute, jask_dtype output)
{
    switch (compute) {
    case JASK_F32:
        return output == JASK_F32 || output == JASK_F16 || output == JASK_BF16;
    case JASK_F64:
        return output == JASK_F64 || output == JASK_F32;
    case JASK_C64:
        return output == JASK_C64;
    default:
        return output == JASK_C128 || output == JASK_C64;
    }
}

static jask_status real_types(jask_dtype a, jask_dtype b, jask_dtype asked, jk_product_types *out,
                              jask_error *err)
{
    jask_dtype both, with;
    jask_status st = jask_dtype_promote(a, b, &both, err);
    if (st)
        return st;
    out->output = asked ? asked : both;
    st = jask_dtype_promote(both, out->output, &with, err);
    if (st)
        return st;
    out->compute = sums_of(with);
    if (!gives(out->compute, out->output))
        return jk_fail(err, JASK_ERR_UNSUPPORTED,
                       "products of %s and %s are summed in %s, which the table of products gives "
                       "no result in %s of",
                       jask_dtype_name(a), jask_dtype_name(b), jask_dtype_name(out->compute),
                       jask_dtype_name(out->output));
    return JASK_OK;
}

jask_status jk_product_types_of(jask_dtype a, jask_dtype b, jask_dtype asked, bool one_sum,
                                const jk_device_info *device, jk_product_types *out,
                                jask_error *err)
{
    jk_product_types t = {.whole = false};
    bool whole = is_whole(a) && is_whole(b) && (!asked || is_whole(asked));
    jask_status st;
    if (asked && jask_dtype_size(asked) == 0)
        return jk_fail(err, JASK_ERR_ARG, "%d is no element type for a result", (int)asked);
    st = whole ? whole_types(a, b, asked, &t, err) : real_types(a, b, asked, &t, err);
    if (st)
        return st;
    if (one_sum && t.compute == JASK_F32 && t.output == JASK_F32)
        t.compute = JASK_F64;
    if (one_sum && t.compute == JASK_C64)
        t.compute = JASK_C128;
    t.a = t.b = t.compute;
    if (a == b && t.compute == JASK_F32 &&
        ((a == JASK_F16 && device->f16) || (a == JASK_BF16 && device->bf16)))
        t.a = t.b = a;
    *out = t;
    return JASK_OK;
}

jask_status jk_product_takes(const jk_product_types *types, jask_dtype c, jask_error *err)
{
    if (jk_dtype_holds(types->compute, c))
        return JASK_OK;
    return jk_fail(err, JASK_ERR_UNSUPPORTED,
                   "C is %s, but the product is computed in %s, which does not hold every value "
                   "of it: convert it first",
                   jask_dtype_name(c), jask_dtype_name(types->compute));
}

/* The greatest magnitude of an integer type. */
static double magnitude(jask_dtype dtype)
{
    int bits = 8 * (int)jask_dtype_size(dtype);
    return ldexp(1, jk_dtype_kind(dtype) == JK_SIGNED ? bits - 1 : bits);
}

jask_status jk_product_check_sums(const jk_product_types *types, jask_dtype a, jask_dtype b,
                                  jask_dtype c, int64_t k, double alpha, double beta,
                                  jask_error *err)
{
    bool narrow = types->compute == JASK_F32 || types->compute == JASK_C64;
    bool finite = narrow ? isfinite((float)alpha) && isfinite((float)beta)
                         : isfinite(alpha) && isfinite(beta);
    double reach;
    if (!finite)
        return jk_fail(err, JASK_ERR_ARG,
                       "alpha and beta must be finite numbers in the type that computes, %s",
                       jask_dtype_name(types->compute));
    if (!types->whole)
        return JASK_OK;
    if (alpha != floor(alpha) || beta != floor(beta))
        return jk_fail(err, JASK_ERR_ARG,
                       "alpha and beta must be whole numbers for integers, not %.17g and %.17g",
                       alpha, beta);
    reach = fabs(alpha) * (double)k * magnitude(a) * magnitude(b);
    reach += beta != 0 ? fabs(beta) * magnitude(c) : 0;
    if (reach > EXACT)
        return jk_fail(err, JASK_ERR_UNSUPPORTED,
                       "sums of %" PRId64 " products of %s and %s may reach %.3g, beyond the 2^53 "
                       "up to which they are exact: choose a result in f64 (--out-dtype f64)",
                       k, jask_dtype_name(a), jask_dtype_name(b), reach);
    return JASK_OK;
}
