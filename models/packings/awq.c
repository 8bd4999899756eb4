/* AWQ: integers of 4 bits with zero points, in the three orders of AutoAWQ's kernels.
 *
 *     gemm       B.qweight I32 [columns, rows / 8], B.qzeros I32 [groups, rows / 8], B.scales [groups, rows];
 *                a word has the rows 0 2 4 6 1 3 5 7
 *     gemv       B.qweight I32 [rows, columns / 8], B.qzeros I32 [rows, groups / 8], B.scales [rows, groups],
 *                groups rounded up
 *     gemv_fast  B.qweight I16 [rows / 4, columns], shuffled; B.scales and B.qzeros [groups, rows], which hold
 *                -(scale * zero point) */
#include "models/packings/packed.h"

#include <inttypes.h>
#include <string.h>

static const char awq_own[] = ".qweight";

enum { FIELDS = 8, BITS = 4 };

/* Recognizes, without a configuration, shapes that no GPTQ weight has. */
static bool looks_like_gemm(const struct packing_input *input, const struct tensor *words)
{
    const struct tensor *scales = packing_partner(input->set, words, awq_own, ".scales");
    return *input->method == '\0' && scales != NULL && scales->rank == 2 && words->rank == 2 &&
           words->shape[1] <= UINT64_MAX / FIELDS && scales->shape[1] == FIELDS * words->shape[1];
}

static const struct packing_key awq_keys[] = {{awq_own}, {0}};

static bool awq_is_key(const struct packing_input *input, const struct tensor *tensor)
{
    const char *format = json_string(json_get(input->config, "packing_format"), NULL);
    return tensor->dtype->kind == DTYPE_INTEGER &&
           (strcmp(input->method, "awq") == 0 || (format != NULL && strstr(format, "awq") != NULL) ||
            looks_like_gemm(input, tensor));
}

/* Finds the columns of a group; 0: groups do not divide the columns evenly. */
static bool find_group_size(const struct packed *packed, uint64_t n_columns, uint64_t n_groups, uint64_t *ret_size)
{
    uint64_t group_size, older;
    if (!packed_group_size(packed, "group_size", n_columns, &group_size) ||
        !packed_group_size(packed, "q_group_size", n_columns, &older))
        return false;
    if (group_size == 0)
        group_size = older;
    if (group_size == 0 && n_groups > 0 && n_columns % n_groups == 0)
        group_size = n_columns / n_groups;
    *ret_size = group_size > 0 && n_columns % group_size == 0 ? group_size : 0;
    return true;
}

static const struct view *scale_codes(const struct packed *packed, const struct view *codes, const struct view *zeros,
                                      const struct view *scales, uint64_t group_size)
{
    enum { MIDDLE = 1 << (BITS - 1) };
    struct arena *arena = packed->input->arena;
    const struct sharing sharing = {1, group_size, NULL};
    const struct code_groups groups = {
        .codes = codes,
        .scales = scales,
        .zeros = zeros,
        .group_size = group_size,
        .bits = BITS,
        .is_symmetric = !json_bool(json_get(packed->input->config, "zero_point"), true),
    };
    if (groups.is_symmetric)
        packed->unpacked->forms->repacked = view_of_repacked(
            arena, &(struct repacking){codes, scales, NULL, BITS, group_size, .zeros = zeros, .zero = MIDDLE});
    packed->unpacked->forms->groups = arena_copy(arena, &groups, sizeof groups);
    return view_combine(arena, view_combine(arena, codes, SUBTRACT, zeros, &sharing), MULTIPLY, scales, &sharing);
}

static bool unpack_gemm(struct packed *packed, const struct view *words, const struct view *scales)
{
    static const struct fields fields = {1, FIELDS, BITS, {0, 16, 4, 20, 8, 24, 12, 28}};
    struct arena *arena = packed->input->arena;
    uint64_t n_columns = words->shape[0], n_groups = scales->shape[0];
    uint64_t group_size;
    const struct view *zeros = packed_matrix(packed, ".qzeros", WORDS, n_groups, words->shape[1]);
    if (zeros == NULL || !find_group_size(packed, n_columns, n_groups, &group_size))
        return false;
    if (group_size == 0 || n_columns / group_size != n_groups)
        return packed_misfit(packed, ".scales", scales, "the weight has %" PRIu64 " columns", n_columns);
    const struct view *codes = view_transpose(arena, view_fields(arena, words, &fields));
    packed->unpacked->view = scale_codes(packed, codes, view_transpose(arena, view_fields(arena, zeros, &fields)),
                                         view_transpose(arena, scales), group_size);
    return true;
}

