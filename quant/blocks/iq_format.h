/* IQ2 and IQ3 as data: all five formats share the search for the points of a sub-block's groups.
 *
 * The search tries some scales for each sub-block, snaps the levels under each to points of the grid, and keeps the
 * scale with the least weighted error. Its sums run in index order in F32, which determines the bits of files. Source:
 * quantize_row_iq2_xxs_impl and its kin in ggml-quants.c of llama.cpp. */
#pragma once

#include "quant/blocks/encoders.h"
#include "quant/blocks/f16.h"
#include "quant/blocks/grid.h"
#include "quant/blocks/k_search.h"
#include "quant/blocks/weights.h"

#include <math.h>

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

/* Defines NAME_dtype over NAME_format; its kernels are ENCODER_KERNELS or
 * WEIGHTED_ENCODER_KERNELS. */
#define DEFINE_IQ_DTYPE(name, upper, id, bytes, its_kernels)                                                           \
    DEFINE_IQ_DECODERS(name)                                                                                           \
    DEFINE_ENCODERS_BY_FUNCTION(name, iq_encode, &name##_format)                                                       \
    const struct dtype name##_dtype = {                                                                                \
        BLOCK_DTYPE(name, upper, id, IQ_ELEMENTS, bytes),                                                              \
        .n_scales = 1,                                                                                                 \
        .encode_cost = 60000,                                                                                          \
        .kernels = its_kernels(name, name##_decode_neon, name##_decode_avx2),                                          \
    };

/* The encoder over the slow search: included by iq_format.c and iq_simd.h, so that all of it is compiled
 * for the instruction set. */

/* Finds the scale of a sub-block and the points of its groups, by the magnitudes of its values. The tries are around
 * the inverse scale (2 * n_levels - 1) / begin; `scale` is the result if no try has a gain. One magnitude of a group is
 * negative if the signs had to be made even; if it outweighs the rest, the result may be negative, too. */
typedef float iq_search_function(const struct iq_format *format, const struct grid_search *search,
                                 const float *magnitudes, const float *weights, float begin, float scale,
                                 uint16_t *points);

/* Finds the magnitudes of a group, and returns its signs. If the number of negative signs must be even, the sign of the
 * least important value may be flipped, which makes its magnitude negative. */
static inline unsigned take_signs(bool even_signs, const float *values, const float *weights, float *magnitudes)
{
    unsigned signs = 0, least = 0;
    for (unsigned i = 0; i < IQ_GROUP; i++) {
        bool negative = !(values[i] >= 0);
        magnitudes[i] = negative ? -values[i] : values[i];
        signs |= (unsigned)negative << i;
    }
    if (!even_signs || !__builtin_parity(signs))
        return signs;
    for (unsigned i = 1; i < IQ_GROUP; i++)
        if (weights[i] * values[i] * values[i] < weights[least] * values[least] * values[least])
            least = i;
    magnitudes[least] = -magnitudes[least];
    return signs ^ 1u << least;
}

static inline void find_weights(const struct iq_format *format, const float *values, const float *importance,
                                float *weights)
{
    float mean_square = format->mean_factor * sum_of_squares(values, IQ_ELEMENTS) / IQ_ELEMENTS;
    if (importance != NULL)
        importance_weights(values, importance, mean_square, IQ_ELEMENTS, weights);
    for (int i = 0; importance == NULL && i < IQ_ELEMENTS; i++)
        weights[i] = (format->plain_share != 0 ? format->plain_share * mean_square : 0) + values[i] * values[i];
}

static inline float search_sub_block(iq_search_function *search, const struct iq_format *format,
                                     const struct grid_search *tables, const float *values, const float *weights,
                                     uint16_t *points, uint8_t *signs, bool *ret_searched)
{
    float magnitudes[IQ_MOST_SUB_ELEMENTS] = {0}, n_levels = (float)tables->grid->n_levels;
    int n = format->sub_elements;
    uint8_t taken[IQ_MOST_SUB_ELEMENTS / IQ_GROUP], levels[IQ_MOST_SUB_ELEMENTS];
    for (int i = 0; i < n; i += IQ_GROUP)
        taken[i / IQ_GROUP] = (uint8_t)take_signs(format->even_signs, values + i, weights + i, magnitudes + i);
    float largest = magnitudes[0];
    for (int i = 1; i < n; i++)
        largest = magnitudes[i] > largest ? magnitudes[i] : largest;
    *ret_searched = format->negligible > 0 ? !(largest < format->negligible) : largest != 0;
    if (!*ret_searched)
        return 0;
    float begin = largest, scale = largest / (2 * n_levels - 1);
    if (format->positive) {
        scale = k_search_positive(n, (int)n_levels + 1, magnitudes, weights, levels);
        begin = scale * n_levels;
        *ret_searched = begin > 0;
        if (!*ret_searched)
            return 0;
    }
    scale = search(format, tables, magnitudes, weights, begin, scale, points);
    for (int i = 0; i < n / IQ_GROUP; i++)
        signs[i] = (uint8_t)((taken[i] ^ (scale < 0 ? 0xff : 0)) & (format->even_signs ? 0x7f : 0xff));
    return fabsf(scale);
}

static inline void encode_block(iq_search_function *search, const struct iq_format *format,
                                const struct grid_search *tables, const float *values, const float *importance,
                                uint8_t *block)
{
    struct iq_found found = {0};
    float weights[IQ_ELEMENTS], scales[IQ_MOST_SUB_BLOCKS], largest = 0;
    int n = format->sub_elements, n_sub = IQ_ELEMENTS / n;
    find_weights(format, values, importance, weights);
    for (int j = 0; j < n_sub; j++) {
        scales[j] = search_sub_block(search, format, tables, values + j * n, weights + j * n,
                                     found.points + j * n / (int)tables->grid->dimension,
                                     found.signs + j * n / IQ_GROUP, &found.searched[j]);
        largest = scales[j] > largest ? scales[j] : largest;
    }
    memset(block, 0, format->block_bytes);
    if (largest == 0 && !format->keeps_points)
        return;
    float d = largest / 31, inverse = 1 / d;
    f16_store(block, d * format->fudge);
    for (int j = 0; largest != 0 && j < n_sub; j++)
        found.shares[j] = (uint8_t)clamp_int(nearest_int(0.5f * (inverse * scales[j] - 1)), 0, 15);
    format->pack(&found, block);
}

static inline void encode_blocks(iq_search_function *search, const struct iq_format *format, const float *values,
                                 const float *importance, uint8_t *blocks, size_t n_blocks)
{
    const struct grid_search *tables = n_blocks != 0 ? grid_search_of(format->grid) : NULL;
    for (size_t i = 0; i < n_blocks; i++)
        encode_block(search, format, tables, values + i * IQ_ELEMENTS,
                     importance != NULL ? importance + i * IQ_ELEMENTS : NULL, blocks + i * format->block_bytes);
}
