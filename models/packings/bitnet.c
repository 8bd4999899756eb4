/* BitNet: ternary weights, four rows a byte.
 *
 * A weight B.weight [rows, columns] is stored as U8 [rows / 4, columns]: a byte has two bits for each of four rows,
 * rows / 4 apart, the first row in the least significant bits; the bits hold the value plus one. B.weight_scale is one
 * number. transformers' bitlinear divides by it; autobitlinear multiplies, but the converter does not know that and
 * writes the quotient. */
#include "models/packings/packed.h"

#include <string.h>

static const char own[] = ".weight", scale_suffix[] = ".weight_scale";

enum { ROWS = 4, BITS = 2 };

static const struct packing_key keys[] = {{own, scale_suffix, "U8"}, {0}};

static bool is_key(const struct packing_input *input, const struct tensor *tensor)
{
    return strcmp(input->method, "bitnet") == 0;
}

static bool unpack(struct packed *packed)
{
    struct arena *arena = packed->input->arena;
    const struct view *codes[ROWS], *bytes = tensor_view(packed->key, arena);
    const struct view *scale = packed_need(packed, scale_suffix, F16_F32);
    if (scale == NULL)
        return false;
    if (!packed_is_matrix(bytes))
        return packed_misfit(packed, own, bytes, "must be a matrix");
    if (scale->n_elements != 1)
        return packed_misfit(packed, scale_suffix, scale, "must hold one number");
    for (unsigned i = 0; i < ROWS; i++) {
        const struct fields fields = {.word_units = 1, .n_fields = 1, .bits = BITS, .shifts = {(uint8_t)(BITS * i)}};
        codes[i] = view_fields(arena, bytes, &fields);
    }
    const struct view *ternary = view_combine_number(arena, view_concatenate(arena, codes, ROWS, 0), SUBTRACT, 1);
    const struct view *quotient = view_combine_one(arena, ternary, DIVIDE, scale);
    bool is_product = json_string_is(json_get(packed->input->config, "linear_class"), "autobitlinear");
    packed->unpacked->view = is_product ? view_combine_one(arena, ternary, MULTIPLY, scale) : quotient;
    packed->unpacked->forms->converted = quotient;
    packed->unpacked->bits = BITS;
    return true;
}

const struct packing bitnet_packing = {
    .name = "bitnet",
    .titles = {"BitNet"},
    .methods = {"bitnet"},
    .summary = "ternary weights of BitNet",
    .place = IN_PLACE,
    .keys = keys,
    .is_key = is_key,
    .unpack = unpack,
};
