/* The Granite families. conversion/granite.py. */
#include "models/families/granite.h"

#include "base/text.h"
#include "models/families/layers.h"
#include "models/families/linear_attention.h"
#include "models/families/llama/llama.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Granite 3, dense. conversion/granite.py. */

const char *granite_without_towers(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                   const char *name)
{
    bool is_of_tower = text_starts_with(name, "encoder.") || strstr(name, "image_") != NULL ||
                       strstr(name, "layerwise_projectors") != NULL || strstr(name, "spatial_projectors") != NULL;
    return direction == FORWARD && is_of_tower ? NULL : name;
}

/* Removes config.json's size of a head: heads have no size of their own. */
static bool forget_head_dim(struct model_builder *builder, struct error *error)
{
    gguf_kvs_remove(&builder->model->kvs, builder_key(builder, "attention.key_length"));
    gguf_kvs_remove(&builder->model->kvs, builder_key(builder, "attention.value_length"));
    return true;
}

const struct key_row granite_keys[] = {
    {.emit = forget_head_dim},
    {"vocab_size", GGUF_U32, REQUIRED, "vocab_size"},
    {"rope.dimension_count", GGUF_U32, .compute = compute_hidden_per_head},
    {"attention.scale", GGUF_F32, IF_TRUE, "attention_multiplier"},
    {"embedding_scale", GGUF_F32, IF_TRUE, "embedding_multiplier"},
    {"residual_scale", GGUF_F32, IF_TRUE, "residual_multiplier"},
    {"logit_scale", GGUF_F32, IF_TRUE, "logits_scaling"},
    {.emit = emit_deepstack_mapping},
    {0},
};

static const struct config_row granite3_config_rows[] = {
    {"num_key_value_heads", FROM_MOST, "attention.head_count_kv"},
    {"logits_scaling", FROM_KEY, "logit_scale", .text = "1.0"},
    {0},
};

const struct family granite_family = {
    .name = "granite",
    .summary = "Granite 3",
    .hf = FAMILY_NAMES({"GraniteForCausalLM"}),
    .tensors = {llama_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"GraniteForCausalLM", "granite", NULL,
                           CONFIG_TABLES(silu_rows, attention_bias_rows, mlp_bias_rows, granite3_config_rows)}),
    .dimensions = {llama_dimensions},
    .keys = {base_keys, granite_keys},
    LLAMA_VOCABS,
    .add_extras = add_rope_freqs,
    .rename = granite_without_towers,
};

/* Granite 3 with experts. conversion/granite.py. */

const struct relation_row granite_moe_tensors[] = {
    {"model.layers.{}.block_sparse_moe.input_linear", "blk.{}.ffn_gate_exps, blk.{}.ffn_up_exps", GATE_UP, "gate up"},
    {"model.layers.{}.block_sparse_moe.output_linear", "blk.{}.ffn_down_exps", .parallel = "column"},
    {"model.layers.{}.block_sparse_moe.router.layer", "blk.{}.ffn_gate_inp"},
    {"model.layers.{}.shared_mlp.input_linear", "blk.{}.ffn_gate_shexp, blk.{}.ffn_up_shexp", GATE_UP, "gate up"},
    {"model.layers.{}.shared_mlp.output_linear", "blk.{}.ffn_down_shexp", .parallel = "column"},
    {0},
};

const struct key_row granite_moe_keys[] = {
    {"expert_shared_feed_forward_length", GGUF_U32, IF_TRUE, "shared_intermediate_size"}, {0}};

static const struct config_row config_form_rows[] = {
    {"num_key_value_heads", FROM_MOST, "attention.head_count_kv"},
    {"logits_scaling", FROM_KEY, "logit_scale", .text = "1.0"},
    {0},
};

const struct family granitemoe_family = {
    .name = "granitemoe",
    .summary = "Granite 3 MoE",
    .hf = FAMILY_NAMES({"GraniteMoeForCausalLM"}, {"GraniteMoeSharedForCausalLM"}),
    .tensors = {granite_moe_tensors, llama_tensors, decoder_tensors},
    .forms = CONFIG_FORMS(
        {"GraniteMoeSharedForCausalLM", "granitemoeshared", "tensor:blk.0.ffn_gate_shexp.weight",
         CONFIG_TABLES(silu_rows, attention_bias_rows, config_form_rows)},
        {"GraniteMoeForCausalLM", "granitemoe", NULL, CONFIG_TABLES(silu_rows, attention_bias_rows, config_form_rows)}),
    .dimensions = {llama_dimensions},
    .keys = {base_keys, granite_keys, granite_moe_keys},
    LLAMA_VOCABS,
    .add_extras = add_rope_freqs,
    .rename = granite_without_towers,
};

