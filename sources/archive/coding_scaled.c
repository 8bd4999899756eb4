/* Codes of values that were divided by scales: FP8, 8-bit integers and FP4, whose scales belong to rows, blocks, groups
 * or whole tensors.
 *
 *     ENGINE-BITS-VALUES-TYPE-codes
 *
 * Four frames have the planes of a scale in F32 for each run of so many values. The values, rounded to TYPE, are
 * divided by it, the quotients rounded to TYPE and to the nearest code, half to even. If some bytes are others, a last
 * frame has the exclusive or of computed and stored bytes. An infinity or a NaN counts as 0.
 *
 * The scale need not be the one that the engine stored elsewhere, only one that gives the same codes: it is found from
 * these, so that nothing has to be known of an engine. With a larger scale no code is larger, so halving finds it.
 * Neighbours have the same one where it exists: the runs of a row then take hardly more than one. */
#include "sources/archive/codings.h"

#include "base/little_endian.h"
#include "quant/pack/grouped_kernels.h"
#include "sources/archive/frames.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

extern const struct dtype i8_dtype, u32_dtype;

enum {
    MOST_RUN = 128,
    LEAST_RUN = 16,
    MOST_RUNS = CODING_CHUNK / LEAST_RUN,
    SCALE_BYTES = 4,
    INFINITE = 0x7f800000,
};

struct coding_form {
    const struct dtype *rounds_to;
    enum quotient_code code;
    unsigned magnitude; /* bits of a code without its sign; of integers those of -128, too */
};

static bool has_halves(const struct coding *coding)
{
    return coding->unit_bytes < coding->unit_values;
}

static void round_values(const struct coding *coding, float *values, size_t n)
{
    const struct dtype *type = coding->form->rounds_to;
    const struct kernels kernels = dtype_kernels(type);
    unsigned char numbers[MOST_RUN * sizeof(float)];
    if (type == &bf16_dtype)
        for (size_t i = 0; i < n; i++)
            values[i] = round_to_bf16(values[i]);
    for (size_t done = 0, count; type == &f16_dtype && done < n; done += count) {
        count = n - done < MOST_RUN ? n - done : MOST_RUN;
        kernels.encode(values + done, numbers, count);
        kernels.decode(numbers, values + done, count);
    }
}

static void prepare_values(const struct coding *coding, float *values, size_t n)
{
    round_values(coding, values, n);
    for (size_t i = 0; i < n; i++)
        values[i] = isfinite(values[i]) ? values[i] : 0;
}

/* Makes the codes of a run, one in each byte. */
static void encode_run(const struct coding *coding, const float *values, float scale, unsigned char *codes)
{
    static const float one = 1;
    const struct quotients quotients = {&one, NULL, -128, 127};
    const size_t n = coding->unit_values;
    float divided[MOST_RUN];
    for (size_t i = 0; i < n; i++)
        divided[i] = values[i] / scale;
    round_values(coding, divided, n);
    grouped_kernels()->encode[coding->form->code][ROUND_F32](&quotients, divided, 1, n, codes);
    for (size_t i = 0; has_halves(coding) && i < n; i++)
        codes[i] |= (unsigned char)(signbit(divided[i]) != 0) << 3; /* of zeros, too */
}

static void pack_run(const struct coding *coding, const unsigned char *codes, unsigned char *unit)
{
    if (!has_halves(coding))
        memcpy(unit, codes, coding->unit_bytes);
    for (size_t i = 0; has_halves(coding) && i < coding->unit_bytes; i++)
        unit[i] = (unsigned char)(codes[2 * i] | codes[2 * i + 1] << 4);
}

static void unpack_run(const struct coding *coding, const unsigned char *unit, unsigned char *codes)
{
    if (!has_halves(coding))
        memcpy(codes, unit, coding->unit_bytes);
    for (size_t i = 0; has_halves(coding) && i < coding->unit_bytes; i++) {
        codes[2 * i] = unit[i] & 15;
        codes[2 * i + 1] = unit[i] >> 4;
    }
}

/* Finding scales. */

