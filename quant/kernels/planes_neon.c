#include "quant/blocks/planes_loops.h"

#include <arm_neon.h>

enum { STEP = 16 }; /* numbers: a plane's vector */

/* A vector's shift by all bits of a number gives 0; negative shifts are to the right. */
static inline uint8x16_t rotate16(uint8x16_t bytes, unsigned left)
{
    uint16x8_t numbers = vreinterpretq_u16_u8(bytes);
    return vreinterpretq_u8_u16(vorrq_u16(vshlq_u16(numbers, vdupq_n_s16((int16_t)left)),
                                          vshlq_u16(numbers, vdupq_n_s16((int16_t)((int)left - 16)))));
}

static inline uint8x16_t rotate32(uint8x16_t bytes, unsigned left)
{
    uint32x4_t numbers = vreinterpretq_u32_u8(bytes);
    return vreinterpretq_u8_u32(
        vorrq_u32(vshlq_u32(numbers, vdupq_n_s32((int)left)), vshlq_u32(numbers, vdupq_n_s32((int)left - 32))));
}

static void split16_neon(const void *numbers, size_t n, unsigned rotation, unsigned char *planes)
{
    const unsigned char *from = numbers;
    size_t i = 0;
    for (; i + STEP <= n; i += STEP) {
        uint8x16_t a = rotate16(vld1q_u8(from + 2 * i), rotation);
        uint8x16_t b = rotate16(vld1q_u8(from + 2 * i + 16), rotation);
        vst1q_u8(planes + i, vuzp1q_u8(a, b));
        vst1q_u8(planes + n + i, vuzp2q_u8(a, b));
    }
    split16(from, i, n, rotation, planes);
}

static void join16_neon(const unsigned char *planes, size_t n, unsigned rotation, void *numbers)
{
    unsigned char *to = numbers;
    size_t i = 0;
    for (; i + STEP <= n; i += STEP) {
        uint8x16_t plane0 = vld1q_u8(planes + i), plane1 = vld1q_u8(planes + n + i);
        vst1q_u8(to + 2 * i, rotate16(vzip1q_u8(plane0, plane1), 16 - rotation));
        vst1q_u8(to + 2 * i + 16, rotate16(vzip2q_u8(plane0, plane1), 16 - rotation));
    }
    join16(planes, i, n, rotation, to);
}

static inline uint8x16_t evens16(uint8x16_t a, uint8x16_t b)
{
    return vreinterpretq_u8_u16(vuzp1q_u16(vreinterpretq_u16_u8(a), vreinterpretq_u16_u8(b)));
}

static inline uint8x16_t odds16(uint8x16_t a, uint8x16_t b)
{
    return vreinterpretq_u8_u16(vuzp2q_u16(vreinterpretq_u16_u8(a), vreinterpretq_u16_u8(b)));
}

static void split32_neon(const void *numbers, size_t n, unsigned rotation, unsigned char *planes)
{
    const unsigned char *from = numbers;
    size_t i = 0;
    for (; i + STEP <= n; i += STEP) {
        uint8x16_t part[4];
        for (size_t j = 0; j < 4; j++)
            part[j] = rotate32(vld1q_u8(from + 4 * i + 16 * j), rotation);
        uint8x16_t low_a = evens16(part[0], part[1]), low_b = evens16(part[2], part[3]);
        uint8x16_t high_a = odds16(part[0], part[1]), high_b = odds16(part[2], part[3]);
        vst1q_u8(planes + i, vuzp1q_u8(low_a, low_b));
        vst1q_u8(planes + n + i, vuzp2q_u8(low_a, low_b));
        vst1q_u8(planes + 2 * n + i, vuzp1q_u8(high_a, high_b));
        vst1q_u8(planes + 3 * n + i, vuzp2q_u8(high_a, high_b));
    }
    split32(from, i, n, rotation, planes);
}

/* Stores eight numbers, given their low and high halves. */
static inline void store_joined(unsigned char *to, uint8x16_t low, uint8x16_t high, unsigned rotation)
{
    uint16x8_t a = vreinterpretq_u16_u8(low), b = vreinterpretq_u16_u8(high);
    vst1q_u8(to, rotate32(vreinterpretq_u8_u16(vzip1q_u16(a, b)), 32 - rotation));
    vst1q_u8(to + 16, rotate32(vreinterpretq_u8_u16(vzip2q_u16(a, b)), 32 - rotation));
}

static void join32_neon(const unsigned char *planes, size_t n, unsigned rotation, void *numbers)
{
    unsigned char *to = numbers;
    size_t i = 0;
    for (; i + STEP <= n; i += STEP) {
        uint8x16_t p0 = vld1q_u8(planes + i), p1 = vld1q_u8(planes + n + i);
        uint8x16_t p2 = vld1q_u8(planes + 2 * n + i), p3 = vld1q_u8(planes + 3 * n + i);
        store_joined(to + 4 * i, vzip1q_u8(p0, p1), vzip1q_u8(p2, p3), rotation);
        store_joined(to + 4 * i + 32, vzip2q_u8(p0, p1), vzip2q_u8(p2, p3), rotation);
    }
    join32(planes, i, n, rotation, to);
}

const struct planes_kernels planes_neon[PLANES_WIDTHS] = {
    {split16_neon, join16_neon}, {split32_neon, join32_neon}, {split64_all, join64_all}};
