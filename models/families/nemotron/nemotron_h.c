/* Nemotron-H and Nemotron 3: layers of Mamba 2, of attention, of feed-forward networks and of experts.
 * conversion/nemotron.py.
 *
 * Prediction of a second token has two layers below "mtp.", one of attention and one of experts; in a GGUF they are one
 * additional layer. */
#include "base/text.h"
#include "models/families/drafts/nextn.h"
#include "models/families/granite.h"
#include "models/families/layers.h"
#include "models/families/linear_attention.h"
#include "text/json_write.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

extern const struct family nemotron_h_puzzle_family;

static const struct family_name names[] = {{"NemotronHForCausalLM"}, {0}};

static const struct relation_row tensors[] = {
    {"backbone.embeddings", "token_embd", .parallel = "row"},
    {"backbone.norm_f", "output_norm"},
    {"backbone.layers.{}.norm", "blk.{}.attn_norm"},
    {"backbone.layers.{}.mixer.q_proj", "blk.{}.attn_q", QUERY_ROTARY, "head"},
    {"backbone.layers.{}.mixer.k_proj", "blk.{}.attn_k", KEY_ROTARY, "kv_head"},
    {"backbone.layers.{}.mixer.v_proj", "blk.{}.attn_v", "(kv_head d) ...", "kv_head"},
    {"backbone.layers.{}.mixer.o_proj", "blk.{}.attn_output", .parallel = "column"},
    {"backbone.layers.{}.mixer.up_proj", "blk.{}.ffn_up", .parallel = "row"},
    {"backbone.layers.{}.mixer.down_proj", "blk.{}.ffn_down", .parallel = "column"},
    {"backbone.layers.{}.mixer.experts.{expert}.down_proj", "blk.{}.ffn_down_exps", .parallel = "column"},
    {"backbone.layers.{}.mixer.experts.{expert}.up_proj", "blk.{}.ffn_up_exps", .parallel = "row"},
    {"backbone.layers.{}.mixer.gate", "blk.{}.ffn_gate_inp"},
    {"backbone.layers.{}.mixer.gate.e_score_correction_bias", "blk.{}.exp_probs_b.bias"},
    {"backbone.layers.{}.mixer.shared_experts.down_proj", "blk.{}.ffn_down_shexp", .parallel = "column"},
    {"backbone.layers.{}.mixer.shared_experts.up_proj", "blk.{}.ffn_up_shexp", .parallel = "row"},
    {"backbone.layers.{}.mixer.fc1_latent_proj", "blk.{}.ffn_latent_down"},
    {"backbone.layers.{}.mixer.fc2_latent_proj", "blk.{}.ffn_latent_up"},
    /* of the layer that predicts, after rename_tensor() */
    {"backbone.layers.{}.enorm", "blk.{}.nextn.enorm"},
    {"backbone.layers.{}.hnorm", "blk.{}.nextn.hnorm"},
    {"backbone.layers.{}.eh_proj", "blk.{}.nextn.eh_proj"},
    {"backbone.layers.{}.post_norm", "blk.{}.post_attention_norm"},
    {"backbone.layers.{}.final_layernorm", "blk.{}.nextn.shared_head_norm"},
    {0},
};

/* Marks layers by the letters of hybrid_override_pattern: M, *, - and E. */
static void mark_letters(struct layers *layers, const char *pattern, const char *letters)
{
    for (uint64_t i = 0; i < layers->n && pattern[i] != '\0'; i++)
        layers->values[i] = strchr(letters, pattern[i]) != NULL;
}

/* Marks Puzzle's layers, which block_configs describes one by one: 1 for those with attention. */
static bool mark_blocks(const struct model_builder *builder, struct layers *layers, const struct json *blocks,
                        struct error *error)
{
    if (!layers_of_list(builder, blocks, layers, error))
        return false;
    const struct json *block = json_first(blocks);
    for (uint64_t i = 0; i < layers->n; i++, block = json_next(block))
        layers->values[i] = json_string_is(json_get(block, "block_type"), "attention") ||
                            json_string_is(json_get(block, "block_type"), "full_attention");
    return true;
}

