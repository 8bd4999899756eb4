/* Muse Glimmer, the text model. conversion/muse_glimmer.py.
 *
 * The multiplier of queries after a norm without weights becomes that norm's weights. */
#include "base/text.h"
#include "formats/documents.h"
#include "models/families/layers.h"
#include "quant/views/convert.h"
#include "text/json_write.h"

#define MADE "made.{}." /* for norms that no checkpoint has */

static const struct relation_row tensors[] = {
    {"model.layers.{}.input_layernorm", "blk.{}.attn_norm", .map = &plus_one},
    {"model.layers.{}.post_attention_layernorm", "blk.{}.post_attention_norm", .map = &plus_one},
    {"model.layers.{}.pre_feedforward_layernorm", "blk.{}.ffn_norm", .map = &plus_one},
    {"model.layers.{}.post_feedforward_layernorm", "blk.{}.post_ffw_norm", .map = &plus_one},
    {"model.layers.{}.self_attn.q_proj", "blk.{}.attn_q", QUERY_ROTARY, "head"},
    {"model.layers.{}.self_attn.k_proj", "blk.{}.attn_k", KEY_ROTARY, "kv_head"},
    {"model.layers.{}.self_attn.gate_proj", "blk.{}.attn_gate", .parallel = "row"},
    {MADE "q_norm", "blk.{}.attn_q_norm", .backward_only = true},
    {MADE "k_norm", "blk.{}.attn_k_norm", .backward_only = true},
    {0},
};

/* Returns F32 [n] with the same value everywhere. */
static const struct view *constant(struct arena *arena, uint64_t n, float value)
{
    float *values = arena_array(arena, n, sizeof *values);
    for (uint64_t i = 0; i < n; i++)
        values[i] = value;
    return view_numbers(arena, 1, &n, values);
}

/* Inserts two norms before the queries of each layer. */
static void arrange(struct model_builder *builder)
{
    static const char *const norms[] = {"blk.{}.attn_q_norm.weight", "blk.{}.attn_k_norm.weight"};
    struct gguf_model *model = builder->model;
    const struct tensor_set *before = model->tensors;
    struct tensor_set *set = tensor_set_new(model->arena);
    const struct view *views[2] = {constant(model->arena, dimensions_get(&builder->dimensions, "head_dim"),
                                            dimensions_factor(&builder->dimensions, "qk_scale_factor")),
                                   constant(model->arena, dimensions_get(&builder->dimensions, "head_dim"), 1)};
    uint64_t numbers[PATTERN_NUMBERS];
    for (size_t i = 0; i < before->n_tensors; i++) {
        const struct tensor *tensor = &before->tensors[i];
        bool is_query = pattern_match("blk.{}.attn_q.weight", tensor->name, tensor->name_length, numbers);
        for (size_t j = 0; is_query && j < 2; j++)
            tensor_set_add_view(set, pattern_fill(model->arena, norms[j], numbers, ""), views[j]);
        tensor_set_add(set, tensor);
    }
    model->tensors = set;
}

static void add_dimensions(struct dimensions *dimensions, const struct hparams *hparams)
{
    double scale = 0;
    if (json_double(hparams_get(hparams, "qk_scale_factor"), &scale))
        dimensions_set_factor(dimensions, "qk_scale_factor", (float)scale);
}

static bool check_sizes(struct model_builder *builder, struct error *error)
{
    double scale;
    if (dimensions_get(&builder->dimensions, "head_dim") == 0)
        return error_set(error, "config.json: head_dim is missing, 0, or too large");
    if (!json_double(hparams_get(builder->model->hparams, "qk_scale_factor"), &scale))
        return error_set(error, "config.json: qk_scale_factor is missing, or not a number");
    return true;
}

/* Sets the end of a turn, found by its name. */
static bool find_end_of_turn(struct model_builder *builder, const struct vocab_input *input, struct error *error)
{
    static const char end[] = "<|eot|>";
    struct document *tokenizer;
    uint64_t id;
    if (!document_open(input->checkpoint, "tokenizer.json", &tokenizer, error))
        return false;
    const struct json *root = document_root(tokenizer), *added = json_get(root, "added_tokens"), *found = NULL;
    for (const struct json *token = json_is(added, JSON_ARRAY) ? json_first(added) : NULL; token != NULL;
         token = json_next(token))
        if (json_string_is(json_get(token, "content"), end))
            found = json_get(token, "id");
    if (found == NULL)
        found = json_get(json_get(json_get(root, "model"), "vocab"), end);
    if (json_u64(found, &id) && id <= INT32_MAX)
        gguf_set_u32(&builder->model->kvs, "tokenizer.ggml.eot_token_id", (uint32_t)id);
    document_close(tokenizer);
    return true;
}

static const char *rename_tensor(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                 const char *name)
{
    (void)arena, (void)dimensions;
    return direction == BACKWARD && text_starts_with(name, "made.") ? NULL : name;
}

/* Returns the multiplier of queries, which each of the norm's weights is. */
static const char *make_query_scale(const struct config_material *material)
{
    char digits[JSON_FLOAT_TEXT];
    float scale;
    const struct tensor *norm = tensor_set_find_text(material->tensors, "blk.0.attn_q_norm.weight");
    if (norm == NULL || norm->dtype != &f32_dtype || norm->refusal != NULL || norm->rank != 1 || norm->shape[0] == 0)
        return NULL;
    *material->failed = !convert_values(tensor_view(norm, material->arena), 0, 1, &scale, material->error);
    return *material->failed ? NULL : arena_strdup(material->arena, json_f32_text(scale, digits));
}

static const struct config_row config_rows[] = {
    {"hidden_activation", FROM_TEXT, .text = "'silu'"},
    {"qk_scale_factor", .make = make_query_scale},
    {"layer_types", FROM_LAYERS, "attention.sliding_window_pattern", "'sliding_attention'|'full_attention'"},
    {0},
};

const struct family muse_glimmer_family = {
    .name = "muse-glimmer",
    .summary = "Muse Glimmer (language model)",
    .hf = FAMILY_NAMES({"MuseGlimmerForConditionalGeneration"}),
    .tensors = {tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"MuseGlimmerForConditionalGeneration", "muse_glimmer_text", NULL,
                           CONFIG_TABLES(silu_rows, config_rows), HEADLESS_HALF_NOTE}),
    .keys = {base_keys,
             KEYS({"final_logit_softcapping", GGUF_F32, REQUIRED, "final_logit_softcapping"},
                  {"logit_scale", GGUF_F32, REQUIRED, "output_multiplier"},
                  {"attention.sliding_window", GGUF_U32, REQUIRED, "sliding_window"}, {.emit = emit_listed_windows})},
    .vocabs = {&bpe_vocab},
    .dimensions = {DIMENSIONS({"head_dim", "head_dim"})},
    .add_dimensions = add_dimensions,
    .adjust = check_sizes,
    .rename = rename_tensor,
    .arrange = arrange,
    .after_vocab = find_end_of_turn,
};
