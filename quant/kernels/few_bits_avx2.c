/* Q1_0, Q2_0, TQ1_0 and TQ2_0. */
#include "quant/blocks/dtype.h"
#include "quant/blocks/f16.h"
#include "quant/blocks/ternary.h"
#include "quant/kernels/avx2.h"

enum { Q1_0_ELEMENTS = 128, Q1_0_QS = 2, Q1_0_BYTES = 18 };

decode_function q1_0_decode_avx2;

/* Turns cleared bits into signs. */
void q1_0_decode_avx2(const void *blocks, float *values, size_t n_blocks)
{
    const uint8_t *block = blocks;
    const __m256i shifts = _mm256_setr_epi32(31, 30, 29, 28, 27, 26, 25, 24);
    const __m256i sign = _mm256_set1_epi32(INT32_MIN);
    for (size_t i = 0; i < n_blocks; i++, block += Q1_0_BYTES) {
        __m256i d = _mm256_castps_si256(_mm256_set1_ps(f16_load(block)));
        for (int j = 0; j < Q1_0_ELEMENTS / 8; j++, values += 8) {
            __m256i bits = _mm256_sllv_epi32(_mm256_set1_epi32(block[Q1_0_QS + j]), shifts);
            _mm256_storeu_si256((__m256i *)(void *)values, _mm256_xor_si256(d, _mm256_andnot_si256(bits, sign)));
        }
    }
}

/* Turns eight rows of eight numbers into columns. */
static inline void q1_0_transpose(__m256 rows[8])
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
static inline void q1_0_encode_batch(const float *values, uint8_t *block, size_t n_blocks)
{
    __m256 sums = _mm256_setzero_ps();
    float means[BATCH];
    uint16_t halves[BATCH];
    for (int i = 0; i < Q1_0_ELEMENTS; i += 8) {
        __m256 rows[BATCH];
        for (size_t b = 0; b < BATCH; b++) {
            rows[b] = b < n_blocks ? _mm256_loadu_ps(values + b * Q1_0_ELEMENTS + (size_t)i) : _mm256_setzero_ps();
            if (b < n_blocks)
                block[b * Q1_0_BYTES + Q1_0_QS + (size_t)i / 8] =
                    (uint8_t)_mm256_movemask_ps(_mm256_cmp_ps(rows[b], _mm256_setzero_ps(), _CMP_GE_OQ));
            rows[b] = magnitudes(rows[b]);
        }
        q1_0_transpose(rows);
        for (int j = 0; j < 8; j++)
            sums = _mm256_add_ps(sums, rows[j]);
    }
    _mm256_storeu_ps(means, _mm256_div_ps(sums, _mm256_set1_ps(Q1_0_ELEMENTS)));
    halves_of(means, halves);
    for (size_t b = 0; b < n_blocks; b++)
        memcpy(block + b * Q1_0_BYTES, &halves[b], sizeof halves[b]);
}

DEFINE_AVX2_ENCODER(q1_0, Q1_0_ELEMENTS, Q1_0_BYTES)

enum { Q2_0_ELEMENTS = 64, Q2_0_QS = 2, Q2_0_BYTES = 18 };

decode_function q2_0_decode_avx2;

void q2_0_decode_avx2(const void *blocks, float *values, size_t n_blocks)
{
    const uint8_t *block = blocks;
    const __m256i shifts = _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14);
    for (size_t i = 0; i < n_blocks; i++, block += Q2_0_BYTES) {
        __m256 d = _mm256_set1_ps(f16_load(block));
        for (int j = 0; j < Q2_0_ELEMENTS / 8; j++, values += 8) {
            int word = block[Q2_0_QS + 2 * j] | block[Q2_0_QS + 2 * j + 1] << 8;
            __m256i levels = _mm256_and_si256(_mm256_srlv_epi32(_mm256_set1_epi32(word), shifts), _mm256_set1_epi32(3));
            levels = _mm256_sub_epi32(levels, _mm256_set1_epi32(1));
            _mm256_storeu_ps(values, _mm256_mul_ps(_mm256_cvtepi32_ps(levels), d));
        }
    }
}

