/* TorchAO: tensor subclasses, whose inner tensors are in the pickle under the weight's own name.
 *
 * Float8Tensor has B.weight.qdata [rows, columns] in FP8 and .scale; IntxUnpackedToInt8Tensor has .qdata in I8, .scale
 * and .zero_point [rows, groups]; AffineQuantizedTensor with PlainLayout has .tensor_impl.int_data, .scale and
 * .zero_point, for each row or for groups: (code - zero point) * scale. The subclass itself has the shape and the dtype
 * from before packing, and no values. Forms for one kind of processor, such as those of four bits, have another shape,
 * and are refused. */
#include "base/text.h"
#include "models/packings/packed.h"

#include <inttypes.h>
#include <string.h>

static const struct packing_key torchao_keys[] = {
    {".weight.qdata", ".weight"},
    {".weight.tensor_impl.int_data", ".weight"},
    {0},
};

/* A subclass's names for scales and zero points, in the order of keys, and the prefix of those names. */
static const struct naming {
    const char *scale, *zero, *between;
} namings[] = {
    {".weight.scale", ".weight.zero_point", NULL},
    {".weight.tensor_impl.scale", ".weight.tensor_impl.zero_point", ".weight.tensor_impl"},
};

/* Returns the tensor of the subclass itself, which has no values. */
static const struct tensor *outer_of(const struct packing_input *input, const struct tensor *tensor)
{
    for (const struct packing_key *key = torchao_keys; key->suffix != NULL; key++)
        if (packing_has_suffix(tensor, key->suffix))
            return packing_partner(input->set, tensor, key->suffix, key->partner);
    return NULL;
}

static bool is_key(const struct packing_input *input, const struct tensor *tensor)
{
    const struct tensor *outer = outer_of(input, tensor);
    return outer != NULL && outer->refusal != NULL;
}

/* Adds a part without values, which describes the weight; NULL: missing. */
static const struct tensor *add_shell(struct packed *packed, const char *own, const char *suffix)
{
    const struct tensor *shell = suffix != NULL ? packing_partner(packed->input->set, packed->key, own, suffix) : NULL;
    if (shell != NULL)
        packed->unpacked->parts[packed->unpacked->n_parts++] = shell;
    return shell;
}

/* Returns a factor for each row, for groups of columns, or for all elements, as a matrix. */
static const struct view *torchao_spread(struct packed *packed, const char *suffix, const struct view *view,
                                         const struct view *codes)
{
    uint64_t n_rows = codes->shape[0], n_columns = codes->shape[1], shape[2] = {n_rows, 1};
    if (view->n_elements == 1)
        shape[0] = 1;
    else if (view->rank == 2 && view->shape[0] == n_rows && view->shape[1] > 0 && n_columns % view->shape[1] == 0)
        shape[1] = view->shape[1];
    else if (view->rank != 1 || view->shape[0] != n_rows) {
        packed_misfit(packed, suffix, view, "the weight has %" PRIu64 " rows of %" PRIu64 " columns", n_rows,
                      n_columns);
        return NULL;
    }
    return view_reshape(packed->input->arena, view, 2, shape);
}

static const struct view *torchao_combine(struct packed *packed, const struct view *codes, enum combination op,
                                          const struct view *factors)
{
    const struct sharing sharing = {codes->shape[0] / factors->shape[0], codes->shape[1] / factors->shape[1], NULL};
    return view_combine(packed->input->arena, codes, op, factors, &sharing);
}

