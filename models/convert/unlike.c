#include "models/convert/unlike.h"

#include "base/text.h"
#include "models/config/hparams.h"
#include "models/family/family.h"

#include <inttypes.h>
#include <string.h>

enum when {
    IS_TRUE,
    IS_FALSE,
    IS_NOT_TRUE,  /* or missing */
    IS_TEXT,      /* `value` */
    IS_NOT_TEXT,  /* a text that is none of those in `value`, separated by blanks */
    IS_NOT_NUMBER /* a number other than `number` */
};

#define GELU "gelu gelu_fast gelu_new gelu_pytorch_tanh"
#define SILU                                                                                                           \
    "afmoe chatglm command-r cohere2 deepseek2 deepseek32 dots1 ernie4_5 ernie4_5-moe eurobert exaone4 exaone-moe "    \
    "glm4 glm4moe granite granitemoe hunyuan-dense hunyuan-moe llama minimax-m2 mistral3 olmo olmo2 olmoe phi3 qwen2 " \
    "qwen2moe qwen3 qwen3moe seed_oss smollm3 stablelm"

/* Hyperparameters, as in hparams_find(), or in hparams_rope() after "rope.". */
static const struct {
    const char *architectures; /* separated by blanks */
    const char *key;
    enum when when;
    const char *value;
    double number;
    const char *computes; /* what llama.cpp does */
} rows[] = {
    {"afmoe", "mup_enabled", IS_FALSE, NULL, 0, "scales the embedding"},
    {"arcee nemotron", "hidden_act", IS_NOT_TEXT, "relu2", 0, "squares a ReLU"},
    {"bert", "activation", IS_NOT_TEXT, GELU, 0, "computes a GELU"},
    {"bert", "is_decoder", IS_TRUE, NULL, 0, "attends to later tokens, too"},
    {"bert gptneox jina-bert-v3 phi2 starcoder2", "hidden_act", IS_NOT_TEXT, GELU, 0, "computes a GELU"},
    {"bloom", "apply_residual_connection_post_layernorm", IS_TRUE, NULL, 0, "adds what comes before the norms"},
    {"cohere2 command-r", "tie_word_embeddings", IS_FALSE, NULL, 0, "has no output but the embedding"},
    {"deepseek2", "topk_method", IS_TEXT, "group_limited_greedy", 0,
     "chooses groups by the sum of their two best experts, if there are several"},
    {"deepseek2 deepseek32", "rope_interleave", IS_FALSE, NULL, 0, "turns neighbouring elements"},
    {"falcon-h1", "attention_bias", IS_TRUE, NULL, 0, "does not add the bias after attention"},
    {"falcon-h1", "tie_word_embeddings", IS_TRUE, NULL, 0,
     "scales the output by embedding_multiplier instead of lm_head_multiplier"},
    {"gemma gemma2 gemma3 gemma3n gemma4", "hidden_activation", IS_NOT_TEXT, GELU, 0, "computes a GELU"},
    {"gemma-embedding", "use_bidirectional_attention", IS_NOT_TRUE, NULL, 0, "attends to later tokens, too"},
    {"gemma3n", "final_logit_softcapping", IS_NOT_NUMBER, NULL, 30, "caps logits at 30"},
    {"gpt-oss", "rope.truncate", IS_FALSE, NULL, 0, "rounds the bounds of YaRN to whole elements"},
    {"gpt2 starcoder", "scale_attn_by_inverse_layer_idx", IS_TRUE, NULL, 0,
     "does not divide scores by a layer's number"},
    {"gpt2 starcoder", "scale_attn_weights", IS_FALSE, NULL, 0, "divides scores by the root of a head's size"},
    {"gpt2 starcoder", "activation_function", IS_NOT_TEXT, GELU, 0, "computes a GELU"},
    {"granite granitemoe", "position_embedding_type", IS_TEXT, "nope", 0, "turns queries and keys"},
    {"granitehybrid", "position_embedding_type", IS_TEXT, "rope", 0, "does not turn queries and keys"},
    {"llama4", "attention_chunk_size", IS_NOT_NUMBER, NULL, 8192, "has chunks of 8192 tokens"},
    {"minicpm3", "dim_model_base", IS_NOT_NUMBER, NULL, 256, "computes with 256"},
    {"minicpm3", "scale_depth", IS_NOT_NUMBER, NULL, 1.4, "computes with 1.4"},
    {"minicpm3", "scale_emb", IS_NOT_NUMBER, NULL, 12, "computes with 12"},
    {"modern-bert", "hidden_activation", IS_NOT_TEXT, GELU " silu swish", 0, "computes a GELU, or stops"},
    {"qwen2moe", "norm_topk_prob", IS_TRUE, NULL, 0, "does not normalize the weights of experts"},
    {"qwen3moe", "norm_topk_prob", IS_FALSE, NULL, 0, "normalizes the weights of experts"},
    {"t5 t5encoder", "feed_forward_proj", IS_NOT_TEXT, "gated-gelu relu", 0, "computes a gated GELU, or a ReLU"},
    {"t5 t5encoder", "relative_attention_max_distance", IS_NOT_NUMBER, NULL, 128, "has distances up to 128"},
    {SILU, "hidden_act", IS_NOT_TEXT, "silu swish", 0, "computes a SiLU"},
};

