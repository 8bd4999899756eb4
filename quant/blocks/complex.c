/* Complex numbers of two F16, F32 or F64: they have no F32 value. */
#include "quant/blocks/dtype.h"

#define COMPLEX(type, its_name, bytes, its_numpy)                                                                      \
    const struct dtype type = {                                                                                        \
        .name = its_name,                                                                                              \
        .numpy = its_numpy,                                                                                            \
        .kind = DTYPE_COMPLEX,                                                                                         \
        .block_elements = 1,                                                                                           \
        .block_bytes = bytes,                                                                                          \
        .ggml_type = GGML_TYPE_NONE,                                                                                   \
    }

COMPLEX(c32_dtype, "C32", 4, NULL);
COMPLEX(c64_dtype, "C64", 8, "<c8");
COMPLEX(c128_dtype, "C128", 16, "<c16");
