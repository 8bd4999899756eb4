#include "models/packings/packed.h"

#include "base/checked.h"
#include "base/text.h"
#include "formats/shape.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static unsigned kind_of(const struct dtype *dtype)
{
    static const struct {
        const char *name;
        unsigned kind;
    } kinds[] = {
        {"F8_E4M3", F8}, {"F8_E5M2", F8}, {"F16", F16_F32}, {"BF16", F16_F32}, {"F32", F16_F32}, {"F8_E8M0", E8M0},
        {"U8", U8},      {"I8", I8},      {"I16", I16},     {"I32", WORDS},    {"U32", WORDS},   {"I64", I64},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].name, dtype->name) == 0)
            return kinds[i].kind;
    return 0;
}

/* Returns the name of the weight whose parts begin with B._weight: B.weight. */
static const char *without_underscore(struct arena *arena, const char *stem, size_t length)
{
    const char *dot = text_last(stem, length, '.');
    size_t before = dot != NULL ? (size_t)(dot - stem) + 1 : 0;
    return arena_printf(arena, "%.*s%.*s", (int)before, stem, (int)(length - before - 1), stem + before + 1);
}

struct packed packed_begin(const struct packing_input *input, const struct tensor *key,
                           const struct packing_key *spelling, struct unpacked *unpacked, struct error *error)
{
    const char *weight = spelling->weight != NULL ? spelling->weight : ".weight";
    unpacked->stem = key->name_length - (uint32_t)strlen(spelling->suffix);
    if (spelling->is_underscored)
        unpacked->name = without_underscore(input->arena, key->name, unpacked->stem);
    else
        unpacked->name = strcmp(weight, spelling->suffix) == 0
                             ? key->name
                             : arena_printf(input->arena, "%.*s%s", (int)unpacked->stem, key->name, weight);
    return (struct packed){input, key, spelling, unpacked->stem, unpacked, error};
}

/* Returns the name of a part for errors. */
static const char *part_name(const struct packed *packed, const char *suffix)
{
    return arena_printf(packed->input->arena, "%.*s%s", packed->stem < 200 ? (int)packed->stem : 200, packed->key->name,
                        suffix);
}

static bool find_part(struct packed *packed, const char *suffix, unsigned kinds, struct arena *arena,
                      const struct view **ret_view)
{
    char name[1024];
    *ret_view = NULL;
    if (packed->stem + strlen(suffix) >= sizeof name)
        return true;
    memcpy(name, packed->key->name, packed->stem);
    strcpy(name + packed->stem, suffix);
    const struct tensor *tensor =
        tensor_set_find_near(packed->input->set, packed->key, name, packed->stem + strlen(suffix));
    if (tensor == NULL)
        return true;
    if (tensor->refusal != NULL)
        return error_set(packed->error, "'%s': %s", part_name(packed, suffix), tensor->refusal);
    if ((kind_of(tensor->dtype) & kinds) == 0)
        return error_set(packed->error, "'%s' is %s, a type that this packing does not use there",
                         part_name(packed, suffix), tensor->dtype->name);
    struct unpacked *unpacked = packed->unpacked;
    if (tensor != packed->key && unpacked->n_parts < PACKING_MAX_PARTS)
        unpacked->parts[unpacked->n_parts++] = tensor;
    *ret_view = tensor_view(tensor, arena);
    return true;
}

static const struct view *need_part(struct packed *packed, const char *suffix, unsigned kinds, struct arena *arena)
{
    const struct view *view;
    if (find_part(packed, suffix, kinds, arena, &view) && view == NULL)
        error_set(packed->error, "'%s' is missing", part_name(packed, suffix));
    return view;
}

bool packed_find(struct packed *packed, const char *suffix, unsigned kinds, const struct view **ret_view)
{
    return find_part(packed, suffix, kinds, packed->input->arena, ret_view);
}

const struct view *packed_need(struct packed *packed, const char *suffix, unsigned kinds)
{
    return need_part(packed, suffix, kinds, packed->input->arena);
}

bool packed_is_matrix(const struct view *view)
{
    return view->rank == 2 && view->n_elements > 0;
}