/* Architectures whose layers have full attention in one place of each period, and windows otherwise: at the end, where
 * the remainder of the layer's number, from 1, is 0. */
static const struct {
    const char *architecture;
    uint64_t period, remainder;
} periods[] = {{"afmoe", 4, 0},   {"cohere2", 4, 0}, {"gemma2", 2, 0},     {"gemma3", 6, 0},
               {"gpt-oss", 2, 0}, {"laguna", 4, 1},  {"modern-bert", 3, 1}};

/* Model types whose classes have windows; those of Qwen and SmolLM 3 only with use_sliding_window. */
static const char windowed[] =
    "ministral3 mistral mixtral phi3 phimoe qwen2 qwen2_moe qwen3 qwen3_moe smollm3 starcoder2";

#define COUNT(array) (sizeof(array) / sizeof *(array))

static bool holds(enum when when, const struct json *found, const char *value, double number)
{
    double found_number;
    const char *text = json_string(found, NULL);
    switch (when) {
    case IS_TRUE:
        return json_is(found, JSON_TRUE);
    case IS_FALSE:
        return json_is(found, JSON_FALSE);
    case IS_NOT_TRUE:
        return !json_is(found, JSON_TRUE);
    case IS_TEXT:
        return json_string_is(found, value);
    case IS_NOT_TEXT:
        return text != NULL && !text_has_word(value, text, strlen(text));
    case IS_NOT_NUMBER:
        return json_double(found, &found_number) && found_number != number;
    }
    return false;
}

static void note(const struct gguf_model *model, const char *key, const char *computes)
{
    checkpoint_note(model->checkpoint, SUBJECT_GGUF,
                    "no key of a GGUF says what %s in config.json does here: llama.cpp %s, and computes other values "
                    "than transformers",
                    key, computes);
}

static void note_rows(const struct gguf_model *model, const char *architecture)
{
    static const char rope[] = "rope.";
    for (size_t i = 0; i < COUNT(rows); i++) {
        if (!text_has_word(rows[i].architectures, architecture, strlen(architecture)))
            continue;
        const char *key = rows[i].key;
        bool is_rope = strncmp(key, rope, sizeof rope - 1) == 0;
        const struct json *found =
            is_rope ? hparams_rope(model->hparams, key + sizeof rope - 1) : hparams_get(model->hparams, key);
        if (holds(rows[i].when, found, rows[i].value, rows[i].number))
            note(model, key, rows[i].computes);
    }
}

