#include "models/engines/mlx_tensors.h"

#include "models/packings/packed.h"
#include "quant/pack/block_groups.h"
#include "quant/views/block_views.h"
#include "quant/views/convert.h"
#include "quant/views/dependencies.h"
#include "quant/views/unpack.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The dtypes of parts: a block is what a part has of one group. */

static void decode_nothing(const void *blocks, float *values, size_t n_blocks)
{
    /* only the shape of a part in F32 counts */
}

#define UNIT(n_columns, n_bytes)                                                                                       \
    {                                                                                                                  \
        .name = "group", .kind = DTYPE_BLOCK, .block_elements = (n_columns), .block_bytes = (n_bytes),                 \
        .ggml_type = GGML_TYPE_NONE, .kernels[CPU_PORTABLE] = {                                                        \
            .decode = decode_nothing                                                                                   \
        }                                                                                                              \
    }
#define CODES(n)                                                                                                       \
    {                                                                                                                  \
        UNIT(n, n / 8 * 2), UNIT(n, n / 8 * 3), UNIT(n, n / 8 * 4), UNIT(n, n / 8 * 5), UNIT(n, n / 8 * 6), UNIT(n, n) \
    }
#define NUMBERS(n)                                                                                                     \
    {                                                                                                                  \
        UNIT(n, 1), UNIT(n, 2), UNIT(n, 2), UNIT(n, 4)                                                                 \
    }
enum { COLUMNS = 4, BITS = 6, TYPES = 4 };
static const uint8_t all_bits[BITS] = {2, 3, 4, 5, 6, 8};
static const struct dtype *const all_types[TYPES] = {&u8_dtype, &f16_dtype, &bf16_dtype, &f32_dtype};
static const uint16_t all_columns[COLUMNS] = {128, 64, 32, 16};
static const struct dtype code_units[COLUMNS][BITS] = {CODES(128), CODES(64), CODES(32), CODES(16)};
static const struct dtype number_units[COLUMNS][TYPES] = {NUMBERS(128), NUMBERS(64), NUMBERS(32), NUMBERS(16)};

static unsigned index_of_columns(unsigned columns)
{
    unsigned i = 0;
    while (all_columns[i] != columns)
        i++;
    return i;
}

/* Returns the dtype for codes of these bits; NULL if MLX has none. */
static const struct dtype *code_unit(unsigned columns, unsigned bits)
{
    for (size_t i = 0; i < BITS; i++)
        if (all_bits[i] == bits)
            return &code_units[index_of_columns(columns)][i];
    return NULL;
}

static const struct dtype *number_unit(unsigned columns, const struct dtype *type)
{
    for (size_t i = 0; i < TYPES; i++)
        if (all_types[i] == type)
            return &number_units[index_of_columns(columns)][i];
    return NULL;
}

/* Parts of a weight. */

#define FACTOR_UNIT 2688.0f /* the largest E2M1 times the largest E4M3: MLX divides its factor by it */

struct part {
    struct view view;
    enum mlx_part part;
    uint16_t columns;         /* of a group */
    uint8_t bits;             /* of a code */
    const struct dtype *type; /* of a number */
    float folded;             /* into E4M3 scales, a power of 2 */
    float global;             /* MLX's factor: the scales' times MLX_FACTOR_UNIT */

    /* the source: blocks, or groups, with which `n_columns` make a row */
    const struct view *blocks;
    const struct block_groups *of_blocks;
    const struct code_groups *groups;
    uint64_t n_columns;
};

static void pack(const uint8_t *codes, size_t n, unsigned bits, uint8_t *out)
{
    uint32_t pending = 0;
    unsigned n_pending = 0;
    for (size_t i = 0; i < n; i++) {
        pending |= (uint32_t)codes[i] << n_pending;
        for (n_pending += bits; n_pending >= 8; n_pending -= 8, pending >>= 8)
            *out++ = (uint8_t)pending;
    }
}