/* Granite with a sliding window in most layers, dense and with experts. conversion/granite.py. */

#define EXPERTS "model.layers.{}.block_sparse_moe."
#define SHARED  "model.layers.{}.shared_mlp."

/* The gates of experts stay beside what they gate. */
static const struct relation_row granite_swa_tensors[] = {
    {"model.layers.{}.self_attn.sinks", "blk.{}.attn_sinks.weight", .parallel = "row"},
    {EXPERTS "experts.gate_up_proj", "blk.{}.ffn_gate_up_exps.weight", "... (gate + up) c", "gate up"},
    {EXPERTS "experts.down_proj", "blk.{}.ffn_down_exps.weight", .parallel = "column"},
    {EXPERTS "router", "blk.{}.ffn_gate_inp"},
    {EXPERTS "input_linear", "blk.{}.ffn_gate_up_exps", "... (gate + up) c", "gate up", .forward_only = true},
    {EXPERTS "output_linear", "blk.{}.ffn_down_exps", .parallel = "column", .forward_only = true},
    {EXPERTS "router.layer", "blk.{}.ffn_gate_inp", .forward_only = true},
    {SHARED "input_linear", "blk.{}.ffn_up_shexp", "(gate + up) c", "gate up"},
    {SHARED "output_linear", "blk.{}.ffn_down_shexp", .parallel = "column"},
    {0},
};

/* Without a list, every fourth layer has full attention. */
static bool emit_windows(struct model_builder *builder, struct error *error)
{
    struct layers layers;
    const struct json *types = hparams_get(builder->model->hparams, "layer_types");
    if (json_count(types) > 0)
        return emit_listed_windows(builder, error);
    if (!layers_new(builder, &layers, error))
        return false;
    for (uint64_t i = 0; i < layers.n; i++)
        layers.values[i] = i % 4 != 0;
    layers_set(builder, "attention.sliding_window_pattern", GGUF_BOOL, &layers);
    return true;
}

static bool emit_ropes(struct model_builder *builder, struct error *error)
{
    struct layers layers;
    const struct json *list = hparams_get(builder->model->hparams, "no_rope_layers");
    if (json_count(list) == 0)
        return true;
    if (!layers_of_list(builder, list, &layers, error))
        return false;
    layers_fill(&layers, list);
    layers_set(builder, "attention.rope_pattern", GGUF_BOOL, &layers);
    return true;
}

static const struct key_row granite_swa_keys[] = {
    {"attention.sliding_window", GGUF_U32, OR_DEFAULT, "sliding_window", 128},
    {.emit = emit_windows},
    {.emit = emit_ropes},
    {0},
};

static const struct config_row granite_swa_config_rows[] = {
    {"logits_scaling", FROM_KEY, "logit_scale", .text = "1.0"},
    {"layer_types", FROM_LAYERS, "attention.sliding_window_pattern", "'sliding_attention'|'full_attention'"},
    {"no_rope_layers", FROM_LAYERS, "attention.rope_pattern", "1|0"},
    {0},
};

const struct family granite_swa_family = {
    .name = "granite_swa",
    .summary = "Granite with sliding windows",
    .since = 10531,
    .hf = FAMILY_NAMES({"GraniteSWAForCausalLM"}),
    .tensors = {granite_swa_tensors, llama_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"GraniteSWAForCausalLM", "granite_swa", NULL,
                           CONFIG_TABLES(silu_rows, attention_bias_rows, mlp_bias_rows, granite_swa_config_rows)}),
    .dimensions = {llama_dimensions},
    .keys = {base_keys, granite_keys, granite_swa_keys},
    LLAMA_VOCABS,
    .add_extras = add_rope_freqs,
    .rename = granite_without_towers,
};

