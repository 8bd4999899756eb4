/* AMD's Quark: B.weight and B.weight_scale, by the dtypes and schemes that quantization_config names.
 *
 *     fp8_e4m3             F8_E4M3 [rows, columns] and F32, one number or one for each row
 *     fp4, of MX           U8 [rows, columns / 2], the first element in the low half, and U8 [rows, columns / 32],
 *                          exponents of 2 with a bias of 127
 *     fp6_e2m3, fp6_e3m2   U8 [rows, columns * 3 / 4], four codes in three bytes, the first in the lowest bits, and
 *                          exponents as above
 *     int4, uint4          I32 [columns, rows / 8], B.weight_scale [groups, rows] and B.weight_zero_point I32 [groups,
 *                          rows / 8]: the transposed weight. With a scale for each row [rows] it is not: I32 [rows,
 *                          columns / 8], B.weight_zero_point I32 [rows / 8]. With pack_method "reorder" a word has the
 *                          rows, or columns, 0 2 4 6 1 3 5 7.
 *
 * Source: export and import of AMD Quark 0.13. */
#include "models/packings/packed.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <string.h>

enum { GROUP = 32, WORD_ROWS = 8, NIBBLES = 16 };

static const char own[] = ".weight", other[] = ".weight_scale", zero_suffix[] = ".weight_zero_point";

static const struct packing_key keys[] = {{own, other}, {0}};

static bool is_key(const struct packing_input *input, const struct tensor *tensor)
{
    return strcmp(input->method, "quark") == 0;
}

/* Returns the description of a module: that of the first pattern that fits its name, or else of all; NULL, with an
 * error, if the patterns are not read. */
static const struct json *description_of(const struct packed *packed)
{
    enum { MOST_PATTERNS = 64, MOST_BYTES = 256 };
    const struct json *config = packed->input->config, *patterns = json_get(config, "layer_quant_config");
    const char *module = arena_strndup(packed->input->scratch, packed->key->name, packed->stem);
    if (json_count(patterns) > 0 || json_count_members(patterns) > MOST_PATTERNS) {
        error_set(packed->error, "layer_quant_config is not an object of up to %d patterns", MOST_PATTERNS);
        return NULL;
    }
    for (struct json_member pattern = {0}; json_next_member(patterns, &pattern);) {
        if (pattern.key_length > MOST_BYTES) {
            error_set(packed->error, "a pattern of layer_quant_config is longer than %d bytes", MOST_BYTES);
            return NULL;
        }
        if (fnmatch(pattern.key, module, 0) == 0)
            return pattern.value;
    }
    const struct json *all = json_get(config, "global_quant_config");
    if (all == NULL)
        error_set(packed->error, "quantization_config has no global_quant_config");
    return all;
}

/* Returns the type of a module's weight; NULL, with an error, if the weight was quantized in several stages. */
static const char *type_of(const struct packed *packed)
{
    const struct json *description = description_of(packed);
    if (description == NULL)
        return NULL;
    const struct json *weight = json_get(description, "weight");
    if (json_is(weight, JSON_ARRAY) && json_count(weight) != 1) {
        error_set(packed->error, "weights in %zu stages are not supported", json_count(weight));
        return NULL;
    }
    const char *type = json_string(json_get(json_is(weight, JSON_ARRAY) ? json_first(weight) : weight, "dtype"), NULL);
    return type != NULL ? type : "";
}

/* Fails for methods that leave something to be computed beside the weight, such as rotations of inputs. */
static bool check_algorithms(const struct packed *packed)
{
    static const char *const folded[] = {"awq", "gptq", "gptaq", "smooth", "autosmoothquant", "qronos"};
    const struct json *given = json_get(packed->input->config, "algo_config");
    const struct json *first = json_is(given, JSON_ARRAY) ? json_first(given) : given;
    for (const struct json *each = first; each != NULL; each = json_is(given, JSON_ARRAY) ? json_next(each) : NULL) {
        bool is_folded = json_is(each, JSON_NULL);
        for (size_t i = 0; i < sizeof folded / sizeof *folded; i++)
            is_folded |= json_string_is(json_get(each, "name"), folded[i]);
        const char *name = json_string(json_get(each, "name"), NULL);
        if (!is_folded)
            return error_set(packed->error, "the algorithm '%.40s' of algo_config is not supported",
                             name != NULL ? name : "");
    }
    return true;
}

