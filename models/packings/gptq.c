/* GPTQ: integers packed in words of consecutive columns.
 *
 * A weight B.weight [rows, columns] is B.qweight [words, rows] of 8 to 64 bits a word, with 2, 4 or 8 bits an element,
 * or 3 in a stream of words; B.qzeros [groups, words], in words of consecutive rows, one less than the zero points in
 * files of the first version; B.scales [groups, rows]; and B.g_idx [columns], the group of each column: without it
 * groups are of group_size columns each.
 *
 * Adding one to a zero point may exceed the bits: 15 becomes 16. */
#include "models/packings/packed.h"

#include "base/text.h"

#include <inttypes.h>
#include <string.h>

static const char own[] = ".qweight";

/* Reports whether AutoRound's packing format names `part`; one of its formats is AWQ's. */
static bool has_format(const struct packing_input *input, const char *part)
{
    const char *format = json_string(json_get(input->config, "packing_format"), NULL);
    return format != NULL && strstr(format, part) != NULL;
}

static const struct packing_key keys[] = {{own}, {0}};

static bool is_key(const struct packing_input *input, const struct tensor *tensor)
{
    return tensor->dtype->kind == DTYPE_INTEGER && strcmp(input->method, "awq") != 0 && !has_format(input, "awq");
}

struct packed_sizes {
    uint64_t n_rows, n_columns, n_groups, group_size;
    unsigned bits, word_bits;
};

/* Returns the number of words for `n` elements. */
static uint64_t words_of(const struct packed_sizes *sizes, uint64_t n)
{
    return sizes->bits == 3 ? rounded_up(n * 3, sizes->word_bits) : rounded_up(n, sizes->word_bits / sizes->bits);
}

/* Finds the bits that fit the shapes: single layers may differ from the configuration. */
static bool find_bits(const struct packed *packed, struct packed_sizes *sizes, const struct view *words,
                      const struct view *zeros, uint64_t n_columns)
{
    uint64_t declared;
    if (!packed_bits(packed, "bits", &declared))
        return false;
    if (declared != 0 && declared != 2 && declared != 3 && declared != 4 && declared != 8)
        return error_set(packed->error, "GPTQ with %" PRIu64 " bits is not supported", declared);
    const unsigned all[] = {(unsigned)declared, 4, 8, 2, 3};
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
        sizes->bits = all[i];
        if ((all[i] != 2 && all[i] != 3 && all[i] != 4 && all[i] != 8) || (all[i] == 3 && sizes->word_bits != 32))
            continue;
        sizes->n_columns = n_columns > 0 ? n_columns : words->shape[0] * sizes->word_bits / sizes->bits;
        if (words_of(sizes, sizes->n_columns) == words->shape[0] && words_of(sizes, sizes->n_rows) == zeros->shape[1])
            return true;
    }
    return packed_misfit(packed, ".qzeros", zeros, "the weight has %" PRIu64 " rows and %" PRIu64 " words of columns",
                         sizes->n_rows, words->shape[0]);
}

/* Finds the size of groups, which may differ in single layers; B.g_idx, if stored, overrides it. */
static bool find_group_size(const struct packed *packed, struct packed_sizes *sizes, const struct view *scales,
                            const struct view *groups)
{
    const struct json *config = packed->input->config;
    bool may_differ = groups != NULL || json_get(config, "dynamic") != NULL || json_get(config, "extra_config") != NULL;
    sizes->n_groups = scales->shape[0];
    if (!packed_group_size(packed, "group_size", sizes->n_columns, &sizes->group_size) && groups == NULL)
        return false;
    bool fits = sizes->group_size > 0 && rounded_up(sizes->n_columns, sizes->group_size) == sizes->n_groups;
    if (!fits && sizes->group_size > 0 && !may_differ)
        return packed_misfit(packed, ".scales", scales, "the weight has %" PRIu64 " columns in groups of %" PRIu64,
                             sizes->n_columns, sizes->group_size);
    if (!fits)
        sizes->group_size = rounded_up(sizes->n_columns, sizes->n_groups);
    return (sizes->n_groups <= SHARING_MAX_GROUPS &&
            rounded_up(sizes->n_columns, sizes->group_size) == sizes->n_groups) ||
           packed_misfit(packed, ".scales", scales, "the weight has %" PRIu64 " columns", sizes->n_columns);
}

/* Returns the fields along rows of words. */
static const struct view *cut(struct arena *arena, const struct packed_sizes *sizes, const struct view *words,
                              uint64_t n)
{
    struct fields fields = fields_of_words(sizes->word_bits, sizes->bits);
    if (sizes->bits == 3) {
        fields = fields_of_stream(3);
        words = view_reinterpret(arena, words, &u8_dtype);
        words = packed_cut(arena, words, words->shape[0], rounded_up(n, 8) * 3);
    }
    return packed_cut(arena, view_fields(arena, words, &fields), words->shape[0], n);
}

/* Reports whether zero points are stored minus one, which only the configuration states. */
static bool is_first_version(const struct packing_input *input)
{
    const char *format = json_string(json_get(input->config, "checkpoint_format"), NULL);
    if (format == NULL)
        format = json_string(json_get(input->config, "format"), NULL);
    if (json_string_is(json_get(input->config, "packing_format"), "auto_round"))
        return json_bool(json_get(input->config, "sym"), true);
    return (format == NULL || strcmp(format, "gptq") == 0) && !has_format(input, "gptqmodel");
}

