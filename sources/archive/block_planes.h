/* The fields of block types, each as one plane: the field of the first block, that of the second one, and so on.
 *
 * F16 scales are two planes, of their lower and upper bytes. Scales that a type packs into 6 bits, spread over several
 * bytes, are a byte each. The planes of scales and minimums come first, then those of codes. */
#pragma once

#include "quant/blocks/dtype.h"

enum { BLOCK_PLANES_MOST = 8 };

/* How scales of 6 bits are packed; any bytes unpack and pack to some bytes. */
struct six_bits {
    void (*unpack)(const unsigned char *packed, unsigned char *scales);
    void (*pack)(const unsigned char *scales, unsigned char *packed);
    uint8_t n_scales;
};

struct block_plane {
    uint8_t offset, stride, count;   /* bytes of a block: `count` of them, every `stride` bytes */
    bool is_codes;                   /* all planes after the first of codes are */
    const struct six_bits *six_bits; /* packed scales; NULL: bytes as they are */
};

/* Returns the planes of a type, up to the first with count 0; NULL: the type has none. */
const struct block_plane *block_planes_of(const struct dtype *dtype);

/* Returns the bytes of a block in that plane. */
size_t block_plane_bytes(const struct block_plane *plane);

/* Copies the field of each block of `block_bytes` bytes to the plane, or back. */
void block_plane_gather(const struct block_plane *plane, const unsigned char *blocks, size_t n_blocks,
                        size_t block_bytes, unsigned char *bytes);
void block_plane_scatter(const struct block_plane *plane, const unsigned char *bytes, size_t n_blocks,
                         size_t block_bytes, unsigned char *blocks);

/* Types that the table names. */
extern const struct dtype q4_1_dtype, q5_0_dtype, q5_1_dtype, q8_0_dtype, q8_1_dtype, q2_k_dtype, q3_k_dtype,
    q4_k_dtype, q5_k_dtype, q6_k_dtype, iq4_nl_dtype, iq4_xs_dtype, iq1_s_dtype, iq1_m_dtype, iq2_xxs_dtype,
    iq2_xs_dtype, iq2_s_dtype, iq3_xxs_dtype, iq3_s_dtype, tq1_0_dtype, tq2_0_dtype, mxfp4_dtype, nvfp4_dtype,
    q1_0_dtype, q2_0_dtype;
