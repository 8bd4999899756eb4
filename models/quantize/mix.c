#include "models/quantize/mix.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/text.h"
#include "models/quantize/mix_rules.h"
#include "text/regex.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Tensors that are never quantized; others are if they are matrices and their name ends with "weight". */

static const char *const never_names[] = {"position_embd.weight", "token_types.weight", NULL};

static const char *const never_parts[] = {
    "_norm.weight",
    "ffn_gate_inp.weight",
    "ffn_gate_tid2eid.weight",
    "altup",
    "laurel",
    "per_layer_model_proj",
    "ssm_conv1d",
    "shortconv.conv.weight",
    "indexer.k_proj.weight",
    "indexer.q_proj.weight",
    "time_mix_first.weight",
    "time_mix_w0.weight",
    "time_mix_w1.weight",
    "time_mix_w2.weight",
    "time_mix_v0.weight",
    "time_mix_v1.weight",
    "time_mix_v2.weight",
    "time_mix_a0.weight",
    "time_mix_a1.weight",
    "time_mix_a2.weight",
    "time_mix_g1.weight",
    "time_mix_g2.weight",
    "time_mix_decay_w1.weight",
    "time_mix_decay_w2.weight",
    "time_mix_lerp_fused.weight",
    "attn_rel_b.weight",
    ".position_embd",
    "sam.pos_embd",
    "sam.neck.",
    "sam.net_",
    ".rel_pos",
    ".patch_embd",
    ".patch_merger",
    "a.rvq.codebook",
    "mm.a.code_embd",
    NULL,
};

/* The same for models of one architecture. */
static const char glm5_next[] = "glm5-next";
static const char *const glm5_next_parts[] = {
    "hc_",
    "indexer.attn_q_b",
    "indexer.attn_k",
    "indexer.proj",
    "indexer_compressor_gate",
    "indexer_compressor_ape",
    "ssm_f_a.weight",
    "ssm_f_b.weight",
    "ssm_g_a.weight",
    "ssm_g_b.weight",
    "ssm_beta.weight",
    "attn_kv_a_mqa.weight",
    "attn_k_b.weight",
    "attn_v_b.weight",
    NULL,
};

/* Tensors of that architecture that get Q8_0 instead of another quantized type. */
static const char *const glm5_next_large[] = {"attn_q_a", "attn_q_b", "nextn.eh_proj", NULL};

static bool contains_any(const char *name, const char *const *parts)
{
    while (*parts != NULL && strstr(name, *parts) == NULL)
        parts++;
    return *parts != NULL;
}

/* Returns the number of dimensions as the tool counts them, without those of 1 at the outer end. */
static unsigned rank_of(const struct tensor *tensor)
{
    unsigned first = 0;
    while (first + 1 < tensor->rank && tensor->shape[first] == 1)
        first++;
    return tensor->rank - first;
}

static uint64_t row_elements(const struct tensor *tensor)
{
    return tensor->rank == 0 ? 1 : tensor->shape[tensor->rank - 1];
}

static bool is_stacked(const struct tensor *tensor)
{
    return tensor->rank >= 3 && tensor->shape[tensor->rank - 3] > 1;
}

/* Returns the rest of a name after "blk.N", from the '.' on, where roles are looked for. */
static const char *after_layer(const char *name)
{
    if (!text_starts_with(name, "blk."))
        return name;
    size_t length = strlen("blk.");
    return name + length + strspn(name + length, "0123456789");
}

static bool may_be_quantized(const struct tensor *tensor)
{
    if (rank_of(tensor) < 2 || !text_ends_with(tensor->name, "weight"))
        return false;
    for (const char *const *never = never_names; *never != NULL; never++)
        if (strcmp(tensor->name, *never) == 0)
            return false;
    const char *name = after_layer(tensor->name);
    return !contains_any(name, never_parts);
}

/* Roles by text in the name; the first match counts. */
static const struct {
    const char *part;
    enum tensor_role role;
} roles[] = {
    {"attn_qkv.weight", ATTN_V}, {"attn_kv_b.weight", ATTN_V}, {"attn_v.weight", ATTN_V},
    {"attn_k.weight", ATTN_K},   {"attn_q.weight", ATTN_Q},    {"attn_output.weight", ATTN_OUTPUT},
    {"ffn_up", FFN_UP},          {"ffn_gate", FFN_GATE},       {"ffn_down", FFN_DOWN},
};

