/* Qwen 1 to 3, their vision models' language models, and their rerankers. */
#include "models/families/qwen/qwen.h"

#include "base/text.h"
#include "formats/documents.h"
#include "models/tokenizers/hf_vocabulary.h"

#include <stdlib.h>
#include <string.h>

/* The language models Qwen 1, 2 and 3, dense and with experts. conversion/qwen.py. */

/* Qwen 1. config.json's width is that of both halves of a feed-forward network together, and the converter writes it
 * unchanged. */
#define LAYER "transformer.h.{}."

const struct family qwen_family = {
    .name = "qwen",
    .summary = "Qwen 1",
    .hf = FAMILY_NAMES({"QWenLMHeadModel"}),
    .tensors = {TENSORS({LAYER "attn.c_attn", "blk.{}.attn_qkv", "(part head d) ...", "head"},
                        {LAYER "mlp.w1", "blk.{}.ffn_up", .parallel = "row"},
                        {LAYER "mlp.w2", "blk.{}.ffn_gate", .parallel = "row"}),
                gpt_tensors},
    .keys = {base_keys},
    .vocabs = {&qwen_vocab},
};

/* Korean Open Reasoning Model's names of the norms */
static const struct relation_row qwen2_tensors[] = {
    {"model.layers.{}.pre_attention_layernorm", "blk.{}.attn_norm", .forward_only = true},
    {"model.layers.{}.pre_mlp_layernorm", "blk.{}.ffn_norm", .forward_only = true},
    {0},
};

static const struct config_row qwen2_config_rows[] = {
    {"use_sliding_window", FROM_TEXT, .text = "false"},
    {0},
};

const struct config_form qwen2_half_forms[] = {
    {"Qwen2ForCausalLM", "qwen2", NULL, CONFIG_TABLES(silu_rows, qwen2_config_rows), HALF_NOTE},
    {0},
};

const struct family qwen2_family = {
    .name = "qwen2",
    .summary = "Qwen 1.5, 2 and 2.5",
    .hf = FAMILY_NAMES({"Qwen2ForCausalLM"}, {"Qwen2Model", "model."}, {"Qwen2AudioForConditionalGeneration"},
                       {"AudioFlamingo3ForConditionalGeneration"}, {"DotsOCRForCausalLM"}, {"KORMoForCausalLM"}),
    .tensors = {qwen2_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"Qwen2ForCausalLM", "qwen2", NULL, CONFIG_TABLES(silu_rows, qwen2_config_rows)}),
    .keys = {base_keys, KEYS({.emit = emit_pooling_type})},
    .vocabs = {&spm_vocab, &bpe_vocab},
};

const struct relation_row qwen_moe_tensors[] = {
    {"model.layers.{}.mlp.gate", "blk.{}.ffn_gate_inp"},
    {"model.layers.{}.mlp.experts.{expert}.down_proj", "blk.{}.ffn_down_exps", .parallel = "column"},
    {"model.layers.{}.mlp.experts.{expert}.gate_proj", "blk.{}.ffn_gate_exps", .parallel = "row"},
    {"model.layers.{}.mlp.experts.{expert}.up_proj", "blk.{}.ffn_up_exps", .parallel = "row"},
    /* as newer releases of transformers store them */
    {"model.layers.{}.mlp.experts.down_proj", "blk.{}.ffn_down_exps.weight", .parallel = "column",
     .forward_only = true},
    {"model.layers.{}.mlp.experts.gate_up_proj", "blk.{}.ffn_gate_exps.weight, blk.{}.ffn_up_exps.weight", GATE_UP,
     "gate up", .forward_only = true},
    {"model.layers.{}.mlp.shared_expert_gate", "blk.{}.ffn_gate_inp_shexp", "one c"},
    {"model.layers.{}.mlp.shared_expert.down_proj", "blk.{}.ffn_down_shexp", .parallel = "column"},
    {"model.layers.{}.mlp.shared_expert.gate_proj", "blk.{}.ffn_gate_shexp", .parallel = "row"},
    {"model.layers.{}.mlp.shared_expert.up_proj", "blk.{}.ffn_up_shexp", .parallel = "row"},
    {0},
};

