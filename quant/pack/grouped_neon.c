/* Groups without dividing, as grouped_avx2.c explains: BF16 values as E4M3, E2M1 rounded down or integers, and
 * affine groups. Of the rest, and of what these leave to grouped_portable, compilers make vectors just as well. */
#include "quant/pack/grouped_kernels.h"

#include <arm_neon.h>
#include <math.h>
#include <stdbool.h>

enum { AT_ONCE = 16, MOST = 64 * AT_ONCE, LANES = 4, PARTS = AT_ONCE / LANES };

/* What the codes of one group are made with. */
struct group_terms {
    float reciprocal, summand;
    float low, high; /* limits of integers */
};

/* Makes 16 codes. Returns false, and stores anything, if the portable kernel has to make them. */
typedef bool encode_sixteen(const float *values, const struct group_terms *terms, uint8_t *codes);

/* Makes the codes of up to 64 times 16 values. Returns a bit for each sixteen that the portable kernel has to make
 * again: a call in this loop would cost it its registers. */
static inline uint64_t encode_sixteens(const float *values, size_t n, const struct group_terms *terms,
                                       encode_sixteen *encode, uint8_t *codes)
{
    uint64_t left = 0;
    for (size_t i = 0; i < n; i++)
        left |= (uint64_t)!encode(values + AT_ONCE * i, terms, codes + AT_ONCE * i) << i;
    return left;
}

/* Returns quotients whose upper halves are BF16, rounded: no quotient is half way between two. */
static inline uint32x4_t bf16_quotients(const float *values, float reciprocal)
{
    float32x4_t products = vmulq_n_f32(vld1q_f32(values), reciprocal);
    return vaddq_u32(vreinterpretq_u32_f32(products), vdupq_n_u32(0x8000));
}

/* Returns the upper halves of eight numbers. */
static inline uint16x8_t upper_halves(uint32x4_t first, uint32x4_t second)
{
    return vuzp2q_u16(vreinterpretq_u16_u32(first), vreinterpretq_u16_u32(second));
}

/* Returns eight quotients in BF16. */
static inline uint16x8_t eight_quotients(const float *values, float reciprocal)
{
    return upper_halves(bf16_quotients(values, reciprocal), bf16_quotients(values + LANES, reciprocal));
}

static inline uint16x8_t lower_halves(uint32x4_t first, uint32x4_t second)
{
    return vuzp1q_u16(vreinterpretq_u16_u32(first), vreinterpretq_u16_u32(second));
}

/* The codes of the magnitudes of eight numbers in BF16, of at least E4M3's least normal number. Sets what is not,
 * infinity and NaN to USUAL_E4M3 or more in `worst`. */
enum { LEAST_E4M3 = 0x3c80, LARGEST_E4M3 = 0x43e0, USUAL_E4M3 = 0x7f80 - LEAST_E4M3 };

static inline uint8x8_t magnitude_e4m3(uint16x8_t numbers, uint16x8_t *worst)
{
    enum { DROPPED = 4, FIRST = 8 << DROPPED, HALF = 7 };
    uint16x8_t magnitude = vandq_u16(numbers, vdupq_n_u16(0x7fff));
    uint16x8_t above = vsubq_u16(magnitude, vdupq_n_u16(LEAST_E4M3));
    *worst = vmaxq_u16(*worst, above);
    above = vminq_u16(above, vdupq_n_u16(LARGEST_E4M3 - LEAST_E4M3));
    uint16x8_t odd = vandq_u16(above, vdupq_n_u16(1 << DROPPED));
    return vshrn_n_u16(vsraq_n_u16(vaddq_u16(above, vdupq_n_u16(FIRST + HALF)), odd, DROPPED), DROPPED);
}

static inline bool encode_e4m3(const float *values, const struct group_terms *terms, uint8_t *codes)
{
    uint16x8_t low = eight_quotients(values, terms->reciprocal), worst = vdupq_n_u16(0);
    uint16x8_t high = eight_quotients(values + 2 * LANES, terms->reciprocal);
    uint8x16_t magnitudes = vcombine_u8(magnitude_e4m3(low, &worst), magnitude_e4m3(high, &worst));
    uint8x16_t signs = vuzp2q_u8(vreinterpretq_u8_u16(low), vreinterpretq_u8_u16(high));
    vst1q_u8(codes, vbslq_u8(vdupq_n_u8(0x80), signs, magnitudes));
    return vmaxvq_u16(worst) < USUAL_E4M3;
}