/* Packs the levels of 32 values, four to a byte. */
static inline void q2_0_store_levels(const struct values32 *values, float inverse, uint8_t *qs)
{
    __m256i integers[4];
    for (int i = 0; i < 4; i++) {
        __m256i rounded = round_away(_mm256_mul_ps(values->part[i], _mm256_set1_ps(inverse)));
        integers[i] = _mm256_add_epi32(_mm256_max_epi32(rounded, _mm256_set1_epi32(-1)), _mm256_set1_epi32(1));
    }
    __m256i levels = _mm256_min_epu8(to_bytes(integers), _mm256_set1_epi8(3));
    __m256i pairs = _mm256_maddubs_epi16(levels, _mm256_set1_epi16(4 << 8 | 1));
    __m256i fours = _mm256_madd_epi16(pairs, _mm256_set1_epi32(16 << 16 | 1));
    __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(fours), _mm256_extracti128_si256(fours, 1));
    _mm_storel_epi64((__m128i *)(void *)qs, _mm_packus_epi16(words, words));
}

static inline void q2_0_encode_batch(const float *values, uint8_t *block, size_t n_blocks)
{
    float largest[BATCH] = {0};
    struct scales d;
    for (size_t i = 0; i < n_blocks; i++) {
        struct values32 first = load_values(values + i * Q2_0_ELEMENTS),
                        second = load_values(values + i * Q2_0_ELEMENTS + 32);
        float a = largest_magnitude(&first), b = largest_magnitude(&second);
        largest[i] = a > b ? a : b;
    }
    scales_of(largest, 1, &d);
    for (size_t i = 0; i < n_blocks; i++, values += Q2_0_ELEMENTS, block += Q2_0_BYTES) {
        struct values32 first = load_values(values), second = load_values(values + 32);
        memcpy(block, &d.half[i], sizeof d.half[i]);
        q2_0_store_levels(&first, d.inverse[i], block + Q2_0_QS);
        q2_0_store_levels(&second, d.inverse[i], block + Q2_0_QS + 8);
    }
}

DEFINE_AVX2_ENCODER(q2_0, Q2_0_ELEMENTS, Q2_0_BYTES)

/* Like ternary_digits(). */
static float find_digits(const float *values, uint8_t digits[TERNARY_ELEMENTS])
{
    __m256 most = _mm256_setzero_ps();
    for (int i = 0; i < TERNARY_ELEMENTS; i += 8)
        most = _mm256_max_ps(magnitudes(_mm256_loadu_ps(values + i)), most);
    float largest = largest_of(most), inverse = block32_inverse(largest);
    for (int i = 0; i < TERNARY_ELEMENTS; i += 32) {
        struct values32 loaded = load_values(values + i);
        __m256i integers[4];
        for (int j = 0; j < 4; j++) {
            __m256i rounded = round_away(_mm256_mul_ps(loaded.part[j], _mm256_set1_ps(inverse)));
            integers[j] = _mm256_and_si256(_mm256_add_epi32(rounded, _mm256_set1_epi32(1)), _mm256_set1_epi32(3));
        }
        _mm256_storeu_si256((__m256i *)(void *)(digits + i), to_bytes(integers));
    }
    return largest;
}

static inline __m256i load_bytes(const uint8_t *bytes)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)bytes);
}

/* TQ2_0. */

enum { TQ2_D = 64, TQ2_BYTES = 66 };

encode_function tq2_0_encode_avx2, tq1_0_encode_avx2;
decode_function tq2_0_decode_avx2, tq1_0_decode_avx2;

void tq2_0_encode_avx2(const float *values, void *blocks, size_t n_blocks)
{
    uint8_t *block = blocks;
    for (size_t i = 0; i < n_blocks; i++, block += TQ2_BYTES, values += TERNARY_ELEMENTS) {
        uint8_t digits[TERNARY_ELEMENTS];
        f16_store(block + TQ2_D, find_digits(values, digits));
        for (int half = 0; half < 2; half++) {
            __m256i packed = _mm256_setzero_si256();
            for (int j = 3; j >= 0; j--)
                packed = _mm256_or_si256(_mm256_slli_epi16(packed, 2), load_bytes(digits + 128 * half + 32 * j));
            _mm256_storeu_si256((__m256i *)(void *)(block + 32 * half), packed);
        }
    }
}

void tq2_0_decode_avx2(const void *blocks, float *values, size_t n_blocks)
{
    const uint8_t *block = blocks;
    for (size_t i = 0; i < n_blocks; i++, block += TQ2_BYTES) {
        float d = load_scale(block + TQ2_D);
        for (int half = 0; half < 2; half++) {
            __m256i packed = load_bytes(block + 32 * half);
            for (int j = 0; j < 4; j++, values += 32, packed = _mm256_srli_epi16(packed, 2)) {
                __m256i digits = _mm256_and_si256(packed, _mm256_set1_epi8(3));
                store_scaled(values, _mm256_sub_epi8(digits, _mm256_set1_epi8(1)), d);
            }
        }
    }
}