/* Notes layer_types in another order than llama.cpp assumes; a key may have the period. */
static void note_period(const struct gguf_model *model, const char *architecture, struct arena *scratch)
{
    const struct json *types = hparams_get(model->hparams, "layer_types");
    const char *key = arena_printf(scratch, "%s.attention.sliding_window_pattern", architecture);
    uint64_t written = 0;
    if (!json_is(types, JSON_ARRAY) ||
        (gguf_kvs_find(&model->kvs, key) != NULL && !gguf_get_u64(&model->kvs, key, &written)))
        return;
    for (size_t i = 0; i < COUNT(periods); i++) {
        uint64_t layer = 1, period = written > 0 ? written : periods[i].period;
        if (strcmp(periods[i].architecture, architecture) != 0)
            continue;
        for (const struct json *type = json_first(types); type != NULL; type = json_next(type), layer++)
            if (json_string_is(type, "full_attention") != (layer % period == periods[i].remainder)) {
                note(model, "layer_types",
                     arena_printf(scratch,
                                  "has full attention in every layer of %" PRIu64 "%s, and windows in the others",
                                  period, periods[i].remainder != 0 ? ", from the first on" : ""));
                return;
            }
    }
}

/* Notes windows for which there is no key, where the context is larger; llama.cpp does not use Phi 3's. */
static void note_window(const struct gguf_model *model, const char *architecture, struct arena *scratch)
{
    const struct hparams *hparams = model->hparams;
    const char *type = json_string(hparams_get(hparams, "model_type"), NULL);
    const char *key = arena_printf(scratch, "%s.attention.sliding_window", architecture);
    bool has_key = strcmp(architecture, "phi3") != 0 && gguf_kvs_find(&model->kvs, key) != NULL;
    uint64_t window, length;
    if (has_key || type == NULL || !text_has_word(windowed, type, strlen(type)) ||
        json_is(hparams_get(hparams, "use_sliding_window"), JSON_FALSE) ||
        !json_u64(hparams_get(hparams, "sliding_window"), &window) ||
        !json_u64(hparams_get(hparams, "max_position_embeddings"), &length) || window >= length)
        return;
    note(model, "sliding_window",
         arena_printf(scratch, "attends to all tokens of a text of more than %" PRIu64, window));
}

/* Notes windows of an EXAONE 4 of another size than 32B, the only one in which llama.cpp has windows. */
static void note_exaone(const struct gguf_model *model, const char *architecture)
{
    enum { LAYERS_WITH_WINDOWS = 64 };
    uint64_t window, n_layers;
    if (strcmp(architecture, "exaone4") == 0 && json_u64(hparams_get(model->hparams, "sliding_window"), &window) &&
        json_u64(hparams_get(model->hparams, "num_hidden_layers"), &n_layers) && n_layers != LAYERS_WITH_WINDOWS)
        note(model, "sliding_window", "has windows only in models of 64 layers");
}

/* Notes logits that classes of multimodal models with Command R do not scale. */
static void note_cohere2(const struct gguf_model *model, const char *architecture)
{
    const char *type = json_string(json_get(hparams_raw(model->hparams), "model_type"), NULL);
    if (strcmp(architecture, "cohere2") == 0 && type != NULL &&
        text_has_word("aya_vision cohere2_vision", type, strlen(type)))
        checkpoint_note(model->checkpoint, SUBJECT_GGUF,
                        "llama.cpp scales logits by logit_scale, as the class of the text model does, that of the "
                        "whole model does not: it computes other values than transformers, in the same order");
}

/* Notes a gate of Qwen 3.8 Flash Next's linear attention that is not the one of the released model. */
static void note_qwen4(const struct gguf_model *model, const char *architecture)
{
    if (strcmp(architecture, "qwen4exp") == 0 &&
        !json_string_is(hparams_get(model->hparams, "output_gate_type"), "sigmoid"))
        note(model, "output_gate_type", "has a sigmoid in the gates of linear attention, whose default is hidden_act");
}

