/* Llama, Llama 4, and Chameleon. */
#include "models/families/llama/llama.h"

#include "formats/documents.h"

/* Llama and models of its architecture: Mistral, Mixtral, TinyLlama, SmolLM, Yi, CodeLlama. conversion/llama.py. */

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
    {"MistralModel", "model."}, /* which the converter has for Mistral's own format alone */
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

const struct dimension_row llama_dimensions[] = {{"head", "n_heads|num_attention_heads", .kept = true},
                                                 {"kv_head", "n_heads|num_attention_heads", .kept = true},
                                                 {"kv_head", "n_kv_heads|num_key_value_heads", .kept = true},
                                                 {0}};

bool llama_after_vocab(struct model_builder *builder, const struct vocab_input *input, struct error *error)
{
    enum { CODE_LLAMA_VOCABULARY = 32016, CODE_LLAMA_EOT = 32010, GRANITE_VOCABULARY = 49152 };
    struct gguf_kvs *kvs = &builder->model->kvs;
    uint64_t n_vocab;
    if (!json_u64(hparams_get(input->hparams, "vocab_size"), &n_vocab))
        return true;
    if (n_vocab == CODE_LLAMA_VOCABULARY && !special_vocab_set_eot(kvs, input, CODE_LLAMA_EOT, error))
        return false;
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
    .dimensions = {llama_dimensions},
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
    .dimensions = {llama_dimensions},
    .keys = {base_keys, llama_keys},
    LLAMA_VOCABS,
    .add_extras = add_rope_freqs,
};

/* Llama 4, MobileLLM-R1: the text model. conversion/llama.py, Llama4Model. */

static const struct relation_row tensors[] = {
    {"model.layers.{}.feed_forward.gate_proj", "blk.{}.ffn_gate", .parallel = "row"},
    {"model.layers.{}.feed_forward.up_proj", "blk.{}.ffn_up", .parallel = "row"},
    {"model.layers.{}.feed_forward.down_proj", "blk.{}.ffn_down", .parallel = "column"},
    {"model.layers.{}.feed_forward.router", "blk.{}.ffn_gate_inp"},
    {"model.layers.{}.feed_forward.experts.gate_up_proj", "blk.{}.ffn_gate_exps.weight, blk.{}.ffn_up_exps.weight",
     "expert c (gate + up) -> expert gate c, expert up c", "gate up"},
    {"model.layers.{}.feed_forward.experts.down_proj", "blk.{}.ffn_down_exps.weight", "expert f c -> expert c f", "f"},
    {"model.layers.{}.feed_forward.shared_expert.gate_proj", "blk.{}.ffn_gate_shexp", .parallel = "row"},
    {"model.layers.{}.feed_forward.shared_expert.up_proj", "blk.{}.ffn_up_shexp", .parallel = "row"},
    {"model.layers.{}.feed_forward.shared_expert.down_proj", "blk.{}.ffn_down_shexp", .parallel = "column"},
    {0},
};

/* Reports whether all layers have full attention: by their types, or by transformers' default. */
static bool all_are_full(const struct hparams *hparams)
{
    const struct json *types = hparams_get(hparams, "layer_types"), *item;
    uint64_t interval;
    if (json_is(types, JSON_ARRAY)) {
        for (item = json_first(types); item != NULL; item = json_next(item))
            if (!json_string_is(item, "full_attention"))
                return false;
        return true;
    }
    const struct json *rope = hparams_get(hparams, "no_rope_layers");
    for (item = json_first(rope); item != NULL; item = json_next(item)) {
        uint64_t has_rope;
        if (!json_u64(item, &has_rope) || has_rope != 0)
            return false;
    }
    return json_count(rope) > 0 ||
           (json_u64(hparams_get(hparams, "no_rope_layer_interval"), &interval) && interval == 1);
}

static bool emit_sliding_window(struct model_builder *builder, struct error *error)
{
    if (all_are_full(builder->model->hparams))
        gguf_set_u32(&builder->model->kvs, builder_key(builder, "attention.sliding_window"), 0);
    return true;
}

/* config.json's intermediate_size is the experts' width. */
static const struct key_row llama4_keys[] = {
    {"feed_forward_length", GGUF_U32, REQUIRED, "intermediate_size_mlp"},
    {"interleave_moe_layer_step", GGUF_U32, REQUIRED, "interleave_moe_layer_step"},
    {"expert_feed_forward_length", GGUF_U32, REQUIRED, "intermediate_size"},
    {.emit = emit_sliding_window},
    {0},
};