/* Stores numbers in the part's type; fails if one is not finite there, since MLX's product with it would be another. */
static bool store_numbers(const struct part *part, const float *numbers, size_t n, uint8_t *out, struct error *error)
{
    if (part->type == &u8_dtype) {
        for (size_t i = 0; i < n; i++)
            out[i] = (uint8_t)numbers[i];
        return true;
    }
    struct kernels kernels = dtype_kernels(part->type);
    kernels.encode(numbers, out, n);
    for (size_t i = 0; i < n; i++) {
        float stored;
        kernels.decode(out + i * part->type->block_bytes, &stored, 1);
        if (!isfinite(stored))
            return error_set(error, "a group has the %s %g, which %s cannot hold; mlx/plain has the weight's values",
                             part->part == MLX_SCALES ? "scale" : "bias", (double)numbers[i], part->type->name);
    }
    return true;
}

/* Multiplies E4M3 scales; reports whether all products are E4M3, too. */
static bool fold_factor(float factor, uint8_t *scales, size_t n)
{
    enum { CODES = 256, NONE = CODES };
    uint8_t codes[CODES];
    float numbers[CODES];
    uint16_t products[CODES];
    for (unsigned i = 0; i < CODES; i++)
        codes[i] = (uint8_t)i;
    dtype_kernels(&f8_e4m3_dtype).decode(codes, numbers, CODES);
    for (unsigned i = 0; i < CODES; i++) {
        products[i] = NONE;
        for (unsigned k = CODES; k-- > 0;) /* so that 0 is positive */
            if (numbers[k] == numbers[i] * factor)
                products[i] = (uint16_t)k;
    }
    bool is_exact = true;
    for (size_t i = 0; i < n; i++) {
        is_exact &= products[scales[i]] != NONE;
        scales[i] = (uint8_t)products[scales[i]];
    }
    return is_exact;
}

/* Parts of blocks. */

enum { BLOCKS_AT_ONCE = 64 };

static bool put_block(const struct part *part, const uint8_t *block, uint8_t *out, struct error *error)
{
    float numbers[2][GROUPS_OF_BLOCK_MAX] = {{0}};
    uint8_t codes[BLOCK_GROUPS_ELEMENTS_MAX];
    unsigned n_elements = part->blocks->dtype->block_elements;
    if (part->part == MLX_CODES) {
        part->of_blocks->codes(part->of_blocks, block, codes);
        pack(codes, n_elements, part->bits, out);
        return true;
    }
    part->of_blocks->numbers(part->of_blocks, block, numbers[0], numbers[1]);
    return store_numbers(part, numbers[part->part == MLX_BIASES], n_elements / part->columns, out, error);
}

static uint64_t groups_of_block(const struct part *part)
{
    return part->blocks->dtype->block_elements / part->columns;
}

/* Reads the groups [first, first + count) of one block. */
static bool read_within(const struct part *part, const uint8_t *block, uint64_t first, uint64_t count, uint8_t *out,
                        struct error *error)
{
    uint8_t whole[BLOCK_GROUPS_ELEMENTS_MAX];
    size_t size = part->view.dtype->block_bytes;
    if (count == groups_of_block(part))
        return put_block(part, block, out, error);
    if (!put_block(part, block, whole, error))
        return false;
    memcpy(out, whole + first * size, count * size);
    return true;
}

static bool read_of_blocks(const struct part *part, uint64_t first, uint64_t count, uint8_t *out, struct error *error)
{
    uint64_t per_block = groups_of_block(part), end = first + count, n_bytes = part->blocks->dtype->block_bytes;
    uint64_t n_blocks = part->blocks->scattered ? (end - 1) / per_block - first / per_block + 1 : BLOCKS_AT_ONCE;
    uint8_t *blocks = memory_alloc(n_blocks * n_bytes);
    bool good = true;
    while (good && first < end) {
        uint64_t block = first / per_block, last = (end - 1) / per_block;
        uint64_t n = last - block + 1 < n_blocks ? last - block + 1 : n_blocks;
        good = view_read(part->blocks, block, n, blocks, error);
        for (uint64_t i = 0; good && i < n; i++) {
            uint64_t within = first % per_block,
                     left = per_block - within < end - first ? per_block - within : end - first;
            good = read_within(part, blocks + i * n_bytes, within, left, out, error);
            out += left * part->view.dtype->block_bytes;
            first += left;
        }
    }
    free(blocks);
    return good;
}

/* Parts of groups. */

enum { GROUPS_AT_ONCE = 512 };