/* Notes what MiniMax M3 needs to choose blocks of tokens: without it llama.cpp attends to all of them. */
static void note_minimax3(const struct gguf_model *model, const char *architecture)
{
    uint64_t n_blocks, size;
    if (strcmp(architecture, "minimax-m3") == 0 &&
        gguf_get_u64(&model->kvs, "minimax-m3.attention.indexer.top_k", &n_blocks) &&
        gguf_get_u64(&model->kvs, "minimax-m3.attention.indexer.block_size", &size))
        checkpoint_note(model->checkpoint, SUBJECT_GGUF,
                        "llama.cpp chooses the tokens that MiniMax M3 attends to, %" PRIu64 " blocks of %" PRIu64
                        ", only with flash attention, and with -np 1 or --no-kv-unified: else it attends to all, and "
                        "computes other values than transformers for longer texts",
                        n_blocks, size);
}

/* Notes an index of dots3-note that has other scores than in transformers. */
static void note_dots3(const struct gguf_model *model, const char *architecture)
{
    uint64_t n_tokens;
    if (strcmp(architecture, "dots3note") == 0 &&
        gguf_get_u64(&model->kvs, "dots3note.attention.indexer.top_k", &n_tokens))
        checkpoint_note(model->checkpoint, SUBJECT_GGUF,
                        "llama.cpp turns the two halves of what dots3-note's index compares, and transformers 5.24 "
                        "neighbouring elements: of a text of more than %" PRIu64
                        " tokens they choose others, and compute other values",
                        n_tokens);
}

/* Notes an index of Qwen 3.8 Flash Next that chooses as many tokens at each place of a block, and so parts of one. */
static void note_qwen4_index(const struct gguf_model *model, const char *architecture)
{
    uint64_t n_tokens, ratio;
    if (strcmp(architecture, "qwen4exp") == 0 &&
        gguf_get_u64(&model->kvs, "qwen4exp.attention.indexer.top_k", &n_tokens) &&
        json_u64(hparams_get(model->hparams, "indexer_compress_ratio"), &ratio) && ratio > 1)
        checkpoint_note(model->checkpoint, SUBJECT_GGUF,
                        "of a text of more than %" PRIu64 " tokens llama.cpp attends to up to %" PRIu64
                        " tokens of one block more than transformers, which chooses whole blocks: it computes other "
                        "values",
                        n_tokens, ratio - 1);
}

/* Notes n-grams of Qwen 3.8 Flash Next that begin after the last of several end tokens, as the converter writes them.
 */
static void note_ngrams(const struct gguf_model *model, const char *architecture)
{
    static const char key[] = "qwen4exp.ple.eos_token_id";
    const struct json *ends = hparams_get(model->hparams, "eos_token_id");
    uint64_t first, written;
    if (strcmp(architecture, "qwen4exp") == 0 && json_is(ends, JSON_ARRAY) && json_u64(json_first(ends), &first) &&
        gguf_get_u64(&model->kvs, key, &written) && first != written)
        checkpoint_note(model->checkpoint, SUBJECT_GGUF,
                        "transformers begins n-grams anew after the first of eos_token_id, %" PRIu64
                        ", the converter writes the last, %" PRIu64
                        ": llama.cpp computes other values than transformers; -o override-kv=%s=int:%" PRIu64,
                        first, written, key, first);
}

/* Notes norms of Llama 4's queries and keys, which llama.cpp has unless there are 128 experts, as in Maverick. */
static void note_llama4(const struct gguf_model *model, const char *architecture)
{
    enum { EXPERTS_WITHOUT_NORMS = 128 };
    const struct json *norms = hparams_get(model->hparams, "use_qk_norm");
    uint64_t n_experts;
    if (strcmp(architecture, "llama4") == 0 && json_u64(hparams_get(model->hparams, "num_local_experts"), &n_experts) &&
        json_is(norms, n_experts == EXPERTS_WITHOUT_NORMS ? JSON_TRUE : JSON_FALSE))
        note(model, "use_qk_norm", "normalizes queries and keys, but of models with 128 experts");
}