bool packed_misfit(const struct packed *packed, const char *suffix, const struct view *view, const char *format, ...)
{
    char shape[SHAPE_MAX_RANK * 22], reason[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    return error_set(packed->error, "'%s' is %s %s, but %s", part_name(packed, suffix), view->dtype->name,
                     shape_text(view->shape, view->rank, shape, sizeof shape), reason);
}

bool packed_check(const struct packed *packed, const char *suffix, const struct view *view, uint64_t n_rows,
                  uint64_t n_columns)
{
    return (view->rank == 2 && view->shape[0] == n_rows && view->shape[1] == n_columns) ||
           packed_misfit(packed, suffix, view, "must be [%" PRIu64 ", %" PRIu64 "]", n_rows, n_columns);
}

const struct view *packed_matrix(struct packed *packed, const char *suffix, unsigned kinds, uint64_t n_rows,
                                 uint64_t n_columns)
{
    const struct view *view = packed_need(packed, suffix, kinds);
    return view != NULL && packed_check(packed, suffix, view, n_rows, n_columns) ? view : NULL;
}

bool packed_integers(struct packed *packed, const char *suffix, unsigned kinds, int64_t *values, size_t n)
{
    const struct view *view = need_part(packed, suffix, kinds, packed->input->scratch);
    unsigned char bytes[8 * sizeof *values];
    if (view == NULL)
        return false;
    if (view->n_elements != n)
        return packed_misfit(packed, suffix, view, "must hold %zu number%s", n, n == 1 ? "" : "s");
    unsigned size = view->dtype->block_bytes;
    assert(n * size <= sizeof bytes);
    if (!view_read(view, 0, n, bytes, packed->error))
        return false;
    for (size_t i = 0; i < n; i++) {
        uint64_t bits = read_le(bytes + i * size, size);
        values[i] = size == 4 ? (int32_t)bits : (int64_t)bits;
    }
    return true;
}

const char *packed_beyond_groups(const struct packing_input *input, const char *const *strategies)
{
    const struct json *groups = json_get(input->config, "config_groups");
    struct json_member group = {0};
    if (strcmp(input->method, "compressed-tensors") != 0 || !json_next_member(groups, &group))
        return NULL;
    if (json_count_members(groups) > 1)
        return "several groups of compressed-tensors";
    const char *text = json_string(json_get(json_get(group.value, "weights"), "strategy"), NULL),
               *strategy = text != NULL ? text : "";
    while (*strategies != NULL && strcmp(*strategies, strategy) != 0)
        strategies++;
    return *strategies != NULL ? NULL : arena_printf(input->arena, "weights with the strategy '%.40s'", strategy);
}

bool packed_group_size(const struct packed *packed, const char *key, uint64_t n_columns, uint64_t *ret_size)
{
    const struct json *said = json_get(packed->input->config, key);
    int64_t number = 0;
    *ret_size = 0;
    if (said == NULL || json_is(said, JSON_NULL))
        return true;
    if (!json_i64(said, &number) || (number < 1 && number != -1))
        return error_set(packed->error, "%s of quantization_config is neither a number of columns nor -1", key);
    *ret_size = number == -1 ? n_columns : (uint64_t)number;
    return true;
}

bool packed_bits(const struct packed *packed, const char *key, uint64_t *ret_bits)
{
    const struct json *said = json_get(packed->input->config, key);
    int64_t number = 0;
    *ret_bits = 0;
    if (said == NULL || json_is(said, JSON_NULL))
        return true;
    if (!json_i64(said, &number) || number < 1 || number > 8)
        return error_set(packed->error, "%s of quantization_config is not a number from 1 to 8", key);
    *ret_bits = (uint64_t)number;
    return true;
}

bool packed_agrees(const struct packed *packed, const char *key, uint64_t stored)
{
    const struct json *said = json_get(packed->input->config, key);
    uint64_t number = 0;
    return said == NULL || json_is(said, JSON_NULL) || (json_u64(said, &number) && number == stored) ||
           error_set(packed->error, "%s of quantization_config does not match the tensors, which have %" PRIu64, key,
                     stored);
}

uint64_t packed_number(const struct json *config, const char *key)
{
    int64_t number;
    return json_i64(json_get(config, key), &number) && number > 0 ? (uint64_t)number : 0;
}

const struct view *packed_slices(struct arena *arena, const struct view *words, unsigned bits, unsigned n_slices)
{
    const struct view **slices = arena_array(arena, n_slices, sizeof *slices);
    for (unsigned i = 0; i < n_slices; i++) {
        const struct fields slice = {1, 1, (uint8_t)bits, {(uint8_t)((n_slices - 1 - i) * bits)}};
        slices[i] = view_fields(arena, words, &slice);
    }
    return view_concatenate(arena, slices, n_slices, 0);
}

const struct view *packed_cut(struct arena *arena, const struct view *view, uint64_t n_rows, uint64_t n_columns)
{
    if (view->shape[0] > n_rows)
        view = view_slice(arena, view, 0, 0, n_rows, 1);
    if (view->shape[1] > n_columns)
        view = view_slice(arena, view, 1, 0, n_columns, 1);
    return view;
}

const struct view *packed_powers(struct arena *arena, const struct view *scales, float least)
{
    enum { EXPONENTS = 256 };
    static const uint64_t shape[1] = {EXPONENTS};
    float *powers = arena_array(arena, EXPONENTS, sizeof *powers);
    powers[0] = least;
    for (int i = 1; i < EXPONENTS; i++)
        powers[i] = ldexpf(1, i - 127); /* the last has no number here, but F32's infinity */
    return view_lookup(arena, view_reinterpret(arena, scales, &u8_dtype), view_numbers(arena, 1, shape, powers));
}

bool packed_scale_inputs(struct packed *packed, const char *suffix, const struct view **values)
{
    struct arena *arena = packed->input->arena;
    const struct view *inputs, *weight = *values;
    uint64_t n_columns = view_row_elements(weight);
    if (!packed_find(packed, suffix, F16_F32, &inputs))
        return false;
    if (inputs == NULL)
        return true;
    if (inputs->n_elements != n_columns)
        return packed_misfit(packed, suffix, inputs, "the weight has %" PRIu64 " columns", n_columns);
    const uint64_t rows[2] = {weight->n_elements / n_columns, n_columns}, row[2] = {1, n_columns};
    const struct sharing sharing = {rows[0], 1, NULL};
    weight = view_combine(arena, view_reshape(arena, weight, 2, rows), MULTIPLY, view_reshape(arena, inputs, 2, row),
                          &sharing);
    *values = view_reshape(arena, weight, (*values)->rank, (*values)->shape);
    return true;
}

const struct view *packed_mxfp4(struct arena *arena, const struct view *bytes, const struct view *scales)
{
    static const struct sharing sharing = {1, 32, NULL};
    return view_combine(arena, view_reinterpret(arena, bytes, dtype_by_name("F4")), MULTIPLY,
                        packed_powers(arena, scales, 0x1p-127F), &sharing);
}

/* Returns the numbers of codes of 6 bits: a sign, 2 bits of exponent with a bias of 1 and 3 of mantissa (E2M3), or
 * 3 with a bias of 3 and 2 (E3M2); no infinities. */
static const struct view *levels_of_6_bits(struct arena *arena, unsigned mantissa_bits)
{
    enum { CODES = 64 };
    static const uint64_t shape[1] = {CODES};
    const unsigned implied = 1U << mantissa_bits;
    const float unit = mantissa_bits == 3 ? 0.125F : 0.0625F;
    float *values = arena_array(arena, CODES, sizeof *values);
    for (unsigned code = 0; code < CODES; code++) {
        unsigned exponent = (code & 31) >> mantissa_bits, mantissa = code & (implied - 1);
        unsigned units = exponent > 0 ? (implied + mantissa) << (exponent - 1) : mantissa;
        values[code] = (code & 32) != 0 ? -(float)units * unit : (float)units * unit;
    }
    return view_numbers(arena, 1, shape, values);
}

const struct view *packed_mxfp6(struct arena *arena, const struct view *bytes, const struct view *scales,
                                unsigned mantissa_bits)
{
    static const struct sharing sharing = {1, 32, NULL};
    const struct fields fields = fields_of_stream(6);
    const struct view *codes = view_fields(arena, bytes, &fields);
    return view_combine(arena, view_lookup(arena, codes, levels_of_6_bits(arena, mantissa_bits)), MULTIPLY,
                        packed_powers(arena, scales, 0x1p-127F), &sharing);
}

struct grouped {
    struct view view;
    const struct view *values;
    const struct code_groups *groups;
};

static bool grouped_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    return view_read(((const struct grouped *)view)->values, first, count, out, error);
}

static void grouped_depends(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    view_depends(((const struct grouped *)view)->values, first, count, to);
}

static const struct view_op grouped_op = {.name = "groups", .read = grouped_read, .depends = grouped_depends};

const struct view *view_of_groups(struct arena *arena, const struct view *values, const struct code_groups *groups)
{
    struct grouped *grouped = arena_alloc(arena, sizeof *grouped);
    view_init_shared(&grouped->view, &grouped_op, values->dtype, values->rank, values->shape);
    grouped->view.scattered = values->scattered;
    grouped->values = values;
    grouped->groups = groups;
    return &grouped->view;
}

const struct code_groups *groups_of(const struct view *view)
{
    return view->op == &grouped_op ? ((const struct grouped *)view)->groups : NULL;
}
