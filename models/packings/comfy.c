/* ComfyUI's quantized layers.
 *
 * The file says which layers are quantized, and how: X.comfy_quant holds the text of a JSON object, or the key
 * `_quantization_metadata` of the header has one for each layer, which counts if both exist. The scales of older files
 * are named X.scale_weight, and `scaled_fp8` marks such a file. Names say nothing in a file with marks: what has a
 * scale and no mark is refused, and so are formats and options that are not known.
 *
 * float8_e4m3fn, float8_e5m2: X.weight times X.weight_scale, one number. int8_tensorwise: I8 times one number, or one
 * for each row; with `convrot`, groups of columns then turned back by the regular Hadamard matrix. mxfp8: E4M3 times
 * powers of 2 for 32 columns. nvfp4: bytes of two E2M1 codes, the first in the high half, times E4M3 scales for 16
 * columns times X.weight_scale_2; X.pre_quant_scale multiplies inputs, so it is folded into the columns. The scales of
 * blocks lie in tiles of 128 rows and 4 columns (tiled_scales()).
 *
 * The codes of mxfp8 and nvfp4 are padded with zeros to multiples of 32 and 16. The bias, or `orig_shape`, tells how
 * many rows are real; only `orig_shape` tells how many columns are. Layers of experts have one more dimension.
 *
 * Source: comfy/ops.py and comfy/utils.py of ComfyUI, comfy_kitchen's layouts and its eager backend. */
#include "models/packings/packed.h"
#include "quant/views/hadamard.h"

#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { MAX_MARK_BYTES = 4096, MAX_SIDES = 3, DEFAULT_ROTATED = 256 };

static const char own[] = ".weight", mark_suffix[] = ".comfy_quant", scale_suffix[] = ".weight_scale",
                  old_suffix[] = ".scale_weight", inputs_suffix[] = ".pre_quant_scale";

static const struct packing_key keys[] = {{own, mark_suffix}, {own, old_suffix}, {own}, {0}};

/* A layer, as its mark describes it. */
struct layer {
    uint64_t rotated; /* columns of a group that a rotation has mixed; 0: none */
    const struct dtype *dtype;
    uint64_t shape[MAX_SIDES]; /* without padding */
    unsigned rank;             /* 0: the mark does not tell */
};

struct format {
    const char *name, *dtype;
    bool (*unpack)(struct packed *packed, const struct layer *layer, const struct view **ret_values);
    uint64_t group; /* columns that share a scale, to whose multiples both sides are padded; 0: neither is */
    unsigned bits, title;
    bool scales_inputs; /* X.pre_quant_scale belongs to it */
};

/* Returns the text of a layer in the header's object; ComfyUI looks for it by the name without the model's prefix. */
static const struct json *described_layer(const struct packing_input *input, const struct tensor *tensor)
{
    static const char *const prefixes[] = {
        "", "model.diffusion_model.", "diffusion_model.", "model.model.", "model.", "net."};
    size_t length = tensor->name_length - strlen(own);
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        size_t skipped = strlen(prefixes[i]);
        if (skipped > length || strncmp(tensor->name, prefixes[i], skipped) != 0)
            continue;
        const struct json *layer = json_get_n(input->comfy_layers, tensor->name + skipped, length - skipped);
        if (layer != NULL)
            return layer;
    }
    return NULL;
}

/* A file without marks is left to other packings; in one with marks every weight of codes is ComfyUI's. */
static bool is_key(const struct packing_input *input, const struct tensor *tensor)
{
    const struct tensor_set *set = input->set;
    if (!input->has_comfy_marks && !input->has_old_comfy_marks)
        return false;
    if (input->comfy_layers != NULL && described_layer(input, tensor) != NULL)
        return true;
    if (packing_partner(set, tensor, own, mark_suffix) != NULL)
        return true;
    if (packing_partner(set, tensor, own, old_suffix) != NULL)
        return true;
    bool is_code = tensor->dtype->block_elements == 1 && tensor->dtype->block_bytes == 1 && tensor->rank >= 2;
    return input->has_comfy_marks && is_code &&
           (tensor->dtype->kind == DTYPE_INTEGER || packing_partner(set, tensor, own, scale_suffix) != NULL);
}

