/* F6: four elements in three bytes. No specification gives the order of the bits, so the values are not decoded. */
#include "quant/blocks/dtype.h"

#define F6(type, its_name)                                                                                             \
    const struct dtype type = {                                                                                        \
        .name = its_name,                                                                                              \
        .kind = DTYPE_FLOAT,                                                                                           \
        .block_elements = 4,                                                                                           \
        .block_bytes = 3,                                                                                              \
        .ggml_type = GGML_TYPE_NONE,                                                                                   \
    }

F6(f6_e2m3_dtype, "F6_E2M3");
F6(f6_e3m2_dtype, "F6_E3M2");