static bool read_codes(const struct part *part, uint64_t first, uint64_t count, uint8_t *out, struct error *error)
{
    const struct view *from = part->groups->codes;
    uint64_t most = from->scattered ? count : GROUPS_AT_ONCE;
    uint8_t *codes = memory_alloc(most * part->columns);
    bool good = true;
    for (uint64_t n; good && count > 0; count -= n, first += n, out += n * part->view.dtype->block_bytes) {
        n = count < most ? count : most;
        good = view_read(from, first * part->columns, n * part->columns, codes, error);
        pack(codes, n * part->columns, part->bits, out);
    }
    free(codes);
    return good;
}

/* Rows of stored numbers that cover some groups of a part. */
struct rows {
    uint64_t first, count, n_groups; /* of a row, as stored */
};

static struct rows rows_of(const struct part *part, uint64_t first, uint64_t count)
{
    uint64_t per_row = part->n_columns / part->columns, row = first / per_row;
    return (struct rows){row, (first + count - 1) / per_row - row + 1, view_row_elements(part->groups->scales)};
}

/* Gets the number of each stored group: a scale, or a bias. */
static bool read_numbers(const struct part *part, const struct rows *rows, float *numbers, struct error *error)
{
    const struct code_groups *groups = part->groups;
    uint64_t n = rows->count * rows->n_groups, at = rows->first * rows->n_groups;
    if (part->part == MLX_BIASES && groups->biases != NULL)
        return convert_values(groups->biases, at, n, numbers, error);
    if (!convert_values(groups->scales, at, n, numbers, error))
        return false;
    if (part->part == MLX_SCALES)
        return true;
    float *zeros = memory_alloc(n * sizeof *zeros), middle = (float)(1u << (groups->bits - 1));
    bool good = groups->zeros == NULL || convert_values(groups->zeros, at, n, zeros, error);
    for (uint64_t i = 0; good && i < n; i++)
        numbers[i] *= -(groups->zeros != NULL ? zeros[i] : middle);
    free(zeros);
    return good;
}

static bool read_numbers_of_groups(const struct part *part, uint64_t first, uint64_t count, uint8_t *out,
                                   struct error *error)
{
    uint64_t per_row = part->n_columns / part->columns;
    struct rows rows = rows_of(part, first, count);
    uint64_t n_stored = rows.count * rows.n_groups;
    float *stored = memory_alloc((n_stored + count) * sizeof *stored), *numbers = stored + n_stored;
    bool good = read_numbers(part, &rows, stored, error);
    for (uint64_t i = 0; good && i < count; i++) {
        uint64_t row = (first + i) / per_row - rows.first, column = (first + i) % per_row * part->columns;
        numbers[i] = stored[row * rows.n_groups + column / part->groups->group_size];
    }
    good = good && store_numbers(part, numbers, count, out, error);
    free(stored);
    if (good && part->folded != 1 && !fold_factor(part->folded, out, count))
        return error_set(error, "a scale times %g, the factor of the weight, is no E4M3 number", (double)part->folded);
    return good;
}

static bool read_factors(const struct part *part, uint64_t count, uint8_t *out)
{
    for (uint64_t i = 0; i < count; i++)
        dtype_kernels(&f32_dtype).encode(&part->global, out + i * sizeof part->global, 1);
    return true;
}

static bool part_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    const struct part *part = (const struct part *)view;
    if (part->part == MLX_FACTORS)
        return read_factors(part, count, out);
    if (part->blocks != NULL)
        return read_of_blocks(part, first, count, out, error);
    return part->part == MLX_CODES ? read_codes(part, first, count, out, error)
                                   : read_numbers_of_groups(part, first, count, out, error);
}

static void part_depends(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    const struct part *part = (const struct part *)view;
    const struct code_groups *groups = part->groups;
    if (part->part == MLX_FACTORS)
        return; /* it has been read */
    if (part->blocks != NULL) {
        uint64_t per_block = groups_of_block(part), block = first / per_block;
        view_depends(part->blocks, block, (first + count - 1) / per_block - block + 1, to);
        return;
    }
    if (part->part == MLX_CODES) {
        view_depends(groups->codes, first * part->columns, count * part->columns, to);
        return;
    }
    struct rows rows = rows_of(part, first, count);
    bool has_biases = part->part == MLX_BIASES && groups->biases != NULL;
    const struct view *of_rows[] = {has_biases ? groups->biases : groups->scales,
                                    part->part == MLX_BIASES && !has_biases ? groups->zeros : NULL};
    for (size_t i = 0; i < sizeof of_rows / sizeof *of_rows; i++)
        if (of_rows[i] != NULL)
            view_depends(of_rows[i], rows.first * rows.n_groups, rows.count * rows.n_groups, to);
}

