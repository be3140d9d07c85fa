/* Which types a product takes, computes in and gives. */
#ifndef JK_RUNTIME_PRODUCT_TYPES_H
#define JK_RUNTIME_PRODUCT_TYPES_H

#include "runtime/device.h"

typedef struct jk_product_types {
    jask_dtype a, b;    /* of the elements of A and B on the device */
    jask_dtype compute; /* of sums, and of C and D on the device: f32, f64, c64 or c128 */
    jask_dtype output;  /* of D's file */
    bool whole;         /* integers, exact */
} jk_product_types;

/* `asked` is the output's type, NONE for that of the table in jask.h. `one_sum`: the result is a
 * single number, for which f32 is summed in f64. UNSUPPORTED naming what is missing. */
jask_status jk_product_types_of(jask_dtype a, jask_dtype b, jask_dtype asked, bool one_sum,
                                const jk_device_info *device, jk_product_types *out,
                                jask_error *err);

/* What is added to must be exact in the type that computes. */
jask_status jk_product_takes(const jk_product_types *types, jask_dtype c, jask_error *err);

/* ARG for factors that the type cannot hold. Integers are exact while k products and the addend stay
 * below 2^53: UNSUPPORTED for a k that may exceed it, with numbers. */
jask_status jk_product_check_sums(const jk_product_types *types, jask_dtype a, jask_dtype b,
                                  jask_dtype c, int64_t k, double alpha, double beta,
                                  jask_error *err);

#endif