static bool unpack_gemv(struct packed *packed, const struct view *words, const struct view *scales)
{
    struct arena *arena = packed->input->arena;
    const struct fields fields = fields_of_words(32, BITS);
    uint64_t n_rows = words->shape[0], n_columns = words->shape[1] * FIELDS;
    uint64_t group_size;
    if (!find_group_size(packed, n_columns, 0, &group_size))
        return false;
    uint64_t n_groups = group_size > 0 ? n_columns / group_size : 0;
    const struct view *zeros = packed_matrix(packed, ".qzeros", WORDS, n_rows, scales->shape[1] / FIELDS);
    if (zeros == NULL)
        return false;
    if (n_groups == 0 || scales->shape[1] % FIELDS != 0 || n_groups > scales->shape[1])
        return packed_misfit(packed, ".scales", scales, "the weight has %" PRIu64 " columns", n_columns);
    packed->unpacked->view = scale_codes(packed, view_fields(arena, words, &fields),
                                         packed_cut(arena, view_fields(arena, zeros, &fields), n_rows, n_groups),
                                         packed_cut(arena, scales, n_rows, n_groups), group_size);
    return true;
}

/* Exchanges axes of a view reshaped for that. */
static const struct view *exchange(struct arena *arena, const struct view *view, const uint64_t shape[5], unsigned a,
                                   unsigned b)
{
    unsigned order[5] = {0, 1, 2, 3, 4};
    order[a] = b;
    order[b] = a;
    return view_permute(arena, view_reshape(arena, view, 5, shape), order);
}

static bool unpack_fast(struct packed *packed, const struct view *words, const struct view *scales)
{
    enum { ROWS = 4, BLOCK = 64, PART = 32 };
    struct arena *arena = packed->input->arena;
    const struct fields fields = fields_of_words(16, BITS);
    uint64_t n_rows = words->shape[0] * ROWS, n_columns = words->shape[1], shape[2] = {n_rows, n_columns};
    uint64_t group_size;
    if (!find_group_size(packed, n_columns, 0, &group_size))
        return false;
    uint64_t n_groups = group_size > 0 ? n_columns / group_size : 0;
    const struct view *zeros = packed_matrix(packed, ".qzeros", F16_F32, scales->shape[0], n_rows);
    if (zeros == NULL)
        return false;
    if (n_groups == 0 || n_groups > scales->shape[0] || scales->shape[1] != n_rows || n_columns % BLOCK != 0)
        return packed_misfit(packed, ".scales", scales, "the weight has %" PRIu64 " rows of %" PRIu64 " columns",
                             n_rows, n_columns);
    const struct view *codes = view_fields(arena, words, &fields);
    codes = exchange(arena, codes, (uint64_t[]){n_rows / ROWS, n_columns / BLOCK, ROWS, BLOCK, 1}, 1, 2);
    codes = exchange(arena, codes, (uint64_t[]){n_rows, n_columns / PART, 4, 2, 4}, 3, 4);
    codes = exchange(arena, codes, (uint64_t[]){n_rows, n_columns / PART, 4, 4, 2}, 2, 3);
    const struct sharing sharing = {1, group_size, NULL};
    const struct view *factors = view_transpose(arena, packed_cut(arena, scales, n_groups, n_rows));
    codes = view_reshape(arena, codes, 2, shape);
    const struct view *product = view_combine(arena, codes, MULTIPLY, factors, &sharing);
    zeros = view_transpose(arena, packed_cut(arena, zeros, n_groups, n_rows));
    const struct code_groups groups = {
        .codes = codes, .scales = factors, .biases = zeros, .group_size = group_size, .bits = BITS};
    if (zeros->dtype == factors->dtype)
        packed->unpacked->forms->groups = arena_copy(arena, &groups, sizeof groups);
    packed->unpacked->view = view_combine(arena, product, ADD, zeros, &sharing);
    return true;
}