static const struct view_op part_op = {.name = "part of MLX", .read = part_read, .depends = part_depends};

static const struct view *make_part(struct arena *arena, const struct view *weight, const struct part *described)
{
    struct part *part = arena_copy(arena, described, sizeof *described);
    const struct dtype *unit = described->part == MLX_CODES ? code_unit(described->columns, described->bits)
                                                            : number_unit(described->columns, described->type);
    if (described->groups == NULL || !described->groups->is_transposed) {
        view_init_shared(&part->view, &part_op, unit, weight->rank, weight->shape);
        part->view.scattered = weight->scattered;
        return &part->view;
    }
    uint64_t shape[VIEW_MAX_RANK];
    unsigned order[VIEW_MAX_RANK], rank = weight->rank;
    for (unsigned i = 0; i < rank; i++)
        order[i] = i + 2 < rank ? i : rank - 2 + (i + 1 == rank ? 0 : 1);
    for (unsigned i = 0; i < rank; i++)
        shape[i] = weight->shape[order[i]];
    view_init(&part->view, arena, &part_op, unit, rank, shape);
    return view_of_permuted_blocks(arena, &part->view, order);
}

/* Which weights have parts. */

/* Returns the columns of MLX's groups that these groups, or a whole number of which, consist of; 0: none. */
static unsigned columns_of(const struct code_groups *groups, uint64_t n_columns)
{
    bool is_float = groups->scales->dtype == &u8_dtype;
    if (is_float && groups->group_size == 16)
        return groups->bits == 4 && n_columns % 16 == 0 ? 16 : 0;
    for (unsigned i = 0; all_columns[i] > 16; i++)
        if (groups->group_size % all_columns[i] == 0 && n_columns % all_columns[i] == 0 &&
            (!is_float || all_columns[i] == groups->group_size))
            return all_columns[i];
    return 0;
}

/* Returns why MLX cannot hold the values; NULL: it can, if the columns are in order. */
static const char *refusal_of(const struct code_groups *groups, uint64_t n_columns)
{
    bool is_float = groups->scales->dtype == &u8_dtype;
    if (columns_of(groups, n_columns) == 0)
        return "MLX has groups of 32, 64 and 128 columns, and of 16 for NVFP4 alone";
    if (code_unit(32, groups->bits) == NULL || (is_float && groups->bits != 4 && groups->bits != 8))
        return "MLX has codes of 2, 3, 4, 5, 6 and 8 bits";
    if (number_unit(32, groups->scales->dtype) == NULL)
        return "MLX has no scales of their type";
    if (!is_float && groups->biases == NULL && groups->scales->dtype == &f32_dtype)
        return "the products of its codes and F32 scales would be rounded";
    return NULL;
}

static bool find_order(const struct code_groups *groups, uint64_t n_columns, bool *ret_is_in_order, struct error *error)
{
    *ret_is_in_order = true;
    if (groups->order == NULL)
        return true;
    float *order = memory_alloc(n_columns * sizeof *order);
    bool good = convert_values(groups->order, 0, n_columns, order, error);
    for (uint64_t i = 0; good && i < n_columns; i++)
        *ret_is_in_order &= order[i] == (float)(i / groups->group_size);
    free(order);
    return good;
}

/* Finds the number that MLX divides by its unit to get a factor. */
static bool find_global(float factor, float *ret_global)
{
    float near = factor * FACTOR_UNIT;
    const float all[] = {near, nextafterf(near, INFINITY), nextafterf(near, 0)};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (isfinite(all[i]) && all[i] / FACTOR_UNIT == factor) {
            *ret_global = all[i];
            return true;
        }
    return false;
}