static enum tensor_role role_of(const char *name)
{
    if (strcmp(name, "output.weight") == 0)
        return OUTPUT;
    if (strcmp(name, "token_embd.weight") == 0 || strcmp(name, "per_layer_token_embd.weight") == 0)
        return TOKEN_EMBD;
    name = after_layer(name);
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (strstr(name, roles[i].part) != NULL)
            return roles[i].role;
    return OTHER;
}

struct mix_traits mix_traits(const struct tensor *tensor)
{
    return (struct mix_traits){(uint16_t)role_of(tensor->name), may_be_quantized(tensor)};
}

/* Options. */

/* The user's type for the tensors that a pattern matches. */
struct override {
    pcre2_code *pattern;
    const struct dtype *type;
};

struct overrides {
    struct override *items;
    size_t n_items;
    pcre2_match_data *match;
};

static void overrides_free(struct overrides *overrides)
{
    for (size_t i = 0; i < overrides->n_items; i++)
        pcre2_code_free(overrides->items[i].pattern);
    free(overrides->items);
    pcre2_match_data_free(overrides->match);
}

static bool is_target(const struct dtype *dtype)
{
    struct kernels kernels = dtype_kernels(dtype);
    return dtype->kind == DTYPE_BLOCK && (kernels.encode != NULL || kernels.encode_weighted != NULL);
}

const struct dtype *quantize_type(const char *name, struct error *error)
{
    struct buffer known = {0};
    const struct dtype *found = NULL;
    struct text_guess guess = {.typed = name};
    char question[TEXT_QUESTION];
    for (const struct dtype *const *dtype = dtypes; *dtype != NULL && found == NULL; dtype++) {
        bool target = is_target(*dtype) || *dtype == &f32_dtype || *dtype == &f16_dtype || *dtype == &bf16_dtype;
        if (!target || (*dtype)->ggml_type == GGML_TYPE_NONE)
            continue;
        if (strcasecmp((*dtype)->name, name) == 0)
            found = *dtype;
        text_guess_try(&guess, (*dtype)->name);
        buffer_printf(&known, "%s%s", known.length > 0 ? " " : "", (*dtype)->name);
    }
    if (found == NULL)
        error_set(error, "'%.64s' is not a type to quantize to (known: %.*s)%s", name, (int)known.length,
                  (const char *)known.bytes, text_guess_question(&guess, question));
    buffer_free(&known);
    return found;
}

/* Reads "PATTERN=TYPE". The tool lower-cases a pattern, escapes included, before it compiles it. */
static bool override_read(const char *option, struct override *ret_override, struct error *error)
{
    const char *equals = strchr(option, '=');
    if (equals == NULL || equals == option)
        return error_set(error, "'%s' is not PATTERN=TYPE", option);
    const struct dtype *type = quantize_type(equals + 1, error);
    if (type == NULL)
        return false;
    size_t length = (size_t)(equals - option);
    char *pattern = memory_alloc(length + 1);
    for (size_t i = 0; i < length; i++)
        pattern[i] = (char)tolower((unsigned char)option[i]);
    int code;
    size_t place;
    ret_override->pattern = regex_compile(pattern, length, PCRE2_ALT_BSUX | PCRE2_ALLOW_EMPTY_CLASS, &code, &place);
    ret_override->type = type;
    free(pattern);
    if (ret_override->pattern != NULL)
        return true;
    PCRE2_UCHAR reason[256];
    pcre2_get_error_message(code, reason, sizeof reason);
    return error_set(error, "'%s': at %zu: %s", option, place, (const char *)reason);
}

static bool overrides_read(const char *const *options, struct overrides *ret_overrides, struct error *error)
{
    struct overrides overrides = {.match = regex_match_data(1)};
    for (; options != NULL && *options != NULL; options++) {
        overrides.items = memory_resize(overrides.items, (overrides.n_items + 1) * sizeof *overrides.items);
        if (!override_read(*options, &overrides.items[overrides.n_items], error)) {
            overrides_free(&overrides);
            return false;
        }
        overrides.n_items++;
    }
    *ret_overrides = overrides;
    return true;
}

bool quantize_options_check(const struct quantize_options *options, struct error *error)
{
    struct overrides overrides;
    if (!overrides_read(options->tensor_types, &overrides, error))
        return false;
    overrides_free(&overrides);
    return true;
}