/* Options. */

static bool misread(struct packed *packed, const char *key)
{
    return error_set(packed->error, "'%.60s' of the ComfyUI layer has a value that is not supported", key);
}

static bool read_shape(struct packed *packed, const struct json *value, struct layer *layer)
{
    uint64_t side;
    unsigned rank = 0;
    for (const struct json *at = json_first(value); at != NULL; at = json_next(at)) {
        if (rank == MAX_SIDES || !json_u64(at, &side) || side == 0)
            return misread(packed, "orig_shape");
        layer->shape[rank++] = side;
    }
    layer->rank = rank;
    return rank >= 2 || misread(packed, "orig_shape");
}

static bool read_dtype(struct packed *packed, const struct json *value, struct layer *layer)
{
    static const struct {
        const char *name, *dtype;
    } names[] = {{"torch.bfloat16", "BF16"}, {"torch.float16", "F16"}, {"torch.float32", "F32"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (json_string_is(value, names[i].name) || json_string_is(value, names[i].name + strlen("torch.")))
            layer->dtype = dtype_by_name(names[i].dtype);
    return layer->dtype != NULL || misread(packed, "orig_dtype");
}

static bool is_number(const struct json *value, uint64_t expected)
{
    uint64_t number;
    return json_u64(value, &number) && number == expected;
}

/* Reads an option that is not the format's name. */
static bool read_option(struct packed *packed, const struct format *format, const struct json_member *option,
                        struct layer *layer)
{
    const char *key = option->key;
    const struct json *value = option->value;
    bool is_int8 = strcmp(format->dtype, "I8") == 0, is_flag = json_is(value, JSON_TRUE) || json_is(value, JSON_FALSE);
    if (strcmp(key, "full_precision_matrix_mult") == 0 || (is_int8 && strcmp(key, "per_row") == 0))
        return is_flag || misread(packed, key); /* of the product, and of the scale, which shows itself */
    if (strcmp(key, "num_experts") == 0)
        return (packed->key->rank == 3 && is_number(value, packed->key->shape[0])) || misread(packed, key);
    if (strcmp(key, "group_size") == 0)
        return (format->group > 0 && is_number(value, format->group)) || misread(packed, key);
    if (strcmp(key, "orig_shape") == 0)
        return read_shape(packed, value, layer);
    if (strcmp(key, "orig_dtype") == 0)
        return read_dtype(packed, value, layer);
    if (is_int8 && strcmp(key, "convrot") == 0) {
        if (json_is(value, JSON_TRUE) && layer->rotated == 0)
            layer->rotated = DEFAULT_ROTATED;
        return is_flag || misread(packed, key);
    }
    if (is_int8 && strcmp(key, "convrot_groupsize") == 0)
        return json_u64(value, &layer->rotated) || misread(packed, key);
    return error_set(packed->error, "the option '%.60s' of ComfyUI's %s is not supported", key, format->name);
}

/* Reads the options, and those in `params`, where older files have some. */
static bool read_options(struct packed *packed, const struct format *format, const struct json *mark,
                         struct layer *layer)
{
    const struct json *params = json_get(mark, "params"), *objects[] = {params, mark};
    for (unsigned i = 0; i < 2; i++)
        for (struct json_member option = {0}; json_next_member(objects[i], &option);) {
            bool is_read = strcmp(option.key, "format") == 0 || option.value == params;
            if (!is_read && !read_option(packed, format, &option, layer))
                return false;
        }
    const struct json *own_flag = json_get(mark, "convrot"),
                      *flag = own_flag != NULL ? own_flag : json_get(params, "convrot");
    if (!json_bool(flag, false))
        layer->rotated = 0;
    return true;
}

/* Values. */

static const struct view *flat(struct arena *arena, const struct view *view)
{
    return view_reshape(arena, view, 1, &view->n_elements);
}

/* Multiplies by one scale, or one for each row, or for each matrix of experts. */
static bool scale_by(struct packed *packed, const char *suffix, const struct view *codes,
                     const struct view **ret_values)
{
    struct arena *arena = packed->input->arena;
    const struct view *scale = packed_need(packed, suffix, F16_F32);
    uint64_t n_columns = view_row_elements(codes), shape[2] = {0, 1};
    if (scale == NULL)
        return false;
    if (codes->n_elements == 0)
        return packed_misfit(packed, own, codes, "a weight has elements");
    if (scale->n_elements == 1) {
        *ret_values = view_combine_one(arena, codes, MULTIPLY, flat(arena, scale));
        return true;
    }
    uint64_t n_rows = codes->n_elements / n_columns, n_matrices = view_matrices(codes);
    bool is_by_row = scale->n_elements == n_rows && (scale->rank == 1 || scale->shape[scale->rank - 1] == 1);
    bool is_by_matrix = codes->rank == 3 && scale->n_elements == n_matrices && scale->shape[0] == n_matrices;
    if (codes->rank < 2 || codes->rank > 3 || (!is_by_row && !is_by_matrix))
        return packed_misfit(packed, suffix, scale, "the weight has %" PRIu64 " rows", n_rows);
    shape[0] = scale->n_elements;
    const uint64_t rows[2] = {n_rows, n_columns};
    const struct sharing sharing = {n_rows / scale->n_elements, n_columns, NULL};
    const struct view *values = view_combine(arena, view_reshape(arena, codes, 2, rows), MULTIPLY,
                                             view_reshape(arena, scale, 2, shape), &sharing);
    *ret_values = view_reshape(arena, values, codes->rank, codes->shape);
    return true;
}

static bool unpack_scaled(struct packed *packed, const struct layer *layer, const struct view **ret_values)
{
    const struct tensor *key = packed->key;
    bool is_old = packing_partner(packed->input->set, key, own, scale_suffix) == NULL &&
                  packing_partner(packed->input->set, key, own, old_suffix) != NULL;
    struct arena *arena = packed->input->arena;
    if (!scale_by(packed, is_old ? old_suffix : scale_suffix, tensor_view(key, arena), ret_values))
        return false;
    if (layer->rotated == 0)
        return true;
    if (!hadamard_has_size(HADAMARD_REGULAR, layer->rotated) || view_row_elements(*ret_values) % layer->rotated != 0)
        return packed_misfit(packed, own, *ret_values, "its rotation has groups of %" PRIu64 " columns",
                             layer->rotated);
    *ret_values = view_hadamard(arena, *ret_values, HADAMARD_REGULAR, layer->rotated);
    return true;
}

/* Returns the scales of blocks as rows and columns, [matrices *] rows x columns. A tile is 32 x 4 x 4: row r of 128 is
 * at [r % 32][r / 32], and rows and columns are padded to whole tiles. */
static const struct view *tiled_scales(struct packed *packed, const struct dtype *dtype, uint64_t n_rows,
                                       uint64_t n_columns, uint64_t n_matrices)
{
    enum { TILE_ROWS = 128, TILE_COLUMNS = 4, TILE = TILE_ROWS * TILE_COLUMNS, DEEP = 32, WIDE = 16 };
    struct arena *arena = packed->input->arena;
    const struct view *stored = packed_need(packed, scale_suffix, U8 | F8 | E8M0);
    uint64_t down = rounded_up(n_rows, TILE_ROWS), across = rounded_up(n_columns, TILE_COLUMNS), n_tiles;
    if (stored == NULL)
        return NULL;
    if (!checked_multiply(down, across, &n_tiles) || stored->n_elements % TILE != 0 ||
        stored->n_elements / TILE % n_matrices != 0 || stored->n_elements / TILE / n_matrices != n_tiles) {
        packed_misfit(packed, scale_suffix, stored,
                      "%" PRIu64 " x %" PRIu64 " scales fill %" PRIu64 " x %" PRIu64 " tiles of 128 x 4", n_rows,
                      n_columns, down, across);
        return NULL;
    }
    const uint64_t tiles[6] = {n_matrices, down, TILE_ROWS / DEEP, DEEP, across, TILE_COLUMNS},
                   strides[6] = {n_tiles * TILE, across * TILE, TILE_COLUMNS, WIDE, TILE, 1},
                   whole[3] = {n_matrices, down * TILE_ROWS, across * TILE_COLUMNS};
    const struct view *scales = view_reinterpret(arena, flat(arena, stored), dtype);
    scales = view_reshape(arena, view_strided(arena, scales, 6, tiles, 0, strides), 3, whole);
    scales = view_slice(arena, scales, 1, 0, n_rows, 1);
    scales = view_slice(arena, scales, 2, 0, n_columns, 1);
    const uint64_t rows[2] = {n_matrices * n_rows, n_columns};
    return view_reshape(arena, scales, 2, rows);
}

/* Multiplies codes, one row after another, by scales of `group` columns. */
static const struct view *scale_groups(struct arena *arena, const struct view *codes, const struct view *scales,
                                       uint64_t group)
{
    const uint64_t rows[2] = {scales->shape[0], scales->shape[1] * group};
    const struct sharing sharing = {1, group, NULL};
    const struct view *values = view_combine(arena, view_reshape(arena, codes, 2, rows), MULTIPLY, scales, &sharing);
    return view_reshape(arena, values, codes->rank, codes->shape);
}

/* Reports whether codes are matrices of whole groups; else sets the error. */
static bool has_groups(struct packed *packed, const struct view *codes, uint64_t group)
{
    return ((codes->rank == 2 || codes->rank == 3) && codes->n_elements > 0 && view_row_elements(codes) % group == 0) ||
           packed_misfit(packed, own, tensor_view(packed->key, packed->input->arena),
                         "a weight has rows of whole groups of %" PRIu64 " columns", group);
}

static bool unpack_mxfp8(struct packed *packed, const struct layer *layer, const struct view **ret_values)
{
    enum { GROUP = 32 };
    struct arena *arena = packed->input->arena;
    const struct view *codes = tensor_view(packed->key, arena);
    if (!has_groups(packed, codes, GROUP))
        return false;
    const struct view *scales = tiled_scales(packed, &u8_dtype, codes->shape[codes->rank - 2],
                                             view_row_elements(codes) / GROUP, view_matrices(codes));
    if (scales == NULL)
        return false;
    *ret_values = scale_groups(arena, codes, packed_powers(arena, scales, 0), GROUP);
    return true;
}

/* Multiplies the scales of blocks by the scale of the whole weight, or of each matrix. */
static const struct view *scale_scales(struct packed *packed, const struct view *scales, uint64_t n_matrices)
{
    static const char suffix[] = ".weight_scale_2";
    struct arena *arena = packed->input->arena;
    const struct view *whole = packed_need(packed, suffix, F16_F32);
    if (whole == NULL)
        return NULL;
    if (whole->n_elements == 1)
        return view_combine_one(arena, scales, MULTIPLY, flat(arena, whole));
    if (whole->n_elements != n_matrices) {
        packed_misfit(packed, suffix, whole, "the weight has %" PRIu64 " matri%s", n_matrices,
                      n_matrices == 1 ? "x" : "ces");
        return NULL;
    }
    const uint64_t column[2] = {n_matrices, 1};
    const struct sharing sharing = {scales->shape[0] / n_matrices, scales->shape[1], NULL};
    return view_combine(arena, scales, MULTIPLY, view_reshape(arena, whole, 2, column), &sharing);
}

static bool unpack_nvfp4(struct packed *packed, const struct layer *layer, const struct view **ret_values)
{
    enum { GROUP = 16 };
    static const float levels[] = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6, -0.0F, -0.5F, -1, -1.5F, -2, -3, -4, -6};
    static const uint64_t n_levels[1] = {16};
    static const struct fields halves = {.word_units = 1, .n_fields = 2, .bits = 4, .shifts = {4, 0}};
    struct arena *arena = packed->input->arena;
    const struct view *codes = tensor_view(packed->key, arena);
    if (!has_groups(packed, codes, GROUP / 2))
        return false;
    codes = view_lookup(arena, view_fields(arena, codes, &halves), view_numbers(arena, 1, n_levels, levels));
    const struct view *scales = tiled_scales(packed, dtype_by_name("F8_E4M3"), codes->shape[codes->rank - 2],
                                             view_row_elements(codes) / GROUP, view_matrices(codes));
    if (scales != NULL)
        scales = scale_scales(packed, scales, view_matrices(codes));
    if (scales == NULL)
        return false;
    *ret_values = scale_groups(arena, codes, scales, GROUP);
    return true;
}

static const struct format formats[] = {
    {"float8_e4m3fn", "F8_E4M3", unpack_scaled, 0, 8, 0, false},
    {"float8_e5m2", "F8_E5M2", unpack_scaled, 0, 8, 0, false},
    {"int8_tensorwise", "I8", unpack_scaled, 0, 8, 0, false},
    {"mxfp8", "F8_E4M3", unpack_mxfp8, 32, 8, 1, false},
    {"nvfp4", "U8", unpack_nvfp4, 16, 4, 2, true},
};

static const struct format *format_named(const char *name)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (name != NULL && strcmp(formats[i].name, name) == 0)
            return &formats[i];
    return NULL;
}