/* Finds how MLX has the factor of a weight: in the scales, if it is a power of 2 and they can include it, or as MLX's
 * own factor; sets *ret_refusal if it has neither exactly. Reads all scales for a power of 2. */
static bool find_factor(const struct code_groups *groups, struct part *part, const char **ret_refusal,
                        struct error *error)
{
    float factor = 1;
    int exponent;
    part->folded = 1;
    part->global = FACTOR_UNIT;
    if (groups->factor != NULL && !convert_values(groups->factor, 0, 1, &factor, error))
        return false;
    if (factor == 1)
        return true;
    uint64_t n = groups->scales->n_elements;
    uint8_t *scales = memory_alloc(n);
    bool is_power = frexpf(factor, &exponent) == 0.5f;
    bool good = !is_power || view_read(groups->scales, 0, n, scales, error);
    if (good && is_power && fold_factor(factor, scales, n))
        part->folded = factor;
    else if (!find_global(factor, &part->global))
        *ret_refusal = "MLX has no factor that equals the weight's";
    free(scales);
    return good;
}

/* Finds the type of biases that holds them exactly: that of the scales if all zero points are in the middle. */
static bool find_type_of_biases(const struct code_groups *groups, const struct dtype **ret_type, struct error *error)
{
    float middle = (float)(1u << (groups->bits - 1));
    *ret_type = groups->biases != NULL ? groups->biases->dtype : groups->scales->dtype;
    if (groups->biases != NULL || groups->zeros == NULL)
        return true;
    if (!groups->is_symmetric) {
        *ret_type = &f32_dtype;
        return true;
    }
    uint64_t n = groups->zeros->n_elements;
    float *zeros = memory_alloc(n * sizeof *zeros);
    bool good = convert_values(groups->zeros, 0, n, zeros, error);
    for (uint64_t i = 0; good && i < n; i++)
        if (zeros[i] != middle)
            *ret_type = &f32_dtype;
    free(zeros);
    return good;
}

static bool part_of_groups(struct arena *arena, const struct view *weight, const struct code_groups *groups,
                           enum mlx_part which, const struct view **ret_part, const char **ret_reason,
                           struct error *error)
{
    uint64_t n_columns = groups->is_transposed ? weight->shape[weight->rank - 2] : view_row_elements(weight);
    struct part part = {.part = which, .groups = groups, .n_columns = n_columns, .bits = groups->bits};
    const char *refusal =
        groups->codes != NULL ? refusal_of(groups, n_columns) : "its codes are not in groups like those of MLX";
    bool is_in_order = true;
    if (refusal == NULL && !find_order(groups, n_columns, &is_in_order, error))
        return false;
    if (!is_in_order)
        refusal = "its columns are grouped in another order";
    if (refusal == NULL && !find_factor(groups, &part, &refusal, error))
        return false;
    if (refusal != NULL) {
        *ret_reason = refusal;
        return true;
    }
    bool is_float = groups->scales->dtype == &u8_dtype;
    if (is_float ? which == MLX_BIASES : which == MLX_FACTORS)
        return true;
    part.columns = (uint16_t)columns_of(groups, n_columns);
    part.type = which == MLX_FACTORS ? &f32_dtype : groups->scales->dtype;
    if (which == MLX_BIASES && !find_type_of_biases(groups, &part.type, error))
        return false;
    *ret_part = make_part(arena, weight, &part);
    return true;
}

bool mlx_part_of(struct arena *arena, const struct view *weight, enum mlx_part part, const struct view **ret_part,
                 const char **ret_reason, struct error *error)
{
    const struct code_groups *groups = groups_of(weight);
    const struct block_groups *of_blocks = block_groups_of(weight->dtype);
    *ret_part = NULL;
    if (groups != NULL)
        return part_of_groups(arena, weight, groups, part, ret_part, ret_reason, error);
    if (weight->dtype->kind == DTYPE_BLOCK && of_blocks == NULL)
        *ret_reason = arena_printf(arena, "MLX has no groups like those of %s", weight->dtype->name);
    bool is_float = of_blocks != NULL && of_blocks->number == &u8_dtype;
    if (of_blocks == NULL || (part == MLX_BIASES && is_float) || (part == MLX_FACTORS && !is_float))
        return true;
    const struct part described = {.part = part,
                                   .columns = of_blocks->columns,
                                   .bits = of_blocks->bits,
                                   .type = part == MLX_FACTORS ? &f32_dtype : of_blocks->number,
                                   .folded = 1,
                                   .global = FACTOR_UNIT,
                                   .blocks = weight,
                                   .of_blocks = of_blocks};
    *ret_part = make_part(arena, weight, &described);
    return true;
}

