#include "models/families/linear_attention.h"

#include "base/text.h"
#include "models/families/layers.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const struct relation_row gated_delta_tensors[] = {
    {"model.layers.{}.post_attention_layernorm", "blk.{}.post_attention_norm", .map = &plus_one},
    {"model.layers.{}.linear_attn.A_log", "blk.{}.ssm_a", .map = &minus_exp, .parallel = "row"},
    {"model.layers.{}.linear_attn.dt_bias", "blk.{}.ssm_dt.bias", .parallel = "row"},
    {"model.layers.{}.linear_attn.conv1d.weight", "blk.{}.ssm_conv1d.weight",
     "(half group key_dim + group share value_dim) 1 k -> (half group key_dim + group share value_dim) k", "group"},
    {"model.layers.{}.linear_attn.norm", "blk.{}.ssm_norm"},
    {"model.layers.{}.linear_attn.out_proj", "blk.{}.ssm_out", .parallel = "column"},
    {0},
};

const struct relation_row gated_delta_grouped_tensors[] = {
    {"model.layers.{}.linear_attn.A_log", "blk.{}.ssm_a", "(group share) -> (share group)", "group", .map = &minus_exp},
    {"model.layers.{}.linear_attn.dt_bias", "blk.{}.ssm_dt.bias", "(group share) -> (share group)", "group"},
    {"model.layers.{}.linear_attn.conv1d.weight", "blk.{}.ssm_conv1d.weight",
     "(half group key_dim + group share value_dim) 1 k -> (half group key_dim + share group value_dim) k", "group"},
    {"model.layers.{}.linear_attn.in_proj_qkv", "blk.{}.attn_qkv",
     "(half group key_dim + group share value_dim) c -> (half group key_dim + share group value_dim) c", "group"},
    {"model.layers.{}.linear_attn.in_proj_z", "blk.{}.attn_gate",
     "(group share value_dim) c -> (share group value_dim) c", "group"},
    {"model.layers.{}.linear_attn.in_proj_a", "blk.{}.ssm_alpha", "(group share) c -> (share group) c", "group"},
    {"model.layers.{}.linear_attn.in_proj_b", "blk.{}.ssm_beta", "(group share) c -> (share group) c", "group"},
    {"model.layers.{}.linear_attn.out_proj", "blk.{}.ssm_out", "c (group share value_dim) -> c (share group value_dim)",
     "group"},
    {0},
};

static bool compute_rotary(const struct model_builder *builder, double *ret_value, struct error *error)
{
    return rotary_of_head_dim(builder, 0.25, ret_value, error);
}

/* Marks the layers that transformers' configuration class of Qwen3-Next makes linear. */
static bool mark_by_interval(const struct hparams *hparams, struct layers *layers, uint64_t n, struct error *error)
{
    uint64_t interval = 4;
    const struct json *given = hparams_get(hparams, "full_attention_interval");
    if (given != NULL && (!json_u64(given, &interval) || interval == 0))
        return error_set(error, "config.json: full_attention_interval is not a number of layers");
    for (uint64_t i = 0; i < n; i++)
        layers->values[i] = (i + 1) % interval != 0;
    return true;
}

/* Marks the layers with linear attention; layers that predict have none. */
static bool emit_recurrent_layers(struct model_builder *builder, struct error *error)
{
    struct layers layers;
    const struct hparams *hparams = builder->model->hparams;
    const struct json *types = hparams_get(hparams, "layer_types");
    bool is_listed = json_is(types, JSON_ARRAY);
    if (!is_listed && !json_string_is(hparams_get(hparams, "model_type"), "qwen3_next"))
        return true;
    if (!layers_new(builder, &layers, error))
        return false;
    uint64_t n = layers.n - dimensions_get(&builder->dimensions, "nextn");
    if (is_listed && json_count(types) != n)
        return error_set(error, "config.json: layer_types has %zu layers, but num_hidden_layers is %llu",
                         json_count(types), (unsigned long long)n);
    if (is_listed)
        layers_mark(&layers, types, "linear_attention");
    else if (!mark_by_interval(hparams, &layers, n, error))
        return false;
    layers_set(builder, "attention.recurrent_layers", GGUF_BOOL, &layers);
    return true;
}

const struct key_row gated_delta_keys[] = {
    {.emit = nextn_emit},
    {"ssm.conv_kernel", GGUF_U32, REQUIRED, "linear_conv_kernel_dim"},
    {"ssm.state_size", GGUF_U32, REQUIRED, "linear_key_head_dim"},
    {"ssm.group_count", GGUF_U32, REQUIRED, "linear_num_key_heads"},
    {"ssm.time_step_rank", GGUF_U32, REQUIRED, "linear_num_value_heads"},
    {"ssm.inner_size", GGUF_U32, REQUIRED, "linear_num_value_heads", .by = "linear_value_head_dim"},
    {.emit = emit_recurrent_layers, .since = RECURRENT_LAYERS},
    {"full_attention_interval", GGUF_U32, OR_DEFAULT, "full_attention_interval", 4},
    {"rope.dimension_count", GGUF_U32, .compute = compute_rotary},
    {0},
};