/* The codes of the magnitudes of eight numbers in BF16, half down: see place_e2m1() in grouped_avx2.c. */
static inline uint8x8_t magnitude_e2m1(uint16x8_t numbers, uint16x8_t *largest)
{
    enum { QUARTER = 0x3e80, THREE_QUARTERS = 0x3f40, ONE = 0x3f80, SIX = 0x40c0, DROPPED = 6 };
    uint16x8_t magnitude = vandq_u16(numbers, vdupq_n_u16(0x7fff));
    *largest = vmaxq_u16(*largest, magnitude);
    uint16x8_t above = vminq_u16(vqsubq_u16(magnitude, vdupq_n_u16(ONE)), vdupq_n_u16(SIX - ONE));
    uint16x8_t place = vshrq_n_u16(vaddq_u16(above, vdupq_n_u16((1 << (DROPPED - 1)) - 1)), DROPPED);
    place = vsubq_u16(place, vcgtq_u16(magnitude, vdupq_n_u16(QUARTER)));
    return vmovn_u16(vsubq_u16(place, vcgtq_u16(magnitude, vdupq_n_u16(THREE_QUARTERS))));
}

/* Fails if a quotient is far from all levels, or NaN. */
static inline bool encode_e2m1_down(const float *values, const struct group_terms *terms, uint8_t *codes)
{
    enum { ELEVEN = 0x4130 };
    uint16x8_t low = eight_quotients(values, terms->reciprocal), largest = vdupq_n_u16(0);
    uint16x8_t high = eight_quotients(values + 2 * LANES, terms->reciprocal);
    uint8x16_t places = vcombine_u8(magnitude_e2m1(low, &largest), magnitude_e2m1(high, &largest));
    uint8x16_t signs = vshrq_n_u8(vuzp2q_u8(vreinterpretq_u8_u16(low), vreinterpretq_u8_u16(high)), 4);
    signs = vandq_u8(vandq_u8(signs, vdupq_n_u8(8)), vtstq_u8(places, places));
    vst1q_u8(codes, vorrq_u8(places, signs));
    return vmaxvq_u16(largest) <= ELEVEN;
}

/* NaN stays NaN between the limits. */
static inline bool encode_integer(const float *values, const struct group_terms *terms, uint8_t *codes)
{
    const float32x4_t rounder = vdupq_n_f32(12582912); /* its last place is 1 */
    uint32x4_t sums[PARTS];
    for (int i = 0; i < PARTS; i++) {
        uint32x4_t bits = vandq_u32(bf16_quotients(values + LANES * i, terms->reciprocal), vdupq_n_u32(0xffff0000));
        float32x4_t limited = vminq_f32(vreinterpretq_f32_u32(bits), vdupq_n_f32(terms->high));
        limited = vmaxq_f32(limited, vdupq_n_f32(terms->low));
        sums[i] = vreinterpretq_u32_f32(vaddq_f32(limited, rounder));
    }
    uint16x8_t low = lower_halves(sums[0], sums[1]), high = lower_halves(sums[2], sums[3]);
    vst1q_u8(codes, vuzp1q_u8(vreinterpretq_u8_u16(low), vreinterpretq_u8_u16(high)));
    return true;
}

/* Makes the codes of one group. */
static inline void encode_group(const struct quotients *group, const float *values, size_t columns,
                                encode_sixteen *encode, quotients_function *portable, uint8_t *codes)
{
    const struct group_terms terms = {.reciprocal = 1 / group->divisors[0], .low = group->low, .high = group->high};
    float magnitude = fabsf(group->divisors[0]);
    bool usual = group->summands == NULL && magnitude > 0x1p-100f && magnitude < 0x1p100f;
    for (size_t n; usual && columns >= AT_ONCE; columns -= n, values += n, codes += n) {
        n = columns < MOST ? columns - columns % AT_ONCE : MOST;
        uint64_t left = encode_sixteens(values, n / AT_ONCE, &terms, encode, codes);
        for (; left != 0; left &= left - 1) {
            size_t at = AT_ONCE * (size_t)__builtin_ctzll(left);
            portable(group, values + at, 1, AT_ONCE, codes + at);
        }
    }
    if (columns > 0)
        portable(group, values, 1, columns, codes);
}

