/* Views of what belongs to positions. */
#include "quant/views/positions.h"

#include "base/checked.h"
#include "base/little_endian.h"
#include "quant/views/convert.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Rotary tables. */

struct rotary {
    struct view view;
    const float *frequencies;
    uint64_t count;
    float scale;
};

/* Subtracts quadrant * pi / 2, in three parts that together are more precise than F32. */
static float reduced(float angle, float quadrant)
{
    angle = fmaf(quadrant, -0x1.921fb0p+00f, angle);
    angle = fmaf(quadrant, -0x1.5110b4p-22f, angle);
    return fmaf(quadrant, -0x1.846988p-48f, angle);
}

/* Return cosine and sine from -pi / 4 to pi / 4. */
static float cosine_near_zero(float angle)
{
    float square = angle * angle, sum = 0x1.98e616p-16f;
    sum = fmaf(sum, square, -0x1.6c06dcp-10f);
    sum = fmaf(sum, square, 0x1.55553cp-05f);
    sum = fmaf(sum, square, -0.5f);
    return fmaf(sum, square, 1.0f);
}

static float sine_near_zero(float angle)
{
    float square = angle * angle, sum = 0x1.7d3bbcp-19f;
    sum = fmaf(sum, square, -0x1.a06bbap-13f);
    sum = fmaf(sum, square, 0x1.11119ap-07f);
    sum = fmaf(sum, square, -0x1.555556p-03f);
    return fmaf(sum * square, angle, angle);
}

/* Returns the sine of the angle plus `quarters` quarter turns. */
static float sine_of_turned(float angle, int quarters)
{
    static const float two_over_pi = 0x1.45f306p-1f, rounding = 0x1.8p+23f;
    float quadrant = angle * two_over_pi + rounding - rounding;
    float rest = reduced(angle, quadrant);
    unsigned quarter = (unsigned)((int)quadrant + quarters) & 3;
    float sine = (quarter & 1) != 0 ? cosine_near_zero(rest) : sine_near_zero(rest);
    return (quarter & 2) != 0 ? 0.0f - sine : sine;
}

float rotary_cos(float angle)
{
    return fabsf(angle) <= ROTARY_COS_MAX ? sine_of_turned(angle, 1) : cosf(angle);
}

float rotary_sin(float angle)
{
    return fabsf(angle) <= ROTARY_SIN_MAX ? sine_of_turned(angle, 0) : sinf(angle);
}

const float *rotary_frequencies(struct arena *arena, double base, const float *factors, uint64_t count)
{
    float *frequencies = arena_array(arena, count, sizeof *frequencies);
    for (uint64_t i = 0; i < count; i++)
        frequencies[i] = 1.0f / (factors[i] * (float)pow(base, (double)i / (double)count));
    return frequencies;
}

float rotary_scale(uint64_t positions, uint64_t trained)
{
    double scale = (double)positions / (double)trained;
    return scale <= 1 ? 1.0f : (float)sqrt(1 + log(scale) / log((double)trained));
}

static bool rotary_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    const struct rotary *rotary = (const struct rotary *)view;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t pair = (first + i) / 2;
        float angle = (float)(pair / rotary->count) * rotary->frequencies[pair % rotary->count];
        float value = ((first + i) % 2 == 0 ? rotary_cos(angle) : rotary_sin(angle)) * rotary->scale;
        memcpy((unsigned char *)out + i * sizeof value, &value, sizeof value);
    }
    little_endian(out, count, sizeof(float));
    return true;
}

static const struct view_op rotary_op = {.name = "rotary positions", .read = rotary_read};

const struct view *view_rotary(struct arena *arena, const float *frequencies, uint64_t count, uint64_t n_positions,
                               float scale)
{
    assert(count > 0 && count <= ROTARY_MAX_FREQUENCIES && n_positions <= ROTARY_MAX_POSITIONS);
    struct rotary *rotary = arena_alloc(arena, sizeof *rotary);
    view_init(&rotary->view, arena, &rotary_op, &f32_dtype, 2, (const uint64_t[]){1, n_positions * 2 * count});
    rotary->frequencies = frequencies;
    rotary->count = count;
    rotary->scale = scale;
    return &rotary->view;
}

/* Pictures. */

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

/* Differences from places. */

struct placed {
    struct view view;
    const struct view *inner;
    int times;
};

static bool placed_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    enum { PIECE = 1024 };
    const struct placed *placed = (const struct placed *)view;
    uint64_t values[PIECE];
    for (uint64_t done = 0; done < count;) {
        uint64_t n = count - done < PIECE ? count - done : PIECE;
        if (!view_read(placed->inner, first + done, n, values, error))
            return false;
        little_endian(values, n, sizeof *values);
        for (uint64_t i = 0; i < n; i++)
            values[i] += (uint64_t)placed->times * (first + done + i);
        little_endian(values, n, sizeof *values);
        memcpy((unsigned char *)out + done * sizeof *values, values, n * sizeof *values);
        done += n;
    }
    return true;
}

static void placed_depends(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    view_depends(((const struct placed *)view)->inner, first, count, to);
}

static const struct view_op placed_op = {.name = "add place", .read = placed_read, .depends = placed_depends};

const struct view *view_add_place(struct arena *arena, const struct view *view, int times)
{
    struct placed *placed = arena_alloc(arena, sizeof *placed);
    view_init_shared(&placed->view, &placed_op, view->dtype, view->rank, view->shape);
    placed->inner = view;
    placed->times = times;
    return &placed->view;
}
