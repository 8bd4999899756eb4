#include <immintrin.h>

#include "quant/blocks/planes_loops.h"

enum { STEP = 32 }; /* numbers: a plane's vector */

static inline __m256i load(const unsigned char *bytes)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)bytes);
}

static inline void store(unsigned char *bytes, __m256i vector)
{
    _mm256_storeu_si256((__m256i *)(void *)bytes, vector);
}

/* A vector's shift by all bits of a number gives 0. */
static inline __m256i rotate16(__m256i numbers, unsigned left)
{
    return _mm256_or_si256(_mm256_sll_epi16(numbers, _mm_cvtsi32_si128((int)left)),
                           _mm256_srl_epi16(numbers, _mm_cvtsi32_si128((int)(16 - left))));
}

static inline __m256i rotate32(__m256i numbers, unsigned left)
{
    return _mm256_or_si256(_mm256_sll_epi32(numbers, _mm_cvtsi32_si128((int)left)),
                           _mm256_srl_epi32(numbers, _mm_cvtsi32_si128((int)(32 - left))));
}

static void split16_avx2(const void *numbers, size_t n, unsigned rotation, unsigned char *planes)
{
    const unsigned char *from = numbers;
    const __m256i low = _mm256_set1_epi16(255);
    size_t i = 0;
    for (; i + STEP <= n; i += STEP) {
        __m256i a = rotate16(load(from + 2 * i), rotation), b = rotate16(load(from + 2 * i + 32), rotation);
        __m256i plane0 = _mm256_packus_epi16(_mm256_and_si256(a, low), _mm256_and_si256(b, low));
        __m256i plane1 = _mm256_packus_epi16(_mm256_srli_epi16(a, 8), _mm256_srli_epi16(b, 8));
        store(planes + i, _mm256_permute4x64_epi64(plane0, 0xD8));
        store(planes + n + i, _mm256_permute4x64_epi64(plane1, 0xD8));
    }
    split16(from, i, n, rotation, planes);
}

static void join16_avx2(const unsigned char *planes, size_t n, unsigned rotation, void *numbers)
{
    unsigned char *to = numbers;
    size_t i = 0;
    for (; i + STEP <= n; i += STEP) {
        __m256i plane0 = load(planes + i), plane1 = load(planes + n + i);
        __m256i a = _mm256_unpacklo_epi8(plane0, plane1), b = _mm256_unpackhi_epi8(plane0, plane1);
        store(to + 2 * i, rotate16(_mm256_permute2x128_si256(a, b, 0x20), 16 - rotation));
        store(to + 2 * i + 32, rotate16(_mm256_permute2x128_si256(a, b, 0x31), 16 - rotation));
    }
    join16(planes, i, n, rotation, to);
}

/* Returns the bytes of eight numbers, in each half the four lowest ones first. */
static inline __m256i by_bytes(const unsigned char *numbers, unsigned rotation)
{
    const __m256i order = _mm256_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15, 0, 4, 8, 12, 1, 5, 9,
                                           13, 2, 6, 10, 14, 3, 7, 11, 15);
    return _mm256_shuffle_epi8(rotate32(load(numbers), rotation), order);
}

static void split32_avx2(const void *numbers, size_t n, unsigned rotation, unsigned char *planes)
{
    const unsigned char *from = numbers;
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7); /* halves alternate */
    size_t i = 0;
    for (; i + STEP <= n; i += STEP) {
        __m256i a = by_bytes(from + 4 * i, rotation), b = by_bytes(from + 4 * i + 32, rotation);
        __m256i c = by_bytes(from + 4 * i + 64, rotation), d = by_bytes(from + 4 * i + 96, rotation);
        __m256i ab_low = _mm256_unpacklo_epi32(a, b), ab_high = _mm256_unpackhi_epi32(a, b);
        __m256i cd_low = _mm256_unpacklo_epi32(c, d), cd_high = _mm256_unpackhi_epi32(c, d);
        const __m256i plane[4] = {_mm256_unpacklo_epi64(ab_low, cd_low), _mm256_unpackhi_epi64(ab_low, cd_low),
                                  _mm256_unpacklo_epi64(ab_high, cd_high), _mm256_unpackhi_epi64(ab_high, cd_high)};
        for (size_t j = 0; j < 4; j++)
            store(planes + j * n + i, _mm256_permutevar8x32_epi32(plane[j], order));
    }
    split32(from, i, n, rotation, planes);
}

static void join32_avx2(const unsigned char *planes, size_t n, unsigned rotation, void *numbers)
{
    unsigned char *to = numbers;
    size_t i = 0;
    for (; i + STEP <= n; i += STEP) {
        __m256i p0 = load(planes + i), p1 = load(planes + n + i);
        __m256i p2 = load(planes + 2 * n + i), p3 = load(planes + 3 * n + i);
        __m256i low_a = _mm256_unpacklo_epi8(p0, p1), low_b = _mm256_unpackhi_epi8(p0, p1);
        __m256i high_a = _mm256_unpacklo_epi8(p2, p3), high_b = _mm256_unpackhi_epi8(p2, p3);
        __m256i a = _mm256_unpacklo_epi16(low_a, high_a), b = _mm256_unpackhi_epi16(low_a, high_a);
        __m256i c = _mm256_unpacklo_epi16(low_b, high_b), d = _mm256_unpackhi_epi16(low_b, high_b);
        store(to + 4 * i, rotate32(_mm256_permute2x128_si256(a, b, 0x20), 32 - rotation));
        store(to + 4 * i + 32, rotate32(_mm256_permute2x128_si256(c, d, 0x20), 32 - rotation));
        store(to + 4 * i + 64, rotate32(_mm256_permute2x128_si256(a, b, 0x31), 32 - rotation));
        store(to + 4 * i + 96, rotate32(_mm256_permute2x128_si256(c, d, 0x31), 32 - rotation));
    }
    join32(planes, i, n, rotation, to);
}

const struct planes_kernels planes_avx2[PLANES_WIDTHS] = {
    {split16_avx2, join16_avx2}, {split32_avx2, join32_avx2}, {split64_all, join64_all}};