static const struct config_row qwen2moe_config_rows[] = {
    {"decoder_sparse_step", FROM_TEXT, .text = "1"},
    {"mlp_only_layers", FROM_TEXT, .text = "[]"},
    {"norm_topk_prob", FROM_TEXT, .text = "false"},
    {0},
};

const struct family qwen2moe_family = {
    .name = "qwen2moe",
    .summary = "Qwen 1.5 and 2 MoE",
    .hf = FAMILY_NAMES({"Qwen2MoeForCausalLM"}),
    .tensors = {qwen_moe_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"Qwen2MoeForCausalLM", "qwen2_moe", NULL, CONFIG_TABLES(silu_rows, qwen2moe_config_rows)}),
    .keys = {base_keys, moe_keys},
    .vocabs = {&bpe_vocab},
};

const struct config_form qwen3_half_forms[] = {
    {"Qwen3ForCausalLM", "qwen3", NULL, CONFIG_TABLES(silu_rows, attention_bias_rows), HALF_NOTE},
    {0},
};

const struct family qwen3_family = {
    .name = "qwen3",
    .summary = "Qwen 3",
    .hf = FAMILY_NAMES({"Qwen3ForCausalLM"}, {"Qwen3Model", "model."}, {"StepVLForConditionalGeneration"}),
    .tensors = {qk_norm_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"Qwen3ForCausalLM", "qwen3", NULL, CONFIG_TABLES(silu_rows, attention_bias_rows)}),
    .keys = {base_keys, KEYS({.emit = emit_pooling_type}, {.emit = emit_reranker})},
    .vocabs = {&spm_vocab, &bpe_vocab},
    .adjust = reranker_look,
    .arrange = reranker_arrange,
};

static const struct config_row qwen3moe_config_rows[] = {
    {"decoder_sparse_step", FROM_TEXT, .text = "1"},
    {"mlp_only_layers", FROM_TEXT, .text = "[]"},
    {"norm_topk_prob", FROM_TEXT, .text = "true"},
    {0},
};

const struct config_form qwen3moe_half_forms[] = {
    {"Qwen3MoeForCausalLM", "qwen3_moe", NULL, CONFIG_TABLES(silu_rows, attention_bias_rows, qwen3moe_config_rows),
     HALF_NOTE},
    {0},
};

const struct family qwen3moe_family = {
    .name = "qwen3moe",
    .summary = "Qwen 3 MoE",
    .hf = FAMILY_NAMES({"Qwen3MoeForCausalLM"}),
    .tensors = {qk_norm_tensors, qwen_moe_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"Qwen3MoeForCausalLM", "qwen3_moe", NULL,
                           CONFIG_TABLES(silu_rows, attention_bias_rows, qwen3moe_config_rows)}),
    .keys = {base_keys, moe_keys},
    .vocabs = {&bpe_vocab},
};

/* Qwen2-VL, Qwen2.5-VL, Qwen2.5-Omni and Fast-dVLM: language models. conversion/qwenvl.py. */

const struct family qwen2vl_family = {
    .name = "qwen2vl",
    .summary = "Qwen2-VL, Qwen2.5-VL, Qwen2.5-Omni (language model)",
    .hf = FAMILY_NAMES({"Qwen2VLForConditionalGeneration"}, {"Qwen2_5_VLForConditionalGeneration"}, {"Qwen2VLModel"},
                       {"Qwen2_5OmniModel"}, {"Qwen2_5OmniForConditionalGeneration"}),
    .tensors = {decoder_tensors},
    .forms = qwen2_half_forms,
    .keys = {base_keys},
    .vocabs = {&spm_vocab, &bpe_vocab},
    .dropped_prefixes = TEXTS("thinker."),
};