/* Marks layers of one of `letters`, or of the kind `type` in layers_block_type, and layers that predict. */
static bool mark(const struct model_builder *builder, struct layers *layers, const char *letters, const char *type,
                 struct error *error)
{
    const struct hparams *hparams = builder->model->hparams;
    const struct json *types = hparams_get(hparams, "layers_block_type");
    size_t length = 0;
    const char *pattern = json_string(hparams_get(hparams, "hybrid_override_pattern"), &length);
    const struct json *blocks = hparams_get(hparams, "block_configs");
    uint64_t n_blocks = builder->dimensions.n_layers - dimensions_get(&builder->dimensions, "nextn");
    if (builder->family == &nemotron_h_puzzle_family && pattern == NULL)
        return mark_blocks(builder, layers, blocks, error);
    if (!layers_new(builder, layers, error))
        return false;
    if (pattern == NULL && !json_is(types, JSON_ARRAY))
        return error_set(error, "config.json: hybrid_override_pattern and layers_block_type are missing");
    if ((pattern != NULL ? length : json_count(types)) != n_blocks)
        return error_set(error, "config.json: the layer pattern has %zu layers, but num_hidden_layers is %" PRIu64,
                         pattern != NULL ? length : json_count(types), n_blocks);
    if (pattern != NULL)
        mark_letters(layers, pattern, letters);
    else
        layers_mark(layers, types, type);
    for (uint64_t i = n_blocks; i < layers->n; i++)
        layers->values[i] = 1;
    return true;
}

static bool emit_attention(struct model_builder *builder, struct error *error)
{
    struct layers layers;
    struct gguf_kvs *kvs = &builder->model->kvs;
    if (!mark(builder, &layers, "*", "attention", error) || !layers_set_kv_heads(builder, &layers, error))
        return false;
    if (!follows(&builder->model->references, NEMOTRON_LAYER_TYPES))
        layers_note_later_names(builder, hparams_get(builder->model->hparams, "layers_block_type"));
    gguf_set_bool(kvs, builder_key(builder, "rope.scaling.finetuned"), false);
    gguf_set_u32(kvs, builder_key(builder, "context_length"), MAMBA2_CONTEXT);
    return true;
}

/* transformers 5 saves the numbers of experts also of models without: there, the layers' names tell. */
static bool is_moe(const struct hparams *hparams)
{
    const struct json *types = hparams_get(hparams, "layers_block_type");
    bool has_experts = false, has_dense = false;
    for (const struct json *type = json_is(types, JSON_ARRAY) ? json_first(types) : NULL; type != NULL;
         type = json_next(type)) {
        has_experts |= json_string_is(type, "moe");
        has_dense |= json_string_is(type, "mlp");
    }
    return hparams_get(hparams, "num_experts_per_tok") != NULL && (has_experts || !has_dense);
}

static bool emit_feed_forward(struct model_builder *builder, struct error *error)
{
    const struct hparams *hparams = builder->model->hparams;
    struct layers layers;
    uint64_t width;
    const char *key = is_moe(hparams) ? "moe_intermediate_size" : "intermediate_size";
    if (!hparams_count(hparams, key, 0, INT32_MAX, &width, error) ||
        !mark(builder, &layers, is_moe(hparams) ? "-E" : "-", is_moe(hparams) ? "moe" : "mlp", error))
        return false;
    for (uint64_t i = 0; i < layers.n; i++)
        layers.values[i] *= (double)width;
    return layers_set_i32(builder, "feed_forward_length", &layers, error);
}