static bool torchao_unpack(struct packed *packed)
{
    const struct naming *naming = &namings[packed->spelling - torchao_keys];
    const char *own = packed->spelling->suffix;
    const struct view *zero, *codes, *scale;
    const struct tensor *shell = add_shell(packed, own, ".weight");
    add_shell(packed, own, naming->between);
    if ((codes = packed_need(packed, own, F8 | I8)) == NULL ||
        (scale = packed_need(packed, naming->scale, F16_F32)) == NULL ||
        !packed_find(packed, naming->zero, I8 | WORDS | I64, &zero))
        return false;
    if (!packed_is_matrix(codes) || shell->rank != 2)
        return packed_misfit(packed, own, codes, "must be a matrix");
    if (!packed_check(packed, own, codes, shell->shape[0], shell->shape[1]) ||
        (scale = torchao_spread(packed, naming->scale, scale, codes)) == NULL ||
        (zero != NULL && (zero = torchao_spread(packed, naming->zero, zero, codes)) == NULL))
        return false;
    packed->unpacked->view =
        torchao_combine(packed, zero != NULL ? torchao_combine(packed, codes, SUBTRACT, zero) : codes, MULTIPLY, scale);
    packed->unpacked->bits = 8;
    packed->unpacked->forms->dtype = shell->dtype;
    return true;
}

const struct packing torchao_packing = {
    .name = "torchao",
    .titles = {"TorchAO"},
    .methods = {"torchao"},
    .summary = "TorchAO's FP8, and integers in bytes",
    .place = IN_PLACE,
    .keys = torchao_keys,
    .is_key = is_key,
    .unpack = torchao_unpack,
};

/* TorchAO in safetensors, as transformers saves it: a tensor subclass flattened into its inner tensors.
 *
 * A weight B.weight is B._weight_qdata, B._weight_scale and perhaps B._weight_zero_point, a parameter B.gate_up_proj
 * is B._gate_up_proj_qdata and so on, and the header's metadata have the text of a JSON object under the key
 * "B.weight": the class in `_type`, the class's data in `_data`, and the names of the inner tensors. A block of
 * `block_size`, for FP8 of any size, shares an element of scale and zero point:
 *
 * Float8Tensor: code * scale. Int8Tensor and IntxUnpackedToInt8Tensor: (code - zero point) * scale. Int4Tensor: two
 * signed codes a byte, the first in the low half, code * scale + zero point, both transposed. A leading dimension of
 * experts is allowed. Other classes are for one kind of processor.
 *
 * Source: torchao/prototype/safetensors and torchao/quantization/quantize_/workflows of TorchAO. */

enum { MOST_RANK = 3 };

static const char torchao_flat_own[] = "_qdata", scale_suffix[] = "_scale", zero_suffix[] = "_zero_point";

static const struct packing_key torchao_flat_keys[] = {{torchao_flat_own, .is_underscored = true}, {0}};

static bool torchao_flat_is_key(const struct packing_input *input, const struct tensor *tensor)
{
    size_t length = tensor->name_length - strlen(torchao_flat_own);
    const char *dot = text_last(tensor->name, length, '.'), *word = dot != NULL ? dot + 1 : tensor->name;
    return *word == '_' && word + 1 < tensor->name + length;
}

static const struct kind {
    const char *name;
    unsigned codes, zeros; /* kinds of dtypes; 0: none */
    bool is_int4;
    uint8_t bits;
} kinds[] = {
    {"Float8Tensor", F8, 0, false, 8},
    {"Int8Tensor", I8, I8 | WORDS | I64, false, 8},
    {"IntxUnpackedToInt8Tensor", I8, I8 | WORDS | I64, false, 8},
    {"Int4Tensor", I8 | U8, F16_F32, true, 4},
};

