/* bitsandbytes: NF4 and FP4 in blocks of the flattened weight, and integers of 8 bits by row.
 *
 * 4 bits: a weight B.weight [rows, columns] is stored as a column of bytes, under any dtype, with the first of two
 * elements in the high half; B.weight.absmax has a factor for each block; B.weight.quant_state.bitsandbytes__nf4 (or
 * __fp4) is the text of a JSON object with shape, block size and dtype. If the factors are packed, too, absmax has U8
 * codes of B.weight.nested_quant_map, with factors B.weight.nested_absmax and one offset. The kind gives the table: the
 * library ignores the stored map.
 *
 * 8 bits: B.weight I8 [rows, columns] times B.SCB [rows], then times 1 / 127 as the library writes it. */
#include "quant/pack/bitsandbytes.h"
#include "models/packings/packed.h"

#include <inttypes.h>
#include <math.h>

enum { MAX_STATE_BYTES = 4096, NESTED_MAP = 256, TABLE = 16 };

static const struct kind {
    const char *suffix; /* of the state's tensor */
    const char *name;   /* also in the state */
    const float *table;
} kinds[] = {
    {".weight.quant_state.bitsandbytes__nf4", "nf4", bnb_nf4_levels},
    {".weight.quant_state.bitsandbytes__fp4", "fp4", bnb_fp4_levels},
};

static const char own[] = ".weight";

static const struct kind *kind_of(const struct packing_input *input, const struct tensor *tensor)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (packing_partner(input->set, tensor, own, kinds[i].suffix) != NULL)
            return &kinds[i];
    return NULL;
}

static const struct packing_key keys[] = {{own, ".SCB"}, {own, ".weight.absmax"}, {0}};

static bool is_key(const struct packing_input *input, const struct tensor *tensor)
{
    return tensor->dtype->kind == DTYPE_INTEGER || packing_partner(input->set, tensor, own, ".weight.absmax") != NULL;
}

/* The contents of the state's JSON. */
struct state {
    uint64_t shape[2], block_size, nested_block_size;
    float nested_offset;
    const struct dtype *dtype;
};

static bool is_or_absent(const struct json *value, const char *text)
{
    return value == NULL || json_is(value, JSON_NULL) || json_string_is(value, text);
}

static bool read_state(const struct json *json, const struct kind *kind, struct state *state)
{
    static const struct {
        const char *name, *dtype;
    } names[] = {{"bfloat16", "BF16"}, {"float16", "F16"}, {"float32", "F32"}};
    const struct json *shape = json_get(json, "shape");
    double offset = 0;
    if (!is_or_absent(json_get(json, "quant_type"), kind->name) ||
        !is_or_absent(json_get(json, "nested_dtype"), "float32"))
        return false;
    *state = (struct state){.block_size = packed_number(json, "blocksize"),
                            .nested_block_size = packed_number(json, "nested_blocksize")};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (json_string_is(json_get(json, "dtype"), names[i].name))
            state->dtype = dtype_by_name(names[i].dtype);
    if (json_count(shape) != 2 || state->dtype == NULL || state->block_size == 0 ||
        !json_u64(json_at(shape, 0), &state->shape[0]) || !json_u64(json_at(shape, 1), &state->shape[1]))
        return false;
    bool has_offset = json_get(json, "nested_offset") != NULL;
    state->nested_offset = json_double(json_get(json, "nested_offset"), &offset) ? (float)offset : 0;
    return !has_offset || (state->nested_block_size > 0 && isfinite(state->nested_offset));
}

static bool find_state(struct packed *packed, const struct kind *kind, struct state *state)
{
    char text[MAX_STATE_BYTES];
    const struct view *view = packed_need(packed, kind->suffix, U8);
    struct error reason;
    if (view == NULL)
        return false;
    if (view->n_elements > sizeof text)
        return packed_misfit(packed, kind->suffix, view, "must be no longer than %zu bytes", sizeof text);
    if (!view_read(view, 0, view_units(view), text, packed->error))
        return false;
    struct json_document *document = json_parse(text, view->n_elements, &reason);
    bool good = document != NULL && read_state(json_root(document), kind, state);
    json_free(document);
    return good || packed_misfit(packed, kind->suffix, view, "must hold the state of a bitsandbytes weight");
}

