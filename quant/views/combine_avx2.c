#include "quant/kernels/avx2.h"
#include "quant/views/unpack.h"

static void cut_eights(const struct fields *fields, const unsigned char *words, size_t n_words, unsigned char *out)
{
    __m256i shifts = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)fields->shifts));
    __m256i mask = _mm256_set1_epi32((1 << fields->bits) - 1);
    for (; n_words >= 4; n_words -= 4, words += 16, out += 32) {
        __m256i cut[4];
        for (int i = 0; i < 4; i++) {
            int word;
            memcpy(&word, words + 4 * i, sizeof word);
            cut[i] = _mm256_and_si256(_mm256_srlv_epi32(_mm256_set1_epi32(word), shifts), mask);
        }
        _mm256_storeu_si256((__m256i *)(void *)out, to_bytes(cut));
    }
    for (; n_words > 0; n_words--, words += 4, out += 8) {
        uint32_t word;
        memcpy(&word, words, sizeof word);
        for (int i = 0; i < 8; i++)
            out[i] = (unsigned char)(word >> fields->shifts[i] & ((1u << fields->bits) - 1));
    }
}

#define COMBINE_KERNELS combine_avx2
#define CUT_EIGHTS      cut_eights
#include "quant/views/combine_loops.h"