/* Checks that the class has no data and no inner tensors that would have to be read, too. */
static bool check_known(struct packed *packed, const struct json *root)
{
    static const char *const data[] = {"block_size",
                                       "dtype",
                                       "shape",
                                       "target_dtype",
                                       "mm_config",
                                       "act_quant_kwargs",
                                       "kernel_preference",
                                       "activation_dtype",
                                       "activation_quantization",
                                       "reduce_range"},
                             *const parts[] = {"qdata", "scale", "zero_point", "act_quant_scale",
                                               "act_quant_zero_point"};
    for (struct json_member member = {0}; json_next_member(json_get(root, "_data"), &member);) {
        bool is_known = json_is(member.value, JSON_NULL);
        for (size_t i = 0; i < sizeof data / sizeof *data; i++)
            is_known |= strcmp(member.key, data[i]) == 0;
        if (!is_known)
            return error_set(packed->error, "'%.40s' of the TorchAO tensor is not supported", member.key);
    }
    const struct json *names = json_get(root, "_tensor_data_names");
    for (const struct json *name = json_first(names); name != NULL; name = json_next(name)) {
        bool is_known = false;
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
            is_known |= json_string_is(name, parts[i]);
        const char *text = json_string(name, NULL);
        if (!is_known)
            return error_set(packed->error, "the part '%.40s' of the TorchAO tensor is not supported",
                             text != NULL ? text : "");
    }
    return true;
}

