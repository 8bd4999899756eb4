/* MLX: integers of 2 to 8 bits in a stream of words, each group with a scale and a bias, or floats of 4 and 8 bits,
 * each group with a scale.
 *
 * A weight B.weight [..., rows, columns] is stored as U32 [..., rows, columns * bits / 32], with the first element in
 * the least significant bits. config.json's `quantization` has the mode, the size of groups and the bits; an entry with
 * the layer's name replaces all three:
 *
 *     affine  B.scales and B.biases [..., rows, groups]: code * scale + bias
 *     mxfp4   B.scales U8, exponents of 2 for 32 columns: E2M1 * 2^(scale - 127)
 *     mxfp8   like mxfp4, with E4M3
 *     nvfp4   B.scales U8, E4M3 for 16 columns: E2M1 * scale
 *
 * Weights that mx.quantize() would not make are refused: another mode, a size of groups other than the mode's, and bits
 * that do not fit the shapes. */
#include "models/packings/repack.h"

#include <inttypes.h>
#include <string.h>

static const char own[] = ".weight";

enum { DEFAULT_GROUP_SIZE = 64, MAX_GROUP_SIZE = 1 << 20 };

struct parts {
    struct arena *arena;
    const struct view *words, *scales, *biases; /* matrices; floats have no biases */
    struct sharing sharing;
    unsigned bits;
    struct unpacked_forms *forms;
};

static const struct view *unpack_affine(const struct parts *parts)
{
    struct arena *arena = parts->arena;
    const struct fields of_stream = fields_of_stream(parts->bits), of_words = fields_of_words(32, parts->bits);
    const struct view *codes = 32 % parts->bits == 0
                                   ? view_fields(arena, parts->words, &of_words)
                                   : view_fields(arena, view_reinterpret(arena, parts->words, &u8_dtype), &of_stream);
    if (parts->forms != NULL)
        parts->forms->repacked =
            view_of_repacked(arena, &(struct repacking){codes, parts->scales, parts->biases, .bits = parts->bits,
                                                        .group_size = parts->sharing.columns});
    const struct view *product = view_combine(arena, codes, MULTIPLY, parts->scales, &parts->sharing);
    return view_combine(arena, product, ADD, parts->biases, &parts->sharing);
}

static const struct view *unpack_mxfp4(const struct parts *parts)
{
    return packed_mxfp4(parts->arena, view_reinterpret(parts->arena, parts->words, &u8_dtype), parts->scales);
}

static const struct view *multiply_floats(const struct parts *parts, const char *dtype, const struct view *scales)
{
    const struct view *bytes = view_reinterpret(parts->arena, parts->words, &u8_dtype);
    const struct view *floats = view_reinterpret(parts->arena, bytes, dtype_by_name(dtype));
    return view_combine(parts->arena, floats, MULTIPLY, scales, &parts->sharing);
}

static const struct view *unpack_mxfp8(const struct parts *parts)
{
    return multiply_floats(parts, "F8_E4M3", packed_powers(parts->arena, parts->scales, 0x1p-127F));
}

static const struct view *unpack_nvfp4(const struct parts *parts)
{
    return multiply_floats(parts, "F4", view_reinterpret(parts->arena, parts->scales, dtype_by_name("F8_E4M3")));
}

static const struct mode {
    const char *name;
    uint64_t group_size, bits; /* 0: from the configuration */
    unsigned scales;           /* their kinds of dtypes */
    bool has_biases;
    const struct view *(*unpack)(const struct parts *parts);
} modes[] = {
    {"affine", 0, 0, F16_F32, true, unpack_affine},
    {"mxfp4", 32, 4, U8, false, unpack_mxfp4},
    {"mxfp8", 32, 8, U8, false, unpack_mxfp8},
    {"nvfp4", 16, 4, U8, false, unpack_nvfp4},
};

/* The packing of one weight. */
struct way {
    const struct mode *mode;
    uint64_t group_size, bits; /* bits 0: from the shapes */
};

static const struct packing_key keys[] = {{own, ".scales"}, {0}};

static bool is_key(const struct packing_input *input, const struct tensor *tensor)
{
    return tensor->dtype->block_bytes == 4 && tensor->dtype->kind == DTYPE_INTEGER;
}

static bool find_mode(const struct json *said, const struct mode **ret_mode, struct error *error)
{
    const char *name = json_string(said, NULL);
    *ret_mode = &modes[0];
    if (said == NULL || json_is(said, JSON_NULL))
        return true;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (json_string_is(said, modes[i].name)) {
            *ret_mode = &modes[i];
            return true;
        }
    if (name == NULL)
        return error_set(error, "quantization.mode is not a string");
    return error_set(error, "the quantization mode '%.40s' is not supported", name);
}

/* Reads a number, which must be `fixed` unless that is 0; if it is absent, returns `fixed` or `otherwise`. */
static bool find_number(const struct json *said, const char *name, uint64_t fixed, uint64_t otherwise,
                        uint64_t *ret_number, struct error *error)
{
    *ret_number = fixed != 0 ? fixed : otherwise;
    if (said == NULL || json_is(said, JSON_NULL))
        return true;
    if (!json_u64(said, ret_number) || *ret_number == 0 || *ret_number > MAX_GROUP_SIZE)
        return error_set(error, "quantization.%s is not a number from 1 to %d", name, MAX_GROUP_SIZE);
    return fixed == 0 || *ret_number == fixed ||
           error_set(error, "quantization.%s is %" PRIu64 ", but its mode needs %" PRIu64, name, *ret_number, fixed);
}