void gated_delta_add_dimensions(struct dimensions *dimensions, const struct hparams *hparams)
{
    enum { MAX_SIZE = 1 << 20 };
    struct error error;
    uint64_t keys, values, key_dim, value_dim;
    bool known = hparams_count(hparams, "linear_num_key_heads", 1, MAX_SIZE, &keys, &error) &&
                 hparams_count(hparams, "linear_num_value_heads", 1, MAX_SIZE, &values, &error) &&
                 hparams_count(hparams, "linear_key_head_dim", 1, MAX_SIZE, &key_dim, &error) &&
                 hparams_count(hparams, "linear_value_head_dim", 1, MAX_SIZE, &value_dim, &error) && values % keys == 0;
    nextn_add_dimensions(dimensions, hparams); /* for values from keys; no configuration of these models has it */
    dimensions_set(dimensions, "group", known ? keys : 0); /* 0: not to be guessed from shapes */
    dimensions_set(dimensions, "share", known ? values / keys : 0);
    dimensions_set(dimensions, "key_dim", known ? key_dim : 0);
    dimensions_set(dimensions, "value_dim", known ? value_dim : 0);
    dimensions_set(dimensions, "gate_dim", known ? value_dim : 0);
}

/* Returns one more than the highest number of the layers below "mtp."; 0: none. */
static uint64_t count_by_names(const struct tensor_set *set)
{
    static const char layers[] = "mtp.layers.";
    uint64_t n = 0;
    for (size_t i = 0; i < set->n_tensors; i++) {
        const char *name = set->tensors[i].name, *at = strstr(name, layers);
        if (at == NULL || (at > name && at[-1] != '.'))
            continue;
        uint64_t number = strtoull(at + strlen(layers), NULL, 10);
        n = number >= n && number < set->n_tensors ? number + 1 : n;
    }
    return n;
}

bool gated_delta_count_predicting(struct model_builder *builder, struct error *error)
{
    enum { MOST = 1 << 10 };
    const struct gguf_model *model = builder->model;
    struct error unused;
    uint64_t n;
    if (!hparams_count(model->hparams, "mtp_num_hidden_layers", 1, MOST, &n, &unused))
        n = dimensions_get(&builder->dimensions, "without_mtp") != 0 ? 0 : count_by_names(model->checkpoint->tensors);
    if (n == 0 && model->part == PART_WHOLE)
        checkpoint_note(model->checkpoint, SUBJECT_GGUF,
                        "the converter fails without the tensors of multi-token prediction (mtp.); the file is as with "
                        "its option --no-mtp");
    nextn_set(&builder->dimensions, n);
    return nextn_count_blocks(builder, error);
}

bool gated_delta_emit_sections(struct model_builder *builder, struct error *error)
{
    static const uint32_t sections[] = {11, 11, 10, 0};
    struct buffer elements = {0};
    if (hparams_rope(builder->model->hparams, "mrope_section") != NULL)
        return true;
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        buffer_append_le(&elements, sections[i], 4);
    gguf_set_array(&builder->model->kvs, builder_key(builder, "rope.dimension_sections"), GGUF_I32,
                   sizeof sections / sizeof *sections, &elements);
    return true;
}

#define KDA(at)                                                                                                        \
    {at ".dt_bias", "blk.{}.ssm_dt.bias", .parallel = "row"}, {at ".b_proj", "blk.{}.ssm_beta", .parallel = "row"},    \
        {at ".q_conv1d", "blk.{}.ssm_conv1d_q", "c 1 k -> 1 c 1 k", "c", .when = "!flat_convolution"},                 \
        {at ".k_conv1d", "blk.{}.ssm_conv1d_k", "c 1 k -> 1 c 1 k", "c", .when = "!flat_convolution"},                 \
        {at ".v_conv1d", "blk.{}.ssm_conv1d_v", "c 1 k -> 1 c 1 k", "c", .when = "!flat_convolution"},                 \
        {at ".q_conv1d", "blk.{}.ssm_conv1d_q", "c k -> 1 c 1 k", "c", .when = "flat_convolution"},                    \
        {at ".k_conv1d", "blk.{}.ssm_conv1d_k", "c k -> 1 c 1 k", "c", .when = "flat_convolution"},                    \
        {at ".v_conv1d", "blk.{}.ssm_conv1d_v", "c k -> 1 c 1 k", "c", .when = "flat_convolution"},                    \
    {                                                                                                                  \
        at ".o_norm", "blk.{}.ssm_norm"                                                                                \
    }