/* Returns "false" for Maverick, whose queries have no norm; without a key for that, its 128 experts identify it. */
static const char *norms_queries(const struct config_material *material)
{
    enum { MAVERICK_EXPERTS = 128 };
    double n_experts;
    bool is_maverick = config_number_of_layer(material, "expert_count", 0, &n_experts) && n_experts == MAVERICK_EXPERTS;
    return is_maverick ? "false" : "true";
}

static const struct config_row common_rows[] = {
    {"use_qk_norm", .make = norms_queries},
    {0},
};

/* Without a window all layers have full attention and a rope. */
static const struct config_row config_full_rows[] = {
    {"layer_types", FROM_LAYERS, "attention.sliding_window", "null|'full_attention'"},
    {"no_rope_layers", FROM_LAYERS, "attention.sliding_window", "0|1"},
    {"attn_temperature_tuning", FROM_TEXT, .text = "false"},
    {0},
};

const struct family llama4_family = {
    .name = "llama4",
    .summary = "Llama 4 (language model)",
    .hf = FAMILY_NAMES({"Llama4ForCausalLM"}, {"Llama4ForConditionalGeneration"}),
    .tensors = {tensors, decoder_tensors},
    .forms = CONFIG_FORMS(
        {"Llama4ForCausalLM", "llama4_text", "key:attention.sliding_window=0",
         CONFIG_TABLES(silu_rows, attention_bias_rows, common_rows, config_full_rows)},
        {"Llama4ForCausalLM", "llama4_text", NULL, CONFIG_TABLES(silu_rows, attention_bias_rows, common_rows)}),
    .keys = {base_keys, llama_keys, llama4_keys},
    .vocabs = {&bpe_vocab},
    .add_extras = add_rope_freqs,
};

/* Chameleon: the language model, without the image tokenizer. conversion/chameleon.py.
 *
 * The converter takes the norms of queries and keys from their first head, which equals all others unless ranks trained
 * their own. It fails if heads share keys; wfs then keeps each head's norm.
 *
 * There is no way back: the class needs the tokens for parts of images, and the image tokenizer. */

#define ATTENTION "model.layers.{}.self_attn."

#define OF_FIRST(name, heads)                                                                                          \
    {                                                                                                                  \
        ATTENTION name, "blk.{}.attn_" name, "first (half pair) -> " heads " (pair half)", .when = "!grouped",         \
                                                                                           .forward_only = true        \
    }
#define OF_EACH(name, heads, ...)                                                                                      \
    {                                                                                                                  \
        ATTENTION name, "blk.{}.attn_" name, heads " (half pair) -> " heads " (pair half)", __VA_ARGS__                \
    }

static const struct key_row chameleon_keys[] = {{"swin_norm", GGUF_BOOL, OR_DEFAULT, "swin_norm", 0}, {0}};

static void add_dimensions(struct dimensions *dimensions, const struct hparams *hparams)
{
    uint64_t head = dimensions_get(dimensions, "head");
    if (head != 0)
        dimensions_set(dimensions, "first", head);
    if (dimensions_get(dimensions, "kv_head") != head)
        dimensions_set(dimensions, "grouped", 1);
}

static bool note_shared_keys(struct model_builder *builder, struct error *error)
{
    if (dimensions_get(&builder->dimensions, "grouped") != 0)
        checkpoint_note(builder->model->checkpoint, SUBJECT_GGUF,
                        "the converter fails on Chameleon where heads share keys; "
                        "norms of queries and keys are those of each head");
    return true;
}

const struct family chameleon_family = {
    .name = "chameleon",
    .summary = "Chameleon",
    .hf = FAMILY_NAMES({"ChameleonForConditionalGeneration"}, {"ChameleonForCausalLM"}),
    .tensors = {TENSORS(OF_FIRST("q_norm", "head"), OF_FIRST("k_norm", "kv_head"),
                        OF_EACH("q_norm", "head", .when = "!grouped", .backward_only = true),
                        OF_EACH("k_norm", "kv_head", .when = "!grouped", .backward_only = true),
                        OF_EACH("q_norm", "head", .when = "grouped"), OF_EACH("k_norm", "kv_head", .when = "grouped"),
                        {"model.vqmodel.*", NULL}),
                llama_tensors, decoder_tensors},
    .keys = {base_keys, chameleon_keys},
    .vocabs = {&bpe_vocab},
    .add_dimensions = add_dimensions,
    .adjust = note_shared_keys,
};