const struct family granite_moe_swa_family = {
    .name = "granite_moe_swa",
    .architecture = "granite_swa",
    .summary = "Granite with sliding windows, MoE",
    .since = 10531,
    .hf = FAMILY_NAMES({"GraniteMoeSWAForCausalLM"}),
    .told_by = "key:expert_count",
    .tensors = {granite_swa_tensors, llama_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"GraniteMoeSWAForCausalLM", "granitemoe_swa", NULL,
                           CONFIG_TABLES(silu_rows, attention_bias_rows, granite_swa_config_rows)}),
    .dimensions = {llama_dimensions},
    .keys = {base_keys, granite_keys, granite_swa_keys, granite_moe_keys},
    LLAMA_VOCABS,
    .add_extras = add_rope_freqs,
    .rename = granite_without_towers,
};

/* Granite Switch: Granite with built-in adapters, chosen by tokens. conversion/granite.py.
 *
 * Adapters are stacked; the first ("empty" is 1) is all zeros and means none. */

#define ATTENTION    "model.layers.{}.self_attn."
#define FEED_FORWARD "model.layers.{}.shared_mlp."
#define STACKED      "n 1 o c -> (empty + n) o c"

static const struct relation_row granite_switch_tensors[] = {
    {"lm_head.weight", NULL},
    {"model.switch.*", NULL},
    {"switch.*", NULL},
    {"model.adapter_token_ids", NULL},
    {"model.control_to_substitute_lut", NULL},
    {"adapter_token_ids", NULL},
    {"control_to_substitute_lut", NULL},
    {ATTENTION "qkv_proj.base_layer.weight", "blk.{}.attn_qkv.weight",
     "(query head half pair + key kv_head half pair + value kv_head half pair) c -> "
     "(query head pair half + key kv_head pair half + value kv_head half pair) c",
     "head kv_head"},
    {ATTENTION "qkv_proj.lora_A_slices.0", "blk.{}.attn_q.lora_a", STACKED},
    {ATTENTION "qkv_proj.lora_A_slices.1", "blk.{}.attn_k.lora_a", STACKED},
    {ATTENTION "qkv_proj.lora_A_slices.2", "blk.{}.attn_v.lora_a", STACKED},
    {ATTENTION "qkv_proj.lora_B_slices.0", "blk.{}.attn_q.lora_b",
     "n 1 (head half pair) o -> (empty + n) (head pair half) o", "head"},
    {ATTENTION "qkv_proj.lora_B_slices.1", "blk.{}.attn_k.lora_b",
     "n 1 (kv_head half pair) o -> (empty + n) (kv_head pair half) o", "kv_head"},
    {ATTENTION "qkv_proj.lora_B_slices.2", "blk.{}.attn_v.lora_b", STACKED, "o"},
    {ATTENTION "o_proj.base_layer.weight", "blk.{}.attn_output.weight", .parallel = "column"},
    {ATTENTION "o_proj.lora_A", "blk.{}.attn_output.lora_a", STACKED, "c"},
    {ATTENTION "o_proj.lora_B", "blk.{}.attn_output.lora_b", STACKED},
    {FEED_FORWARD "input_linear.base_layer", "blk.{}.ffn_gate, blk.{}.ffn_up", GATE_UP, "gate up"},
    {FEED_FORWARD "input_linear.lora_A_slices.0", "blk.{}.ffn_gate.lora_a", STACKED},
    {FEED_FORWARD "input_linear.lora_A_slices.1", "blk.{}.ffn_up.lora_a", STACKED},
    {FEED_FORWARD "input_linear.lora_B_slices.0", "blk.{}.ffn_gate.lora_b", STACKED, "o"},
    {FEED_FORWARD "input_linear.lora_B_slices.1", "blk.{}.ffn_up.lora_b", STACKED, "o"},
    {FEED_FORWARD "output_linear.base_layer.weight", "blk.{}.ffn_down.weight", .parallel = "column"},
    {FEED_FORWARD "output_linear.lora_A", "blk.{}.ffn_down.lora_a", STACKED, "c"},
    {FEED_FORWARD "output_linear.lora_B", "blk.{}.ffn_down.lora_b", STACKED},
    {0},
};

/* Sets the number of experts used to 0 for a model without experts, whatever config.json says. */
static bool emit_used_experts(struct model_builder *builder, struct error *error)
{
    double n_experts;
    if (!builder_number(builder, "num_local_experts", 0, &n_experts, error))
        return false;
    if (n_experts == 0)
        gguf_set_u32(&builder->model->kvs, builder_key(builder, "expert_used_count"), 0);
    return true;
}

