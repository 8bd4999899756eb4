#include "quant/blocks/dtype.h"

#include <string.h>

extern const struct dtype f8_e5m2_dtype, f8_e8m0_dtype, f8_e4m3fnuz_dtype, f8_e5m2fnuz_dtype;
extern const struct dtype f6_e2m3_dtype, f6_e3m2_dtype, f4_dtype, i4_dtype, u4_dtype, i2_dtype, u2_dtype, c32_dtype,
    c64_dtype, c128_dtype;
extern const struct dtype i8_dtype, i16_dtype, u16_dtype, u32_dtype, u64_dtype, bool_dtype;

extern const struct dtype q4_1_dtype, q5_0_dtype, q5_1_dtype, q8_0_dtype, iq4_nl_dtype, iq4_xs_dtype;
extern const struct dtype iq1_s_dtype, iq1_m_dtype, iq2_xxs_dtype, iq2_xs_dtype, iq2_s_dtype, iq3_xxs_dtype,
    iq3_s_dtype;
extern const struct dtype tq1_0_dtype, tq2_0_dtype, mxfp4_dtype, nvfp4_dtype, q1_0_dtype, q2_0_dtype, q8_1_dtype,
    q8_k_dtype;
extern const struct dtype q2_k_dtype, q3_k_dtype, q4_k_dtype, q5_k_dtype, q6_k_dtype;

/* One line for each row. */
/* clang-format off */
const struct dtype *const dtypes[] = {
    &f32_dtype,
    &f16_dtype,
    &bf16_dtype,

    &q4_0_dtype,
    &q4_1_dtype,
    &q5_0_dtype,
    &q5_1_dtype,
    &q8_0_dtype,
    &q2_k_dtype,
    &q3_k_dtype,
    &q4_k_dtype,
    &q5_k_dtype,
    &q6_k_dtype,
    &iq1_s_dtype,
    &iq1_m_dtype,
    &iq2_xxs_dtype,
    &iq2_xs_dtype,
    &iq2_s_dtype,
    &iq3_xxs_dtype,
    &iq3_s_dtype,
    &iq4_nl_dtype,
    &iq4_xs_dtype,
    &tq1_0_dtype,
    &tq2_0_dtype,
    &mxfp4_dtype,
    &nvfp4_dtype,
    &q1_0_dtype,
    &q2_0_dtype,
    &q8_1_dtype,
    &q8_k_dtype,

    &f64_dtype,
    &f8_e5m2_dtype,
    &f8_e4m3_dtype,
    &f8_e8m0_dtype,
    &f8_e4m3fnuz_dtype,
    &f8_e5m2fnuz_dtype,
    &f6_e2m3_dtype,
    &f6_e3m2_dtype,
    &f4_dtype,
    &i4_dtype,
    &u4_dtype,
    &i2_dtype,
    &u2_dtype,
    &i8_dtype,
    &i16_dtype,
    &i32_dtype,
    &i64_dtype,
    &u8_dtype,
    &u16_dtype,
    &u32_dtype,
    &u64_dtype,
    &bool_dtype,
    &c32_dtype,
    &c64_dtype,
    &c128_dtype,
    NULL,
};
/* clang-format on */

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
