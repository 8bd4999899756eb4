#include "quant/views/positions.h"

#include "base/little_endian.h"

#include <assert.h>
#include <math.h>
#include <string.h>

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
