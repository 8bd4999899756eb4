/* What follows from another tensor's values alone: no frame. If some bytes are others, a frame has the exclusive or of
 * computed and stored bytes. An infinity or a NaN counts as 0, since programs differ in what they make of it.
 *
 *     cast-TYPE                            rounded to the type, or widened
 *     ENGINE-BITS-VALUES-TYPE-codes        the codes of groups of so many values, as an engine quantizes them
 *     ENGINE-BITS-VALUES-TYPE-scale, -bias the numbers that it stores of each group, of TYPE, or scales in a byte
 *
 * The values of groups are rounded to TYPE first.
 *
 * MLX rounds to FP4 in one way on CPUs and in another on GPUs: there -0 keeps its sign, ties go to even codes, and all
 * is in F32 (`even`). */
#include "sources/archive/codings.h"

#include "quant/pack/bitsandbytes.h"
#include "quant/pack/grouped.h"
#include "sources/archive/frames.h"

#include <math.h>

extern const struct dtype u32_dtype;

struct coding_form {
    struct grouping grouping;
    enum group_part part;
    const struct dtype *numbers; /* that values are rounded to, and scales have */
};

static void cast(const struct coding *coding, const float *values, unsigned char *units, size_t n)
{
    dtype_kernels(coding->dtype).encode(values, units, n);
}

static void compute_groups(const struct coding *coding, const float *values, unsigned char *units, size_t n)
{
    enum { PIECE = 4096 /* values */ };
    const struct coding_form *form = coding->form;
    const struct kernels kernels = dtype_kernels(form->numbers);
    unsigned char numbers[PIECE * sizeof(float)];
    float rounded[PIECE];
    for (size_t done = 0, count; done < n; done += count) {
        count = n - done < PIECE / coding->unit_values ? n - done : PIECE / coding->unit_values;
        const size_t n_values = count * coding->unit_values;
        kernels.encode(values + done * coding->unit_values, numbers, n_values);
        kernels.decode(numbers, rounded, n_values);
        for (size_t i = 0; i < n_values; i++)
            rounded[i] = isfinite(rounded[i]) ? rounded[i] : 0;
        group_compute(&form->grouping, form->numbers, form->part, rounded, count, units + done * coding->unit_bytes);
    }
}

static void compute_nf4(const struct coding *coding, const float *values, unsigned char *units, size_t n)
{
    bnb_block_codes(bnb_nf4_levels, values, n, units);
}

static void compute_fp4(const struct coding *coding, const float *values, unsigned char *units, size_t n)
{
    bnb_block_codes(bnb_fp4_levels, values, n, units);
}

static void compute_maxima(const struct coding *coding, const float *values, unsigned char *units, size_t n)
{
    bnb_block_maxima(values, n, units);
}

static size_t bound(const struct coding *coding, size_t n_bytes)
{
    return frame_bound(n_bytes);
}

static bool compute(const struct coding *coding, struct coder *coder, const struct coding_chunk *chunk,
                    unsigned char *ret_bytes, struct error *error)
{
    float *values = coder_buffers(coder)->values;
    const size_t n_units = chunk->n_bytes / coding->unit_bytes, n = n_units * coding->unit_values;
    if (!chunk->input->read(chunk->input->context, chunk->first, n, values, error))
        return false;
    for (size_t i = 0; i < n; i++)
        values[i] = isfinite(values[i]) ? values[i] : 0;
    coding->compute(coding, values, ret_bytes, n_units);
    return true;
}

static bool encode(const struct coding *coding, struct coder *coder, const struct coding_chunk *chunk,
                   const unsigned char *bytes, unsigned char *out, size_t *ret_length, struct error *error)
{
    unsigned char *computed = coder_buffers(coder)->more;
    struct frames_out frames = {coder, out, out + bound(coding, chunk->n_bytes)};
    if (!compute(coding, coder, chunk, computed, error) ||
        !frame_write_changes(&frames, computed, bytes, chunk->n_bytes, error))
        return false;
    *ret_length = (size_t)(frames.at - out);
    return true;
}

static bool decode(const struct coding *coding, struct coder *coder, const struct coding_chunk *chunk,
                   const unsigned char *encoded, size_t length, unsigned char *bytes, struct error *error)
{
    struct frames_in frames = {coder, encoded, length};
    return compute(coding, coder, chunk, bytes, error) && frame_read_changes(&frames, bytes, chunk->n_bytes, error);
}

#define COMPUTED(of_name, values, bytes, of_type, by, ...)                                                             \
    {                                                                                                                  \
        .name = (of_name), .unit_bytes = (bytes), .unit_values = (values), .dtype = &(of_type),                        \
        .input = CODING_VALUES, .compute = (by), .bound = bound, .encode = encode, .decode = decode, __VA_ARGS__       \
    }

#define CAST(type, of_type, bytes) COMPUTED("cast-" type, 1, bytes, of_type, cast, .form = NULL)

#define FORM(...)                                                                                                      \
    .form = &(const struct coding_form)                                                                                \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }

