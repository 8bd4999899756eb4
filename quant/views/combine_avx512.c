#include "quant/views/unpack.h"

#include <immintrin.h>
#include <string.h>

/* Widens each word to eight bytes, and takes eight bits of it for each field, from any position. */
static void cut_eights(const struct fields *fields, const unsigned char *words, size_t n_words, unsigned char *out)
{
    uint64_t shifts;
    memcpy(&shifts, fields->shifts, sizeof shifts);
    const __m512i starts = _mm512_set1_epi64((int64_t)shifts), mask = _mm512_set1_epi8((char)((1 << fields->bits) - 1));
    for (; n_words > 0; words += 32, out += 64) {
        size_t n = n_words < 8 ? n_words : 8;
        __m256i loaded = _mm256_maskz_loadu_epi32((__mmask8)((1u << n) - 1), words);
        __m512i cut = _mm512_and_si512(_mm512_multishift_epi64_epi8(starts, _mm512_cvtepu32_epi64(loaded)), mask);
        _mm512_mask_storeu_epi64(out, (__mmask8)((1u << n) - 1), cut);
        n_words -= n;
    }
}

#define COMBINE_KERNELS combine_avx512
#define CUT_EIGHTS      cut_eights
#include "quant/views/combine_loops.h"