static bool awq_unpack(struct packed *packed)
{
    const struct view *words, *scales;
    words = packed_need(packed, awq_own, WORDS | I16);
    scales = words != NULL ? packed_need(packed, ".scales", F16_F32) : NULL;
    if (scales == NULL)
        return false;
    if (!packed_is_matrix(words) || !packed_is_matrix(scales))
        return packed_misfit(packed, awq_own, words, "the weight and its scales must be matrices");
    uint64_t bits, older_bits;
    if (!packed_bits(packed, "bits", &bits) || !packed_bits(packed, "w_bit", &older_bits))
        return false;
    if ((bits != 0 && bits != BITS) || (older_bits != 0 && older_bits != BITS))
        return error_set(packed->error, "AWQ with %" PRIu64 " bits is not supported", bits != 0 ? bits : older_bits);
    if (json_string_is(json_get(packed->input->config, "backend"), "llm-awq"))
        return error_set(packed->error, "the word order of llm-awq is not supported");
    packed->unpacked->bits = BITS;
    if (words->dtype->block_bytes == 2)
        return unpack_fast(packed, words, scales);
    if (scales->shape[1] == words->shape[1] * FIELDS)
        return unpack_gemm(packed, words, scales);
    if (scales->shape[0] == words->shape[0])
        return unpack_gemv(packed, words, scales);
    return packed_misfit(packed, ".scales", scales, "no word order of AWQ has this shape");
}

const struct packing awq_packing = {
    .name = "awq",
    .titles = {"AWQ"},
    .methods = {"awq"},
    .summary = "AWQ in the orders of gemm, gemv and gemv_fast",
    .place = IN_PLACE,
    .keys = awq_keys,
    .is_key = awq_is_key,
    .unpack = awq_unpack,
};

/* ModelOpt's W4A16_AWQ and W4A8_AWQ: B.weight U8 [rows / 2, columns], with two neighbouring rows a byte, the first in
 * the low half, in two's complement, and B.weight_scale [rows, groups]. B.pre_quant_scale multiplies inputs, which a
 * plain model does not, so it is folded into the columns. */

static const char modelopt_int4_own[] = ".weight", other[] = ".weight_scale";

static const struct packing_key modelopt_int4_keys[] = {{modelopt_int4_own, .dtype = "U8"}, {0}};

static bool modelopt_int4_is_key(const struct packing_input *input, const struct tensor *tensor)
{
    const struct json *algorithm = json_get(input->config, "quant_algo");
    return json_string_is(algorithm, "W4A16_AWQ") || json_string_is(algorithm, "W4A8_AWQ");
}

static bool modelopt_int4_unpack(struct packed *packed)
{
    static const float signed_codes[] = {0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1};
    static const uint64_t n_codes[1] = {16};
    struct arena *arena = packed->input->arena;
    const struct view *bytes = tensor_view(packed->key, arena), *rows[2], *scales = packed_need(packed, other, F16_F32);
    if (scales == NULL)
        return false;
    if (!packed_is_matrix(bytes) || !packed_is_matrix(scales) || scales->shape[0] / 2 != bytes->shape[0] ||
        scales->shape[0] % 2 != 0 || bytes->shape[1] % scales->shape[1] != 0)
        return packed_misfit(packed, other, scales, "the weight has %" PRIu64 " pairs of rows", bytes->shape[0]);
    if (packing_partner(packed->input->set, packed->key, modelopt_int4_own, ".weight_scale_2") != NULL)
        return error_set(packed->error, "4-bit integers with a second scale (weight_scale_2) are not supported");
    if (!packed_agrees(packed, "group_size", bytes->shape[1] / scales->shape[1]))
        return false;
    const uint64_t shape[2] = {scales->shape[0], bytes->shape[1]}, pairs[3] = {bytes->shape[0], 1, bytes->shape[1]};
    for (unsigned i = 0; i < 2; i++) {
        const struct fields half = {1, 1, 4, {(uint8_t)(4 * i)}};
        rows[i] = view_reshape(arena, view_fields(arena, bytes, &half), 3, pairs);
    }
    const struct view *codes = view_reshape(arena, view_concatenate(arena, rows, 2, 1), 2, shape);
    const struct sharing sharing = {1, shape[1] / scales->shape[1], NULL};
    codes = view_lookup(arena, codes, view_numbers(arena, 1, n_codes, signed_codes));
    packed->unpacked->view = view_combine(arena, codes, MULTIPLY, scales, &sharing);
    packed->unpacked->bits = 4;
    unsigned n_parts = packed->unpacked->n_parts;
    if (!packed_scale_inputs(packed, ".pre_quant_scale", &packed->unpacked->view))
        return false;
    packed->unpacked->beyond = packed->unpacked->n_parts > n_parts ? "weights with scaled inputs (pre_quant_scale)"
                                                                   : "ModelOpt's 4-bit integers";
    return true;
}

const struct packing modelopt_int4_packing = {
    .name = "modelopt-int4",
    .titles = {"ModelOpt"},
    .methods = {"modelopt"},
    .summary = "ModelOpt's 4-bit integers",
    .place = IN_PLACE,
    .keys = modelopt_int4_keys,
    .is_key = modelopt_int4_is_key,
    .unpack = modelopt_int4_unpack,
};
