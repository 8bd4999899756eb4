#include "formats/numpy/write.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { PREFIX_BYTES = 10, ALIGNMENT = 64, GROWTH_DIGITS = 21 };

size_t numpy_header(const struct dtype *dtype, const uint64_t *shape, unsigned rank, char out[NUMPY_HEADER_MAX])
{
    char *at = out + PREFIX_BYTES;
    at += sprintf(at, "{'descr': '%s', 'fortran_order': False, 'shape': (", dtype->numpy);
    size_t first_digits = 0;
    for (unsigned i = 0; i < rank; i++) {
        int n = sprintf(at, "%s%" PRIu64, i ? ", " : "", shape[i]);
        first_digits = i ? first_digits : (size_t)n;
        at += n;
    }
    at += sprintf(at, "%s), }", rank == 1 ? "," : "");
    if (rank > 0) { /* numpy leaves room for the first dimension to grow */
        memset(at, ' ', GROWTH_DIGITS - first_digits);
        at += GROWTH_DIGITS - first_digits;
    }
    size_t length = (size_t)(at - out) + 1, padding = ALIGNMENT - length % ALIGNMENT; /* numpy never pads by 0 */
    memset(at, ' ', padding);
    at[padding] = '\n';
    length += padding;
    memcpy(out, "\x93NUMPY\x01\x00", 8);
    out[8] = (char)((length - PREFIX_BYTES) & 0xff);
    out[9] = (char)((length - PREFIX_BYTES) >> 8);
    return length;
}
