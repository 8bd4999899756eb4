#include "quant/views/positions.h"

#include "base/checked.h"
#include "base/little_endian.h"
#include "quant/views/convert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SIDE = 4096 }; /* position embeddings of models have at most 128 */

struct bilinear {
    struct view view;
    const struct view *inner;
    uint64_t side, new_side, channels;
    float scale;
};

/* The two old positions around a new one, and their weights. */
struct place {
    uint64_t first, second;
    float weights[2];
};

static struct place place_of(const struct bilinear *bilinear, uint64_t at)
{
    float source = bilinear->scale * (float)at;
    uint64_t last = bilinear->side - 1, first = (uint64_t)source < last ? (uint64_t)source : last;
    float part = fminf(fmaxf(source - (float)first, 0), 1);
    return (struct place){first, first < last ? first + 1 : last, {1 - part, part}};
}

/* Reads channels [first, first + count) of one new vector. */
static bool read_vector(const struct bilinear *bilinear, uint64_t vector, uint64_t first, uint64_t count,
                        unsigned char *out, struct error *error)
{
    struct place row = place_of(bilinear, vector / bilinear->new_side),
                 column = place_of(bilinear, vector % bilinear->new_side);
    const uint64_t rows[] = {row.first, row.second}, columns[] = {column.first, column.second};
    float *corners = memory_alloc(4 * count * sizeof *corners), weights[4];
    bool read = true;
    for (unsigned i = 0; i < 4 && read; i++) {
        uint64_t from = (rows[i / 2] * bilinear->side + columns[i % 2]) * bilinear->channels + first;
        weights[i] = row.weights[i / 2] * column.weights[i % 2];
        read = convert_values(bilinear->inner, from, count, corners + i * count, error);
    }
    for (uint64_t i = 0; i < count && read; i++) {
        float sum = fmaf(corners[3 * count + i], weights[3], corners[2 * count + i] * weights[2]);
        sum = fmaf(corners[i], weights[0], fmaf(corners[count + i], weights[1], sum));
        memcpy(out + i * sizeof sum, &sum, sizeof sum);
    }
    free(corners);
    return read;
}

static bool bilinear_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    const struct bilinear *bilinear = (const struct bilinear *)view;
    unsigned char *to = out;
    while (count > 0) {
        uint64_t channel = first % bilinear->channels, n = bilinear->channels - channel;
        n = n < count ? n : count;
        if (!read_vector(bilinear, first / bilinear->channels, channel, n, to, error))
            return false;
        little_endian(to, n, sizeof(float));
        first += n;
        count -= n;
        to += n * sizeof(float);
    }
    return true;
}

/* Names whole rows of the old picture. */
static void bilinear_depends(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    const struct bilinear *bilinear = (const struct bilinear *)view;
    uint64_t new_row = bilinear->channels * bilinear->new_side, row = bilinear->channels * bilinear->side;
    uint64_t from = place_of(bilinear, first / new_row).first,
             last = place_of(bilinear, (first + count - 1) / new_row).second;
    convert_depends(bilinear->inner, encoding_of(&f32_dtype), from * row, (last - from + 1) * row, to);
}

static const struct view_op bilinear_op = {.name = "bilinear", .read = bilinear_read, .depends = bilinear_depends};

uint64_t bilinear_side(unsigned rank, const uint64_t *shape)
{
    uint64_t side = 1;
    if (rank != 3 || shape[0] != 1 || shape[1] == 0 || shape[2] == 0)
        return 0;
    while (side < MOST_SIDE && (side + 1) * (side + 1) <= shape[1])
        side++;
    return side * side == shape[1] ? side : 0;
}

const struct view *view_bilinear(struct arena *arena, const struct view *picture, uint64_t new_side)
{
    uint64_t side = bilinear_side(picture->rank, picture->shape), n_elements;
    if (side == 0 || new_side < 1 || new_side > MOST_SIDE ||
        !checked_multiply(new_side * new_side, picture->shape[2], &n_elements))
        return NULL;
    uint64_t channels = picture->shape[2];
    struct bilinear *bilinear = arena_alloc(arena, sizeof *bilinear);
    const uint64_t shape[] = {1, new_side * new_side, channels};
    view_init(&bilinear->view, arena, &bilinear_op, &f32_dtype, 3, shape);
    bilinear->inner = picture;
    bilinear->side = side;
    bilinear->new_side = new_side;
    bilinear->channels = channels;
    bilinear->scale = new_side > 1 ? (float)(side - 1) / (float)(new_side - 1) : 0;
    return &bilinear->view;
}
