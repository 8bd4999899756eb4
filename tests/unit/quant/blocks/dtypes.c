#include "quant/blocks/dtype.h"

#include "tests/unit/check.h"

/* Every row of the table is complete and nothing stands in it twice. */
static void rows(void)
{
    for (size_t i = 0; dtypes[i] != NULL; i++) {
        const struct dtype *dtype = dtypes[i];
        bool unique = true;
        for (size_t j = 0; j < i; j++) {
            const struct dtype *other = dtypes[j];
            unique &= strcmp(other->name, dtype->name) != 0;
            unique &= other->ggml_type == GGML_TYPE_NONE || other->ggml_type != dtype->ggml_type;
            unique &=
                other->view_name == NULL || dtype->view_name == NULL || strcmp(other->view_name, dtype->view_name) != 0;
        }
        CHECK_NAMED(unique, dtype->name);
        CHECK(dtype->block_elements > 0 && dtype->block_bytes > 0);
        CHECK(dtype_by_name(dtype->name) == dtype);
        CHECK(dtype->ggml_type == GGML_TYPE_NONE || dtype_by_ggml_type((uint32_t)dtype->ggml_type) == dtype);
    }
}

int main(void)
{
    rows();
    CHECK(dtype_by_name("bf16") == NULL);
    CHECK(dtype_by_ggml_type(4) == NULL);
    return check_done();
}
