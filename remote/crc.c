#include "remote/crc.h"

#include <zlib.h>

#if defined(__x86_64__)
#include <immintrin.h>

enum { LANES = 4, LANE = 16, STEP = LANES * LANE };

#define CARRYLESS __attribute__((target("pclmul,sse2")))

/* Moves a lane forward to the bytes of `next`. The keys are x^(n + 32) and x^(n - 32) modulo the polynomial, reflected,
 * for a distance of n bits. */
CARRYLESS static inline __m128i fold(__m128i lane, __m128i keys, __m128i next)
{
    __m128i low = _mm_clmulepi64_si128(lane, keys, 0x00), high = _mm_clmulepi64_si128(lane, keys, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

CARRYLESS static inline __m128i load(const unsigned char *bytes)
{
    return _mm_loadu_si128((const __m128i *)bytes);
}

/* Folds the bytes into one lane, which has their CRC, and leaves that to zlib. Source: Gopal and others, Fast CRC
 * Computation for Generic Polynomials Using PCLMULQDQ Instruction, Intel, 2009. */
CARRYLESS static uint32_t crc_folded(const unsigned char *bytes, size_t length)
{
    const __m128i step_keys = _mm_set_epi64x(0x1c6e41596, 0x154442bd4); /* n = 512 */
    const __m128i lane_keys = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0); /* n = 128 */
    unsigned char left[LANE];
    __m128i lanes[LANES];
    for (int i = 0; i < LANES; i++)
        lanes[i] = load(bytes + i * LANE);
    lanes[0] = _mm_xor_si128(lanes[0], _mm_cvtsi32_si128(-1));
    for (bytes += STEP, length -= STEP; length >= STEP; bytes += STEP, length -= STEP)
        for (int i = 0; i < LANES; i++)
            lanes[i] = fold(lanes[i], step_keys, load(bytes + i * LANE));
    for (int i = 1; i < LANES; i++)
        lanes[i] = fold(lanes[i - 1], lane_keys, lanes[i]);
    _mm_storeu_si128((__m128i *)left, lanes[LANES - 1]);
    return (uint32_t)crc32(crc32(UINT32_MAX, left, LANE), bytes, (unsigned)length);
}

#endif

uint32_t crc_of(const void *bytes, size_t length)
{
#if defined(__x86_64__)
    if (length >= STEP && __builtin_cpu_supports("pclmul"))
        return crc_folded(bytes, length);
#endif
    return (uint32_t)crc32(0, bytes, (unsigned)length);
}
