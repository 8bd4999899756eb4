/* DeepSeek-OCR and related models: language model, DeepSeek's experts with plain attention. conversion/deepseek.py. */
#include "models/families/deepseek/deepseek.h"

/* Their text_config names an ordinary DeepSeek V2. */
static const struct family_name names[] = {{"DeepseekOCRForCausalLM"},
                                           {"UnlimitedOCRForCausalLM"},
                                           {"DeepseekOCR2ForCausalLM"},
                                           {"DeepseekV2ForCausalLM"},
                                           {0}};

static const struct relation_row tensors[] = {
    {"lm_head.weight", NULL, .when = "tie_word_embeddings"},
    {"model.sam_model.*", NULL},
    {"model.qwen2_model.*", NULL},
    {"model.vision_model.*", NULL},
    {"model.projector.*", NULL},
    {0},
};

/* Reports whether the multimodal model is DeepSeek-OCR or a related one, whatever the class of its text_config. */
static bool is_ocr(const struct hparams *hparams)
{
    const struct json *outer = json_first(json_get(hparams_raw(hparams), "architectures"));
    return json_string_is(outer, names[0].name) || json_string_is(outer, names[1].name) ||
           json_string_is(outer, names[2].name);
}

static const struct key_row keys[] = {
    {"leading_dense_block_count", GGUF_U32, .compute = deepseek_dense_layers},
    {"vocab_size", GGUF_U32, REQUIRED, "vocab_size"},
    {"attention.q_lora_rank", GGUF_U32, IF_PRESENT, "q_lora_rank"},
    {"expert_feed_forward_length", GGUF_U32, REQUIRED, "moe_intermediate_size|intermediate_size"},
    {"expert_count", GGUF_U32, IF_PRESENT, "n_routed_experts"},
    {"expert_shared_count", GGUF_U32, OR_DEFAULT, "n_shared_experts", 0},
    {"expert_weights_scale", GGUF_F32, IF_PRESENT, "routed_scaling_factor"},
    {"expert_weights_norm", GGUF_BOOL, IF_TRUE, "norm_topk_prob"},
    {"rope.dimension_count", GGUF_U32, REQUIRED, "qk_rope_head_dim"},
    {"rope.scaling.yarn_log_multiplier", GGUF_F32, IF_PRESENT, "rope.mscale_all_dim", .times = 0.1},
    {"attention.sliding_window", GGUF_U32, IF_TRUE, "sliding_window_size|sliding_window"},
    {0},
};

/* Adds a template that writes the content of each message; a template in the files replaces it. */
static bool add_template(struct model_builder *builder, struct error *error)
{
    gguf_set_text(&builder->model->kvs, "tokenizer.chat_template",
                  "{% for m in messages %}{{m['content']}}{% endfor %}");
    return true;
}

const struct family deepseek2_ocr_family = {
    .name = "deepseek2-ocr",
    .summary = "DeepSeek-OCR (language model)",
    .hf = names,
    .tensors = {tensors, router_tensors, expert_tensors, decoder_tensors},
    .keys = {base_keys, keys},
    .vocabs = {&bpe_vocab},
    .applies = is_ocr,
    .dimensions = {mla_dimensions},
    .defaults = MLA_DEFAULTS,
    .add_extras = add_template,
};