static const struct key_row keys[] = {
    {"ssm.conv_kernel", GGUF_U32, REQUIRED, "conv_kernel|d_conv"},
    {"ssm.state_size", GGUF_U32, REQUIRED, "ssm_state_size|state_size|d_state"},
    {"ssm.group_count", GGUF_U32, REQUIRED, "n_groups"},
    {"ssm.inner_size", GGUF_U32, REQUIRED, "mamba_num_heads", .by = "mamba_head_dim"},
    {"ssm.time_step_rank", GGUF_U32, REQUIRED, "mamba_num_heads"},
    {.emit = emit_attention},
    {"attention.key_length", GGUF_U32, REQUIRED, "head_dim|attention_head_dim"},
    {"attention.value_length", GGUF_U32, REQUIRED, "head_dim|attention_head_dim"},
    {0},
};

static const struct key_row width_keys[] = {{.emit = emit_feed_forward}, {0}};

/* Removes the numbers of experts that transformers 5 saves for a model without: llama.cpp would expect their tensors.
 */
static bool remove_experts(struct model_builder *builder, struct error *error)
{
    static const char *const counts[] = {"expert_count", "expert_used_count", "expert_group_count",
                                         "expert_group_used_count"};
    (void)error;
    bool has_numbers = hparams_get(builder->model->hparams, "num_experts_per_tok") != NULL;
    for (size_t i = 0; has_numbers && i < sizeof counts / sizeof *counts; i++)
        gguf_kvs_remove(&builder->model->kvs, builder_key(builder, counts[i]));
    return true;
}

static const struct key_row dense_keys[] = {{.emit = remove_experts}, {0}};

static bool emit_predicted(struct model_builder *builder, struct error *error)
{
    if (dimensions_get(&builder->dimensions, "nextn") != 0)
        gguf_set_u32(&builder->model->kvs, builder_key(builder, "nextn_predict_layers"), 1);
    return true;
}

static const struct key_row used_expert_keys[] = {
    {"expert_used_count", GGUF_U32, REQUIRED, "num_experts_per_tok"},
    {"expert_feed_forward_length", GGUF_U32, REQUIRED, "moe_intermediate_size"},
    {0},
};

static const struct key_row moe_layer_keys[] = {
    {"expert_shared_feed_forward_length", GGUF_U32, REQUIRED, "moe_shared_expert_intermediate_size"},
    {"expert_count", GGUF_U32, REQUIRED, "n_routed_experts"},
    {"expert_shared_count", GGUF_U32, REQUIRED, "n_shared_experts"},
    {"expert_weights_norm", GGUF_BOOL, REQUIRED, "norm_topk_prob"},
    {"expert_weights_scale", GGUF_F32, REQUIRED, "routed_scaling_factor"},
    {"expert_group_count", GGUF_U32, REQUIRED, "n_group"},
    {"moe_latent_size", GGUF_U32, IF_PRESENT, "moe_latent_size"},
    {.emit = emit_predicted},
    {0},
};

static const struct dimension_row sizes[] = {
    {"state_group", "n_groups"},
    {"state", "ssm_state_size|state_size|d_state"},
    {"mamba_head", "mamba_num_heads"},
    {0},
};

static void add_dimensions(struct dimensions *dimensions, const struct hparams *hparams)
{
    uint64_t n;
    if (is_moe(hparams) && json_u64(hparams_get(hparams, "num_nextn_predict_layers"), &n) && n == 1) {
        dimensions_set(dimensions, "nextn", n);
        dimensions->n_layers += n;
    }
}

/* Takes the number of layers from the list of their types. */
static bool count_listed(struct model_builder *builder, struct error *error)
{
    const struct json *types = hparams_get(builder->model->hparams, "layers_block_type");
    if (!json_is(types, JSON_ARRAY) || !follows(&builder->model->references, NEMOTRON_LAYER_TYPES))
        return true;
    builder->dimensions.n_layers = json_count(types) + dimensions_get(&builder->dimensions, "nextn");
    return hparams_override(builder->model->hparams, "n_layers", builder->dimensions.n_layers, error);
}

