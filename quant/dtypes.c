#include "quant/dtype.h"

#include <string.h>

extern const struct dtype f32_dtype, f16_dtype, bf16_dtype;

const struct dtype *const dtypes[] = {
    &f32_dtype,
    &f16_dtype,
    &bf16_dtype,
    NULL,
};

const struct dtype *dtype_by_name(const char *name)
{
    for (const struct dtype *const *dtype = dtypes; *dtype != NULL; dtype++)
        if (strcmp((*dtype)->name, name) == 0)
            return *dtype;
    return NULL;
}

const struct dtype *dtype_by_ggml_type(uint32_t ggml_type)
{
    for (const struct dtype *const *dtype = dtypes; *dtype != NULL; dtype++)
        if ((*dtype)->ggml_type >= 0 && (uint32_t)(*dtype)->ggml_type == ggml_type)
            return *dtype;
    return NULL;
}