/* Returns the type of the first pattern that matches somewhere in the name; NULL: none does. */
static const struct dtype *overridden(const struct overrides *overrides, const char *name)
{
    for (size_t i = 0; i < overrides->n_items; i++)
        if (regex_match(overrides->items[i].pattern, name, strlen(name), 0, 0, overrides->match, NULL) >= 0)
            return overrides->items[i].type;
    return NULL;
}

/* Rules. */

static const struct mix_rule rules_before[] = {
    {OUTPUT, FALCON, "Q8_0"},
    {OUTPUT, RAGGED, "Q8_0"},
    {ATTN_V | ATTN_K, EIGHT_EXPERTS | USUAL, "Q8_0"},
    {0, 0, NULL},
};

static const struct mix_rule rules_after[] = {
    {OUTPUT, 0, "Q6_K"},
    {0, 0, NULL},
};

/* The state of a walk through a file's tensors, in the order of the file. */
struct choice {
    const struct mix *mix;
    const struct quantize_options *options;
    const struct mix_model *model;
    struct overrides overrides;
    const struct dtype *default_type;
    unsigned dimensions; /* conditions that hold for every tensor */
    bool is_tied;
    uint64_t n_values, values_seen, downs_seen, ups_seen, gates_seen;
};

static const char *find_rule(const struct mix_rule *rules, enum tensor_role role, unsigned dimensions)
{
    for (; rules->type != NULL; rules++)
        if ((rules->roles & role) != 0 && (rules->dimensions & ~dimensions) == 0)
            return rules->type;
    return NULL;
}

static unsigned position_dimensions(uint64_t i, uint64_t n)
{
    bool more = i < n / 8 || i >= 7 * n / 8 || (i - n / 8) % 3 == 2;
    return (i < 2 ? FIRST_TWO : 0) | (i < 4 ? FIRST_FOUR : 0) | (i < n / 8 ? FIRST_EIGHTH : 0) |
           (i < n / 16 ? FIRST_SIXTEENTH : 0) | (more ? MORE_BITS : 0);
}

static unsigned model_dimensions(const struct mix_model *model)
{
    bool grouped = model->n_kv_heads != 0 && model->n_heads / model->n_kv_heads >= 4;
    return (strcmp(model->architecture, "falcon") == 0 ? FALCON : NOT_FALCON) |
           (model->n_experts == 8 ? EIGHT_EXPERTS : NOT_EIGHT_EXPERTS) | (model->n_experts >= 4 ? FOUR_EXPERTS : 0) |
           (grouped ? GROUPED : 0);
}

/* Reports whether the tool counts a model as 70B, which means that few value heads serve many query heads. */
static bool is_70b(const struct mix_model *model)
{
    static const struct {
        const char *architecture;
        uint64_t n_layers;
    } models[] = {{"qwen2", 80}, {"deci", 80}, {"olmo", 80}, {"jais2", 68}};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        if (strcmp(model->architecture, models[i].architecture) == 0)
            return model->n_layers == models[i].n_layers;
    return strcmp(model->architecture, "llama") == 0 && model->n_layers == 80 && model->n_heads != model->n_kv_heads;
}

bool mix_layer_of(const char *name, uint64_t *ret_layer)
{
    if (!text_starts_with(name, "blk.") || !isdigit((unsigned char)name[4]))
        return false;
    char *end;
    *ret_layer = strtoull(name + 4, &end, 10);
    return *end == '.';
}

/* Adds the conditions on the tensor's position among those of its role. With experts, the tool uses the number of the
 * layer, and refuses a name without one. */
static bool find_position(struct choice *choice, const struct tensor *tensor, enum tensor_role role,
                          unsigned *dimensions, struct error *error)
{
    uint64_t n_layers = choice->model->n_layers;
    if (role == ATTN_V)
        *dimensions |= position_dimensions(choice->values_seen++, choice->n_values);
    if ((role & (FFN_UP | FFN_GATE | FFN_DOWN)) == 0)
        return true;
    uint64_t *seen = role == FFN_UP ? &choice->ups_seen : &choice->gates_seen;
    if (role == FFN_DOWN)
        seen = &choice->downs_seen;
    uint64_t layer = (*seen)++;
    if (role == FFN_DOWN && layer < n_layers / 8)
        *dimensions |= SEEN_FIRST_EIGHTH;
    if (choice->model->n_experts > 1 && (!mix_layer_of(tensor->name, &layer) || layer >= n_layers))
        return error_set(error, "tensor '%s' is outside the %llu layers", tensor->name, (unsigned long long)n_layers);
    if (role == FFN_DOWN)
        *dimensions |= position_dimensions(layer, n_layers);
    else if (layer >= n_layers / 8 && layer < 7 * n_layers / 8)
        *dimensions |= MIDDLE;
    return true;
}