static bool adjust(struct model_builder *builder, struct error *error)
{
    if (!count_listed(builder, error))
        return false;
    uint64_t n = 0;
    struct hparams *hparams = builder->model->hparams;
    json_u64(hparams_get(hparams, "num_nextn_predict_layers"), &n);
    if (is_moe(hparams) && n > 1)
        return error_set(error, "config.json: num_nextn_predict_layers is %" PRIu64 "; at most 1 is supported", n);
    if (!nextn_keep_present(builder, error))
        return false;
    uint64_t n_predicting = dimensions_get(&builder->dimensions, "nextn"), n_layers = builder->dimensions.n_layers;
    builder->model->renumbered_from = n_predicting != 0 ? n_layers - 1 : 0;
    return n_predicting == 0 || hparams_override(hparams, "n_layers", n_layers, error);
}

/* Tensors that only the second layer below "mtp." has. */
static const char *const of_second[] = {"post_norm",
                                        "final_layernorm",
                                        "mixer.experts.",
                                        "mixer.gate.",
                                        "mixer.shared_experts.",
                                        "mixer.fc1_latent_proj",
                                        "mixer.fc2_latent_proj"};

static const char *rename_tensor(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                 const char *name)
{
    static const char first[] = "mtp.layers.0.", second[] = "mtp.layers.1.", layer[] = "backbone.layers.";
    uint64_t numbers[PATTERN_NUMBERS];
    if (dimensions_get(dimensions, "nextn") == 0)
        return name;
    uint64_t last = dimensions->n_layers - 1;
    bool is_second = text_starts_with(name, second);
    if (direction == FORWARD && (is_second || text_starts_with(name, first))) {
        const char *rest = name + sizeof first - 1;
        bool is_norm = is_second && text_starts_with(rest, "norm.");
        return arena_printf(arena, "%s%" PRIu64 ".%s%s", layer, last, is_norm ? "post_" : "", rest);
    }
    if (direction == FORWARD || !text_starts_with(name, layer))
        return name;
    const char *number = name + sizeof layer - 1;
    size_t digits = strspn(number, "0123456789");
    if (number[digits] != '.' || !pattern_match("{}", number, digits, numbers) || numbers[0] != last)
        return name;
    const char *rest = number + digits + 1;
    for (size_t i = 0; i < sizeof of_second / sizeof *of_second; i++)
        is_second |= text_starts_with(rest, of_second[i]);
    return arena_printf(arena, "%s%s", is_second ? second : first,
                        text_starts_with(rest, "post_norm") ? rest + 5 : rest);
}

static const char *const prefixes[] = {"model.", NULL}; /* some models have it before all names */

static bool pad_vocabulary(struct model_builder *builder, const struct vocab_input *input, struct error *error)
{
    return mamba2_pad_vocabulary(builder, 8, error);
}

/* Returns a letter for each layer; a feed-forward layer with a router has experts. */
static const char *make_pattern(const struct config_material *material)
{
    if (material->n_layers > MAX_LISTED_LAYERS)
        return NULL;
    char *text = arena_array(material->arena, material->n_layers + 3, 1);
    text[0] = '"';
    for (uint64_t i = 0; i < material->n_layers; i++) {
        char router[64];
        double heads = 0, width = 0;
        snprintf(router, sizeof router, "blk.%" PRIu64 ".ffn_gate_inp.weight", i);
        config_number_of_layer(material, "attention.head_count_kv", i, &heads);
        config_number_of_layer(material, "feed_forward_length", i, &width);
        bool has_experts = tensor_set_find_text(material->tensors, router) != NULL;
        text[i + 1] = 'M';
        if (heads > 0)
            text[i + 1] = '*';
        else if (width > 0)
            text[i + 1] = has_experts ? 'E' : '-';
    }
    memcpy(&text[material->n_layers + 1], "\"", 2);
    return text;
}