/* Tensors. */

static bool find_codes(const struct dtype *unit, struct mlx_groups *groups)
{
    for (size_t i = 0; i < COLUMNS; i++)
        for (size_t k = 0; k < BITS; k++)
            if (unit == &code_units[i][k]) {
                groups->columns = all_columns[i];
                groups->bits = all_bits[k];
                return true;
            }
    return false;
}

/* Returns the type of the numbers in groups of these columns; NULL if the dtype is not one of theirs. */
static const struct dtype *type_of_numbers(const struct dtype *unit, unsigned columns)
{
    for (size_t i = 0; i < TYPES; i++)
        if (unit == &number_units[index_of_columns(columns)][i])
            return all_types[i];
    return NULL;
}

/* Finds the factor of each matrix of a stack, or of a matrix: each has one, or is made of two weights with one each.
 * *ret_factors stays NULL if all are 1. */
static bool find_factors(struct arena *arena, const struct view *part, const struct view **ret_factors,
                         const char **ret_reason, struct error *error)
{
    static const char mixed[] = "weights with different factors become one";
    uint64_t n_rows = part->shape[part->rank - 2], n = part->n_elements / n_rows / view_row_elements(part);
    uint64_t groups = view_row_elements(part) / part->dtype->block_elements;
    float *factors = arena_array(arena, n, sizeof *factors), last;
    bool is_any = false, good = true;
    const struct view *numbers = view_reinterpret(arena, part, &f32_dtype);
    for (uint64_t i = 0; i < n && good; i++) {
        good = convert_values(numbers, i * n_rows * groups, 1, &factors[i], error) &&
               convert_values(numbers, ((i + 1) * n_rows - 1) * groups, 1, &last, error);
        is_any |= good && (factors[i] != FACTOR_UNIT || last != FACTOR_UNIT);
        if (good && factors[i] != last)
            *ret_reason = mixed;
    }
    *ret_factors = is_any && good ? view_numbers(arena, 1, &n, factors) : NULL;
    return good;
}

bool mlx_groups_of(struct arena *arena, const struct view *const parts[MLX_PARTS], bool is_of_experts,
                   struct mlx_groups *ret_groups, const char **ret_reason, struct error *error)
{
    struct mlx_groups groups = {.mode = "affine"};
    *ret_groups = (struct mlx_groups){.mode = NULL};
    if (!find_codes(parts[MLX_CODES]->dtype, &groups))
        return true;
    const struct dtype *scale = type_of_numbers(parts[MLX_SCALES]->dtype, groups.columns),
                       *bias = type_of_numbers(parts[MLX_BIASES]->dtype, groups.columns),
                       *factor = type_of_numbers(parts[MLX_FACTORS]->dtype, groups.columns);
    bool is_float = scale == &u8_dtype;
    if (scale == NULL || (is_float ? factor : bias) == NULL)
        return true;
    if (is_float) {
        groups.mode = groups.columns == 16 ? "nvfp4" : groups.bits == 4 ? "mxfp4" : "mxfp8";
        const char *reason = NULL;
        if (!find_factors(arena, parts[MLX_FACTORS], &groups.parts[MLX_FACTORS], &reason, error))
            return false;
        if (groups.parts[MLX_FACTORS] != NULL && !is_of_experts)
            reason = "mlx-lm has factors of experts alone";
        if (reason != NULL) {
            *ret_reason = reason;
            return true;
        }
    }
    groups.parts[MLX_CODES] = view_reinterpret(arena, parts[MLX_CODES], dtype_by_name("U32"));
    groups.parts[MLX_SCALES] = view_reinterpret(arena, parts[MLX_SCALES], scale);
    if (!is_float)
        groups.parts[MLX_BIASES] = view_reinterpret(arena, parts[MLX_BIASES], bias);
    *ret_groups = groups;
    return true;
}