const struct relation_row kda_self_attention_tensors[] = {KDA("model.layers.{}.self_attn"), {0}};
const struct relation_row kda_attention_tensors[] = {KDA("model.layers.{}.attention"), {0}};

void kda_look(struct model_builder *builder)
{
    const struct tensor_set *set = builder->model->checkpoint->tensors;
    for (size_t i = 0; i < set->n_tensors; i++)
        if (set->tensors[i].rank == 2 && text_ends_with(set->tensors[i].name, ".q_conv1d.weight")) {
            dimensions_set(&builder->dimensions, "flat_convolution", 1);
            return;
        }
}

/* Returns the numbers of the layers that are not linear, from 1: "1, 4". */
static const char *list_latent(const struct json *types, struct arena *arena)
{
    const char *list = "";
    size_t number = 1;
    for (const struct json *type = json_first(types); type != NULL; type = json_next(type), number++)
        if (!json_string_is(type, "linear_attention"))
            list = arena_printf(arena, "%s%s%zu", list, *list != '\0' ? ", " : "", number);
    return list;
}

bool kda_undo_saving(struct model_builder *builder, const char *more, struct error *error)
{
    enum { MAX_LAYERS = 1 << 10, MAX_SIZE = 1 << 20 };
    struct gguf_model *model = builder->model;
    struct hparams *hparams = model->hparams;
    const struct json *types = hparams_get(hparams, "layer_types");
    uint64_t head_dim, n_heads, kernel;
    double bound;
    if (hparams_get(hparams, "linear_attn_config") != NULL || hparams_get(hparams, "linear_head_dim") == NULL)
        return true;
    if (!json_is(types, JSON_ARRAY) || json_count(types) > MAX_LAYERS)
        return error_set(error, "config.json: layer_types is missing, or no list of up to %d layers", MAX_LAYERS);
    if (!hparams_count(hparams, "linear_head_dim", 1, MAX_SIZE, &head_dim, error) ||
        !hparams_count(hparams, "linear_num_heads", 1, MAX_SIZE, &n_heads, error) ||
        !hparams_count(hparams, "linear_conv_kernel_dim", 1, MAX_SIZE, &kernel, error) ||
        (hparams_get(hparams, "first_k_dense_replace") == NULL && !layers_count_dense(builder, error)))
        return false;
    const char *gate = json_double(hparams_get(hparams, "linear_lower_bound"), &bound)
                           ? arena_printf(model->arena, ", 'gate_lower_bound': %.17g", bound)
                           : "";
    checkpoint_note(model->checkpoint, SUBJECT_GGUF,
                    "config.json has the keys of transformers 5 instead of linear_attn_config; the converter fails on "
                    "that");
    return hparams_default(hparams,
                           arena_printf(model->arena,
                                        "{'linear_attn_config': {'head_dim': %" PRIu64 ", 'num_heads': %" PRIu64
                                        ", 'short_conv_kernel_size': %" PRIu64 ", 'full_attn_layers': [%s]%s}%s}",
                                        head_dim, n_heads, kernel, list_latent(types, model->arena), gate, more),
                           error);
}

/* conversion/mamba.py, Mamba2Model. */

#define MIXER(at)                                                                                                      \
    {at ".A_log", "blk.{}.ssm_a", "row -> row 1", "row", .map = &minus_exp},                                           \
        {at ".D", "blk.{}.ssm_d", "row -> row 1", "row"}, {at ".dt_bias", "blk.{}.ssm_dt.bias", .parallel = "row"},    \
        {at ".conv1d.weight", "blk.{}.ssm_conv1d.weight",                                                              \
         "(channel + half state_group state) 1 k -> (channel + half state_group state) k", "channel state_group"},     \
        {at ".conv1d.bias", "blk.{}.ssm_conv1d.bias", "(channel + half state_group state)", "channel state_group"},    \
        {at ".in_proj", "blk.{}.ssm_in", "(half channel + half state_group state + mamba_head) ...",                   \
         "channel state_group mamba_head"},                                                                            \
        {at ".norm", "blk.{}.ssm_norm", "(state_group d) -> state_group d", "row"},                                    \
    {                                                                                                                  \
        at ".out_proj", "blk.{}.ssm_out", .parallel = "column"                                                         \
    }

const struct relation_row mamba2_layer_tensors[] = {MIXER("model.layers.{}.mamba"), {0}};
const struct relation_row mamba2_backbone_tensors[] = {MIXER("backbone.layers.{}.mixer"), {0}};

bool mamba2_pad_vocabulary(struct model_builder *builder, uint64_t multiple, struct error *error)
{
    enum { MOST = 1 << 24 };
    uint64_t n_tokens;
    if (!hparams_count(builder->model->hparams, "vocab_size", 0, MOST, &n_tokens, error))
        return false;
    return hparams_override(builder->model->hparams, "vocab_size", (n_tokens + multiple - 1) / multiple * multiple,
                            error);
}
