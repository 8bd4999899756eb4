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
 * Ollama's stores have the parts B.weight.scale, B.weight.bias and B.weight.global_scale, F32, which multiplies the
 * values of nvfp4. Integers of 4 and 8 bits have groups of 64; the ratio of words to groups tells the kinds apart.
 *
 * Weights that mx.quantize() would not make are refused: another mode, a size of groups other than the mode's, and bits
 * that do not fit the shapes. */
#include "models/packings/packed.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char own[] = ".weight";

enum { DEFAULT_GROUP_SIZE = 64, MAX_GROUP_SIZE = 1 << 20 };

struct parts {
    struct arena *arena;
    const struct view *words, *scales, *biases; /* matrices; floats have no biases */
    const struct view *factor;                  /* a number that multiplies all values; NULL: 1 */
    struct sharing sharing;
    unsigned bits;
    struct unpacked_forms *forms;
};

static const struct view *codes_of(const struct parts *parts)
{
    struct arena *arena = parts->arena;
    const struct fields of_stream = fields_of_stream(parts->bits), of_words = fields_of_words(32, parts->bits);
    if (32 % parts->bits == 0)
        return view_fields(arena, parts->words, &of_words);
    return view_fields(arena, view_reinterpret(arena, parts->words, &u8_dtype), &of_stream);
}

static const struct code_groups *keep_groups(const struct parts *parts)
{
    const struct code_groups groups = {
        .codes = codes_of(parts),
        .scales = parts->scales,
        .biases = parts->biases,
        .factor = parts->factor,
        .group_size = parts->sharing.columns,
        .bits = (uint8_t)parts->bits,
    };
    return arena_copy(parts->arena, &groups, sizeof groups);
}

static const struct view *unpack_affine(const struct parts *parts)
{
    struct arena *arena = parts->arena;
    const struct view *codes = codes_of(parts);
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

static const struct packing_key keys[] = {{own, ".scales"}, {own, ".weight.scale"}, {0}};

/* Names of a weight's parts: MLX's, and Ollama's, whose kind follows from the shapes. */
static const struct spelling {
    const char *scales, *biases, *factor;
} spellings[] = {{".scales", ".biases", NULL}, {".weight.scale", ".weight.bias", ".weight.global_scale"}};

static const struct spelling *spelling_of(const struct packed *packed)
{
    return &spellings[packed->spelling - keys];
}

static bool is_of_ollama(const struct packed *packed)
{
    return packed->spelling == &keys[1];
}

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

/* Compares the size of groups with the one that all blobs of the model state, if they state one: other sizes would make
 * other kinds of the same shapes. */
static bool check_group_size(const struct packed *packed, const struct way *way)
{
    static const char key[] = "group_size";
    const struct packing_input *input = packed->input;
    if (input->metadata == NULL || (input->differing != NULL && gguf_kvs_find(input->differing, key) != NULL))
        return true;
    const char *stated = gguf_get_text(input->metadata, key, input->arena);
    return stated == NULL || strtoull(stated, NULL, 10) == way->group_size ||
           error_set(packed->error, "its blob states groups of %.20s, and %s would have %" PRIu64, stated,
                     way->mode->name, way->group_size);
}

/* Finds the kind of a weight in Ollama's store by its scales and by its words for each group. */
static bool find_way_of_ollama(struct packed *packed, const struct view *words, struct way *way)
{
    static const struct {
        unsigned scales;
        uint64_t words_of_group;
        struct way way;
    } ways[] = {
        {F16_F32, 8, {&modes[0], 64, 4}}, {F16_F32, 16, {&modes[0], 64, 8}}, {U8, 4, {&modes[1], 32, 4}},
        {U8, 8, {&modes[2], 32, 8}},      {U8, 2, {&modes[3], 16, 4}},
    };
    const struct view *scales;
    struct error unused = *packed->error;
    uint64_t n_words = words->rank > 0 ? words->shape[words->rank - 1] : 0;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct packed trial = *packed;
        struct unpacked unpacked = *packed->unpacked;
        trial.unpacked = &unpacked;
        trial.error = &unused;
        if (!packed_find(&trial, ".weight.scale", ways[i].scales, &scales) || scales == NULL || scales->rank == 0 ||
            n_words != scales->shape[scales->rank - 1] * ways[i].words_of_group)
            continue;
        *way = ways[i].way;
        return check_group_size(packed, way);
    }
    return error_set(packed->error, "its words and scales fit none of int4, int8, mxfp4, mxfp8 and nvfp4");
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
    const struct spelling *spelling = spelling_of(packed);
    const struct view *scales = packed_need(packed, spelling->scales, way->mode->scales), *biases, *factor = NULL;
    if (scales == NULL || !packed_find(packed, spelling->biases, F16_F32, &biases) ||
        (spelling->factor != NULL && !packed_find(packed, spelling->factor, F16_F32, &factor)))
        return false;
    if (factor != NULL && (factor->n_elements != 1 || way->mode != &modes[3]))
        return packed_misfit(packed, spelling->factor, factor, "only nvfp4 has a factor, which is one number");
    if ((biases != NULL) != way->mode->has_biases)
        return error_set(packed->error,
                         biases != NULL ? "the quantization mode '%s' has no biases, but this weight has biases"
                                        : "the quantization mode '%s' needs biases, but this weight has none",
                         way->mode->name);
    if (words->rank < 2 || words->n_elements == 0 || scales->rank < 2 || scales->n_elements == 0)
        return packed_misfit(packed, own, words, "the weight and its scales must have rows and columns");
    uint64_t n_groups = scales->shape[scales->rank - 1];
    if (!fits(packed, spelling->scales, scales, words, n_groups) ||
        (biases != NULL && !fits(packed, spelling->biases, biases, words, n_groups)))
        return false;
    *parts = (struct parts){.arena = packed->input->arena,
                            .words = flat(packed->input->arena, words),
                            .scales = flat(packed->input->arena, scales),
                            .biases = biases != NULL ? flat(packed->input->arena, biases) : NULL,
                            .factor = factor,
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
    bool is_found = is_of_ollama(packed) ? find_way_of_ollama(packed, words, &way) : find_way(packed, &way);
    if (!is_found || !find_parts(packed, &way, words, &parts) || !find_bits(packed, &way, words, &parts))
        return false;
    parts.forms = words->rank == 2 ? packed->unpacked->forms : NULL;
    memcpy(shape, words->shape, words->rank * sizeof *shape);
    shape[words->rank - 1] = parts.scales->shape[1] * way.group_size;
    const struct view *values = way.mode->unpack(&parts);
    if (parts.factor != NULL)
        values = view_combine_one(parts.arena, values, MULTIPLY, parts.factor);
    packed->unpacked->forms->groups = keep_groups(&parts);
    packed->unpacked->view = view_reshape(packed->input->arena, values, words->rank, shape);
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
