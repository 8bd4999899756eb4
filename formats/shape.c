#include "formats/shape.h"

#include "base/checked.h"
#include "quant/views/sub_byte.h"

#include <inttypes.h>
#include <stdio.h>

bool shape_size(const struct dtype *dtype, const uint64_t *shape, unsigned rank, uint64_t *ret_elements,
                uint64_t *ret_bytes, bool *ret_misaligned)
{
    uint64_t n_elements = 1, n_bits;
    if (ret_misaligned != NULL)
        *ret_misaligned = false;
    for (unsigned i = 0; i < rank; i++)
        if (!checked_multiply(n_elements, shape[i], &n_elements))
            return false;
    if (!checked_multiply(dtype_blocks(dtype, n_elements), (uint64_t)dtype->block_bytes * 8, &n_bits))
        return false;
    if (n_elements % dtype->block_elements != 0 && !dtype_is_sub_byte(dtype)) {
        if (ret_misaligned != NULL)
            *ret_misaligned = true;
        return false;
    }
    *ret_elements = n_elements;
    *ret_bytes = n_bits / 8;
    return true;
}

void shape_row_major_strides(const uint64_t *shape, unsigned rank, uint64_t *strides)
{
    uint64_t stride = 1;
    for (unsigned i = rank; i-- > 0;) {
        strides[i] = stride;
        stride *= shape[i];
    }
}