static const struct key_row granite_switch_keys[] = {
    {"expert_shared_feed_forward_length", GGUF_U32, IF_TRUE, "shared_intermediate_size"},
    {.emit = emit_used_experts},
    {"adapters.count", GGUF_U32, REQUIRED, "num_adapters"},
    {"adapters.lora_rank", GGUF_U32, REQUIRED, "max_lora_rank"},
    {"adapters.token_ids_activate", GGUF_U32, REQUIRED, "adapter_token_ids"},
    {"adapters.token_ids_substitute", GGUF_U32, REQUIRED, "adapter_substitute_token_ids"},
    {"adapters.router_gain", GGUF_F32, OR_DEFAULT, "control_token_gain", 15},
    {0},
};

/* Subtracts a layer: the switch counts as one, but has no weights. */
static void granite_switch_add_dimensions(struct dimensions *dimensions, const struct hparams *hparams)
{
    uint64_t head_dim = 0;
    if (dimensions->n_layers > 0)
        dimensions->n_layers--;
    if (!json_u64(hparams_find(hparams, "projection_head_dim|head_dim"), &head_dim) &&
        dimensions_get(dimensions, "head") != 0)
        head_dim = dimensions_get(dimensions, "hidden") / dimensions_get(dimensions, "head");
    dimensions_set(dimensions, "pair", head_dim / 2);
}

static bool count_layers(struct model_builder *builder, struct error *error)
{
    return hparams_override(builder->model->hparams, "n_layers", builder->dimensions.n_layers, error);
}

const struct family granite_switch_family = {
    .name = "graniteswitch",
    .summary = "Granite Switch",
    .hf = FAMILY_NAMES({"GraniteSwitchForCausalLM"}),
    .tensors = {granite_switch_tensors, decoder_tensors},
    .keys = {base_keys, granite_keys, granite_switch_keys},
    LLAMA_VOCABS,
    .dimensions = {qkv_dimensions, DIMENSIONS({"empty", NULL, 1})},
    .add_dimensions = granite_switch_add_dimensions,
    .adjust = count_layers,
    .add_extras = add_rope_freqs,
};

struct pair {
    int64_t vision, text;
};

static int compare_pairs(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    if (x->vision != y->vision)
        return x->vision < y->vision ? -1 : 1;
    return (x->text > y->text) - (x->text < y->text);
}

/* Finds the layer with that number, which counts from the end if negative. */
static bool find_layer(const struct json *config, const char *part, int64_t number, uint64_t *ret_layer,
                       struct error *error)
{
    uint64_t n_layers;
    if (!json_u64(json_get(json_get(config, part), "num_hidden_layers"), &n_layers) || n_layers > MAX_LISTED_LAYERS)
        return error_set(error, "config.json: num_hidden_layers of %s is missing, or not a number of layers", part);
    int64_t layer = number < 0 ? number + (int64_t)n_layers : number;
    if (layer < 0 || layer >= (int64_t)n_layers)
        return error_set(error, "config.json: a projector is for layer %" PRId64 " of %s, which has %" PRIu64, number,
                         part, n_layers);
    *ret_layer = (uint64_t)layer;
    return true;
}

/* Inserts a projector in the order of text layers, after others for the same layer. */
static bool add_projector(const struct json *config, struct granite_projectors *projectors, const struct pair *pair,
                          enum granite_vision_kind kind, unsigned number, struct error *error)
{
    struct granite_projector added = {.kind = kind, .number = number};
    if (!find_layer(config, "vision_config", pair->vision, &added.vision_layer, error) ||
        !find_layer(config, "text_config", pair->text, &added.text_layer, error))
        return false;
    unsigned at = projectors->n++;
    for (; at > 0 && projectors->list[at - 1].text_layer > added.text_layer; at--)
        projectors->list[at] = projectors->list[at - 1];
    projectors->list[at] = added;
    return true;
}

static bool read_pairs(const struct json *list, const char *name, const int64_t *vision, struct pair *pairs,
                       struct error *error)
{
    unsigned n = 0;
    if (json_count(list) > GRANITE_VISION_MOST)
        return error_set(error, "config.json: %s has %zu projectors, more than %d", name, json_count(list),
                         GRANITE_VISION_MOST);
    for (const struct json *item = json_first(list); item != NULL; item = json_next(item), n++) {
        const struct json *first = json_first(item), *text = vision != NULL ? item : json_next(first);
        bool is_pair = vision != NULL || json_count(item) == 2;
        if (vision != NULL)
            pairs[n].vision = *vision;
        else if (!is_pair || !json_i64(first, &pairs[n].vision))
            return error_set(error, "config.json: %s has an element that is not a pair of layers", name);
        if (!json_i64(text, &pairs[n].text))
            return error_set(error, "config.json: %s has an element that is not a layer", name);
    }
    return true;
}

