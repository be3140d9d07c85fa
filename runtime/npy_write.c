#include "runtime/npy.h"

#include "runtime/dtype.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PREAMBLE 10 /* magic, version, two bytes of length */
#define ALIGNMENT 64
/* Of arrays so large that going around the page cache matters; others begin where NumPy's do. */
#define PAGED_BYTES ((uint64_t)32 << 20)
#define PAGE ((size_t)4096)

/* As Python prints a tuple: (), (3,), (2, 3). */
static size_t print_shape(char *text, size_t size, const jk_layout *layout)
{
    size_t used = 0;
    for (int d = 0; d < layout->ndim; d++)
        used += (size_t)snprintf(text + used, size - used, "%s%" PRId64, d ? ", " : "",
                                 layout->shape[d]);
    if (layout->ndim == 1)
        used += (size_t)snprintf(text + used, size - used, ",");
    return used;
}

static char order_mark(const jk_layout *layout)
{
    if (jask_dtype_size(layout->dtype) == 1)
        return '|';
    return layout->big_endian ? '>' : '<';
}

size_t jk_npy_write(unsigned char *bytes, jk_layout *layout)
{
    static const unsigned char magic[] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0};
    char *text = (char *)bytes + PREAMBLE;
    size_t room = JK_NPY_HEADER_MAX - PREAMBLE;
    size_t alignment = layout->data_bytes < PAGED_BYTES ? ALIGNMENT : PAGE;
    size_t used, total, length;
    assert(jk_dtype_descr(layout->dtype));
    used = (size_t)snprintf(text, room, "{'descr': '%c%s', 'fortran_order': %s, 'shape': (",
                            order_mark(layout), jk_dtype_descr(layout->dtype),
                            layout->fortran_order ? "True" : "False");
    used += print_shape(text + used, room - used, layout);
    used += (size_t)snprintf(text + used, room - used, "), }");

    /* The text ends in a newline, after as many blanks as bring the data to its alignment. */
    total = (PREAMBLE + used + 1 + alignment - 1) / alignment * alignment;
    length = total - PREAMBLE;
    assert(total <= JK_NPY_HEADER_MAX);
    memset(text + used, ' ', length - used);
    text[length - 1] = '\n';
    memcpy(bytes, magic, sizeof magic);
    bytes[8] = (unsigned char)(length & 0xff);
    bytes[9] = (unsigned char)(length >> 8);
    layout->data_offset = total;
    snprintf(layout->format, sizeof layout->format, "npy 1.0");
    return total;
}