/* Notes a base of Mellum's layers with windows, which llama.cpp does not read. */
static void note_mellum(const struct gguf_model *model, const char *architecture)
{
    double base, base_of_windows;
    if (strcmp(architecture, "mellum") == 0 && gguf_get_f64(&model->kvs, "mellum.rope.freq_base", &base) &&
        gguf_get_f64(&model->kvs, "mellum.rope.freq_base_swa", &base_of_windows) && base != base_of_windows)
        note(model, "rope_parameters.sliding_attention", "turns layers with windows by the base of the others");
}

/* Notes logits of Gemma 4 that transformers does not cap, for which the converter writes no key. */
static void note_gemma4(const struct gguf_model *model, const char *architecture)
{
    static const char key[] = "gemma4.final_logit_softcapping";
    if (strcmp(architecture, "gemma4") == 0 && gguf_kvs_find(&model->kvs, key) == NULL)
        checkpoint_note(model->checkpoint, SUBJECT_GGUF,
                        "final_logit_softcapping in config.json is missing, null or 0: llama.cpp caps logits at 30 "
                        "without its key, and computes other values than transformers; -o override-kv=%s=float:0",
                        key);
}

/* Notes a router of GLM-4.7-Flash that llama.cpp knows by the numbers of layers and tokens. */
static void note_lite(const struct gguf_model *model)
{
    uint64_t function, n_experts, n_layers = 0, n_tokens = 0;
    gguf_get_u64(&model->kvs, "deepseek2.block_count", &n_layers);
    gguf_get_u64(&model->kvs, "deepseek2.vocab_size", &n_tokens);
    bool is_known = (n_layers == 47 || n_layers == 48) && n_tokens == 154880;
    if (strcmp(model->family->name, "glm4moelite") == 0 && !is_known &&
        gguf_get_u64(&model->kvs, "deepseek2.expert_count", &n_experts) &&
        !gguf_get_u64(&model->kvs, "deepseek2.expert_gating_func", &function))
        checkpoint_note(model->checkpoint, SUBJECT_GGUF,
                        "llama.cpp weighs experts by a sigmoid, as transformers does, only in models of 47 layers and "
                        "154880 tokens, and computes other values here: -o "
                        "override-kv=deepseek2.expert_gating_func=int:2");
}

/* Notes a base that DBRX has in attn_config, as the converter reads it, where transformers 5 reads another. */
static void note_dbrx(const struct gguf_model *model, const char *architecture)
{
    double base, written;
    if (strcmp(architecture, "dbrx") == 0 && json_double(hparams_rope(model->hparams, "rope_theta"), &base) &&
        gguf_get_f64(&model->kvs, "dbrx.rope.freq_base", &written) && base != written)
        checkpoint_note(model->checkpoint, SUBJECT_GGUF,
                        "transformers 5 computes with rope_theta %g of rope_parameters, the converter writes %g of "
                        "attn_config: llama.cpp computes other values than transformers; -o "
                        "override-kv=dbrx.rope.freq_base=float:%g",
                        base, written, base);
}

/* Notes an output of T5 that transformers divides; its class has no key of its own for that before version 5. */
static void note_t5(const struct gguf_model *model, const char *architecture)
{
    const struct hparams *hparams = model->hparams;
    bool is_divided = json_bool(hparams_find(hparams, "scale_decoder_outputs|tie_word_embeddings"), true);
    if (strcmp(architecture, "t5") == 0 && is_divided && !json_string_is(hparams_get(hparams, "model_type"), "mt5"))
        checkpoint_note(model->checkpoint, SUBJECT_GGUF,
                        "llama.cpp does not divide what the output of T5 reads by the root of d_model: it computes "
                        "other values than transformers, in the same order");
}