/* Finds the packing of a weight as MLX does: an entry for the layer itself has its own defaults. */
static bool find_way(const struct packed *packed, struct way *way)
{
    const struct json *own_config = json_get(packed->input->model, "quantization"),
                      *config = json_is(own_config, JSON_OBJECT) ? own_config : packed->input->config,
                      *entry = json_get_n(config, packed->key->name, packed->stem);
    if (json_is(entry, JSON_FALSE))
        return error_set(packed->error, "config.json declares this layer unquantized, but it is packed");
    const struct json *layer = json_is(entry, JSON_OBJECT) ? entry : config, *group_size;
    if (!find_mode(json_get(layer, "mode"), &way->mode, packed->error))
        return false;
    group_size = json_get(layer, "group_size");
    if (group_size == NULL && layer == config && way->mode->group_size == 0)
        return error_set(packed->error, "config.json has no quantization.group_size");
    return find_number(group_size, "group_size", way->mode->group_size, DEFAULT_GROUP_SIZE, &way->group_size,
                       packed->error) &&
           find_number(json_get(layer, "bits"), "bits", way->mode->bits, 0, &way->bits, packed->error);
}

/* Returns the rows of experts, or other stacked matrices, as one matrix. */
static const struct view *flat(struct arena *arena, const struct view *view)
{
    uint64_t n_columns = view->shape[view->rank - 1];
    return view_reshape(arena, view, 2, (const uint64_t[]){view->n_elements / n_columns, n_columns});
}

/* Reports whether a part has the rows of the words, and `n_columns` columns. */
static bool fits(const struct packed *packed, const char *suffix, const struct view *part, const struct view *words,
                 uint64_t n_columns)
{
    return (part->rank == words->rank &&
            memcmp(part->shape, words->shape, (part->rank - 1u) * sizeof *part->shape) == 0 &&
            part->shape[part->rank - 1] == n_columns) ||
           packed_misfit(packed, suffix, part, "must have the rows of the weight, and %" PRIu64 " columns", n_columns);
}

static bool find_parts(struct packed *packed, const struct way *way, const struct view *words, struct parts *parts)
{
    const struct view *scales = packed_need(packed, ".scales", way->mode->scales), *biases;
    if (scales == NULL || !packed_find(packed, ".biases", F16_F32, &biases))
        return false;
    if ((biases != NULL) != way->mode->has_biases)
        return error_set(packed->error,
                         biases != NULL ? "the quantization mode '%s' has no biases, but this weight has biases"
                                        : "the quantization mode '%s' needs biases, but this weight has none",
                         way->mode->name);
    if (words->rank < 2 || words->n_elements == 0 || scales->rank < 2 || scales->n_elements == 0)
        return packed_misfit(packed, own, words, "the weight and its scales must have rows and columns");
    uint64_t n_groups = scales->shape[scales->rank - 1];
    if (!fits(packed, ".scales", scales, words, n_groups) ||
        (biases != NULL && !fits(packed, ".biases", biases, words, n_groups)))
        return false;
    *parts = (struct parts){.arena = packed->input->arena,
                            .words = flat(packed->input->arena, words),
                            .scales = flat(packed->input->arena, scales),
                            .biases = biases != NULL ? flat(packed->input->arena, biases) : NULL,
                            .sharing = {1, way->group_size, NULL}};
    return true;
}

static bool find_bits(const struct packed *packed, const struct way *way, const struct view *words, struct parts *parts)
{
    uint64_t n_columns = way->group_size * parts->scales->shape[1], n_bits = parts->words->shape[1] * 32,
             bits = n_bits / n_columns;
    if (bits < 1 || bits > 8 || bits == 7 || bits * n_columns != n_bits || n_columns % 8 != 0)
        return packed_misfit(packed, own, words, "must hold %" PRIu64 " columns (a multiple of 8) of 1 to 6 or 8 bits",
                             n_columns);
    if (way->bits != 0 && way->bits != bits)
        return packed_misfit(packed, own, words, "the shapes make %" PRIu64 " bits, and config.json says %" PRIu64,
                             bits, way->bits);
    parts->bits = (unsigned)bits;
    return true;
}

static bool unpack(struct packed *packed)
{
    const struct view *words = tensor_view(packed->key, packed->input->arena);
    uint64_t shape[VIEW_MAX_RANK];
    struct parts parts;
    struct way way;
    if (!find_way(packed, &way) || !find_parts(packed, &way, words, &parts) || !find_bits(packed, &way, words, &parts))
        return false;
    parts.forms = words->rank == 2 ? packed->unpacked->forms : NULL;
    memcpy(shape, words->shape, words->rank * sizeof *shape);
    shape[words->rank - 1] = parts.scales->shape[1] * way.group_size;
    packed->unpacked->view = view_reshape(packed->input->arena, way.mode->unpack(&parts), words->rank, shape);
    packed->unpacked->bits = (uint8_t)parts.bits;
    packed->unpacked->title = (uint8_t)(way.mode - modes);
    return true;
}

const struct packing mlx_packing = {
    .name = "mlx",
    .titles = {"MLX", "MLX MXFP4", "MLX MXFP8", "MLX NVFP4"}, /* in the order of modes */
    .methods = {"mlx"},
    .summary = "MLX's integers with scales and biases, and its mxfp4, mxfp8 and nvfp4",
    .place = IN_PLACE,
    .keys = keys,
    .is_key = is_key,
    .unpack = unpack,
};