/* Finds out the sides without padding: `real` has those of the values. */
static bool find_sides(struct packed *packed, const struct format *format, const struct layer *layer, unsigned rank,
                       uint64_t *real)
{
    const struct tensor_set *set = packed->input->set;
    const struct tensor *bias = packing_partner(set, packed->key, own, ".bias"),
                        *inputs = packing_partner(set, packed->key, own, inputs_suffix);
    if (layer->rank > 0 && layer->rank != rank)
        return misread(packed, "orig_shape");
    if (layer->rank > 0)
        memcpy(real, layer->shape, rank * sizeof *real);
    if (layer->rank == 0 && bias != NULL && bias->rank + 1U == rank)
        real[rank - 2] = bias->shape[bias->rank - 1];
    if (layer->rank == 0 && inputs != NULL && inputs->rank == 1 && format->scales_inputs)
        real[rank - 1] = inputs->shape[0];
    return true;
}

/* Cuts off the padding of codes in groups. */
static bool cut(struct packed *packed, const struct format *format, const struct layer *layer,
                const struct view **values)
{
    unsigned rank = (*values)->rank;
    uint64_t real[MAX_SIDES];
    if (rank > MAX_SIDES || (format->group == 0 && layer->rank == 0))
        return true;
    memcpy(real, (*values)->shape, rank * sizeof *real);
    if (!find_sides(packed, format, layer, rank, real))
        return false;
    for (unsigned i = 0; i < rank; i++) {
        uint64_t stored = (*values)->shape[i], most = i + 2 >= rank && format->group > 0 ? format->group - 1 : 0;
        if (real[i] == 0 || real[i] > stored || stored - real[i] > most)
            return packed_misfit(packed, own, *values, "the layer has %" PRIu64 " %s", real[i],
                                 i + 1 == rank ? "columns" : "rows");
        if (real[i] < stored)
            *values = view_slice(packed->input->arena, *values, i, 0, real[i], 1);
    }
    return true;
}