/* Notes norms of Qwen2-VL and Qwen2.5-VL, for which llama.cpp does not read the key. */
static void note_qwen2vl(const struct gguf_model *model, const char *architecture)
{
    if (strcmp(architecture, "qwen2vl") == 0)
        checkpoint_note(model->checkpoint, SUBJECT_GGUF,
                        "llama.cpp does not read the epsilon of Qwen2-VL's norms and computes with 0, which makes its "
                        "values a little other than those of transformers");
}

/* Notes shares of Hunyuan-VL's heads: a token of a text has its position in the first three of four in llama.cpp, in
 * all in transformers. */
static void note_hunyuan_vl(const struct gguf_model *model, const char *architecture)
{
    const struct json *sections = hparams_rope(model->hparams, "xdrope_section");
    uint64_t size;
    if (sections == NULL)
        sections = hparams_rope(model->hparams, "mrope_section");
    if (strcmp(architecture, "hunyuan_vl") == 0 && json_is(sections, JSON_ARRAY) &&
        json_u64(json_at(sections, 3), &size) && size != 0)
        checkpoint_note(model->checkpoint, SUBJECT_GGUF,
                        "llama.cpp does not turn the last of the four shares of heads for the tokens of a text, as "
                        "transformers does: it computes other values, above all for long texts");
}

/* Notes positions of CamemBERT, whose table the converter writes whole, as BERT's: that of RoBERTa's other classes is
 * cut. */
static void note_camembert(const struct gguf_model *model)
{
    const char *class_name = hparams_class(model->hparams);
    if (class_name != NULL && strcmp(class_name, "CamembertModel") == 0)
        checkpoint_note(model->checkpoint, SUBJECT_GGUF,
                        "llama.cpp numbers CamemBERT's positions from 0, transformers from pad_token_id + 1: it "
                        "computes other values than transformers");
}

/* Notes what llama.cpp has of Gemma 3n in the layers where the released models have it. */
static void note_gemma3n(const struct gguf_model *model, const char *architecture)
{
    enum { SPARSE_LAYERS = 10, LAYERS_WITH_KEYS = 20 };
    const struct hparams *hparams = model->hparams;
    uint64_t n_layers, n_shared, layer = 0;
    double share;
    if (strcmp(architecture, "gemma3n") != 0)
        return;
    const struct json *each = json_first(hparams_get(hparams, "activation_sparsity_pattern"));
    while (each != NULL && json_double(each, &share) && share == (layer < SPARSE_LAYERS ? 0.95 : 0)) {
        each = json_next(each);
        layer++;
    }
    if (each != NULL)
        note(model, "activation_sparsity_pattern", "has a sparsity of 0.95 in the first 10 layers, and none after");
    if (json_u64(hparams_get(hparams, "num_hidden_layers"), &n_layers) &&
        json_u64(hparams_get(hparams, "num_kv_shared_layers"), &n_shared) && n_layers >= n_shared &&
        n_layers - n_shared != (n_layers < LAYERS_WITH_KEYS ? n_layers : LAYERS_WITH_KEYS))
        note(model, "num_kv_shared_layers", "shares keys and values from the 21st layer on");
}

/* Notes heads for classes that llama.cpp computes without a layer, or with another activation. */
static void note_head(const struct gguf_model *model)
{
    static const struct {
        const char *class_name, *differs;
    } heads[] = {
        {"BertForSequenceClassification",
         "the converter leaves out the pooler below BERT's classifier (pooler.dense), which transformers computes"},
        {"DistilBertForSequenceClassification",
         "llama.cpp computes a tanh below DistilBERT's classifier, transformers a ReLU"},
    };
    const char *class_name = hparams_class(model->hparams);
    for (size_t i = 0; i < COUNT(heads) && class_name != NULL; i++)
        if (strcmp(heads[i].class_name, class_name) == 0)
            checkpoint_note(model->checkpoint, SUBJECT_GGUF,
                            "%s: the classes get other values than in transformers, embeddings do not",
                            heads[i].differs);
}