static bool add_all(const struct json *config, struct granite_projectors *projectors, enum granite_vision_kind kind,
                    struct error *error)
{
    static const char *const names[] = {"deepstack_layer_map", "spatial_target_layers"};
    struct pair pairs[GRANITE_VISION_MOST];
    int64_t vision = -1;
    const struct json *list = json_get(config, names[kind]), *named = json_get(config, "spatial_vision_layer");
    if (json_count(list) == 0)
        return true;
    if (kind == GRANITE_SPATIAL && named != NULL && !json_i64(named, &vision))
        return error_set(error, "config.json: spatial_vision_layer is not a layer");
    if (!read_pairs(list, names[kind], kind == GRANITE_SPATIAL ? &vision : NULL, pairs, error))
        return false;
    if (kind == GRANITE_LAYERWISE)
        qsort(pairs, json_count(list), sizeof *pairs, compare_pairs);
    for (unsigned i = 0; i < json_count(list); i++)
        if (!add_projector(config, projectors, &pairs[i], kind, i, error))
            return false;
    return true;
}

bool granite_projectors_read(const struct json *config, struct granite_projectors *ret_projectors, struct error *error)
{
    *ret_projectors = (struct granite_projectors){0};
    return add_all(config, ret_projectors, GRANITE_LAYERWISE, error) &&
           add_all(config, ret_projectors, GRANITE_SPATIAL, error);
}

bool emit_deepstack_mapping(struct model_builder *builder, struct error *error)
{
    const struct json *config = hparams_raw(builder->model->hparams);
    struct granite_projectors projectors;
    struct layers layers;
    if (json_count(json_get(config, "spatial_target_layers")) == 0 &&
        json_count(json_get(config, "deepstack_layer_map")) == 0)
        return true;
    if (!granite_projectors_read(config, &projectors, error) || !layers_new(builder, &layers, error))
        return false;
    for (uint64_t i = 0; i < layers.n; i++)
        layers.values[i] = -1;
    for (unsigned i = 1; i < projectors.n; i++)
        if (projectors.list[i].text_layer < layers.n)
            layers.values[projectors.list[i].text_layer] = i;
    return layers_set_i32(builder, "deepstack_mapping", &layers, error);
}

/* Granite 4 and Bamba: layers of Mamba 2 and of attention. conversion/granite.py, GraniteHybridModel.
 *
 * The converter looks for some names first, then for the same names after "mamba_". A model without Mamba layers has
 * Granite 3's architecture, but all keys of the hybrid. */

static const struct relation_row bamba_tensors[] = {
    {"model.final_layernorm", "output_norm", .when = "bamba"},
    {"model.layers.{}.pre_ff_layernorm", "blk.{}.ffn_norm", .when = "bamba"},
    {"model.layers.{}.feed_forward.gate_proj", "blk.{}.ffn_gate", .parallel = "row", .when = "bamba"},
    {"model.layers.{}.feed_forward.up_proj", "blk.{}.ffn_up", .parallel = "row", .when = "bamba"},
    {"model.layers.{}.feed_forward.down_proj", "blk.{}.ffn_down", .parallel = "column", .when = "bamba"},
    {0},
};

static const struct relation_row granitehybrid_tensors[] = {
    {"model.layers.{}.shared_mlp.input_linear", "blk.{}.ffn_gate_shexp, blk.{}.ffn_up_shexp", GATE_UP, "gate up",
     .when = "expert"},
    {"model.layers.{}.shared_mlp.output_linear", "blk.{}.ffn_down_shexp", .parallel = "column", .when = "expert"},
    {"model.layers.{}.shared_mlp.input_linear", "blk.{}.ffn_gate, blk.{}.ffn_up", GATE_UP, "gate up",
     .when = "!expert"},
    {"model.layers.{}.shared_mlp.output_linear", "blk.{}.ffn_down", .parallel = "column", .when = "!expert"},
    {0},
};