/* Returns the dtype of the bias, which the weight had, too; NULL: there is no bias. */
static const struct dtype *dtype_of_bias(const struct packed *packed)
{
    const struct tensor *bias = packing_partner(packed->input->set, packed->key, own, ".bias");
    bool is_wide = bias != NULL && bias->dtype->kind == DTYPE_FLOAT &&
                   (bias->dtype->block_bytes == 2 || bias->dtype->block_bytes == 4);
    return is_wide ? bias->dtype : NULL;
}

static bool unpack_as(struct packed *packed, const struct format *format, const struct json *mark)
{
    struct layer layer = {0};
    const struct view *values;
    if (!read_options(packed, format, mark, &layer))
        return false;
    if (strcmp(packed->key->dtype->name, format->dtype) != 0)
        return error_set(packed->error, "the weight is stored as %s, and ComfyUI's %s is stored as %s",
                         packed->key->dtype->name, format->name, format->dtype);
    if (!format->unpack(packed, &layer, &values) || !cut(packed, format, &layer, &values) ||
        (format->scales_inputs && !packed_scale_inputs(packed, inputs_suffix, &values)))
        return false;
    packed->unpacked->view = values;
    packed->unpacked->bits = (uint8_t)format->bits;
    packed->unpacked->title = (uint8_t)format->title;
    packed->unpacked->forms->dtype = layer.dtype != NULL ? layer.dtype : dtype_of_bias(packed);
    return true;
}