#define DEFINE_ENCODE(name, code, sixteen)                                                                             \
    void grouped_##name##_bf16_neon(const struct quotients *quotients, const float *values, size_t n, size_t columns,  \
                                    uint8_t *codes)                                                                    \
    {                                                                                                                  \
        struct quotients group = *quotients;                                                                           \
        for (size_t i = 0; i < n; i++, group.divisors++, values += columns, codes += columns) {                        \
            encode_group(&group, values, columns, sixteen, grouped_portable.encode[code][ROUND_BF16], codes);          \
            if (group.summands != NULL)                                                                                \
                group.summands++;                                                                                      \
        }                                                                                                              \
    }

DEFINE_ENCODE(e4m3, QUOTIENT_E4M3, encode_e4m3)
DEFINE_ENCODE(integer, QUOTIENT_INTEGER, encode_integer)
DEFINE_ENCODE(e2m1_down, QUOTIENT_E2M1_DOWN, encode_e2m1_down)
DEFINE_ENCODE(e2m1_exact, QUOTIENT_E2M1_DOWN_EXACTLY, encode_e2m1_down)

/* A sum in fixed point has the code in its upper half, and the fraction in its lower one. */
enum { FIRST_BITS = 0x4300, LARGEST_CODE = 0x7f, LARGEST_HIGH = 63, CLOSE = 3 };

#define FIRST 128.0f
#define UNIT  0x1p-16f

/* Fails if a code is uncertain: too close to the next one, far below zero, or made from NaN. */
static inline bool encode_steps(const float *values, const struct group_terms *terms, uint8_t *codes)
{
    const float32x4_t summand = vdupq_n_f32(terms->summand);
    uint8x8_t bytes[2];
    uint16x8_t least = vdupq_n_u16(UINT16_MAX), largest = vdupq_n_u16(0);
    for (int i = 0; i < 2; i++, values += 2 * LANES) {
        uint32x4_t first = vreinterpretq_u32_f32(vfmaq_n_f32(summand, vld1q_f32(values), terms->reciprocal));
        uint32x4_t second = vreinterpretq_u32_f32(vfmaq_n_f32(summand, vld1q_f32(values + LANES), terms->reciprocal));
        uint16x8_t code = vsubq_u16(upper_halves(first, second), vdupq_n_u16(FIRST_BITS));
        bytes[i] = vqmovun_s16(vreinterpretq_s16_u16(code));
        largest = vmaxq_u16(largest, code);
        least = vminq_u16(least, lower_halves(first, second));
    }
    vst1q_u8(codes, vminq_u8(vcombine_u8(bytes[0], bytes[1]), vdupq_n_u8((uint8_t)terms->high)));
    uint16x8_t far = vcgtq_u16(largest, vdupq_n_u16(LARGEST_CODE)), close = vcleq_u16(least, vdupq_n_u16(2 * CLOSE));
    return vmaxvq_u16(vorrq_u16(far, close)) == 0;
}

/* Makes the codes of one group. */
static inline void encode_affine(const float *values, size_t columns, float edge, float divisor, float high,
                                 uint8_t *codes)
{
    struct group_terms terms = {.reciprocal = 1 / divisor, .high = high};
    terms.summand = fmaf(-edge, terms.reciprocal, FIRST + 0.5f + CLOSE * UNIT);
    bool usual = high <= LARGEST_HIGH && fabsf(terms.summand) < 2 * FIRST;
    for (size_t n; usual && columns >= AT_ONCE; columns -= n, values += n, codes += n) {
        n = columns < MOST ? columns - columns % AT_ONCE : MOST;
        uint64_t left = encode_sixteens(values, n / AT_ONCE, &terms, encode_steps, codes);
        for (; left != 0; left &= left - 1) {
            size_t at = AT_ONCE * (size_t)__builtin_ctzll(left);
            grouped_portable.steps(values + at, 1, AT_ONCE, &edge, &divisor, high, codes + at);
        }
    }
    if (columns > 0)
        grouped_portable.steps(values, 1, columns, &edge, &divisor, high, codes);
}

void grouped_steps_neon(const float *values, size_t n, size_t columns, const float *edges, const float *divisors,
                        float high, uint8_t *codes)
{
    for (size_t group = 0; group < n; group++, values += columns, codes += columns)
        encode_affine(values, columns, edges[group], divisors[group], high, codes);
}