/* Reports whether layer `i` has attention if no list names such layers. */
static bool is_periodic(const struct hparams *hparams, uint64_t i)
{
    uint64_t period, offset;
    struct error unused;
    return hparams_count(hparams, "attn_layer_period", 1, UINT32_MAX, &period, &unused) &&
           hparams_count(hparams, "attn_layer_offset", 0, UINT32_MAX, &offset, &unused) && i % period == offset;
}

/* Marks the layers with attention, among the first `n`. */
static void mark_attention(const struct hparams *hparams, struct layers *layers)
{
    const struct json *types = hparams_get(hparams, "layer_types"),
                      *listed = hparams_get(hparams, "attn_layer_indices");
    if (json_count(types) > 0) {
        layers_mark(layers, types, "attention");
        return;
    }
    for (uint64_t i = 0; i < layers->n && json_count(listed) == 0; i++)
        layers->values[i] = is_periodic(hparams, i);
    for (const struct json *item = json_first(listed); item != NULL; item = json_next(item)) {
        uint64_t i;
        if (json_u64(item, &i) && i < layers->n)
            layers->values[i] = 1;
    }
}

static bool has_mamba_layers(const struct hparams *hparams)
{
    double values[MAX_LISTED_LAYERS / 64];
    struct layers layers = {0, values};
    struct error unused;
    if (!hparams_count(hparams, BLOCK_COUNT, 1, sizeof values / sizeof *values, &layers.n, &unused))
        return true;
    memset(values, 0, layers.n * sizeof *values);
    mark_attention(hparams, &layers);
    for (uint64_t i = 0; i < layers.n; i++)
        if (values[i] == 0)
            return true;
    return false;
}

static bool has_experts(const struct hparams *hparams)
{
    return hparams_truth(hparams_find(hparams, "num_experts_per_tok|num_experts_per_token"));
}

static bool is_attention_with_experts(const struct hparams *hparams)
{
    return !has_mamba_layers(hparams) && has_experts(hparams);
}

static bool is_attention_alone(const struct hparams *hparams)
{
    return !has_mamba_layers(hparams) && !has_experts(hparams);
}

static bool emit_attention(struct model_builder *builder, struct error *error)
{
    struct layers layers;
    struct gguf_kvs *kvs = &builder->model->kvs;
    if (!layers_new(builder, &layers, error))
        return false;
    mark_attention(builder->model->hparams, &layers);
    layers_note_later_names(builder, hparams_get(builder->model->hparams, "layer_types"));
    bool is_bamba = strcmp(builder->hf->name, "BambaForCausalLM") == 0;
    bool has_rope = !has_mamba_layers(builder->model->hparams) || is_bamba;
    if (is_bamba)
        checkpoint_note(
            builder->model->checkpoint, SUBJECT_GGUF,
            "Bamba's rope turns the first half of each head, but the converter orders queries and keys as for "
            "whole heads: llama.cpp turns other elements, and computes other values than transformers");
    if (!layers_set_kv_heads(builder, &layers, error))
        return false;
    gguf_set_bool(kvs, builder_key(builder, "rope.scaling.finetuned"), has_rope);
    if (!has_rope)
        gguf_set_u32(kvs, builder_key(builder, "context_length"), MAMBA2_CONTEXT);
    return true;
}

#define STATE                                                                                                          \
    "state_size|d_state|state_dim|ssm_state_size|mamba_state_size|mamba_d_state|mamba_state_dim|mamba_ssm_state_size"
#define GROUPS      "n_groups|num_groups|mamba_n_groups|mamba_num_groups"
#define MAMBA_HEADS "n_heads|num_heads|mamba_n_heads|mamba_num_heads"

static const struct key_row granitehybrid_keys[] = {
    {"ssm.conv_kernel", GGUF_U32, REQUIRED, "conv_kernel|d_conv|mamba_conv_kernel|mamba_d_conv"},
    {"ssm.state_size", GGUF_U32, REQUIRED, STATE},
    {"ssm.group_count", GGUF_U32, REQUIRED, GROUPS},
    {"ssm.inner_size", GGUF_U32, REQUIRED, "mamba_head_dim|hidden_size|d_model",
     .by = "expand|num_heads|mamba_expand|mamba_num_heads"},
    {"ssm.time_step_rank", GGUF_U32, REQUIRED, MAMBA_HEADS},
    {"rope.dimension_count", GGUF_U32, IF_TRUE, "attn_rotary_emb"},
    {.emit = emit_attention},
    {0},
};

