#include "sources/archive/block_planes.h"

#include <string.h>

/* Q4_K, Q5_K: eight scales, then eight minimums. */
static void unpack_q4_k(const unsigned char *packed, unsigned char *scales)
{
    for (int i = 0; i < 4; i++) {
        scales[i] = packed[i] & 63;
        scales[8 + i] = packed[4 + i] & 63;
        scales[4 + i] = (unsigned char)((packed[8 + i] & 15) | packed[i] >> 6 << 4);
        scales[12 + i] = (unsigned char)(packed[8 + i] >> 4 | packed[4 + i] >> 6 << 4);
    }
}

static void pack_q4_k(const unsigned char *scales, unsigned char *packed)
{
    for (int i = 0; i < 4; i++) {
        packed[i] = (unsigned char)((scales[i] & 63) | scales[4 + i] >> 4 << 6);
        packed[4 + i] = (unsigned char)((scales[8 + i] & 63) | scales[12 + i] >> 4 << 6);
        packed[8 + i] = (unsigned char)((scales[4 + i] & 15) | scales[12 + i] << 4);
    }
}

static void unpack_q3_k(const unsigned char *packed, unsigned char *scales)
{
    for (int i = 0; i < 16; i++) {
        int low = packed[i % 8] >> 4 * (i / 8) & 15, high = packed[8 + i % 4] >> 2 * (i / 4) & 3;
        scales[i] = (unsigned char)(low | high << 4);
    }
}

static void pack_q3_k(const unsigned char *scales, unsigned char *packed)
{
    memset(packed, 0, 12);
    for (int i = 0; i < 16; i++) {
        packed[i % 8] |= (unsigned char)((scales[i] & 15) << 4 * (i / 8));
        packed[8 + i % 4] |= (unsigned char)((scales[i] >> 4 & 3) << 2 * (i / 4));
    }
}

/* Two bytes with the upper bits of eight scales, four with their lower bits. */
static void unpack_iq4_xs(const unsigned char *packed, unsigned char *scales)
{
    for (int i = 0; i < 8; i++) {
        int low = packed[2 + i / 2] >> 4 * (i % 2) & 15, high = packed[i / 4] >> 2 * (i % 4) & 3;
        scales[i] = (unsigned char)(low | high << 4);
    }
}

static void pack_iq4_xs(const unsigned char *scales, unsigned char *packed)
{
    memset(packed, 0, 6);
    for (int i = 0; i < 8; i++) {
        packed[2 + i / 2] |= (unsigned char)((scales[i] & 15) << 4 * (i % 2));
        packed[i / 4] |= (unsigned char)((scales[i] >> 4 & 3) << 2 * (i % 4));
    }
}

static const struct six_bits q4_k_bits = {unpack_q4_k, pack_q4_k, 16}, q3_k_bits = {unpack_q3_k, pack_q3_k, 16},
                             iq4_xs_bits = {unpack_iq4_xs, pack_iq4_xs, 8};

/* `n` F16 numbers that follow each other; bytes of scales; of codes. */
#define HALVES(offset, n)                                                                                              \
    {(offset), 2, (n)},                                                                                                \
    {                                                                                                                  \
        (offset) + 1, 2, (n)                                                                                           \
    }
#define SCALES(offset, count)                                                                                          \
    {                                                                                                                  \
        (offset), 1, (count)                                                                                           \
    }
#define SIX_BITS(offset, bits)                                                                                         \
    {                                                                                                                  \
        (offset), 1, 12, .six_bits = &(bits)                                                                           \
    }
#define CODES(offset, count)                                                                                           \
    {                                                                                                                  \
        (offset), 1, (count), .is_codes = true                                                                         \
    }

