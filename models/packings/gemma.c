/* Google's packed Gemma: integers of 8, 4 or 2 bits with one scale for each row.
 *
 *     B.weight               I8 [rows, columns], or U8 [rows, columns / 4 or 2], the first code in the lowest bits; the
 *                            value is the code minus half of its range, and the last byte may be filled up
 *     B.weight_scale         F32 [rows, 1]
 *     B.embedding_quantized  the same, for an embedding
 *     B.embedding_scale      F32 [rows, blocks], rounded to the model's type before it multiplies
 *
 * quantization_config has the bits of all modules, and of those whose names a regular expression finds. Source: the
 * quantizer "gemma" of transformers 5.24. */
#include "models/packings/packed.h"
#include "quant/views/convert.h"
#include "text/regex.h"

#include <inttypes.h>
#include <string.h>

static const struct packing_key keys[] = {
    {".weight", ".weight_scale"}, {".embedding_quantized", ".embedding_scale"}, {0}};

static bool is_key(const struct packing_input *input, const struct tensor *tensor)
{
    return strcmp(input->method, "gemma") == 0 && tensor->dtype->kind == DTYPE_INTEGER;
}

enum { MOST_EXPRESSIONS = 64, MOST_BYTES = 1024, MOST_STEPS = 100000 };

/* Finds where in a module's name an expression matches; *ret_at is SIZE_MAX where it does not. Fails if it is invalid,
 * or takes too long. */
static bool look_for(const struct packed *packed, const struct json_member *expression, const char *name,
                     size_t *ret_at)
{
    *ret_at = SIZE_MAX;
    pcre2_code *regex = NULL;
    int result = PCRE2_ERROR_NOMATCH - 1;
    if (expression->key_length <= MOST_BYTES)
        regex = regex_compile(expression->key, expression->key_length, PCRE2_UTF, NULL, NULL);
    if (regex != NULL) {
        pcre2_match_data *data = regex_match_data(1);
        pcre2_match_context *context = regex_match_context();
        pcre2_set_match_limit(context, MOST_STEPS);
        result = regex_match(regex, name, strlen(name), 0, 0, data, context);
        if (result >= 0)
            *ret_at = pcre2_get_ovector_pointer(data)[0];
        pcre2_match_context_free(context);
        pcre2_match_data_free(data);
        pcre2_code_free(regex);
    }
    return result >= PCRE2_ERROR_NOMATCH ||
           error_set(packed->error, "the expression '%.60s' of module_quant_configs cannot be looked for",
                     expression->key);
}

/* Gets the bits that the configuration says. The expressions are alternatives of one: that which matches earliest in
 * the module's name decides, and of several at one place the first. */
static bool find_bits(const struct packed *packed, uint64_t *ret_bits)
{
    enum { USUAL = 4 };
    const struct json *config = packed->input->config, *chosen = NULL;
    const char *module = arena_strndup(packed->input->scratch, packed->key->name, packed->stem);
    const struct json *expressions = json_get(config, "module_quant_configs");
    size_t at, earliest = SIZE_MAX;
    if (json_count(expressions) > 0 || json_count_members(expressions) > MOST_EXPRESSIONS)
        return error_set(packed->error, "module_quant_configs is not an object of up to %d expressions",
                         MOST_EXPRESSIONS);
    for (struct json_member each = {0}; json_next_member(expressions, &each);) {
        if (!look_for(packed, &each, module, &at))
            return false;
        chosen = at < earliest ? each.value : chosen;
        earliest = at < earliest ? at : earliest;
    }
    *ret_bits = USUAL;
    json_u64(json_get(config, "num_bits"), ret_bits);
    json_u64(json_get(chosen, "num_bits"), ret_bits);
    return *ret_bits == 2 || *ret_bits == 4 || *ret_bits == 8 ||
           error_set(packed->error, "num_bits %" PRIu64 " is not supported", *ret_bits);
}

static uint64_t product(const struct json *config, const char *first, const char *second)
{
    uint64_t a = packed_number(config, first), b = packed_number(config, second);
    return a != 0 && b <= UINT64_MAX / a ? a * b : 0;
}

/* Returns the columns of rows of bytes: as many as codes, or fewer if config.json has such a width. */
static uint64_t count_columns(const struct packed *packed, uint64_t n_bytes, unsigned codes)
{
    const struct json *model = packed->input->model, *text = json_get(model, "text_config");
    const struct json *config = json_is(text, JSON_OBJECT) ? text : model;
    const uint64_t widths[] = {packed_number(config, "hidden_size"), packed_number(config, "intermediate_size"),
                               product(config, "num_attention_heads", "head_dim"),
                               packed_number(config, "hidden_size_per_layer_input")};
    uint64_t all = n_bytes * codes, fewer = 0;
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        if (widths[i] == all)
            return all;
        if (widths[i] < all && widths[i] + codes > all)
            fewer = widths[i];
    }
    return fewer != 0 ? fewer : all;
}

/* Returns the integers of a weight. */
static const struct view *read_codes(struct packed *packed, const struct view *bytes, uint64_t bits)
{
    struct arena *arena = packed->input->arena;
    const struct fields fields = fields_of_words(8, (unsigned)bits);
    bool is_signed = strcmp(bytes->dtype->name, "I8") == 0;
    packed->unpacked->bits = (uint8_t)bits;
    if (is_signed != (bits == 8)) {
        packed_misfit(packed, packed->spelling->suffix, bytes, "quantization_config says %" PRIu64 " bits", bits);
        return NULL;
    }
    if (is_signed)
        return bytes;
    if (bytes->shape[1] > UINT64_MAX / 8) {
        packed_misfit(packed, packed->spelling->suffix, bytes, "a row must have fewer bytes");
        return NULL;
    }
    uint64_t n_columns = count_columns(packed, bytes->shape[1], 8 / (unsigned)bits);
    const struct view *codes = packed_cut(arena, view_fields(arena, bytes, &fields), bytes->shape[0], n_columns);
    return view_combine_number(arena, codes, SUBTRACT, (float)(1U << (bits - 1)));
}

static bool unpack(struct packed *packed)
{
    const char *own = packed->spelling->suffix, *other = packed->spelling->partner;
    struct arena *arena = packed->input->arena;
    const struct view *bytes = packed_need(packed, own, U8 | I8), *scales, *codes;
    uint64_t bits;
    scales = bytes != NULL ? packed_need(packed, other, F16_F32) : NULL;
    if (scales == NULL || !find_bits(packed, &bits))
        return false;
    if (!packed_is_matrix(bytes))
        return packed_misfit(packed, own, bytes, "must be a matrix");
    codes = read_codes(packed, bytes, bits);
    if (codes == NULL)
        return false;
    if (!packed_is_matrix(scales) || scales->shape[0] != codes->shape[0] || codes->shape[1] % scales->shape[1] != 0)
        return packed_misfit(packed, other, scales, "the weight has %" PRIu64 " rows of %" PRIu64 " columns",
                             codes->shape[0], codes->shape[1]);
    if (packed->spelling != keys && packed->input->dtype != NULL)
        scales = view_convert(arena, scales, packed->input->dtype);
    const struct sharing sharing = {1, codes->shape[1] / scales->shape[1], NULL};
    packed->unpacked->view = view_combine(arena, codes, MULTIPLY, scales, &sharing);
    return true;
}

const struct packing gemma_packing = {
    .name = "gemma",
    .titles = {"Gemma"},
    .methods = {"gemma"},
    .summary = "integers of 2, 4 and 8 bits of Google's packed Gemma",
    .place = IN_PLACE,
    .keys = keys,
    .is_key = is_key,
    .unpack = unpack,
};