/* Fails for other exports than those whose words are read here. */
static bool check_export(const struct packed *packed)
{
    const struct json *export = json_get(packed->input->config, "export");
    const struct json *format = json_get(export, "weight_format"), *method = json_get(export, "pack_method");
    if (format != NULL && !json_string_is(format, "real_quantized"))
        return error_set(packed->error, "weight_format of Quark's export is not real_quantized");
    return method == NULL || json_string_is(method, "reorder") || json_string_is(method, "order") ||
           error_set(packed->error, "pack_method of Quark's export is neither reorder nor order");
}

static bool unpack_float(struct packed *packed, const struct view *weight, const struct view *scale)
{
    struct arena *arena = packed->input->arena;
    uint64_t n_rows = weight->shape[0], column[2] = {n_rows, 1};
    const struct sharing sharing = {1, weight->shape[1], NULL};
    packed->unpacked->bits = 8;
    if (scale->n_elements == 1) {
        packed->unpacked->view = view_combine_one(arena, weight, MULTIPLY, scale);
        return true;
    }
    if (scale->n_elements != n_rows)
        return packed_misfit(packed, other, scale, "the weight has %" PRIu64 " rows", n_rows);
    packed->unpacked->view = view_combine(arena, weight, MULTIPLY, view_reshape(arena, scale, 2, column), &sharing);
    return true;
}

static bool unpack_mx(struct packed *packed, const struct view *bytes, const char *dtype)
{
    const unsigned bits = strcmp(dtype, "fp4") == 0 ? 4 : 6, group_bytes = GROUP * bits / 8;
    struct arena *arena = packed->input->arena;
    if (bytes->shape[1] % group_bytes != 0)
        return packed_misfit(packed, own, bytes, "must have rows of whole groups of %u bytes", group_bytes);
    const struct view *scales = packed_matrix(packed, other, U8, bytes->shape[0], bytes->shape[1] / group_bytes);
    if (scales == NULL)
        return false;
    packed->unpacked->bits = (uint8_t)bits;
    if (bits == 4) {
        packed->unpacked->view = packed_mxfp4(arena, bytes, scales);
        return true;
    }
    packed->unpacked->view = packed_mxfp6(arena, bytes, scales, strcmp(dtype, "fp6_e2m3") == 0 ? 3 : 2);
    return true;
}

/* Returns the codes of a matrix of words, eight of a row in each. */
static const struct view *read_words(const struct packed *packed, const struct view *words, bool is_signed)
{
    static const struct fields reordered = {1, WORD_ROWS, 4, {0, 16, 4, 20, 8, 24, 12, 28}};
    static const uint64_t shape[1] = {NIBBLES};
    struct arena *arena = packed->input->arena;
    const struct json *export = json_get(packed->input->config, "export");
    const struct fields in_order = fields_of_words(32, 4);
    bool is_in_order = json_string_is(json_get(export, "pack_method"), "order");
    float *values = arena_array(arena, NIBBLES, sizeof *values);
    for (int code = 0; code < NIBBLES; code++)
        values[code] = (float)(is_signed && code >= NIBBLES / 2 ? code - NIBBLES : code);
    const struct view *codes = view_fields(arena, words, is_in_order ? &in_order : &reordered);
    return view_lookup(arena, codes, view_numbers(arena, 1, shape, values));
}

