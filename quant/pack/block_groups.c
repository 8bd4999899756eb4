#include "quant/pack/block_groups.h"

#include "quant/blocks/block32.h"
#include "quant/blocks/f16.h"
#include "quant/blocks/k_format.h"
#include "quant/blocks/q4_q5.h"

#include <string.h>

/* Q4_0, Q4_1, Q5_0 and Q5_1. */

static const struct q45_format *format_of(const struct block_groups *groups)
{
    static const struct q45_format *const formats[] = {&q4_0_format, &q4_1_format, &q5_0_format, &q5_1_format};
    return formats[(groups->bits - 4) * 2 + (strstr(groups->dtype, "_1") != NULL)];
}

static void q45_codes(const struct block_groups *groups, const uint8_t *block, uint8_t *codes)
{
    const struct q45_format *format = format_of(groups);
    for (int i = 0; i < BLOCK32_ELEMENTS; i++) {
        codes[i] = (uint8_t)block32_nibble(block + format->qs, i);
        if (format->qh != 0)
            codes[i] |= (uint8_t)block32_fifth_bit(block + format->qh, i);
    }
}

static void q45_numbers(const struct block_groups *groups, const uint8_t *block, float *scales, float *biases)
{
    const struct q45_format *format = format_of(groups);
    *scales = f16_load(block);
    *biases = format->has_minimum ? f16_load(block + Q45_M) : *scales * (float)(-format->n_levels / 2);
}

/* Q8_0. */

enum { Q8_QS = 2, Q8_MIDDLE = 128 };

static void q8_codes(const struct block_groups *groups, const uint8_t *block, uint8_t *codes)
{
    for (int i = 0; i < BLOCK32_ELEMENTS; i++)
        codes[i] = block[Q8_QS + i] ^ Q8_MIDDLE;
}

static void q8_numbers(const struct block_groups *groups, const uint8_t *block, float *scales, float *biases)
{
    *scales = f16_load(block);
    *biases = *scales * -Q8_MIDDLE;
}

/* Q4_K and Q5_K. */

enum { Q5_K_QH = 16, Q4_K_QS = 16, Q5_K_QS = 48 };

static void q45_k_codes(const struct block_groups *groups, const uint8_t *block, uint8_t *codes)
{
    const uint8_t *qs = block + (groups->bits == 5 ? Q5_K_QS : Q4_K_QS);
    for (unsigned j = 0; j < Q45_SUB_BLOCKS; j++)
        for (unsigned i = 0; i < 32; i++) {
            unsigned high = groups->bits == 5 ? block[Q5_K_QH + i] >> j & 1u : 0;
            *codes++ = (uint8_t)((qs[j / 2 * 32 + i] >> j % 2 * 4 & 15) | high << 4);
        }
}

static void q45_k_numbers(const struct block_groups *groups, const uint8_t *block, float *scales, float *biases)
{
    q45_load_scales(block, scales, biases);
    for (int i = 0; i < Q45_SUB_BLOCKS; i++)
        biases[i] = -biases[i];
}

/* MXFP4 and NVFP4. */

enum { NVFP4_GROUPS = 4, NVFP4_GROUP = 16 };

static void mxfp4_codes(const struct block_groups *groups, const uint8_t *block, uint8_t *codes)
{
    for (int i = 0; i < BLOCK32_ELEMENTS; i++)
        codes[i] = (uint8_t)block32_nibble(block + 1, i);
}

static void mxfp4_numbers(const struct block_groups *groups, const uint8_t *block, float *scales, float *biases)
{
    *scales = block[0];
}

static void nvfp4_codes(const struct block_groups *groups, const uint8_t *block, uint8_t *codes)
{
    for (int i = 0; i < NVFP4_GROUPS * NVFP4_GROUP; i++) {
        int within = i % NVFP4_GROUP;
        uint8_t byte = block[NVFP4_GROUPS + i / NVFP4_GROUP * 8 + within % 8];
        codes[i] = within < 8 ? byte & 15 : byte >> 4;
    }
}

static void nvfp4_numbers(const struct block_groups *groups, const uint8_t *block, float *scales, float *biases)
{
    for (int i = 0; i < NVFP4_GROUPS; i++)
        scales[i] = block[i];
}

static const struct block_groups all[] = {
    {"Q4_0", 4, 32, &f16_dtype, q45_codes, q45_numbers},     {"Q4_1", 4, 32, &f16_dtype, q45_codes, q45_numbers},
    {"Q5_0", 5, 32, &f16_dtype, q45_codes, q45_numbers},     {"Q5_1", 5, 32, &f16_dtype, q45_codes, q45_numbers},
    {"Q8_0", 8, 32, &f16_dtype, q8_codes, q8_numbers},       {"Q4_K", 4, 32, &f32_dtype, q45_k_codes, q45_k_numbers},
    {"Q5_K", 5, 32, &f32_dtype, q45_k_codes, q45_k_numbers}, {"MXFP4", 4, 32, &u8_dtype, mxfp4_codes, mxfp4_numbers},
    {"NVFP4", 4, 16, &u8_dtype, nvfp4_codes, nvfp4_numbers},
};

const struct block_groups *block_groups_of(const struct dtype *dtype)
{
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(dtype->name, all[i].dtype) == 0)
            return &all[i];
    return NULL;
}