#define MLX_GROUPS(n_bits, columns, type, of_type)                                                                     \
    COMPUTED("mlx-" #n_bits "-" #columns "-" type "-codes", columns, (n_bits) * (columns) / 8, u32_dtype,              \
             compute_groups, FORM({1, columns, SCALE_AFFINE, CODE_NATURAL, n_bits, n_bits}, GROUP_CODES, &(of_type))), \
        COMPUTED("mlx-" #n_bits "-" #columns "-" type "-scale", columns, 2, of_type, compute_groups,                   \
                 FORM({1, columns, SCALE_AFFINE, CODE_NATURAL, n_bits, n_bits}, GROUP_SCALES, &(of_type))),            \
        COMPUTED("mlx-" #n_bits "-" #columns "-" type "-bias", columns, 2, of_type, compute_groups,                    \
                 FORM({1, columns, SCALE_AFFINE, CODE_NATURAL, n_bits, n_bits}, GROUP_EDGES, &(of_type)))

#define MLX_TYPES(n_bits, columns)                                                                                     \
    MLX_GROUPS(n_bits, columns, "BF16", bf16_dtype), MLX_GROUPS(n_bits, columns, "F16", f16_dtype)

#define MLX(n_bits) MLX_TYPES(n_bits, 32), MLX_TYPES(n_bits, 64), MLX_TYPES(n_bits, 128)

#define INTEGERS(engine, scale, n_bits, columns, type, of_type)                                                        \
    COMPUTED(engine "-" #n_bits "-" #columns "-" type "-codes", columns, (n_bits) * (columns) / 8, i32_dtype,          \
             compute_groups, FORM({1, columns, scale, CODE_INTEGER, n_bits, n_bits, true}, GROUP_CODES, &(of_type))),  \
        COMPUTED(engine "-" #n_bits "-" #columns "-" type "-scale", columns, 2, of_type, compute_groups,               \
                 FORM({1, columns, scale, CODE_INTEGER, n_bits, n_bits, true}, GROUP_SCALES, &(of_type)))

#define INTEGERS_OF_TYPES(engine, scale, n_bits, columns)                                                              \
    INTEGERS(engine, scale, n_bits, columns, "BF16", bf16_dtype),                                                      \
        INTEGERS(engine, scale, n_bits, columns, "F16", f16_dtype)

#define INTEGERS_IN_GROUPS(columns)                                                                                    \
    INTEGERS_OF_TYPES("int", SCALE_SYMMETRIC, 4, columns), INTEGERS_OF_TYPES("int", SCALE_SYMMETRIC, 8, columns),      \
        INTEGERS_OF_TYPES("uint", SCALE_ASYMMETRIC, 4, columns)

#define FLOATS(engine, n_bits, columns, type, of_type, ...)                                                            \
    COMPUTED(engine "-" #n_bits "-" #columns "-" type "-codes", columns, (n_bits) * (columns) / 8, u32_dtype,          \
             compute_groups, FORM({1, columns, __VA_ARGS__, n_bits, n_bits}, GROUP_CODES, &(of_type))),                \
        COMPUTED(engine "-" #n_bits "-" #columns "-" type "-scale", columns, 1, u8_dtype, compute_groups,              \
                 FORM({1, columns, __VA_ARGS__, n_bits, n_bits}, GROUP_SCALES, &(of_type)))

#define FLOATS_OF_TYPES(engine, n_bits, columns, ...)                                                                  \
    FLOATS(engine, n_bits, columns, "BF16", bf16_dtype, __VA_ARGS__),                                                  \
        FLOATS(engine, n_bits, columns, "F16", f16_dtype, __VA_ARGS__),                                                \
        FLOATS(engine, n_bits, columns, "F32", f32_dtype, __VA_ARGS__)

const struct coding computed_codings[] = {
    CAST("F32", f32_dtype, 4),
    CAST("F16", f16_dtype, 2),
    CAST("BF16", bf16_dtype, 2),
    MLX(2),
    MLX(3),
    MLX(4),
    MLX(5),
    MLX(6),
    MLX(8),
    FLOATS_OF_TYPES("mxfp4", 4, 32, SCALE_ABOVE, CODE_E2M1_DOWN),
    FLOATS_OF_TYPES("mxfp8", 8, 32, SCALE_ABOVE, CODE_E4M3),
    FLOATS_OF_TYPES("nvfp4", 4, 16, SCALE_E4M3, CODE_E2M1_DOWN),
    FLOATS("mxfp4even", 4, 32, "F32", f32_dtype, SCALE_ABOVE, CODE_E2M1_SIGNED),
    FLOATS("nvfp4even", 4, 16, "F32", f32_dtype, SCALE_E4M3, CODE_E2M1_SIGNED),
    INTEGERS_IN_GROUPS(32),
    INTEGERS_IN_GROUPS(64),
    INTEGERS_IN_GROUPS(128),
    COMPUTED("nf4-4-64-F32-codes", BNB_BLOCK, BNB_BLOCK / 2, u8_dtype, compute_nf4, .form = NULL),
    COMPUTED("fp4-4-64-F32-codes", BNB_BLOCK, BNB_BLOCK / 2, u8_dtype, compute_fp4, .form = NULL),
    COMPUTED("nf4-4-64-F32-scale", BNB_BLOCK, 4, f32_dtype, compute_maxima, .form = NULL),
    {.name = NULL},
};