/* Reports whether a tensor counts as experts: by its dimensions; in Ling 3, whose latent attention has matrices for
 * each head, by its role, too. */
static bool is_of_experts(const struct mix_model *model, const struct tensor *tensor, enum tensor_role role)
{
    bool by_role = strcmp(model->architecture, "bailingmoe3") == 0;
    return is_stacked(tensor) && (!by_role || (role & (FFN_UP | FFN_GATE | FFN_DOWN)) != 0);
}

static const struct dtype *type_by_rules(struct choice *choice, const struct tensor *tensor, enum tensor_role role,
                                         struct error *error)
{
    if (strcmp(choice->model->architecture, glm5_next) == 0 && contains_any(tensor->name, glm5_next_large))
        return dtype_by_name("Q8_0");
    if (role == TOKEN_EMBD && choice->is_tied)
        role = OUTPUT;
    if (role == OUTPUT && choice->options->output_tensor_type != NULL)
        return choice->options->output_tensor_type;
    unsigned dimensions = choice->dimensions;
    dimensions |= is_of_experts(choice->model, tensor, role) ? STACKED : 0;
    dimensions |= row_elements(tensor) % choice->default_type->block_elements != 0 ? RAGGED : 0;
    if (!find_position(choice, tensor, role, &dimensions, error))
        return NULL;
    const char *type = find_rule(rules_before, role, dimensions);
    if (type == NULL)
        type = find_rule(choice->mix->rules, role, dimensions);
    if (type == NULL)
        type = find_rule(rules_after, role, dimensions);
    if (type == NULL)
        type = choice->mix->default_type;
    if (role == ATTN_V && !choice->mix->is_lowest && is_70b(choice->model) &&
        (strcmp(type, "Q3_K") == 0 || strcmp(type, "Q4_K") == 0))
        type = "Q5_K";
    return type == choice->mix->default_type ? choice->default_type : dtype_by_name(type);
}

/* Replacements for types whose blocks do not divide the tensor's rows. */
static const struct {
    const char *type, *instead;
} fallbacks[] = {
    {"Q2_K", "Q4_0"},     {"Q3_K", "Q4_0"},    {"TQ1_0", "Q4_0"},     {"TQ2_0", "Q4_0"},
    {"Q2_0", "Q4_0"},     {"Q4_K", "Q5_0"},    {"Q5_K", "Q5_1"},      {"Q6_K", "Q8_0"},
    {"IQ4_XS", "IQ4_NL"}, {"IQ1_S", "IQ4_NL"}, {"IQ1_M", "IQ4_NL"},   {"IQ2_XXS", "IQ4_NL"},
    {"IQ2_XS", "IQ4_NL"}, {"IQ2_S", "IQ4_NL"}, {"IQ3_XXS", "IQ4_NL"}, {"IQ3_S", "IQ4_NL"},
};

enum { SMALL_BLOCK = 32 };

static bool fits(const struct tensor *tensor, const struct dtype *type)
{
    return row_elements(tensor) % type->block_elements == 0;
}

static bool refuse_row(const struct tensor *tensor, const struct dtype *type, struct error *error)
{
    return error_set(error, "tensor '%s': a row of %llu elements is not a multiple of %u, as %s needs it", tensor->name,
                     (unsigned long long)row_elements(tensor), type->block_elements, type->name);
}

/* Returns the type of a tensor that should get `type`, by its row. */
static const struct dtype *type_that_fits(const struct choice *choice, const struct tensor *tensor,
                                          const struct dtype *type, struct error *error)
{
    if (fits(tensor, type))
        return type;
    for (size_t i = 0; i < sizeof fallbacks / sizeof *fallbacks; i++) {
        if (strcmp(type->name, fallbacks[i].type) != 0)
            continue;
        const struct dtype *instead = dtype_by_name(fallbacks[i].instead);
        return fits(tensor, instead) ? instead : &f16_dtype;
    }
    if (type->block_elements <= SMALL_BLOCK && follows(choice->model->references, ROWS_BECOME_F16))
        return &f16_dtype;
    refuse_row(tensor, type, error);
    return NULL;
}

