#include "quant/blocks/dtype.h"
#include "quant/blocks/f16.h"
#include "quant/kernels/avx2.h"

enum { ELEMENTS = 128, QS = 2, BLOCK_BYTES = 18 };

decode_function q1_0_decode_avx2;

/* Turns cleared bits into signs. */
void q1_0_decode_avx2(const void *blocks, float *values, size_t n_blocks)
{
    const uint8_t *block = blocks;
    const __m256i shifts = _mm256_setr_epi32(31, 30, 29, 28, 27, 26, 25, 24);
    const __m256i sign = _mm256_set1_epi32(INT32_MIN);
    for (size_t i = 0; i < n_blocks; i++, block += BLOCK_BYTES) {
        __m256i d = _mm256_castps_si256(_mm256_set1_ps(f16_load(block)));
        for (int j = 0; j < ELEMENTS / 8; j++, values += 8) {
            __m256i bits = _mm256_sllv_epi32(_mm256_set1_epi32(block[QS + j]), shifts);
            _mm256_storeu_si256((__m256i *)(void *)values, _mm256_xor_si256(d, _mm256_andnot_si256(bits, sign)));
        }
    }
}

/* Turns eight rows of eight numbers into columns. */
static inline void transpose(__m256 rows[8])
{
    __m256 dealt[8];
    for (int round = 0; round < 2; round++) { /* within every 128 bits */
        for (int i = 0; i < 8; i++) {
            __m256 a = rows[(i & 4) + i % 4 / 2], b = rows[(i & 4) + i % 4 / 2 + 2];
            dealt[i] = i % 2 == 0 ? _mm256_unpacklo_ps(a, b) : _mm256_unpackhi_ps(a, b);
        }
        memcpy(rows, dealt, sizeof dealt);
    }
    for (int i = 0; i < 4; i++) {
        dealt[i] = _mm256_permute2f128_ps(rows[i], rows[i + 4], 0x20);
        dealt[i + 4] = _mm256_permute2f128_ps(rows[i], rows[i + 4], 0x31);
    }
    memcpy(rows, dealt, sizeof dealt);
}

/* Sums the magnitudes of each block in order, with one block a lane. */
static inline void encode_batch(const float *values, uint8_t *block, size_t n_blocks)
{
    __m256 sums = _mm256_setzero_ps();
    float means[BATCH];
    uint16_t halves[BATCH];
    for (int i = 0; i < ELEMENTS; i += 8) {
        __m256 rows[BATCH];
        for (size_t b = 0; b < BATCH; b++) {
            rows[b] = b < n_blocks ? _mm256_loadu_ps(values + b * ELEMENTS + (size_t)i) : _mm256_setzero_ps();
            if (b < n_blocks)
                block[b * BLOCK_BYTES + QS + (size_t)i / 8] =
                    (uint8_t)_mm256_movemask_ps(_mm256_cmp_ps(rows[b], _mm256_setzero_ps(), _CMP_GE_OQ));
            rows[b] = magnitudes(rows[b]);
        }
        transpose(rows);
        for (int j = 0; j < 8; j++)
            sums = _mm256_add_ps(sums, rows[j]);
    }
    _mm256_storeu_ps(means, _mm256_div_ps(sums, _mm256_set1_ps(ELEMENTS)));
    halves_of(means, halves);
    for (size_t b = 0; b < n_blocks; b++)
        memcpy(block + b * BLOCK_BYTES, &halves[b], sizeof halves[b]);
}

DEFINE_AVX2_ENCODER(q1_0, ELEMENTS, BLOCK_BYTES)
