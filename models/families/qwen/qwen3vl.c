/* Qwen3-VL, Qwen3-ASR and Qwen3-Omni, dense and with experts: language models. conversion/qwen3vl.py. */
#include "base/text.h"
#include "formats/documents.h"
#include "models/families/qwen/qwen.h"

#include <stdlib.h>
#include <string.h>

static bool is_recognizer(const struct model_builder *builder)
{
    return strcmp(builder->hf->name, "Qwen3ASRForConditionalGeneration") == 0;
}

static bool has_speech(const struct model_builder *builder)
{
    return is_recognizer(builder) || strcmp(builder->hf->name, "Qwen3OmniMoeForConditionalGeneration") == 0;
}

/* Counts the layers of the vision encoder that feed the first layers of the text model. */
static bool compute_deepstack_layers(const struct model_builder *builder, double *ret_value, struct error *error)
{
    const struct hparams *hparams = builder->model->hparams;
    bool thinks = hparams_get(hparams, "thinker_config") != NULL;
    const char *key =
        thinks ? "thinker_config.vision_config.deepstack_visual_indexes" : "vision_config.deepstack_visual_indexes";
    *ret_value = has_speech(builder) ? 0 : (double)json_count(hparams_get(hparams, key));
    return true;
}

static const struct key_row vision_keys[] = {{"n_deepstack_layers", GGUF_U32, .compute = compute_deepstack_layers},
                                             {0}};

static void set_ends(struct gguf_kvs *kvs, const struct json *config)
{
    const struct json *decoder = json_get(config, "added_tokens_decoder");
    for (struct json_member token = {0}; json_next_member(decoder, &token);) {
        if (!json_string_is(json_get(token.value, "content"), "<|im_end|>"))
            continue;
        uint32_t id = (uint32_t)strtoul(token.key, NULL, 10);
        gguf_set_u32(kvs, "tokenizer.ggml.bos_token_id", id);
        gguf_set_u32(kvs, "tokenizer.ggml.eos_token_id", id);
        return;
    }
}

/* Sets <|im_end|> as BOS and EOS of models for speech, and recognizers' own template. */
static bool after_vocab(struct model_builder *builder, const struct vocab_input *input, struct error *error)
{
    static const char template[] =
        "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] "
        "+ '<|im_end|>' + '\\n'}}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
    struct document *config;
    if (!has_speech(builder))
        return true;
    if (!document_open(input->checkpoint, "tokenizer_config.json", &config, error))
        return false;
    if (is_recognizer(builder))
        gguf_set_text(&builder->model->kvs, "tokenizer.chat_template", template);
    set_ends(&builder->model->kvs, document_root(config));
    document_close(config);
    return true;
}

const struct family qwen3vl_family = {
    .name = "qwen3vl",
    .summary = "Qwen3-VL, Qwen3-ASR (language model)",
    .hf = FAMILY_NAMES({"Qwen3VLForConditionalGeneration"}, {"Qwen3ASRForConditionalGeneration"}),
    .tensors = {qk_norm_tensors, decoder_tensors},
    .forms = qwen3_half_forms,
    .keys = {base_keys, KEYS({.emit = emit_pooling_type}, {.emit = emit_reranker}), vision_keys},
    .vocabs = {&spm_vocab, &bpe_vocab},
    .dropped_parts = TEXTS("thinker."),
    .adjust = reranker_look,
    .arrange = reranker_arrange,
    .after_vocab = after_vocab,
};

/* Experts are stored in one piece and transposed, but not transposed by later releases of transformers; the way back
 * writes Qwen 3's form. */
static const struct relation_row tensors[] = {
    {"model.layers.{}.mlp.experts.down_proj", "blk.{}.ffn_down_exps.weight", "e f c -> e c f", "f",
     .forward_only = true, .when = "transposed"},
    {"model.layers.{}.mlp.experts.gate_up_proj", "blk.{}.ffn_gate_exps.weight, blk.{}.ffn_up_exps.weight",
     "e c (gate + up) -> e gate c, e up c", "gate up", .forward_only = true, .when = "transposed"},
    {0},
};

/* Looks at the shape of experts for the form; if their width is the model's, assumes the released form. */
static bool look_at_experts(struct model_builder *builder, struct error *error)
{
    const struct tensor_set *set = builder->model->checkpoint->tensors;
    uint64_t hidden = dimensions_get(&builder->dimensions, "hidden");
    dimensions_set(&builder->dimensions, "transposed", 1);
    for (size_t i = 0; i < set->n_tensors; i++) {
        const struct tensor *tensor = &set->tensors[i];
        if (tensor->rank == 3 && text_ends_with(tensor->name, ".mlp.experts.down_proj")) {
            bool is_transposed = tensor->shape[1] != hidden || tensor->shape[2] == hidden;
            dimensions_set(&builder->dimensions, "transposed", is_transposed);
            if (!is_transposed)
                checkpoint_note(builder->model->checkpoint, SUBJECT_GGUF,
                                "experts lie as later releases of transformers save them; the converter "
                                "would transpose them");
            return true;
        }
    }
    return true;
}

const struct family qwen3vlmoe_family = {
    .name = "qwen3vlmoe",
    .summary = "Qwen3-VL, Qwen3-Omni MoE (language model)",
    .hf = FAMILY_NAMES({"Qwen3VLMoeForConditionalGeneration"}, {"Qwen3OmniMoeForConditionalGeneration"}),
    .tensors = {tensors, qk_norm_tensors, qwen_moe_tensors, decoder_tensors},
    .forms = qwen3moe_half_forms,
    .keys = {base_keys, moe_keys, vision_keys},
    .vocabs = {&bpe_vocab},
    .dropped_parts = TEXTS("thinker."),
    .adjust = look_at_experts,
    .after_vocab = after_vocab,
};
