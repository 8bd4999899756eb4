/* IQ2 and IQ3 as data: the search for the points of a sub-block's groups is one for all five.
 *
 * The search tries some scales for each sub-block, snaps the levels that each gives to points of the grid, and keeps
 * the scale with the least weighted error. Its sums run in index order in F32: that is part of the formats. Source:
 * quantize_row_iq2_xxs_impl and its kin in ggml-quants.c of llama.cpp. */
#pragma once

#include "quant/encoders.h"
#include "quant/iq.h"
#include "quant/k_search.h"

enum { IQ_MOST_SUB_BLOCKS = 16, IQ_MOST_SUB_ELEMENTS = 32, IQ_MOST_POINTS = 64 };

/* The stored fields of a block beside its scale. A negligible sub-block, which is not searched, has points 0 and no
 * signs. */
struct iq_found {
    bool searched[IQ_MOST_SUB_BLOCKS];
    uint8_t shares[IQ_MOST_SUB_BLOCKS]; /* the scale of the sub-block is 2 * share + 1 of the block's */
    uint16_t points[IQ_MOST_POINTS];
    uint8_t signs[IQ_ELEMENTS / IQ_GROUP]; /* a bit is set where a value is negative; seven of them with even_signs */
};

/* A block as a decoder sees it: of each group of eight its scale, its one or two points, and all eight signs. */
struct iq_unpacked {
    float scales[IQ_ELEMENTS / IQ_GROUP];
    uint16_t points[IQ_MOST_POINTS];
    uint8_t signs[IQ_ELEMENTS / IQ_GROUP];
};

struct iq_format {
    enum grid_name grid;
    size_t block_bytes;
    int sub_elements;  /* 16 or 32 */
    bool even_signs;   /* seven bits are stored of eight signs */
    float negligible;  /* a sub-block of which nothing is as large is not searched; 0: one of zeros is not */
    bool positive;     /* the tries are around the scale that k_search_positive() finds, not around the plain one */
    bool redoes_all;   /* where a point is off the grid all are snapped again under the scale found, not those alone */
    bool begins_off;   /* so too where no try gave anything */
    bool keeps_points; /* where all scales are 0 though there are values, so small are they */
    int n_steps;       /* tries on either side of the scale they begin at */
    float step;
    float mean_factor; /* times the mean square of a block, in the weights of its values */
    float plain_share; /* how much of that is added to the squares that are the weights where no importance is known */
    float fudge;       /* times the stored scale of a block */

    uint8_t magnitudes[8]; /* of each level: value = scale * magnitude */
    void (*unpack)(const uint8_t *block, struct iq_unpacked *unpacked);

    /* Packs what was found; the block's scale is stored, all else is zero. */
    void (*pack)(const struct iq_found *found, uint8_t *block);
};

/* The level of a value, as tries have it. */
static inline int iq_level(float inverse, float value, int most)
{
    return clamp_int(nearest_int(0.5f * (inverse * value - 1)), 0, most);
}

/* The inverse of the scale of a try. */
static inline float iq_inverse(const struct iq_format *format, const struct grid *grid, int step, float begin)
{
    return ((float)(2 * grid->n_levels - 1) + (float)step * format->step) / begin;
}

/* `importance` may be NULL where the format allows it. */
typedef void iq_encode_function(const struct iq_format *format, const float *values, const float *importance,
                                uint8_t *blocks, size_t n_blocks);
iq_encode_function iq_encode, iq_encode_avx2, iq_encode_avx512;

/* The levels of a group: of one point of eight, or of two of four. */
static inline void iq_load_levels(const struct grid *grid, const uint16_t *points, int group, uint8_t levels[IQ_GROUP])
{
    if (grid->dimension == 8) {
        memcpy(levels, grid_point(grid, points[group]), 8);
        return;
    }
    memcpy(levels, grid_point(grid, points[2 * group]), 4);
    memcpy(levels + 4, grid_point(grid, points[2 * group + 1]), 4);
}

typedef void iq_decode_function(const struct iq_format *format, const uint8_t *blocks, float *values, size_t n_blocks);
iq_decode_function iq_decode, iq_decode_avx2;

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
        .kernels = its_kernels(name, name##_decode_avx2),                                                              \
    };