/* Repacks weights that declare themselves symmetric and ordered by columns; trusts that declaration. */
static void repack(const struct packed *packed, const struct packed_sizes *sizes, struct repacking *repacking)
{
    const struct json *config = packed->input->config;
    repacking->bits = sizes->bits;
    repacking->group_size = sizes->group_size;
    repacking->zero = (uint8_t)((1u << (sizes->bits - 1)) - is_first_version(packed->input));
    if (json_bool(json_get(config, "sym"), false) && !json_bool(json_get(config, "desc_act"), false))
        packed->unpacked->forms->repacked = view_of_repacked(packed->input->arena, repacking);
}

static const struct view *put_together(const struct packed *packed, const struct packed_sizes *sizes,
                                       const struct view *words, const struct view *zeros, const struct view *scales,
                                       const struct view *groups)
{
    struct arena *arena = packed->input->arena;
    const struct sharing sharing = {1, sizes->group_size, groups};
    const struct view *codes = cut(arena, sizes, view_transpose(arena, words), sizes->n_columns);
    zeros = view_transpose(arena, cut(arena, sizes, zeros, sizes->n_rows));
    scales = view_transpose(arena, scales);
    repack(packed, sizes, &(struct repacking){codes, scales, .zeros = zeros, .groups = groups});
    if (is_first_version(packed->input))
        zeros = view_combine_number(arena, zeros, ADD, 1);
    const struct code_groups kept = {
        .codes = codes,
        .scales = scales,
        .zeros = zeros,
        .order = groups,
        .group_size = sizes->group_size,
        .bits = (uint8_t)sizes->bits,
        .is_symmetric = json_bool(json_get(packed->input->config, "sym"), false),
    };
    packed->unpacked->forms->groups = arena_copy(arena, &kept, sizeof kept);
    codes = view_combine(arena, codes, SUBTRACT, zeros, &sharing);
    return view_combine(arena, codes, MULTIPLY, scales, &sharing);
}

static bool check_groups(const struct packed *packed, const struct view *groups)
{
    if (groups == NULL || (groups->rank == 1 && groups->n_elements > 0))
        return true;
    return packed_misfit(packed, ".g_idx", groups, "must be a vector");
}

static bool unpack(struct packed *packed)
{
    const struct view *words, *zeros, *scales, *groups;
    const char *data_type = json_string(json_get(packed->input->config, "data_type"), NULL);
    if (has_format(packed->input, "fp8") || json_bool(json_get(packed->input->config, "is_marlin_format"), false))
        return error_set(packed->error, "the word order of GPTQ's fp8 and Marlin formats is not supported");
    if (data_type != NULL && !text_starts_with(data_type, "int"))
        return error_set(packed->error, "data_type '%.40s' of quantization_config is not supported", data_type);
    bool is_by_16 = packing_partner(packed->input->set, packed->key, own, ".qzeros") == NULL &&
                    packing_partner(packed->input->set, packed->key, own, ".scales") != NULL;
    if (is_by_16) /* as GPTQModel and vLLM save Marlin's words */
        return error_set(packed->error, "the weight has no qzeros, as GPTQ in Marlin's layout, which is not supported");
    if ((words = packed_need(packed, own, U8 | I8 | I16 | WORDS | I64)) == NULL ||
        (zeros = packed_need(packed, ".qzeros", U8 | I8 | I16 | WORDS | I64)) == NULL ||
        (scales = packed_need(packed, ".scales", F16_F32)) == NULL ||
        !packed_find(packed, ".g_idx", WORDS | I64, &groups) || !check_groups(packed, groups))
        return false;
    if (!packed_is_matrix(words) || !packed_is_matrix(scales) || scales->shape[1] != words->shape[1])
        return packed_misfit(packed, own, words, "the scales have %" PRIu64 " columns", view_row_elements(scales));
    struct packed_sizes sizes = {.n_rows = words->shape[1], .word_bits = words->dtype->block_bytes * 8u};
    if (!packed_is_matrix(zeros) || zeros->dtype != words->dtype || zeros->shape[0] != scales->shape[0])
        return packed_misfit(packed, ".qzeros", zeros, "there are %" PRIu64 " groups of scales", scales->shape[0]);
    if (!find_bits(packed, &sizes, words, zeros, groups != NULL ? groups->n_elements : 0) ||
        !find_group_size(packed, &sizes, scales, groups))
        return false;
    if (sizes.bits == 3 && ((sizes.n_rows | sizes.n_columns) & 31) != 0)
        return packed_misfit(packed, own, words, "3 bits are supported only if rows and columns are multiples of 32");
    packed->unpacked->view = put_together(packed, &sizes, words, zeros, scales, groups);
    packed->unpacked->bits = (uint8_t)sizes.bits;
    if (groups == NULL)
        packed->unpacked->beyond = "GPTQ without g_idx";
    else if (sizes.bits == 3)
        packed->unpacked->beyond = "GPTQ with 3 bits";
    return true;
}

const struct packing gptq_packing = {
    .name = "gptq",
    .titles = {"GPTQ"},
    .methods = {"gptq", "auto-round", "intel/auto-round"},
    .summary = "GPTQ of 2, 3, 4 and 8 bits",
    .place = AFTER_ALL,
    .keys = keys,
    .is_key = is_key,
    .unpack = unpack,
};