static const struct dimension_row sizes[] = {
    {"state_group", GROUPS},
    {"state", STATE},
    {"mamba_head", MAMBA_HEADS},
    {0},
};

static void granitehybrid_add_dimensions(struct dimensions *dimensions, const struct hparams *hparams)
{
    const char *class_name = hparams_class(hparams);
    if (class_name != NULL && strcmp(class_name, "BambaForCausalLM") == 0)
        dimensions_set(dimensions, "bamba", 1);
}

static bool pad_vocabulary(struct model_builder *builder, const struct vocab_input *input, struct error *error)
{
    return !has_mamba_layers(builder->model->hparams) || mamba2_pad_vocabulary(builder, 8, error);
}

static const struct config_row common_rows[] = {
    {"num_key_value_heads", FROM_MOST, "attention.head_count_kv"},
    {"mamba_d_head", FROM_QUOTIENT, "ssm.inner_size", "ssm.time_step_rank"},
    {"mamba_expand", FROM_QUOTIENT, "ssm.inner_size", "embedding_length"},
    {"mamba_conv_bias", FROM_TENSOR, "blk.0.ssm_conv1d.bias"},
    {"mamba_proj_bias", FROM_TENSOR, "blk.0.ssm_in.bias"},
    {0},
};

static const struct config_row granite_rows[] = {
    {"logits_scaling", FROM_KEY, "logit_scale", .text = "1.0"},
    {"layer_types", FROM_LAYERS, "attention.head_count_kv", "'attention'|'mamba'"},
    {"position_embedding_type", FROM_TEXT, .text = "'nope'"},
    {0},
};

static const struct config_row config_dense_rows[] = {
    {"num_local_experts", FROM_TEXT, .text = "0"},
    {"num_experts_per_tok", FROM_TEXT, .text = "0"},
    {0},
};

static const struct config_row config_bamba_rows[] = {
    {"attn_layer_indices", FROM_LISTED, "attention.head_count_kv"},
    {"partial_rotary_factor", FROM_HEAD_SHARE, "rope.dimension_count"},
    {0},
};

/* Granite 4 with Mamba layers has no positions; Bamba has a rope. */
static const struct config_form forms[] = {
    {"BambaForCausalLM", "bamba", "key:rope.scaling.finetuned=1",
     CONFIG_TABLES(silu_rows, common_rows, config_bamba_rows)},
    {"GraniteMoeHybridForCausalLM", "granitemoehybrid", "tensor:blk.0.ffn_gate_inp.weight",
     CONFIG_TABLES(silu_rows, common_rows, granite_rows)},
    {"GraniteMoeHybridForCausalLM", "granitemoehybrid", NULL,
     CONFIG_TABLES(silu_rows, common_rows, granite_rows, config_dense_rows)},
    {0},
};

#define GRANITE_HYBRID                                                                                                 \
    .hf = FAMILY_NAMES({"GraniteMoeHybridForCausalLM"}, {"BambaForCausalLM"}),                                         \
    .tensors = {bamba_tensors,       granitehybrid_tensors, mamba2_layer_tensors,                                      \
                granite_moe_tensors, llama_tensors,         decoder_tensors},                                          \
    .keys = {base_keys, granite_keys, granite_moe_keys, granitehybrid_keys}, .vocabs = {&spm_vocab, &bpe_vocab},       \
    .dimensions = {sizes}, .add_dimensions = granitehybrid_add_dimensions, .add_extras = add_rope_freqs,               \
    .rename = granite_without_towers, .before_vocab = pad_vocabulary

const struct family granitehybrid_family = {
    .name = "granitehybrid",
    .summary = "Granite 4, Bamba",
    .forms = forms,
    GRANITE_HYBRID,
};

const struct family granite4_family = {
    .name = "granite4",
    .architecture = "granite",
    .summary = "Granite 4 without Mamba layers",
    .applies = is_attention_alone,
    GRANITE_HYBRID,
};

const struct family granite4moe_family = {
    .name = "granite4moe",
    .architecture = "granitemoe",
    .summary = "Granite 4 MoE without Mamba layers",
    .applies = is_attention_with_experts,
    GRANITE_HYBRID,
};