/* Computes the size from the whole model's configuration, not its text part's. */
static bool compute_block_size(const struct model_builder *builder, double *ret_value, struct error *error)
{
    const struct json *size = json_get(hparams_raw(builder->model->hparams), "bd_size");
    uint64_t whole = 32;
    if (size != NULL && !json_u64(size, &whole))
        return error_set(error, "config.json: bd_size is not a whole number");
    *ret_value = (double)whole;
    return true;
}

static const struct key_row fast_keys[] = {
    {".tokenizer.ggml.mask_token_id", GGUF_U32, ALWAYS, .value = 151665},
    {".fast_dvlm.diffusion", GGUF_BOOL, ALWAYS, .value = 1},
    {".fast_dvlm.block_size", GGUF_U32, .compute = compute_block_size},
    {".fast_dvlm.sub_block_size", GGUF_U32, OR_DEFAULT, "bd_size", 8},
    {".fast_dvlm.confidence_threshold", GGUF_F32, ALWAYS, .value = 0.9},
    {".fast_dvlm.token_shift", GGUF_U32, ALWAYS, .value = 1},
    {0},
};

const struct family fast_dvlm_family = {
    .name = "fast-dvlm",
    .architecture = "qwen2vl",
    .summary = "Fast-dVLM (language model)",
    .hf = FAMILY_NAMES({"Fast_dVLMForConditionalGeneration"}),
    .tensors = {decoder_tensors},
    .keys = {base_keys, fast_keys},
    .vocabs = {&spm_vocab, &bpe_vocab},
};

/* Qwen3-VL, Qwen3-ASR and Qwen3-Omni, dense and with experts: language models. conversion/qwen3vl.py. */

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
static const struct relation_row qwen3vl_tensors[] = {
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
    .tensors = {qwen3vl_tensors, qk_norm_tensors, qwen_moe_tensors, decoder_tensors},
    .forms = qwen3moe_half_forms,
    .keys = {base_keys, moe_keys, vision_keys},
    .vocabs = {&bpe_vocab},
    .dropped_parts = TEXTS("thinker."),
    .adjust = look_at_experts,
    .after_vocab = after_vocab,
};

static const char *const answers[] = {"yes", "no"};
static const char *const rows[] = {"row_of_yes", "row_of_no"};

static bool is_named_so(const char *text)
{
    return text != NULL &&
           (strcasestr(text, "qwen3-reranker") != NULL || strcasestr(text, "qwen3-vl-reranker") != NULL);
}

static bool card_says_so(const struct checkpoint *checkpoint)
{
    size_t length;
    bool absent;
    struct error unused;
    char *text = document_text(checkpoint, "README.md", &length, &absent, &unused);
    bool says = text != NULL &&
                (strcasestr(text, "# qwen3-reranker") != NULL || strcasestr(text, "# qwen3-vl-reranker") != NULL);
    free(text);
    return says;
}

static bool ranks(const struct gguf_model *model)
{
    const struct checkpoint *checkpoint = model->checkpoint;
    const struct json *raw = hparams_raw(model->hparams);
    const char *class_name = json_string(json_first(json_get(raw, "architectures")), NULL);
    if (class_name != NULL && (strcasestr(class_name, "sequenceclassification") != NULL || is_named_so(class_name)))
        return true;
    return is_named_so(checkpoint->model_name) || is_named_so(checkpoint->path) ||
           is_named_so(json_string(hparams_get(model->hparams, "model_type"), NULL)) || card_says_so(checkpoint);
}

static bool find_answers(struct model_builder *builder, const struct hf_vocabulary *vocabulary, struct error *error)
{
    for (size_t i = 0; i < 2; i++) {
        uint64_t id;
        if (!hf_token_id(vocabulary, answers[i], strlen(answers[i]), &id))
            return error_set(error, "the model's name says reranker, but its tokenizer has no token '%s'", answers[i]);
        dimensions_set(&builder->dimensions, rows[i], id);
    }
    dimensions_set(&builder->dimensions, "ranks", 1);
    return true;
}