static const struct config_row config_rows[] = {
    {"hybrid_override_pattern", .make = make_pattern},
    {"mlp_hidden_act", FROM_TEXT, .text = "'relu2'"},
    {"num_key_value_heads", FROM_MOST, "attention.head_count_kv"},
    {"intermediate_size", FROM_MOST, "feed_forward_length"},
    {"layer_norm_epsilon", FROM_KEY, "attention.layer_norm_epsilon"},
    {"rms_norm_eps", FROM_NOWHERE},
    {"mamba_head_dim", FROM_QUOTIENT, "ssm.inner_size", "ssm.time_step_rank"},
    {"partial_rotary_factor", FROM_HEAD_SHARE, "rope.dimension_count", "attention.key_length"},
    {0},
};

static const struct config_form forms[] = {{"NemotronHForCausalLM", "nemotron_h", NULL, CONFIG_TABLES(config_rows)},
                                           {0}};

const struct family nemotron_h_family = {
    .name = "nemotron_h",
    .summary = "Nemotron-H",
    .hf = names,
    .tensors = {tensors, mamba2_backbone_tensors, decoder_tensors},
    .keys = {base_keys, granite_keys, keys, width_keys, dense_keys},
    .vocabs = {&bpe_vocab},
    .dropped_prefixes = prefixes,
    .forms = forms,
    .dimensions = {sizes},
    .add_dimensions = add_dimensions,
    .adjust = count_listed,
    .before_vocab = pad_vocabulary,
    .keys_after_vocab =
        KEYS({".tokenizer.ggml.add_bos_token", GGUF_BOOL, ALWAYS, .value = 1, .until = FIRST_POST_PROCESSOR}),
};

const struct family nemotron_h_moe_family = {
    .name = "nemotron_h_moe",
    .summary = "Nemotron 3",
    .hf = names,
    .tensors = {tensors, mamba2_backbone_tensors, decoder_tensors},
    .keys = {base_keys, granite_keys, keys, width_keys, used_expert_keys, moe_layer_keys},
    .exports_mtp = true,
    .renamed_late = "mtp.",
    .vocabs = {&bpe_vocab},
    .dropped_prefixes = prefixes,
    .forms = forms,
    .applies = is_moe,
    .dimensions = {sizes},
    .add_dimensions = add_dimensions,
    .adjust = adjust,
    .rename = rename_tensor,
    .before_vocab = pad_vocabulary,
};

/* Puzzle: Nemotron 3 whose blocks differ in their sizes. */

/* Sets keys to a number of each block; 0 where it has none. */
static bool emit_of_blocks(struct model_builder *builder, const char *key, const char *from, struct error *error)
{
    const struct json *blocks = hparams_get(builder->model->hparams, "block_configs");
    struct layers layers;
    if (!layers_of_list(builder, blocks, &layers, error))
        return false;
    const struct json *block = json_first(blocks);
    for (uint64_t i = 0; i < layers.n; i++, block = json_next(block)) {
        const struct json *value = json_get(block, from);
        if (!json_double(value, &layers.values[i]) && value != NULL && !json_is(value, JSON_NULL))
            return error_set(error, "config.json: %s of block %" PRIu64 " is not a number", from, i);
    }
    return layers_set_i32(builder, key, &layers, error);
}

static bool emit_block_sizes(struct model_builder *builder, struct error *error)
{
    return emit_of_blocks(builder, "feed_forward_length", "moe_intermediate_size", error) &&
           emit_of_blocks(builder, "expert_feed_forward_length", "moe_intermediate_size", error) &&
           emit_of_blocks(builder, "expert_used_count", "num_experts_per_tok", error);
}