static unsigned magnitude_of(const struct coding *coding, unsigned char code)
{
    return coding->form->code != QUOTIENT_INTEGER ? code & coding->form->magnitude : code < 128 ? code : 256u - code;
}

/* Returns the value of a code's magnitude; NaN: it has none. */
static float value_of(const struct coding *coding, unsigned magnitude)
{
    static const float halves[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
    const unsigned char byte = (unsigned char)magnitude;
    float value = (float)magnitude;
    if (coding->form->code == QUOTIENT_E4M3)
        dtype_kernels(coding->dtype).decode(&byte, &value, 1);
    return has_halves(coding) ? halves[magnitude] : value;
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Between these, as bits of F32, the scale lies of all runs that were looked at. */
struct bracket {
    uint32_t low, high;
};

static bool has_room(const struct bracket *bracket)
{
    return bracket->low < bracket->high && bracket->high - bracket->low > 1;
}

/* Returns the number in the bracket with the most zeros at the end. */
static float plainest(const struct bracket *bracket)
{
    enum { TOP = 31 };
    const uint32_t last = bracket->high - 1, below = ((uint32_t)1 << (TOP - __builtin_clz(bracket->low ^ last))) - 1;
    return of_bits(last & ~below);
}

enum { MAGNITUDES = 129 };

/* What a value with a code of each magnitude is multiplied with to get the least and the largest scale that may have
 * given it. */
struct factors {
    float low[MAGNITUDES], high[MAGNITUDES];
};

/* Finds them from the numbers midway between codes; quotients were rounded before. */
static void find_factors(const struct coding *coding, struct factors *factors)
{
    const float slack = coding->form->rounds_to == &f32_dtype   ? 0x1p-20f
                        : coding->form->rounds_to == &f16_dtype ? 0x1p-9f
                                                                : 0x1p-6f;
    const unsigned n = has_halves(coding) ? 8 : coding->form->code == QUOTIENT_INTEGER ? MAGNITUDES : 127;
    for (unsigned i = 0; i < MAGNITUDES; i++) {
        const bool is_number = i < n, is_last = i + 1 == n || (coding->form->code == QUOTIENT_INTEGER && i + 2 == n);
        const float least = i > 0 && is_number ? (value_of(coding, i - 1) + value_of(coding, i)) / 2 : 0,
                    most = is_number && !is_last ? (value_of(coding, i) + value_of(coding, i + 1)) / 2 : INFINITY;
        factors->low[i] = (1 - slack) / most;
        factors->high[i] = (1 + slack) / least;
    }
}

/* Narrows the bracket to the scales that may have given a run's codes. */
static void limit(const struct coding *coding, const struct factors *factors, const float *values,
                  const unsigned char *unit, struct bracket *bracket)
{
    unsigned char codes[MOST_RUN];
    float low = 0, high = INFINITY;
    unpack_run(coding, unit, codes);
    for (size_t i = 0; i < coding->unit_values; i++) {
        const unsigned magnitude = magnitude_of(coding, codes[i]);
        const float above = fabsf(values[i]) * factors->low[magnitude],
                    below = fabsf(values[i]) * factors->high[magnitude]; /* NaN: 0 says nothing about 0 */
        low = above > low ? above : low;
        high = below < high ? below : high;
    }
    const uint32_t least = bits_of(low), most = bits_of(high) < INFINITE ? bits_of(high) + 1 : INFINITE;
    bracket->low = least > bracket->low + 1 ? least - 1 : bracket->low;
    bracket->high = most < bracket->high ? most : bracket->high;
}

/* Narrows the bracket by a scale that does not fit the run. Returns false if the scale fits; a bracket with nothing in
 * it says that no scale does. */
static bool narrow(const struct coding *coding, const float *values, const unsigned char *unit, float scale,
                   struct bracket *bracket)
{
    unsigned char computed[MOST_RUN], stored[MOST_RUN];
    bool is_small = false, is_large = false;
    encode_run(coding, values, scale, computed);
    unpack_run(coding, unit, stored);
    for (size_t i = 0; i < coding->unit_values; i++) {
        const unsigned a = magnitude_of(coding, computed[i]), b = magnitude_of(coding, stored[i]);
        is_small |= a > b;
        is_large |= a < b;
    }
    if (is_small)
        bracket->low = bits_of(scale);
    if (is_large)
        bracket->high = bits_of(scale);
    return is_small || is_large;
}

static bool is_inside(float scale, const struct bracket *bracket)
{
    return bits_of(scale) > bracket->low && bits_of(scale) < bracket->high;
}

/* Finds one scale for as many runs as possible, from the first on. Returns how many: at least one, whose codes are
 * then others if none fits. A later run may exclude the scale of the earlier ones: it is kept while one for all is
 * looked for. */
static size_t find_scale(const struct coding *coding, const struct factors *factors, const float *values,
                         const unsigned char *units, size_t n, float *ret_scale)
{
    const struct bracket all = {0, INFINITE};
    struct bracket bracket = all;
    size_t fitting = 0, at = 0;
    limit(coding, factors, values, units, &bracket);
    bracket = has_room(&bracket) ? bracket : all;
    float scale = *ret_scale = plainest(&bracket);
    while (at < n && has_room(&bracket)) {
        const bool fits =
            !narrow(coding, values + at * coding->unit_values, units + at * coding->unit_bytes, scale, &bracket);
        at = fits ? at + 1 : 0;
        if (at > fitting) {
            fitting = at;
            *ret_scale = scale;
        }
        if (fits && at == fitting && at < n)
            limit(coding, factors, values + at * coding->unit_values, units + at * coding->unit_bytes, &bracket);
        if (!has_room(&bracket) || is_inside(scale, &bracket))
            continue;
        scale = plainest(&bracket);
        *ret_scale = fitting == 0 ? scale : *ret_scale;
        at = 0;
    }
    return fitting != 0 ? fitting : 1;
}

static void find_scales(const struct coding *coding, const float *values, const unsigned char *units, size_t n,
                        float *scales)
{
    struct factors factors;
    find_factors(coding, &factors);
    for (size_t i = 0, count; i < n; i += count) {
        count = find_scale(coding, &factors, values + i * coding->unit_values, units + i * coding->unit_bytes, n - i,
                           &scales[i]);
        for (size_t j = 1; j < count; j++)
            scales[i + j] = scales[i];
    }
}

static void compute(const struct coding *coding, const float *values, unsigned char *units, size_t n)
{
    const size_t n_values = coding->unit_values;
    float own[MOST_RUN], scale;
    unsigned char codes[MOST_RUN];
    for (size_t i = 0; i < n; i++) {
        memcpy(own, values + i * n_values, n_values * sizeof *own);
        prepare_values(coding, own, n_values);
        find_scales(coding, own, units + i * coding->unit_bytes, 1, &scale);
        encode_run(coding, own, scale, codes);
        pack_run(coding, codes, units + i * coding->unit_bytes);
    }
}

/* Chunks. */

static size_t runs_of(const struct coding *coding, size_t n_bytes)
{
    return n_bytes / coding->unit_bytes;
}

static size_t bound(const struct coding *coding, size_t n_bytes)
{
    return SCALE_BYTES * frame_bound(runs_of(coding, n_bytes)) + frame_bound(n_bytes);
}

static bool read_values(const struct coding *coding, struct coder *coder, const struct coding_chunk *chunk,
                        struct error *error)
{
    float *values = coder_buffers(coder)->values;
    const size_t n = runs_of(coding, chunk->n_bytes) * coding->unit_values;
    if (!chunk->input->read(chunk->input->context, chunk->first, n, values, error))
        return false;
    prepare_values(coding, values, n);
    return true;
}

static void encode_all(const struct coding *coding, const float *values, const float *scales, size_t n,
                       unsigned char *bytes)
{
    unsigned char codes[MOST_RUN];
    for (size_t i = 0; i < n; i++) {
        encode_run(coding, values + i * coding->unit_values, scales[i], codes);
        pack_run(coding, codes, bytes + i * coding->unit_bytes);
    }
}

static bool write_scales(struct frames_out *frames, const float *scales, size_t n, struct error *error)
{
    unsigned char plane[MOST_RUNS];
    for (unsigned k = 0; k < SCALE_BYTES; k++) {
        for (size_t i = 0; i < n; i++)
            plane[i] = (unsigned char)(bits_of(scales[i]) >> 8 * k);
        if (!frame_write(frames, FRAME_MATCHED, plane, n, error))
            return false;
    }
    return true;
}

static bool read_scales(struct frames_in *frames, float *scales, size_t n, struct error *error)
{
    unsigned char planes[SCALE_BYTES][MOST_RUNS];
    for (unsigned k = 0; k < SCALE_BYTES; k++)
        if (!frame_read(frames, planes[k], n, error))
            return false;
    for (size_t i = 0; i < n; i++) {
        scales[i] = of_bits((uint32_t)planes[3][i] << 24 | (uint32_t)planes[2][i] << 16 | (uint32_t)planes[1][i] << 8 |
                            planes[0][i]);
        if (!(scales[i] > 0 && isfinite(scales[i])))
            return error_set(error, "the scale of a run is no positive number");
    }
    return true;
}

static bool encode(const struct coding *coding, struct coder *coder, const struct coding_chunk *chunk,
                   const unsigned char *bytes, unsigned char *out, size_t *ret_length, struct error *error)
{
    const size_t n = runs_of(coding, chunk->n_bytes);
    const float *values = coder_buffers(coder)->values;
    unsigned char *computed = coder_buffers(coder)->more;
    struct frames_out frames = {coder, out, out + bound(coding, chunk->n_bytes)};
    float scales[MOST_RUNS];
    if (!read_values(coding, coder, chunk, error))
        return false;
    find_scales(coding, values, bytes, n, scales);
    if (!write_scales(&frames, scales, n, error))
        return false;
    encode_all(coding, values, scales, n, computed);
    if (!frame_write_changes(&frames, computed, bytes, chunk->n_bytes, error))
        return false;
    *ret_length = (size_t)(frames.at - out);
    return true;
}

static bool decode(const struct coding *coding, struct coder *coder, const struct coding_chunk *chunk,
                   const unsigned char *encoded, size_t length, unsigned char *bytes, struct error *error)
{
    const size_t n = runs_of(coding, chunk->n_bytes);
    struct frames_in frames = {coder, encoded, length};
    float scales[MOST_RUNS];
    if (!read_values(coding, coder, chunk, error) || !read_scales(&frames, scales, n, error))
        return false;
    encode_all(coding, coder_buffers(coder)->values, scales, n, bytes);
    return frame_read_changes(&frames, bytes, chunk->n_bytes, error);
}

#define SCALED(engine, bits, values, type, its_type, of_codes, quotient, magnitude_bits)                               \
    {                                                                                                                  \
        .name = engine "-" #bits "-" #values "-" type "-codes", .unit_bytes = (bits) * (values) / 8,                   \
        .unit_values = (values), .dtype = &(of_codes), .other = &u32_dtype, .input = CODING_VALUES,                    \
        .compute = compute, .bound = bound, .encode = encode, .decode = decode,                                        \
        .form = &(const struct coding_form){&(its_type), quotient, magnitude_bits},                                    \
    }

#define TYPES(engine, bits, values, ...)                                                                               \
    SCALED(engine, bits, values, "BF16", bf16_dtype, __VA_ARGS__),                                                     \
        SCALED(engine, bits, values, "F32", f32_dtype, __VA_ARGS__),                                                   \
        SCALED(engine, bits, values, "F16", f16_dtype, __VA_ARGS__)

const struct coding scaled_codings[] = {
    TYPES("e4m3", 8, 128, f8_e4m3_dtype, QUOTIENT_E4M3, 0x7f),
    TYPES("e4m3", 8, 32, f8_e4m3_dtype, QUOTIENT_E4M3, 0x7f),
    TYPES("i8", 8, 128, i8_dtype, QUOTIENT_INTEGER, 0),
    TYPES("i8", 8, 32, i8_dtype, QUOTIENT_INTEGER, 0),
    TYPES("e2m1", 4, 32, u8_dtype, QUOTIENT_E2M1, 7),
    TYPES("e2m1", 4, 16, u8_dtype, QUOTIENT_E2M1, 7),
    {.name = NULL},
};