/* Notes the norms and the choice of experts of Phi 3.5, which llama.cpp computes as Phi 3's and Mixtral's. */
static void note_phimoe(const struct gguf_model *model, const char *architecture)
{
    if (strcmp(architecture, "phimoe") == 0)
        checkpoint_note(model->checkpoint, SUBJECT_GGUF,
                        "llama.cpp has norms without means and weighs experts by a softmax, where transformers has "
                        "layer norms and masks experts: it computes other values");
}

/* Notes a divisor of scores other than the root of a head's size, which llama.cpp takes for Step 3.5, and for all but
 * the largest of Gemma 2 and 3. */
static void note_divisor(const struct gguf_model *model, const char *architecture)
{
    static const struct {
        const char *architecture;
        uint64_t largest; /* its layers; 0: none */
    } roots[] = {{"gemma2", 46}, {"gemma3", 62}, {"step35", 0}};
    const struct hparams *hparams = model->hparams;
    double divisor, head_dim;
    uint64_t n_layers;
    if (!json_double(hparams_get(hparams, "query_pre_attn_scalar"), &divisor) ||
        !json_double(hparams_get(hparams, "head_dim"), &head_dim) ||
        !json_u64(hparams_get(hparams, "num_hidden_layers"), &n_layers) || divisor == head_dim)
        return;
    for (size_t i = 0; i < COUNT(roots); i++)
        if (strcmp(roots[i].architecture, architecture) == 0 && roots[i].largest != n_layers)
            note(model, "query_pre_attn_scalar", "divides scores by the root of a head's size");
}

/* Notes a scaling of the rope that neither a key nor a tensor has; of some architectures the key always says none. */
static void note_scaling(const struct gguf_model *model, const char *architecture, struct arena *scratch)
{
    static const char *const factors[] = {"rope_freqs.weight", "rope_factors_long.weight"};
    static const char unscaled[] = "cohere2 cohere2moe command-r deepseek eurobert exaone-moe modern-bert neo-bert";
    const char *type = json_string(hparams_rope(model->hparams, "rope_type"), NULL);
    bool is_never_written = text_has_word(unscaled, architecture, strlen(architecture));
    if (type == NULL || text_has_word("default mrope", type, strlen(type)) ||
        (!is_never_written &&
         gguf_kvs_find(&model->kvs, arena_printf(scratch, "%s.rope.scaling.type", architecture)) != NULL))
        return;
    for (size_t i = 0; i < COUNT(factors); i++)
        if (tensor_set_find_text(model->tensors, factors[i]) != NULL)
            return;
    checkpoint_note(model->checkpoint, SUBJECT_GGUF,
                    "config.json scales the rope (%.32s), which the converter does not write for %s models: "
                    "llama.cpp computes without the scaling",
                    type, architecture);
}

void unlike_note(const struct gguf_model *model)
{
    struct arena *scratch = arena_new();
    const char *architecture = family_architecture(model->family);
    note_rows(model, architecture);
    note_period(model, architecture, scratch);
    note_window(model, architecture, scratch);
    note_exaone(model, architecture);
    note_cohere2(model, architecture);
    note_qwen4(model, architecture);
    note_qwen4_index(model, architecture);
    note_ngrams(model, architecture);
    note_minimax3(model, architecture);
    note_dots3(model, architecture);
    note_llama4(model, architecture);
    note_mellum(model, architecture);
    note_gemma4(model, architecture);
    note_lite(model);
    note_dbrx(model, architecture);
    note_t5(model, architecture);
    note_qwen2vl(model, architecture);
    note_hunyuan_vl(model, architecture);
    note_camembert(model);
    note_gemma3n(model, architecture);
    note_head(model);
    note_phimoe(model, architecture);
    note_divisor(model, architecture);
    note_scaling(model, architecture, scratch);
    arena_free(scratch);
}