/* Returns the factors of blocks, flat. */
static const struct view *find_factors(struct packed *packed, const struct state *state, uint64_t n_blocks)
{
    static const char codes_suffix[] = ".weight.absmax", map_suffix[] = ".weight.nested_quant_map",
                      nested_suffix[] = ".weight.nested_absmax";
    struct arena *arena = packed->input->arena;
    const struct view *codes = packed_need(packed, codes_suffix, U8 | F16_F32), *map, *nested;
    if (codes == NULL)
        return NULL;
    if (codes->n_elements != n_blocks) {
        packed_misfit(packed, codes_suffix, codes, "the weight has %" PRIu64 " blocks", n_blocks);
        return NULL;
    }
    codes = view_reshape(arena, codes, 1, &n_blocks);
    if (codes->dtype != &u8_dtype)
        return codes;
    if ((map = packed_need(packed, map_suffix, F16_F32)) == NULL ||
        (nested = packed_need(packed, nested_suffix, F16_F32)) == NULL)
        return NULL;
    if (map->n_elements != NESTED_MAP || state->nested_block_size == 0 ||
        nested->n_elements != rounded_up(n_blocks, state->nested_block_size)) {
        packed_misfit(packed, nested_suffix, nested, "the weight has %" PRIu64 " blocks in groups of %" PRIu64,
                      n_blocks, state->nested_block_size);
        return NULL;
    }
    const struct sharing sharing = {1, state->nested_block_size, NULL};
    uint64_t n_nested = nested->n_elements;
    codes = view_combine(arena, view_lookup(arena, codes, map), MULTIPLY, view_reshape(arena, nested, 1, &n_nested),
                         &sharing);
    return view_combine_number(arena, codes, ADD, state->nested_offset);
}

static bool unpack_4(struct packed *packed, const struct kind *kind)
{
    static const struct fields fields = {1, 2, 4, {4, 0}};
    static const uint64_t table_shape[1] = {TABLE};
    struct arena *arena = packed->input->arena;
    const struct view *bytes = tensor_view(packed->key, arena);
    struct state state;
    uint64_t n_bytes = view_bytes(bytes), n_elements = 2 * n_bytes;
    if (!find_state(packed, kind, &state))
        return false;
    if (n_elements == 0 || state.shape[0] == 0 || n_elements % state.shape[0] != 0 ||
        n_elements / state.shape[0] != state.shape[1] ||
        (bytes->rank == 2 && bytes->shape[1] != 1 && bytes->dtype == &u8_dtype))
        return packed_misfit(packed, own, bytes, "its quantization state says [%" PRIu64 ", %" PRIu64 "]",
                             state.shape[0], state.shape[1]);
    const struct view *factors = find_factors(packed, &state, rounded_up(n_elements, state.block_size));
    if (factors == NULL)
        return false;
    uint64_t n_stored = bytes->n_elements;
    bytes = view_reinterpret(arena, view_reshape(arena, bytes, 1, &n_stored), &u8_dtype);
    const struct view *table = view_numbers(arena, 1, table_shape, kind->table);
    const struct view *values = view_lookup(arena, view_fields(arena, bytes, &fields), table);
    const struct sharing sharing = {1, state.block_size, NULL};
    packed->unpacked->view =
        view_reshape(arena, view_combine(arena, values, MULTIPLY, factors, &sharing), 2, state.shape);
    packed->unpacked->forms->dtype = state.dtype;
    packed->unpacked->bits = 4;
    const struct view *map; /* stored, but ignored */
    return packed_find(packed, ".weight.quant_map", F16_F32, &map);
}

static bool unpack_8(struct packed *packed)
{
    struct arena *arena = packed->input->arena;
    const struct view *codes = packed_need(packed, own, I8), *factors = packed_need(packed, ".SCB", F16_F32);
    int64_t order = 0;
    if (codes == NULL || factors == NULL)
        return false;
    if (!packed_is_matrix(codes) || factors->n_elements != codes->shape[0])
        return packed_misfit(packed, ".SCB", factors, "must hold one number for each row");
    if (packing_partner(packed->input->set, packed->key, own, ".weight_format") != NULL &&
        !packed_integers(packed, ".weight_format", U8, &order, 1))
        return false;
    if (order != 0)
        return packed_misfit(packed, own, codes, "weight_format is %" PRId64 ", and only 0 (by row) is supported",
                             order);
    const uint64_t column[2] = {codes->shape[0], 1};
    const struct sharing sharing = {1, codes->shape[1], NULL};
    codes = view_combine(arena, codes, MULTIPLY, view_reshape(arena, factors, 2, column), &sharing);
    packed->unpacked->view = view_combine_number(arena, codes, MULTIPLY, 7.874015718698502e-3f);
    packed->unpacked->bits = 8;
    return true;
}

static bool unpack(struct packed *packed)
{
    const struct kind *kind = kind_of(packed->input, packed->key);
    if (packing_partner(packed->input->set, packed->key, own, ".SCB") != NULL)
        return unpack_8(packed);
    return kind != NULL ? unpack_4(packed, kind)
                        : error_set(packed->error, "the weight has no quantization state of nf4 or fp4");
}

const struct packing bitsandbytes_packing = {
    .name = "bitsandbytes",
    .titles = {"bitsandbytes"},
    .methods = {"bitsandbytes"},
    .summary = "NF4, FP4 and 8 bits of bitsandbytes",
    .place = IN_PLACE,
    .keys = keys,
    .is_key = is_key,
    .unpack = unpack,
};