/* TQ1_0: numbers of two bytes, sixteen at a time. */

enum { TQ1_QH = 48, TQ1_D = 52, TQ1_BYTES = 54 };

static inline __m256i load_words(const uint8_t *bytes)
{
    return _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(const void *)bytes));
}

/* Returns ceil(number * 256 / 243) of up to five digits each, `step` bytes apart. */
static inline __m128i pack_digits(const uint8_t *digits, int step)
{
    __m256i number = load_words(digits);
    for (int n = 1; n < 5; n++)
        number = _mm256_add_epi16(_mm256_mullo_epi16(number, _mm256_set1_epi16(3)), load_words(digits + n * step));
    number = _mm256_add_epi16(_mm256_slli_epi16(number, 8), _mm256_set1_epi16(242));
    number = _mm256_srli_epi16(_mm256_mulhi_epu16(number, _mm256_set1_epi16((short)34522)), 7);
    return _mm_packus_epi16(_mm256_castsi256_si128(number), _mm256_extracti128_si256(number, 1));
}

void tq1_0_encode_avx2(const float *values, void *blocks, size_t n_blocks)
{
    uint8_t *block = blocks;
    for (size_t i = 0; i < n_blocks; i++, block += TQ1_BYTES, values += TERNARY_ELEMENTS) {
        uint8_t digits[TERNARY_ELEMENTS], last[5 * 16] = {0};
        f16_store(block + TQ1_D, find_digits(values, digits));
        for (int j = 0; j < 32; j += 16)
            _mm_storeu_si128((__m128i *)(void *)(block + j), pack_digits(digits + j, 32));
        _mm_storeu_si128((__m128i *)(void *)(block + 32), pack_digits(digits + 160, 16));
        for (int n = 0; n < 4; n++)
            memcpy(last + 16 * n, digits + 240 + 4 * n, 4);
        int packed = _mm_cvtsi128_si32(pack_digits(last, 16));
        memcpy(block + TQ1_QH, &packed, sizeof packed);
    }
}

/* Returns digit n of sixteen bytes, minus 1. */
static inline __m128i unpack_digits(__m256i bytes, int n)
{
    static const short power[] = {1, 3, 9, 27, 81};
    __m256i fraction = _mm256_and_si256(_mm256_mullo_epi16(bytes, _mm256_set1_epi16(power[n])), _mm256_set1_epi16(255));
    __m256i digit = _mm256_srli_epi16(_mm256_mullo_epi16(fraction, _mm256_set1_epi16(3)), 8);
    digit = _mm256_sub_epi16(digit, _mm256_set1_epi16(1));
    return _mm_packs_epi16(_mm256_castsi256_si128(digit), _mm256_extracti128_si256(digit, 1));
}

static inline void store_digits(float *values, __m128i digits, float d)
{
    for (int i = 0; i < 16; i += 8, digits = _mm_srli_si128(digits, 8)) {
        __m256 numbers = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(digits));
        _mm256_storeu_ps(values + i, _mm256_mul_ps(numbers, _mm256_set1_ps(d)));
    }
}

void tq1_0_decode_avx2(const void *blocks, float *values, size_t n_blocks)
{
    const uint8_t *block = blocks;
    for (size_t i = 0; i < n_blocks; i++, block += TQ1_BYTES, values += TERNARY_ELEMENTS) {
        float d = load_scale(block + TQ1_D);
        __m256i first = load_words(block), second = load_words(block + 16), third = load_words(block + 32);
        for (int n = 0; n < 5; n++) {
            store_digits(values + 32 * n, unpack_digits(first, n), d);
            store_digits(values + 32 * n + 16, unpack_digits(second, n), d);
            store_digits(values + 160 + 16 * n, unpack_digits(third, n), d);
        }
        uint8_t last[16] = {0};
        float decoded[16];
        memcpy(last, block + TQ1_QH, 4);
        for (int n = 0; n < 4; n++) {
            store_digits(decoded, unpack_digits(load_words(last), n), d);
            memcpy(values + 240 + 4 * n, decoded, 4 * sizeof *decoded);
        }
    }
}