/* Returns the type that an option names for this one tensor; if its blocks do not fit the rows, the tool refuses it. */
static const struct dtype *type_by_name_options(struct choice *choice, const char *name, enum tensor_role role)
{
    if (role == OUTPUT)
        return choice->options->output_tensor_type;
    bool is_named = strcmp(name, "per_layer_token_embd.weight") == 0 &&
                    follows(choice->model->references, NAMED_LAYER_EMBEDDING) &&
                    overridden(&choice->overrides, name) != NULL;
    return role == TOKEN_EMBD && !is_named ? choice->options->token_embedding_type : NULL;
}

/* Reports whether all tensors get the default type: rules apply to block types only. */
static bool is_uniform(const struct choice *choice)
{
    return choice->options->pure || choice->default_type->kind != DTYPE_BLOCK;
}

/* Replaces the input type *ret_type by the output type. */
static bool choose_type(struct choice *choice, const struct tensor *tensor, struct mix_traits traits,
                        const struct dtype **ret_type, struct error *error)
{
    const struct dtype *input = *ret_type, *type = type_by_name_options(choice, tensor->name, traits.role);
    bool is_kept = strcmp(choice->model->architecture, glm5_next) == 0 && contains_any(tensor->name, glm5_next_parts);
    if (!traits.may_be_quantized || is_kept || (traits.role == OUTPUT && choice->options->leave_output_tensor)) {
        type = input;
    } else if (type != NULL) {
        if (!fits(tensor, type))
            return refuse_row(tensor, type, error);
    } else {
        type = overridden(&choice->overrides, tensor->name);
        if (type == NULL)
            type = is_uniform(choice) ? choice->default_type : type_by_rules(choice, tensor, traits.role, error);
        if (type != NULL)
            type = type_that_fits(choice, tensor, type, error);
        if (type == NULL)
            return false;
    }
    if (input->kind == DTYPE_BLOCK && type != input && !choice->options->requantize)
        return error_set(error, "tensor '%s' is already %s; -o requantize quantizes it again, to %s", tensor->name,
                         input->name, type->name);
    *ret_type = type;
    return true;
}

bool mix_choose_types(const struct mix *mix, const struct quantize_options *options, const struct mix_model *model,
                      const struct tensor *const *tensors, const struct mix_traits *traits, const struct dtype **types,
                      size_t n_tensors, struct error *error)
{
    bool has_imatrix = imatrix_count(options->imatrix, &options->filter) > 0;
    struct choice choice = {
        .mix = mix,
        .options = options,
        .model = model,
        .default_type = dtype_by_name(mix->default_type),
        .dimensions =
            model_dimensions(model) | (has_imatrix ? WITH_IMATRIX : WITHOUT_IMATRIX) | (mix->is_lowest ? 0 : USUAL),
        .is_tied = true,
    };
    if (!overrides_read(options->tensor_types, &choice.overrides, error))
        return false;
    for (size_t i = 0; i < n_tensors; i++) {
        choice.n_values += traits[i].role == ATTN_V;
        choice.is_tied &= traits[i].role != OUTPUT;
    }
    bool chosen = true;
    for (size_t i = 0; chosen && i < n_tensors; i++)
        chosen = choose_type(&choice, tensors[i], traits[i], &types[i], error);
    overrides_free(&choice.overrides);
    return chosen;
}

/* Types that the tool gives no tensor without importances. */
static const char *const demanding[] = {"IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS"};

static bool is_demanding(const struct mix *mix, const char *type)
{
    for (size_t i = 0; i < sizeof demanding / sizeof *demanding; i++)
        if (strcmp(type, demanding[i]) == 0)
            return true;
    return strcmp(mix->name, "Q2_K_S") == 0 && strcmp(type, "Q2_K") == 0;
}

bool mix_needs_importance(const struct mix *mix, struct mix_traits traits, const struct dtype *type)
{
    if (type->kind == DTYPE_BLOCK && dtype_kernels(type).encode == NULL)
        return true;
    return (traits.role & (OUTPUT | TOKEN_EMBD)) == 0 && is_demanding(mix, type->name);
}

bool mix_wants_imatrix(const struct mix *mix)
{
    bool wants = is_demanding(mix, mix->default_type);
    for (const struct mix_rule *rule = mix->rules; rule->type != NULL; rule++)
        wants |= is_demanding(mix, rule->type);
    return wants;
}
