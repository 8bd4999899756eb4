/* Granite 3, dense. conversion/granite.py. */
#include "models/families/granite/granite.h"

#include "base/text.h"
#include "models/families/llama/llama.h"

#include <string.h>

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

static const struct config_row config_rows[] = {
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
                           CONFIG_TABLES(silu_rows, attention_bias_rows, mlp_bias_rows, config_rows)}),
    .keys = {base_keys, granite_keys},
    LLAMA_VOCABS,
    .add_extras = add_rope_freqs,
    .rename = granite_without_towers,
};