/* clang-format off */
static const struct {
    const struct dtype *dtype;
    struct block_plane planes[BLOCK_PLANES_MOST];
} rows[] = {
    {&q4_0_dtype, {HALVES(0, 1), CODES(2, 16)}},
    {&q4_1_dtype, {HALVES(0, 2), CODES(4, 16)}},
    {&q5_0_dtype, {HALVES(0, 1), CODES(2, 4), CODES(6, 16)}},
    {&q5_1_dtype, {HALVES(0, 2), CODES(4, 4), CODES(8, 16)}},
    {&q8_0_dtype, {HALVES(0, 1), CODES(2, 32)}},
    {&q8_1_dtype, {HALVES(0, 2), CODES(4, 32)}},
    {&q2_k_dtype, {HALVES(80, 2), SCALES(0, 16), CODES(16, 64)}},
    {&q3_k_dtype, {HALVES(108, 1), SIX_BITS(96, q3_k_bits), CODES(0, 32), CODES(32, 64)}},
    {&q4_k_dtype, {HALVES(0, 2), SIX_BITS(4, q4_k_bits), CODES(16, 128)}},
    {&q5_k_dtype, {HALVES(0, 2), SIX_BITS(4, q4_k_bits), CODES(16, 32), CODES(48, 128)}},
    {&q6_k_dtype, {HALVES(208, 1), SCALES(192, 16), CODES(0, 128), CODES(128, 64)}},
    {&iq4_nl_dtype, {HALVES(0, 1), CODES(2, 16)}},
    {&iq4_xs_dtype, {HALVES(0, 1), {2, 1, 6, .six_bits = &iq4_xs_bits}, CODES(8, 128)}},
    {&iq1_s_dtype, {HALVES(0, 1), CODES(2, 32), CODES(34, 16)}},
    {&iq1_m_dtype, {SCALES(48, 8), CODES(0, 32), CODES(32, 16)}},
    {&iq2_xxs_dtype, {HALVES(0, 1), CODES(2, 64)}},
    {&iq2_xs_dtype, {HALVES(0, 1), SCALES(66, 8), CODES(2, 64)}},
    {&iq2_s_dtype, {HALVES(0, 1), SCALES(74, 8), CODES(2, 32), CODES(34, 32), CODES(66, 8)}},
    {&iq3_xxs_dtype, {HALVES(0, 1), CODES(2, 64), CODES(66, 32)}},
    {&iq3_s_dtype, {HALVES(0, 1), SCALES(106, 4), CODES(2, 64), CODES(66, 8), CODES(74, 32)}},
    {&tq1_0_dtype, {HALVES(52, 1), CODES(0, 48), CODES(48, 4)}},
    {&tq2_0_dtype, {HALVES(64, 1), CODES(0, 64)}},
    {&mxfp4_dtype, {SCALES(0, 1), CODES(1, 16)}},
    {&nvfp4_dtype, {SCALES(0, 4), CODES(4, 32)}},
    {&q1_0_dtype, {HALVES(0, 1), CODES(2, 16)}},
    {&q2_0_dtype, {HALVES(0, 1), CODES(2, 16)}},
};
/* clang-format on */

const struct block_plane *block_planes_of(const struct dtype *dtype)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].dtype == dtype)
            return rows[i].planes;
    return NULL;
}

size_t block_plane_bytes(const struct block_plane *plane)
{
    return plane->six_bits != NULL ? plane->six_bits->n_scales : plane->count;
}

void block_plane_gather(const struct block_plane *plane, const unsigned char *blocks, size_t n_blocks,
                        size_t block_bytes, unsigned char *bytes)
{
    const unsigned char *field = blocks + plane->offset;
    for (size_t i = 0; i < n_blocks; i++, field += block_bytes, bytes += block_plane_bytes(plane)) {
        if (plane->six_bits != NULL)
            plane->six_bits->unpack(field, bytes);
        else if (plane->stride == 1)
            memcpy(bytes, field, plane->count);
        else
            for (size_t j = 0; j < plane->count; j++)
                bytes[j] = field[j * plane->stride];
    }
}

void block_plane_scatter(const struct block_plane *plane, const unsigned char *bytes, size_t n_blocks,
                         size_t block_bytes, unsigned char *blocks)
{
    unsigned char *field = blocks + plane->offset;
    for (size_t i = 0; i < n_blocks; i++, field += block_bytes, bytes += block_plane_bytes(plane)) {
        if (plane->six_bits != NULL)
            plane->six_bits->pack(bytes, field);
        else if (plane->stride == 1)
            memcpy(field, bytes, plane->count);
        else
            for (size_t j = 0; j < plane->count; j++)
                field[j * plane->stride] = bytes[j];
    }
}
