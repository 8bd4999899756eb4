#include "quant/kernels/neon.h"
#include "quant/views/unpack.h"

#include <string.h>

static void cut_eights(const struct fields *fields, const unsigned char *words, size_t n_words, unsigned char *out)
{
    const uint8x16_t mask = vdupq_n_u8((uint8_t)((1u << fields->bits) - 1));
    int32x4_t shifts[2]; /* those to the left are positive */
    for (int i = 0; i < 8; i++)
        shifts[i / 4][i % 4] = -fields->shifts[i];
    for (; n_words >= 2; n_words -= 2, words += 8, out += 16) {
        int32x4_t cut[4];
        for (int i = 0; i < 4; i++) {
            uint32_t word;
            memcpy(&word, words + 4 * (i / 2), sizeof word);
            cut[i] = vreinterpretq_s32_u32(vshlq_u32(vdupq_n_u32(word), shifts[i % 2]));
        }
        vst1q_u8(out, vandq_u8(low_bytes(cut), mask));
    }
    for (int i = 0; n_words != 0 && i < 8; i++) {
        uint32_t word;
        memcpy(&word, words, sizeof word);
        out[i] = (unsigned char)(word >> fields->shifts[i] & ((1u << fields->bits) - 1));
    }
}

#define COMBINE_KERNELS combine_neon
#define CUT_EIGHTS      cut_eights
#include "quant/views/combine_loops.h"
