/* Qwen3-VL and Qwen3-ASR, dense: the text half. conversion/qwen3vl.py. */
#include "models/families/qwen3vl.h"
#include "formats/documents.h"
#include "models/families/qwen3_reranker.h"

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

/* The layers of the vision tower that feed the first layers of the text model. */
static bool compute_deepstack_layers(const struct model_builder *builder, double *ret_value, struct error *error)
{
    const struct hparams *hparams = builder->model->hparams;
    bool thinks = hparams_get(hparams, "thinker_config") != NULL;
    const char *key =
        thinks ? "thinker_config.vision_config.deepstack_visual_indexes" : "vision_config.deepstack_visual_indexes";
    *ret_value = has_speech(builder) ? 0 : (double)json_count(hparams_get(hparams, key));
    return true;
}

const struct key_row qwen3vl_keys[] = {{"n_deepstack_layers", GGUF_U32, .compute = compute_deepstack_layers}, {0}};

const char *const qwen3vl_dropped_parts[] = {"thinker.", NULL};

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

bool qwen3vl_after_vocab(struct model_builder *builder, const struct vocab_input *input, struct error *error)
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
    .keys = {base_keys, KEYS({.emit = emit_pooling_type}, {.emit = emit_reranker}), qwen3vl_keys},
    .vocabs = {&spm_vocab, &bpe_vocab},
    .dropped_parts = qwen3vl_dropped_parts,
    .adjust = reranker_look,
    .arrange = reranker_arrange,
    .after_vocab = qwen3vl_after_vocab,
};
