/* IQ2 and IQ3 as data: all five formats share the search for the points of a sub-block's groups.
 *
 * The search tries some scales for each sub-block, snaps the levels under each to points of the grid, and keeps the
 * scale with the least weighted error. Its sums run in index order in F32, which determines the bits of files. Source:
 * quantize_row_iq2_xxs_impl and its kin in ggml-quants.c of llama.cpp. */
#pragma once

#include "quant/blocks/encoders.h"
#include "quant/blocks/grid.h"
#include "quant/blocks/k_search.h"

enum { IQ_MOST_SUB_BLOCKS = 16, IQ_MOST_SUB_ELEMENTS = 32, IQ_MOST_POINTS = 64 };

/* The stored fields of a block, except its scale. A negligible sub-block, which is not searched, has points 0 and no
 * signs. */
struct iq_found {
    bool searched[IQ_MOST_SUB_BLOCKS];
    uint8_t shares[IQ_MOST_SUB_BLOCKS]; /* a sub-block's scale is 2 * share + 1 times the block's */
    uint16_t points[IQ_MOST_POINTS];
    uint8_t signs[IQ_ELEMENTS / IQ_GROUP]; /* set bits mean negative; seven bits with even_signs */
};

/* A block for a decoder: for each group of eight its scale, its one or two points, and all eight signs. */
struct iq_unpacked {
    float scales[IQ_ELEMENTS / IQ_GROUP];
    uint16_t points[IQ_MOST_POINTS];
    uint8_t signs[IQ_ELEMENTS / IQ_GROUP];
};

struct iq_format {
    enum grid_name grid;
    size_t block_bytes;
    int sub_elements;  /* 16 or 32 */
    bool even_signs;   /* seven of eight signs are stored */
    float negligible;  /* sub-blocks of smaller magnitudes are not searched; 0: only those of zeros are not */
    bool positive;     /* the tries are around k_search_positive()'s scale, not the plain one */
    bool redoes_all;   /* if a group is off the grid, all are snapped again under the final scale, not it alone */
    bool begins_off;   /* likewise if no try has a gain */
    bool keeps_points; /* even if all scales are 0 because the values are small */
    int n_steps;       /* tries on either side of the first scale */
    float step;
    float mean_factor; /* factor of the block's mean square in the weights of its values */
    float plain_share; /* share of that added to the squares as weights without importance */
    float fudge;       /* factor for the stored scale of a block */

    uint8_t magnitudes[8]; /* the magnitude of each level: value = scale * magnitude */
    void (*unpack)(const uint8_t *block, struct iq_unpacked *unpacked);

    /* Packs the fields; the block's scale is stored already, all else is zero. */
    void (*pack)(const struct iq_found *found, uint8_t *block);
};

/* Returns the level of a value in a try. */
static inline int iq_level(float inverse, float value, int most)
{
    return clamp_int(nearest_int(0.5f * (inverse * value - 1)), 0, most);
}

/* Returns the inverse scale of a try. */
static inline float iq_inverse(const struct iq_format *format, const struct grid *grid, int step, float begin)
{
    return ((float)(2 * grid->n_levels - 1) + (float)step * format->step) / begin;
}

/* Encodes blocks. `importance` may be NULL if the format allows it. */
typedef void iq_encode_function(const struct iq_format *format, const float *values, const float *importance,
                                uint8_t *blocks, size_t n_blocks);
iq_encode_function iq_encode, iq_encode_neon, iq_encode_avx2, iq_encode_avx512;

typedef void iq_decode_function(const struct iq_format *format, const uint8_t *blocks, float *values, size_t n_blocks);
iq_decode_function iq_decode, iq_decode_neon, iq_decode_avx2;

/* Decodes a group: scale * magnitudes[level], negative where a bit of the signs is set. */
typedef void iq_group_function(const uint8_t magnitudes[8], const uint8_t levels[IQ_GROUP], uint8_t signs, float scale,
                               float *values);

/* Decodes blocks with a function for a group, which has one point of eight values or two of four. */
static inline void iq_decode_by(iq_group_function *decode_group, const struct iq_format *format, const uint8_t *block,
                                float *values, size_t n_blocks)
{
    const struct grid *grid = grid_of(format->grid);
    for (size_t b = 0; b < n_blocks; b++, block += format->block_bytes) {
        struct iq_unpacked unpacked;
        format->unpack(block, &unpacked);
        for (int i = 0; i < IQ_ELEMENTS / IQ_GROUP; i++, values += IQ_GROUP) {
            uint8_t levels[IQ_GROUP];
            if (grid->dimension == 8)
                memcpy(levels, grid_point(grid, unpacked.points[i]), 8);
            else {
                memcpy(levels, grid_point(grid, unpacked.points[2 * i]), 4);
                memcpy(levels + 4, grid_point(grid, unpacked.points[2 * i + 1]), 4);
            }
            decode_group(format->magnitudes, levels, unpacked.signs[i], unpacked.scales[i], values);
        }
    }
}

/* Defines NAME_decode with a suffix over NAME_format. */
#define DEFINE_IQ_DECODER(name, suffix)                                                                                \
    static void name##_decode##suffix(const void *blocks, float *values, size_t n_blocks)                              \
    {                                                                                                                  \
        iq_decode##suffix(&name##_format, blocks, values, n_blocks);                                                   \
    }
#if defined(__x86_64__)
#define DEFINE_IQ_DECODERS(name)                                                                                       \
    DEFINE_IQ_DECODER(name, )                                                                                          \
    DEFINE_IQ_DECODER(name, _avx2)
#elif defined(__aarch64__)
#define DEFINE_IQ_DECODERS(name)                                                                                       \
    DEFINE_IQ_DECODER(name, )                                                                                          \
    DEFINE_IQ_DECODER(name, _neon)
#else
#define DEFINE_IQ_DECODERS(name) DEFINE_IQ_DECODER(name, )
#endif

/* Defines NAME_dtype over NAME_format, with BLOCK_BYTES for a block; its kernels are ENCODER_KERNELS or
 * WEIGHTED_ENCODER_KERNELS. */
#define DEFINE_IQ_DTYPE(name, upper, id, its_kernels)                                                                  \
    DEFINE_IQ_DECODERS(name)                                                                                           \
    DEFINE_ENCODERS_BY_FUNCTION(name, iq_encode, &name##_format)                                                       \
    const struct dtype name##_dtype = {                                                                                \
        BLOCK_DTYPE(name, upper, id, IQ_ELEMENTS),                                                                     \
        .n_scales = 1,                                                                                                 \
        .encode_cost = 60000,                                                                                          \
        .kernels = its_kernels(name, name##_decode_neon, name##_decode_avx2),                                          \
    };
