/* Llama and models of its architecture: Mistral, Mixtral, TinyLlama, SmolLM, Yi, CodeLlama. conversion/llama.py. */
#include "models/families/llama/llama.h"
#include "formats/documents.h"

static const struct family_name names[] = {
    {"LlamaForCausalLM", NULL},
    {"LLaMAForCausalLM", NULL},
    {"MistralForCausalLM", NULL},
    {"MixtralForCausalLM", NULL},
    {"LlavaForConditionalGeneration", NULL},
    {"VoxtralForConditionalGeneration", NULL},
    {"IQuestCoderForCausalLM", NULL},
    {"VLlama3ForCausalLM", NULL}, /* for SmolVLM and Idefics 3 */
    {"UltravoxModel", NULL},
    {"JanusForConditionalGeneration", NULL},
    {"Sarashina2VisionForCausalLM", ""}, /* its vision part ends in a norm named like a text model's */
    {"LlamaModel", "model."},
    {0},
};

const struct relation_row llama_tensors[] = {
    {"model.layers.{}.self_attn.q_proj", "blk.{}.attn_q", QUERY_ROTARY, "head"},
    {"model.layers.{}.self_attn.k_proj", "blk.{}.attn_k", KEY_ROTARY, "kv_head"},
    {0},
};

/* Janus's tensors for making images. */
static const struct relation_row foreign_tensors[] = {
    {"model.aligner.*", NULL}, {"model.vqmodel.*", NULL}, {"model.generation_*", NULL}, {"norm.*", NULL}, {0},
};

bool llama_is_eagle3(const struct hparams *hparams)
{
    uint64_t n_layers;
    return hparams_get(hparams, "draft_vocab_size") != NULL &&
           json_u64(hparams_get(hparams, "num_hidden_layers"), &n_layers) && n_layers == 1;
}

const struct key_row llama_keys[] = {
    {.key = "vocab_size", .type = GGUF_U32, .when = REQUIRED, .from = "vocab_size"},
    {.key = "rope.dimension_count", .type = GGUF_U32, .compute = compute_head_dim},
    {0},
};

bool llama_before_vocab(struct model_builder *builder, const struct vocab_input *input, struct error *error)
{
    struct document *config;
    if (!document_open(input->checkpoint, "tokenizer_config.json", &config, error))
        return false;
    const struct json *value = json_get(document_root(config), "add_prefix_space");
    if (json_is(value, JSON_TRUE) || json_is(value, JSON_FALSE))
        gguf_set_bool(&builder->model->kvs, "tokenizer.ggml.add_space_prefix", json_bool(value, false));
    document_close(config);
    return true;
}

bool llama_after_vocab(struct model_builder *builder, const struct vocab_input *input, struct error *error)
{
    enum { CODE_LLAMA_VOCABULARY = 32016, CODE_LLAMA_EOT = 32010, GRANITE_VOCABULARY = 49152 };
    struct gguf_kvs *kvs = &builder->model->kvs;
    uint64_t n_vocab;
    if (!json_u64(hparams_get(input->hparams, "vocab_size"), &n_vocab))
        return true;
    if (n_vocab == CODE_LLAMA_VOCABULARY && gguf_kvs_find(kvs, "tokenizer.ggml.eot_token_id") == NULL)
        gguf_set_u32(kvs, "tokenizer.ggml.eot_token_id", CODE_LLAMA_EOT);
    if (n_vocab == GRANITE_VOCABULARY)
        gguf_set_bool(kvs, "tokenizer.ggml.add_bos_token", false);
    return true;
}

/* Llama's class always has the size of a head, so the key exists; Mistral's may lack the size, but has no bias. */
static const struct config_form forms[] = {
    {"MixtralForCausalLM", "mixtral", "key:expert_count", CONFIG_TABLES(silu_rows, no_window_rows)},
    {"MistralForCausalLM", "mistral", "!key:attention.key_length !tensor:blk.0.attn_q.bias !tensor:blk.0.ffn_up.bias",
     CONFIG_TABLES(silu_rows, no_window_rows)},
    {"LlamaForCausalLM", "llama", NULL, CONFIG_TABLES(silu_rows, attention_bias_rows, mlp_bias_rows)},
    {0},
};

const struct family llama_family = {
    .name = "llama",
    .summary = "Llama 1 to 3, Mistral, Mixtral and similar models",
    .hf = names,
    .tensors = {foreign_tensors, llama_tensors, sparse_moe_tensors, decoder_tensors},
    .forms = forms,
    .keys = {base_keys, llama_keys},
    .vocabs = {&glm_asr_vocab, &spm_vocab, &llama_hf_vocab, &bpe_vocab, &tekken_vocab},
    .dropped_prefixes = TEXTS("llm."),
    .dropped_parts = TEXTS("text_model."),
    .add_extras = add_rope_freqs,
    .before_vocab = llama_before_vocab,
    .after_vocab = llama_after_vocab,
};

/* An embedding model: Llama with bidirectional attention (llama-embed-nemotron). */
const struct family llama_embed_family = {
    .name = "llama-embed",
    .summary = "llama-embed-nemotron (embeddings)",
    .hf = FAMILY_NAMES({"LlamaBidirectionalModel", "model."}),
    .tensors = {llama_tensors, sparse_moe_tensors, decoder_tensors},
    .keys = {base_keys, llama_keys},
    LLAMA_VOCABS,
    .add_extras = add_rope_freqs,
};