static const struct kind *find_kind(struct packed *packed, const struct json *root)
{
    const char *name = json_string(json_get(root, "_type"), NULL);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (name != NULL && strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    error_set(packed->error, "TorchAO's class '%.60s' is not supported", name != NULL ? name : "");
    return NULL;
}

/* Returns the two codes of each byte. */
static const struct view *cut_bytes(struct arena *arena, const struct view *bytes)
{
    static const struct fields halves = {.word_units = 1, .n_fields = 2, .bits = 4, .shifts = {0, 4}};
    static const float signed_codes[] = {0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1};
    static const uint64_t n_codes[1] = {16};
    bytes = view_reinterpret(arena, bytes, &u8_dtype);
    return view_lookup(arena, view_fields(arena, bytes, &halves), view_numbers(arena, 1, n_codes, signed_codes));
}

/* Returns one element for each block as a matrix, the matrices of experts one below the other; NULL: they do not fit.
 * *ret_sharing is how the codes, likewise a matrix, share them. `block` NULL: blocks of any size. */
static const struct view *torchao_flat_spread(struct packed *packed, const char *suffix, const struct view *factors,
                                              const struct view *codes, const struct json *block,
                                              struct sharing *ret_sharing)
{
    unsigned rank = codes->rank;
    uint64_t n_columns = codes->shape[rank - 1], n_rows = codes->n_elements / n_columns, side, matrix[2];
    bool fits = factors->rank == rank && factors->n_elements > 0;
    for (unsigned i = 0; fits && i < rank; i++)
        fits = codes->shape[i] % factors->shape[i] == 0 &&
               (block == NULL || (json_u64(json_at(block, i), &side) && side == codes->shape[i] / factors->shape[i]));
    if (!fits || (rank == MOST_RANK && factors->shape[0] != codes->shape[0] && factors->shape[1] != 1)) {
        packed_misfit(packed, suffix, factors, "it has no element for each block of the codes");
        return NULL;
    }
    matrix[1] = factors->shape[rank - 1];
    matrix[0] = factors->n_elements / matrix[1];
    *ret_sharing = (struct sharing){n_rows / matrix[0], n_columns / matrix[1], NULL};
    return view_reshape(packed->input->arena, factors, 2, matrix);
}

/* Combines codes, as a matrix, with the elements of blocks. */
static const struct view *torchao_flat_combine(struct packed *packed, const struct view *values, enum combination op,
                                               const char *suffix, const struct view *factors, const struct view *codes,
                                               const struct json *block)
{
    struct sharing sharing;
    factors = torchao_flat_spread(packed, suffix, factors, codes, block, &sharing);
    return factors != NULL ? view_combine(packed->input->arena, values, op, factors, &sharing) : NULL;
}

static const struct view *put_together(struct packed *packed, const struct kind *kind, const struct view *codes,
                                       const struct view *scale, const struct view *zero, const struct json *block)
{
    struct arena *arena = packed->input->arena;
    uint64_t rows[2] = {codes->n_elements / view_row_elements(codes), view_row_elements(codes)};
    const struct view *values = view_reshape(arena, codes, 2, rows);
    if (kind->is_int4) {
        values =
            torchao_flat_combine(packed, values, MULTIPLY, scale_suffix, view_transpose(arena, scale), codes, block);
        return values == NULL || zero == NULL
                   ? values
                   : torchao_flat_combine(packed, values, ADD, zero_suffix, view_transpose(arena, zero), codes, block);
    }
    if (zero != NULL)
        values = torchao_flat_combine(packed, values, SUBTRACT, zero_suffix, zero, codes, block);
    return values != NULL ? torchao_flat_combine(packed, values, MULTIPLY, scale_suffix, scale, codes, block) : NULL;
}

static const struct dtype *dtype_of(const struct json *data)
{
    static const struct {
        const char *name, *dtype;
    } names[] = {{"bfloat16", "BF16"}, {"float16", "F16"}, {"float32", "F32"}};
    const struct json *said = json_get(data, "dtype");
    if (said == NULL)
        said = json_get(data, "activation_dtype");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (json_string_is(json_get(said, "_data"), names[i].name))
            return dtype_by_name(names[i].dtype);
    return NULL;
}

static bool unpack_as(struct packed *packed, const struct json *root)
{
    const struct kind *kind = find_kind(packed, root);
    const struct json *data = json_get(root, "_data"), *block = NULL;
    const struct view *codes, *scale, *zero = NULL;
    if (kind == NULL || !check_known(packed, root) ||
        (codes = packed_need(packed, torchao_flat_own, kind->codes)) == NULL ||
        (scale = packed_need(packed, scale_suffix, F16_F32)) == NULL ||
        (kind->zeros != 0 && !packed_find(packed, zero_suffix, kind->zeros, &zero)))
        return false;
    if (codes->rank < 2 || codes->rank > MOST_RANK || codes->n_elements == 0)
        return packed_misfit(packed, torchao_flat_own, codes, "must be a matrix, or a stack of matrices");
    if (kind->is_int4 && (scale->rank < 2 || (zero != NULL && zero->rank < 2)))
        return packed_misfit(packed, scale_suffix, scale, "must have the dimensions of the codes");
    if (kind->is_int4)
        codes = cut_bytes(packed->input->arena, codes);
    if (kind->codes != F8 && (block = json_get(data, "block_size")) == NULL) /* TorchAO ignores it for FP8 */
        return error_set(packed->error, "block_size of the TorchAO tensor is missing");
    const struct view *values = put_together(packed, kind, codes, scale, zero, block);
    if (values == NULL)
        return false;
    packed->unpacked->view = view_reshape(packed->input->arena, values, codes->rank, codes->shape);
    packed->unpacked->bits = kind->bits;
    packed->unpacked->forms->dtype = dtype_of(data);
    return true;
}

static bool torchao_flat_unpack(struct packed *packed)
{
    const struct packing_input *input = packed->input;
    struct error reason;
    const char *text =
        input->metadata != NULL ? gguf_get_text(input->metadata, packed->unpacked->name, input->scratch) : NULL;
    if (text == NULL)
        return error_set(packed->error, "the header of the file does not describe the TorchAO tensor '%.200s'",
                         packed->unpacked->name);
    struct json_document *document = json_parse(text, strlen(text), &reason);
    bool good = document != NULL ? unpack_as(packed, json_root(document))
                                 : error_set(packed->error, "the description of '%.200s' in the header: %.200s",
                                             packed->unpacked->name, reason.message);
    json_free(document);
    return good;
}

/* Of activations that are quantized with known scales. */
static const char *const torchao_flat_beside[] = {"._weight_act_quant_scale", "._weight_act_quant_zero_point", NULL};

const struct packing torchao_flat_packing = {
    .name = "torchao-safetensors",
    .titles = {"TorchAO"},
    .methods = {"torchao"},
    .summary = "TorchAO's FP8 and integers of 4 and 8 bits in safetensors",
    .place = IN_PLACE,
    .beside = torchao_flat_beside,
    .keys = torchao_flat_keys,
    .is_key = torchao_flat_is_key,
    .unpack = torchao_flat_unpack,
};