bool reranker_look(struct model_builder *builder, struct error *error)
{
    const struct gguf_model *model = builder->model;
    const struct vocab_input input = {
        model->checkpoint, model->hparams,    family_architecture(builder->family), builder->hf->name, 0,
        model->hparams,    &model->references};
    struct tokenizer_files files;
    struct hf_vocabulary vocabulary;
    if (!ranks(model))
        return true;
    if (!tokenizer_files_load(model->checkpoint, &files, error))
        return false;
    enum vocab_result result = hf_vocabulary_load(&input, &files, &vocabulary, error);
    bool found = result == VOCAB_ADDED && find_answers(builder, &vocabulary, error);
    if (result == VOCAB_ADDED)
        hf_vocabulary_free(&vocabulary);
    else if (result == VOCAB_ABSENT)
        error_set(error, "the model's name says reranker, but tokenizer.json is missing");
    tokenizer_files_free(&files);
    return found;
}

static bool is_tied(const struct model_builder *builder)
{
    return json_bool(hparams_get(builder->model->hparams, "tie_word_embeddings"), false);
}

/* Returns the two rows of a matrix; NULL if it lacks one. */
static const struct view *rows_of_answers(const struct model_builder *builder, const struct view *view)
{
    struct arena *arena = builder->model->arena;
    const struct view *parts[2];
    for (size_t i = 0; i < 2; i++) {
        uint64_t row = dimensions_get(&builder->dimensions, rows[i]);
        if (view->rank != 2 || row >= view->shape[0])
            return NULL;
        parts[i] = view_slice(arena, view, 0, row, 1, 1);
    }
    return view_concatenate(arena, parts, 2, 0);
}

void reranker_arrange(struct model_builder *builder)
{
    static const char name[] = "cls.output.weight";
    struct gguf_model *model = builder->model;
    const char *source = is_tied(builder) ? "token_embd.weight" : "output.weight";
    size_t at = 0;
    if (dimensions_get(&builder->dimensions, "ranks") == 0)
        return;
    while (at < model->tensors->n_tensors && strcmp(model->tensors->tensors[at].name, source) != 0)
        at++;
    if (at == model->tensors->n_tensors)
        return;
    const struct view *view = rows_of_answers(builder, model->tensors->tensors[at].view);
    if (view == NULL) {
        dimensions_set(&builder->dimensions, "lacks_rows", 1);
        return;
    }
    builder_insert_tensor(builder, at, name, view);
    if (is_tied(builder))
        return;
    size_t n_after = --model->tensors->n_tensors - (at + 1);
    struct tensor *tensors = tensor_set_edit(model->tensors);
    memmove(&tensors[at + 1], &tensors[at + 2], n_after * sizeof *tensors);
}

static void set_texts(struct gguf_kvs *kvs, const char *key, const char *const *texts, size_t n_texts)
{
    struct buffer elements = {0};
    for (size_t i = 0; i < n_texts; i++)
        gguf_append_string(&elements, texts[i], strlen(texts[i]));
    gguf_set_array(kvs, key, GGUF_STRING, n_texts, &elements);
}

bool emit_reranker(struct model_builder *builder, struct error *error)
{
    enum { POOLING_RANK = 4 };
    static const char *const template_names[] = {"rerank"};
    static const char template[] =
        "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct "
        "provided. Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n"
        "<|im_start|>user\n<Instruct>: Given a web search query, retrieve relevant passages that answer the query\n"
        "<Query>: {query}\n<Document>: {document}<|im_end|>\n"
        "<|im_start|>assistant\n<think>\n\n</think>\n\n";
    struct gguf_kvs *kvs = &builder->model->kvs;
    if (dimensions_get(&builder->dimensions, "ranks") == 0)
        return true;
    if (dimensions_get(&builder->dimensions, "lacks_rows") != 0)
        return error_set(error, "the output has no row for the token 'yes' or for 'no'");
    gguf_set_u32(kvs, builder_key(builder, "pooling_type"), POOLING_RANK);
    set_texts(kvs, builder_key(builder, "classifier.output_labels"), answers, 2);
    gguf_set_text(kvs, "tokenizer.chat_template.rerank", template);
    set_texts(kvs, "tokenizer.chat_templates", template_names, 1);
    return true;
}
