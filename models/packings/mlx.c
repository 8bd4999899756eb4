/* MLX: integers of 2 to 8 bits in a stream of words, each group with a scale and a bias.
 *
 * A weight B.weight [rows, columns] is itself U32 [rows, columns * bits / 32], the first element in the least
 * significant bits, with B.scales and B.biases [rows, groups]: code * scale + bias. Layers may have other bits than
 * config.json says, which follow from the shapes; the size of groups is in the configuration alone. */
#include "models/packings/repack.h"

#include <inttypes.h>
#include <string.h>

extern const struct packing mlx_packing;

static const char own[] = ".weight";

static bool is_key(const struct packing_input *input, const struct tensor *tensor)
{
    return tensor->dtype->block_bytes == 4 && tensor->dtype->kind == DTYPE_INTEGER && packing_has_suffix(tensor, own) &&
           packing_partner(input, tensor, own, ".biases") != NULL;
}

/* The size of groups of this layer: an entry of its own counts. */
static uint64_t group_size_of(const struct packed *packed)
{
    const struct json *config = packed->input->config;
    uint64_t group_size = packed_number(json_get_n(config, packed->key->name, packed->stem), "group_size");
    return group_size > 0 ? group_size : packed_number(config, "group_size");
}

static bool unpack(const struct packing_input *input, const struct tensor *key, struct unpacked *unpacked,
                   struct error *error)
{
    struct packed packed = packed_begin(input, key, own, unpacked, error);
    struct arena *arena = input->arena;
    const struct view *words = tensor_view(key, arena), *scales, *biases;
    uint64_t group_size = group_size_of(&packed), n_columns;
    packed_name(&packed, own);
    if ((scales = packed_need(&packed, ".scales", F16_F32)) == NULL ||
        (biases = packed_need(&packed, ".biases", F16_F32)) == NULL)
        return false;
    if (!packed_is_matrix(words) || !packed_is_matrix(scales) ||
        !packed_check(&packed, ".scales", scales, words->shape[0], scales->shape[1]) ||
        !packed_check(&packed, ".biases", biases, scales->shape[0], scales->shape[1]))
        return packed_misfit(&packed, own, words, "which does not fit its scales and biases");
    if (group_size == 0 || group_size > (1 << 20))
        return error_set(error, "the configuration has no group_size");
    n_columns = group_size * scales->shape[1];
    uint64_t bits = words->shape[1] * 32 / n_columns;
    if (bits < 1 || bits > 8 || bits * n_columns != words->shape[1] * 32 || n_columns % 8 != 0)
        return packed_misfit(&packed, own, words, "which is not of whole bits for %" PRIu64 " columns", n_columns);
    const struct fields fields = fields_of_stream((unsigned)bits), of_words = fields_of_words(32, (unsigned)bits);
    const struct sharing sharing = {1, group_size, NULL};
    const struct view *codes = 32 % bits == 0 ? view_fields(arena, words, &of_words)
                                              : view_fields(arena, view_reinterpret(arena, words, &u8_dtype), &fields);
    unpacked->view = view_combine(arena, view_combine(arena, codes, MULTIPLY, scales, &sharing), ADD, biases, &sharing);
    unpacked->bits = (unsigned)bits;
    unpacked->forms->repacked = view_of_repacked(
        arena, &(struct repacking){codes, scales, biases, .bits = (unsigned)bits, .group_size = group_size});
    return true;
}

const struct packing mlx_packing = {
    .name = "mlx",
    .methods = {"mlx"},
    .summary = "MLX's integers with scales and biases",
    .place = IN_PLACE,
    .is_key = is_key,
    .unpack = unpack,
};