/* One scale and one zero point for each row: the weight is not transposed. */
static bool unpack_rows(struct packed *packed, const struct view *words, const struct view *scales, bool is_signed)
{
    struct arena *arena = packed->input->arena;
    const uint64_t n_rows = words->shape[0], column[2] = {n_rows, 1}, row[2] = {1, n_rows / WORD_ROWS};
    const struct view *zeros, *codes = read_words(packed, words, is_signed);
    if (scales->n_elements != n_rows)
        return packed_misfit(packed, other, scales, "the weight has %" PRIu64 " rows", n_rows);
    if (!packed_find(packed, zero_suffix, WORDS, &zeros))
        return false;
    if (zeros != NULL && (n_rows % WORD_ROWS != 0 || zeros->n_elements != row[1]))
        return packed_misfit(packed, zero_suffix, zeros, "the weight has %" PRIu64 " rows", n_rows);
    const struct sharing sharing = {1, view_row_elements(codes), NULL};
    if (zeros != NULL) {
        zeros = read_words(packed, view_reshape(arena, zeros, 2, row), is_signed);
        codes = view_combine(arena, codes, SUBTRACT, view_transpose(arena, zeros), &sharing);
    }
    packed->unpacked->view = view_combine(arena, codes, MULTIPLY, view_reshape(arena, scales, 2, column), &sharing);
    packed->unpacked->bits = 4;
    return true;
}

static bool unpack_integers(struct packed *packed, const struct view *words, const struct view *scales, bool is_signed)
{
    struct arena *arena = packed->input->arena;
    uint64_t n_columns = words->shape[0], n_groups = packed_is_matrix(scales) ? scales->shape[0] : 0;
    const struct view *zeros;
    if (n_groups == 0 || n_columns % n_groups != 0 || scales->shape[1] / WORD_ROWS != words->shape[1] ||
        scales->shape[1] % WORD_ROWS != 0)
        return packed_misfit(packed, other, scales, "the weight has words for %" PRIu64 " columns", n_columns);
    if (!packed_find(packed, zero_suffix, WORDS, &zeros))
        return false;
    if (zeros != NULL && !packed_check(packed, zero_suffix, zeros, n_groups, words->shape[1]))
        return false;
    const struct sharing sharing = {1, n_columns / n_groups, NULL};
    const struct view *codes = view_transpose(arena, read_words(packed, words, is_signed));
    if (zeros != NULL)
        codes =
            view_combine(arena, codes, SUBTRACT, view_transpose(arena, read_words(packed, zeros, is_signed)), &sharing);
    packed->unpacked->view = view_combine(arena, codes, MULTIPLY, view_transpose(arena, scales), &sharing);
    packed->unpacked->bits = 4;
    return true;
}

static bool unpack(struct packed *packed)
{
    const char *dtype = type_of(packed);
    const struct view *weight = dtype != NULL ? packed_need(packed, own, F8 | U8 | WORDS) : NULL, *scale;
    scale = weight != NULL ? packed_need(packed, other, F16_F32 | U8) : NULL;
    if (scale == NULL || !check_algorithms(packed) || !check_export(packed))
        return false;
    if (!packed_is_matrix(weight))
        return packed_misfit(packed, own, weight, "must be a matrix");
    bool has_exponents = scale->dtype->kind == DTYPE_INTEGER, has_words = weight->dtype->block_bytes == 4;
    if (strcmp(dtype, "fp8_e4m3") == 0 && strcmp(weight->dtype->name, "F8_E4M3") == 0 && !has_exponents)
        return unpack_float(packed, weight, scale);
    bool is_mx = strcmp(dtype, "fp4") == 0 || strcmp(dtype, "fp6_e2m3") == 0 || strcmp(dtype, "fp6_e3m2") == 0;
    if (is_mx && has_exponents && strcmp(weight->dtype->name, "U8") == 0)
        return unpack_mx(packed, weight, dtype);
    if ((strcmp(dtype, "int4") == 0 || strcmp(dtype, "uint4") == 0) && has_words && !has_exponents)
        return scale->rank == 1 ? unpack_rows(packed, weight, scale, *dtype == 'i')
                                : unpack_integers(packed, weight, scale, *dtype == 'i');
    return packed_misfit(packed, own, weight, "quantization_config says '%.40s', which is not read so", dtype);
}

const struct packing quark_packing = {
    .name = "quark",
    .titles = {"Quark"},
    .methods = {"quark"},
    .summary = "FP8, MXFP4, MXFP6 and 4-bit integers of AMD Quark",
    .place = IN_PLACE,
    .keys = keys,
    .is_key = is_key,
    .unpack = unpack,
};