/* Unpacks a weight of an older file. Layers of higher precision have scales, too. */
static bool unpack_old(struct packed *packed)
{
    const struct dtype *dtype = packed->key->dtype;
    const struct layer layer = {0};
    if (dtype->kind != DTYPE_FLOAT || dtype->block_elements != 1)
        return error_set(packed->error, "the weight is stored as %s, and '%s' scales floats", dtype->name, old_suffix);
    packed->unpacked->bits = (uint8_t)(dtype->block_bytes * 8);
    packed->unpacked->forms->dtype = dtype_of_bias(packed);
    return unpack_scaled(packed, &layer, &packed->unpacked->view);
}

static bool unpack_marked(struct packed *packed, const struct json *mark)
{
    const char *name = json_string(json_get(mark, "format"), NULL);
    const struct format *format = format_named(name);
    if (format == NULL)
        return error_set(packed->error, "ComfyUI's quantization format '%.60s' is not supported",
                         name != NULL ? name : "");
    return unpack_as(packed, format, mark);
}

/* Reads the mark, and unpacks the weight by it. */
static bool unpack_by_tensor(struct packed *packed)
{
    char text[MAX_MARK_BYTES];
    struct error reason;
    const struct view *view = packed_need(packed, mark_suffix, U8);
    if (view == NULL)
        return false;
    if (view->n_elements > sizeof text)
        return packed_misfit(packed, mark_suffix, view, "must be no longer than %zu bytes", sizeof text);
    if (!view_read(view, 0, view_units(view), text, packed->error))
        return false;
    struct json_document *document = json_parse(text, view->n_elements, &reason);
    bool good = document != NULL ? unpack_marked(packed, json_root(document))
                                 : packed_misfit(packed, mark_suffix, view, "must hold JSON: %s", reason.message);
    json_free(document);
    return good;
}

static bool unpack(struct packed *packed)
{
    const struct tensor *key = packed->key;
    const struct tensor_set *set = packed->input->set;
    const struct json *described = described_layer(packed->input, key);
    bool has_mark = packing_partner(set, key, own, mark_suffix) != NULL;
    if (described != NULL && has_mark) {
        const struct view *unused;
        return packed_find(packed, mark_suffix, U8, &unused) && unpack_marked(packed, described);
    }
    if (described != NULL)
        return unpack_marked(packed, described);
    if (has_mark)
        return unpack_by_tensor(packed);
    if (packing_partner(set, key, own, old_suffix) != NULL)
        return unpack_old(packed);
    return error_set(packed->error, "the weight is stored as %s, and no mark of ComfyUI's describes it",
                     key->dtype->name);
}

/* Scales of activations. */
static const char *const beside[] = {".input_scale", ".scale_input", NULL};

const struct packing comfy_packing = {
    .name = "comfy",
    .titles = {NULL, "MXFP8", "NVFP4"},
    .summary = "ComfyUI's FP8, INT8, MXFP8 and NVFP4",
    .place = IN_PLACE,
    .beside = beside,
    .keys = keys,
    .is_key = is_key,
    .unpack = unpack,
};