/* Counts the blocks, whatever num_hidden_layers says; the layers that predict are left out. */
static bool count_blocks(struct model_builder *builder, struct error *error)
{
    const struct json *blocks = hparams_get(builder->model->hparams, "block_configs"),
                      *latent = hparams_get(builder->model->hparams, "moe_latent_size");
    if (!json_is(blocks, JSON_ARRAY) || json_count(blocks) == 0)
        return error_set(error, "config.json: block_configs is missing, or not a list");
    if (latent == NULL || json_is(latent, JSON_NULL))
        return error_set(error, "config.json: moe_latent_size is missing");
    builder->dimensions.n_layers = json_count(blocks);
    return hparams_override(builder->model->hparams, "n_layers", builder->dimensions.n_layers, error);
}

static const char *rename_puzzle(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                 const char *name)
{
    static const char model[] = "model.", backbone[] = "backbone.", bias[] = "mixer.gate.e_score_correction.bias";
    (void)dimensions;
    if (direction == BACKWARD)
        return text_starts_with(name, backbone) ? arena_printf(arena, "model.%s", name + strlen(backbone)) : name;
    if (text_starts_with(name, "mtp."))
        return NULL;
    if (text_starts_with(name, model))
        name = arena_printf(arena, "backbone.%s", name + strlen(model));
    if (text_ends_with(name, bias))
        name = arena_printf(arena, "%.*s_bias", (int)(strlen(name) - strlen(".bias")), name);
    return name;
}

/* Returns the list of blocks: the type of each, and the sizes of those with experts. */
static const char *make_blocks(const struct config_material *material)
{
    struct buffer out = {0};
    struct json_writer writer = {.out = &out, .letters = JSON_ASCII, .indent = 1};
    if (material->n_layers > MAX_LISTED_LAYERS)
        return NULL;
    json_begin_array(&writer, NULL);
    for (uint64_t i = 0; i < material->n_layers; i++) {
        double heads = 0, width = 0, used = 0;
        config_number_of_layer(material, "attention.head_count_kv", i, &heads);
        config_number_of_layer(material, "feed_forward_length", i, &width);
        config_number_of_layer(material, "expert_used_count", i, &used);
        json_begin_object(&writer, NULL);
        json_put_text(&writer, "block_type", heads > 0 ? "attention" : width > 0 ? "moe" : "mamba");
        if (width > 0) {
            json_put_number(&writer, "moe_intermediate_size", (uint64_t)width);
            json_put_number(&writer, "num_experts_per_tok", (uint64_t)used);
        }
        json_end(&writer);
    }
    json_end(&writer);
    const char *list = arena_strndup(material->arena, (const char *)out.bytes, out.length);
    buffer_free(&out);
    return list;
}

/* What differs by block is not said for all. */
static const struct config_row puzzle_rows[] = {
    {"block_configs", .make = make_blocks},
    {"norm_eps", FROM_KEY, "attention.layer_norm_rms_epsilon"},
    {"hybrid_override_pattern", FROM_NOWHERE},
    {"moe_intermediate_size", FROM_NOWHERE},
    {"num_experts_per_tok", FROM_NOWHERE},
    {"topk_group", FROM_KEY, "expert_group_used_count", .text = "1"},
    {0},
};

const struct family nemotron_h_puzzle_family = {
    .name = "nemotron_h_puzzle",
    .architecture = "nemotron_h_moe",
    .summary = "Nemotron Puzzle",
    .told_by = "key:expert_used_count=[]",
    .since = 10816,
    .hf = FAMILY_NAMES({"NemotronHPuzzleForCausalLM"}),
    .tensors = {tensors, mamba2_backbone_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"NemotronHPuzzleForCausalLM", "nemotron_h_puzzle", NULL,
                           CONFIG_TABLES(config_rows, puzzle_rows), OWN_CLASS_NOTE}),
    .keys = {base_keys, granite_keys, keys, KEYS({.emit = emit_block_sizes}), moe_layer_keys},
    .vocabs = {&bpe_vocab},
    .dimensions = {sizes},
    .adjust = count_blocks,
    .rename = rename_puzzle,
    .before_vocab = pad_vocabulary,
};
