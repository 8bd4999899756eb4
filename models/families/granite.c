/* Granite 3, dense. conversion/granite.py. */
#include "models/families/granite.h"

#include "base/text.h"
#include "models/families/granite_vision.h"
#include "models/families/llama.h"

#include <string.h>

static const struct family_name names[] = {{"GraniteForCausalLM"}, {0}};

const char *granite_without_towers(struct arena *arena, const struct facts *facts, enum direction direction,
                                   const char *name)
{
    (void)arena;
    (void)facts;
    bool is_of_tower = text_starts_with(name, "encoder.") || strstr(name, "image_") != NULL ||
                       strstr(name, "layerwise_projectors") != NULL || strstr(name, "spatial_projectors") != NULL;
    return direction == FORWARD && is_of_tower ? NULL : name;
}

/* Heads have no size of their own: takes back what config.json says of it. */
static bool forget_head_dim(struct draft *draft, struct error *error)
{
    (void)error;
    gguf_kvs_remove(&draft->model->kvs, draft_key(draft, "attention.key_length"));
    gguf_kvs_remove(&draft->model->kvs, draft_key(draft, "attention.value_length"));
    return true;
}

static bool compute_rotary(const struct draft *draft, double *ret_value, struct error *error)
{
    if (facts_get(&draft->facts, "head") == 0 || facts_get(&draft->facts, "hidden") == 0)
        return error_set(error, "config.json: hidden_size or num_attention_heads is missing, 0, or too large");
    *ret_value = (double)(facts_get(&draft->facts, "hidden") / facts_get(&draft->facts, "head"));
    return true;
}

const struct key_row granite_keys[] = {
    {.emit = forget_head_dim},
    {"vocab_size", GGUF_U32, REQUIRED, "vocab_size"},
    {"rope.dimension_count", GGUF_U32, .compute = compute_rotary},
    {"attention.scale", GGUF_F32, IF_TRUE, "attention_multiplier"},
    {"embedding_scale", GGUF_F32, IF_TRUE, "embedding_multiplier"},
    {"residual_scale", GGUF_F32, IF_TRUE, "residual_multiplier"},
    {"logit_scale", GGUF_F32, IF_TRUE, "logits_scaling"},
    {.emit = emit_deepstack_mapping},
    {0},
};

static const struct config_row config_rows[] = {
    {"hidden_act", FROM_TEXT, .text = "'silu'"},
    {"attention_bias", FROM_TENSOR, "blk.0.attn_q.bias"},
    {"mlp_bias", FROM_TENSOR, "blk.0.ffn_up.bias"},
    {"num_key_value_heads", FROM_MOST, "attention.head_count_kv"},
    {"logits_scaling", FROM_KEY, "logit_scale", .text = "1.0"},
    {0},
};

static const struct config_form forms[] = {
    {"GraniteForCausalLM", "granite", NULL, config_rows},
    {0},
};

const struct family granite_family = {
    .name = "granite",
    .summary = "Granite 3",
    .hf = names,
    .tensors = {llama_tensors, decoder_tensors},
    .forms = forms,
    .keys = {base_keys, granite_keys},
    .vocabs = {&spm_vocab, &llama_hf_vocab, &bpe_vocab},
    .add_extras = add_rope_freqs,
    .rename = granite_without_towers,
    .before_vocab = llama_before_vocab,
    .after_vocab = llama_after_vocab,
};
