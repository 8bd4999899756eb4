#include "models/convert/unknown_family.h"

#include "base/text.h"
#include "models/family/family.h"
#include "models/relation/pattern.h"

#include <inttypes.h>
#include <string.h>

static const char consequence[] = "llama.cpp refuses the file, as it does the converter's";

/* Architectures whose layers may have no tensors or share them, or whose tensors' names do not begin with "blk.". */
static const char *const without_blocks[] = {"deci", "hrm_text", "t5", "t5encoder", "wavtokenizer-dec"};

/* Tensors that llama.cpp requires in every layer, and that some checkpoints have in a part of the layers. */
static const struct {
    const char *architecture, *tensor, *reason;
} required[] = {
    {"gemma3n", "blk.{}.attn_k.weight",
     "transformers 5 does not save the keys and values of layers that share others'"},
    {"qwen2moe", "blk.{}.ffn_gate_inp.weight", "llama.cpp expects experts in all layers"},
    {"qwen3moe", "blk.{}.ffn_gate_inp.weight", "llama.cpp expects experts in all layers"},
};

/* Tensors without which llama.cpp refuses a model, where the configuration may do without. */
static const struct {
    const char *architectures; /* separated by blanks */
    const char *tensor;
} needed[] = {
    {"apertus arwkv7 baichuan bailingmoe bailingmoe2 codeshell dbrx deepseek4 dots1 exaone-moe glm5-next gpt-oss "
     "gptneox hy_v4 internlm2 jais kimi-k3 kimi-linear llada-moe maple mellum mimo2 minimax-m2 minimax-m3 "
     "muse-glimmer nemotron olmo2 olmoe orion phi2 phimoe plamo plm qwen qwen2moe rwkv6 rwkv6qwen2 rwkv7 stablelm "
     "talkie xverse",
     "output.weight"},
    {"gptneox", "blk.{}.attn_qkv.bias"},
    {"jamba", "blk.{}.ssm_conv1d.bias"},
    {"lfm2moe", "blk.{}.exp_probs_b.bias"},
    {"minimax-m3", "blk.{}.indexer.q_proj.weight"},
    {"phimoe", "output.bias"},
    {"starcoder2", "blk.{}.attn_output.bias"},
};

/* Tensors that the converter writes and llama.cpp does not know. */
static const struct {
    const char *architectures, *tensor;
} unknown[] = {
    {"arcee command-r eurobert gemma hunyuan-dense olmo qwen3 seed_oss smollm3 step35", "blk.{}.attn_output.bias"},
    {"arcee ernie4_5 eurobert modern-bert seed_oss step35", "blk.{}.ffn_up.bias"},
    {"falcon-h1", "blk.{}.ssm_in.bias"},
    {"falcon-h1", "blk.{}.ssm_out.bias"},
    {"modern-bert", "blk.{}.attn_qkv.bias"},
    {"modern-bert", "output_norm.bias"},
    {"smollm3", "rope_freqs.weight"},
};

/* Sizes that llama.cpp computes from keys, where a checkpoint's tensors may have others: a dimension of a tensor, the
 * keys whose product it takes (after the architecture), and a factor. */
static const struct expectation {
    const char *architecture, *tensor;
    unsigned axis;
    const char *keys[2]; /* the second may be NULL */
    uint64_t times;
} expectations[] = {
    {"bert", "cls.weight", 0, {"embedding_length"}, 1},
    {"chatglm", "blk.{}.attn_q.weight", 0, {"embedding_length"}, 1},
    {"cohere2", "blk.{}.attn_q.weight", 0, {"embedding_length"}, 1},
    {"dots1", "blk.{}.attn_k.weight", 0, {"attention.head_count", "attention.key_length"}, 1},
    {"ernie4_5-moe", "blk.{}.ffn_gate_shexp.weight", 0, {"expert_shared_feed_forward_length"}, 1},
    {"exaone4", "blk.{}.attn_q.weight", 0, {"embedding_length"}, 1},
    {"gemma3n", "blk.{}.laurel_l.weight", 0, {NULL}, 64},
    {"gemma3n", "per_layer_token_embd.weight", 1, {"block_count"}, 256},
    {"gpt2", "blk.{}.ffn_up.weight", 0, {"feed_forward_length"}, 1},
    {"granite", "blk.{}.ffn_gate.weight", 0, {"feed_forward_length"}, 1},
    {"granitehybrid", "blk.{}.ffn_gate.weight", 0, {"feed_forward_length"}, 1},
    {"nemotron", "blk.{}.attn_q.weight", 0, {"embedding_length"}, 1},
    {"olmoe", "blk.{}.attn_k_norm.weight", 0, {"embedding_length"}, 1},
    {"phi2", "blk.{}.ffn_up.weight", 0, {"feed_forward_length"}, 1},
};

/* llama.cpp knows Command R's norms of queries and keys by the number of layers. */
enum { COMMAND_R_LAYERS_WITH_NORMS = 64 };

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Notes that the tokens are not as many as the rows of the embedding. */
static void note_rows(const struct gguf_model *model)
{
    enum gguf_type type;
    uint64_t n_tokens;
    const struct gguf_kv *tokens = gguf_kvs_find(&model->kvs, "tokenizer.ggml.tokens");
    const struct tensor *embedding = tensor_set_find_text(model->tensors, "token_embd.weight");
    if (embedding == NULL || embedding->view->rank != 2 || tokens == NULL ||
        !gguf_array_outline(tokens, &type, &n_tokens))
        return;
    uint64_t n_rows = embedding->view->shape[0];
    if (n_rows != n_tokens)
        checkpoint_note(model->checkpoint, SUBJECT_GGUF,
                        "the token embedding has %" PRIu64 " rows, the tokenizer %" PRIu64 " tokens: %s; "
                        "set vocab_size in config.json to the number of rows",
                        n_rows, n_tokens, consequence);
}

static void note_merges(const struct gguf_model *model, struct arena *scratch)
{
    const char *kind = gguf_get_text(&model->kvs, "tokenizer.ggml.model", scratch),
               *pre = gguf_get_text(&model->kvs, "tokenizer.ggml.pre", scratch);
    bool is_bpe = kind != NULL && (strcmp(kind, "gpt2") == 0 || strcmp(kind, "gemma4") == 0);
    if (is_bpe && gguf_kvs_find(&model->kvs, "tokenizer.ggml.merges") == NULL &&
        (pre == NULL || strcmp(pre, "kimi-k2") != 0))
        checkpoint_note(model->checkpoint, SUBJECT_GGUF, "the BPE tokenizer has no merges: %s", consequence);
}

/* Counts the layers below `n_layers` that have a tensor of a pattern, and returns the first without in *ret_first. */
static uint64_t count_layers(const struct gguf_model *model, const char *pattern, uint64_t n_layers,
                             struct arena *scratch, uint64_t *ret_first)
{
    uint64_t numbers[PATTERN_NUMBERS], n_found = 0;
    bool *found = arena_array(scratch, n_layers + 1, sizeof *found);
    memset(found, 0, (n_layers + 1) * sizeof *found);
    for (size_t i = 0; i < model->tensors->n_tensors; i++) {
        const struct tensor *tensor = &model->tensors->tensors[i];
        if (!pattern_match(pattern, tensor->name, tensor->name_length, numbers) || numbers[0] >= n_layers)
            continue;
        n_found += !found[numbers[0]];
        found[numbers[0]] = true;
    }
    for (*ret_first = 0; found[*ret_first]; ++*ret_first)
        ;
    return n_found;
}

/* Notes a tensor that only some layers have; none has it if it has another name, such as that of a fused matrix. */
static void note_layers(const struct gguf_model *model, const char *pattern, const char *reason, uint64_t n_layers,
                        struct arena *scratch)
{
    uint64_t first, n_found = count_layers(model, pattern, n_layers, scratch, &first);
    if (n_found > 0 && n_found < n_layers)
        checkpoint_note(model->checkpoint, SUBJECT_GGUF,
                        "%" PRIu64 " of %" PRIu64 " layers have %s, layer %" PRIu64 " has none%s%s: %s", n_found,
                        n_layers, pattern_count(pattern) == 1 && strchr(pattern, '*') ? "tensors" : pattern, first,
                        reason != NULL ? "; " : "", reason != NULL ? reason : "", consequence);
}

/* Computes the size that llama.cpp expects; false: a key is missing, or has a value for each layer. */
static bool expected_size(const struct gguf_model *model, const struct expectation *expectation, struct arena *scratch,
                          uint64_t *ret_size)
{
    *ret_size = expectation->times;
    for (size_t i = 0; i < COUNT(expectation->keys) && expectation->keys[i] != NULL; i++) {
        uint64_t factor;
        const char *key = arena_printf(scratch, "%s.%s", expectation->architecture, expectation->keys[i]);
        if (!gguf_get_u64(&model->kvs, key, &factor) || factor > UINT32_MAX || *ret_size > UINT32_MAX)
            return false;
        *ret_size *= factor;
    }
    return true;
}

/* Notes the first tensor of another size than llama.cpp computes from keys. */
static void note_size(const struct gguf_model *model, const struct expectation *expectation, struct arena *scratch)
{
    uint64_t numbers[PATTERN_NUMBERS], size;
    if (!expected_size(model, expectation, scratch, &size))
        return;
    for (size_t i = 0; i < model->tensors->n_tensors; i++) {
        const struct tensor *tensor = &model->tensors->tensors[i];
        if (!pattern_match(expectation->tensor, tensor->name, tensor->name_length, numbers) ||
            tensor->view->rank <= expectation->axis || tensor->view->shape[expectation->axis] == size)
            continue;
        checkpoint_note(model->checkpoint, SUBJECT_GGUF,
                        "tensor '%.200s' has a dimension of %" PRIu64 ", where llama.cpp expects %" PRIu64
                        " in this architecture: %s",
                        tensor->name, tensor->view->shape[expectation->axis], size, consequence);
        return;
    }
}

static void note_sizes(const struct gguf_model *model, const char *architecture, uint64_t n_layers,
                       struct arena *scratch)
{
    for (size_t i = 0; i < COUNT(expectations); i++)
        if (strcmp(expectations[i].architecture, architecture) == 0)
            note_size(model, &expectations[i], scratch);
    if (strcmp(architecture, "command-r") == 0 && n_layers < COMMAND_R_LAYERS_WITH_NORMS &&
        tensor_set_find_text(model->tensors, "blk.0.attn_q_norm.weight") != NULL)
        checkpoint_note(model->checkpoint, SUBJECT_GGUF,
                        "llama.cpp expects norms of queries and keys only from %d layers on, and the model has %" PRIu64
                        ": %s",
                        COMMAND_R_LAYERS_WITH_NORMS, n_layers, consequence);
}

/* Notes a classifier of another number of classes than there are labels, of which llama.cpp takes one if there is no
 * key: the converter leaves out the names that transformers gives two classes. */
static void note_labels(const struct gguf_model *model, const char *architecture, struct arena *scratch)
{
    enum gguf_type type;
    uint64_t n_labels = 1;
    const struct tensor *classifier = tensor_set_find_text(model->tensors, "cls.output.weight");
    const struct gguf_kv *labels =
        gguf_kvs_find(&model->kvs, arena_printf(scratch, "%s.classifier.output_labels", architecture));
    if (classifier == NULL || (labels != NULL && !gguf_array_outline(labels, &type, &n_labels)) ||
        classifier->view->shape[0] == n_labels)
        return;
    checkpoint_note(model->checkpoint, SUBJECT_GGUF,
                    "the classifier has %" PRIu64 " classes, llama.cpp expects %" PRIu64
                    ": %s; give each class a name in id2label of config.json, other than LABEL_0",
                    classifier->view->shape[0], n_labels, consequence);
}

/* Reports whether an array has that text. */
static bool has_text(const struct json *array, const char *text)
{
    const struct json *each = json_first(array);
    while (each != NULL && !json_string_is(each, text))
        each = json_next(each);
    return each != NULL;
}

/* Notes what llama.cpp knows by the number of layers, or in one form only. */
static void note_forms(const struct gguf_model *model, const char *architecture, uint64_t n_layers)
{
    static const char lite[] = "deepseek2.attention.q_lora_rank", window[] = "mellum.attention.sliding_window";
    uint64_t n_tokens = 0;
    gguf_get_u64(&model->kvs, "deepseek2.vocab_size", &n_tokens);
    bool is_lite = n_layers == 26 || n_layers == 27 || (n_layers == 48 && n_tokens == 128256);
    if (strcmp(architecture, "deepseek2") == 0 && gguf_kvs_find(&model->kvs, lite) == NULL && !is_lite)
        checkpoint_note(model->checkpoint, SUBJECT_GGUF,
                        "q_lora_rank is missing, which llama.cpp needs but in models of 26 or 27 layers, or of 48 with "
                        "128256 tokens, and this one has %" PRIu64 ": %s",
                        n_layers, consequence);
    if (strcmp(architecture, "mellum") == 0 &&
        (gguf_kvs_find(&model->kvs, window) == NULL ||
         !has_text(hparams_get(model->hparams, "layer_types"), "sliding_attention")))
        checkpoint_note(model->checkpoint, SUBJECT_GGUF,
                        "no layer has a sliding window, which llama.cpp needs in this architecture: %s", consequence);
    if (strcmp(architecture, "starcoder") == 0 && json_is(hparams_get(model->hparams, "multi_query"), JSON_FALSE))
        checkpoint_note(model->checkpoint, SUBJECT_GGUF,
                        "multi_query is false in config.json, and llama.cpp expects one head of keys and values: %s",
                        consequence);
}

/* Notes dense layers of ERNIE 4.5 after the first with experts, as moe_layer_interval and moe_layer_end_index make
 * them.
 */
static void note_ernie(const struct gguf_model *model, uint64_t n_layers, struct arena *scratch)
{
    uint64_t n_leading, first, n_found = count_layers(model, "blk.{}.ffn_gate_inp.weight", n_layers, scratch, &first);
    if (gguf_get_u64(&model->kvs, "ernie4_5-moe.leading_dense_block_count", &n_leading) && n_leading < n_layers &&
        n_found < n_layers - n_leading)
        checkpoint_note(model->checkpoint, SUBJECT_GGUF,
                        "%" PRIu64 " of the layers from %" PRIu64 " to %" PRIu64
                        " have experts, and llama.cpp expects them in all of these: %s",
                        n_found, n_leading, n_layers - 1, consequence);
}

/* Notes indexes of MiniMax M3 that are not those of all layers with experts. */
static void note_minimax3(const struct gguf_model *model, uint64_t n_layers, struct arena *scratch)
{
    uint64_t n_leading, first, n_found = count_layers(model, "blk.{}.indexer.q_proj.weight", n_layers, scratch, &first);
    if (gguf_get_u64(&model->kvs, "minimax-m3.leading_dense_block_count", &n_leading) && n_leading <= n_layers &&
        n_found > 0 && n_found != n_layers - n_leading)
        checkpoint_note(model->checkpoint, SUBJECT_GGUF,
                        "%" PRIu64 " of %" PRIu64
                        " layers have sparse attention, and llama.cpp expects it in the %" PRIu64 " with experts: %s",
                        n_found, n_layers, n_layers - n_leading, consequence);
}

/* Notes layers of DeepSeek V4 that compress otherwise than the released models. */
static void note_deepseek4(const struct gguf_model *model, struct arena *scratch)
{
    static const char key[] = "deepseek4.attention.compress_ratios";
    struct gguf_array ratios;
    struct error unused;
    uint64_t ratio;
    if (gguf_kvs_find(&model->kvs, key) == NULL || !gguf_get_array(&model->kvs, key, scratch, &ratios, &unused))
        return;
    for (uint64_t i = 0; i < ratios.count; i++)
        if (gguf_array_u64(&ratios, i, &ratio) && ratio != 0 && ratio != 4 && ratio != 128) {
            checkpoint_note(model->checkpoint, SUBJECT_GGUF,
                            "layer %" PRIu64 " compresses by %" PRIu64 ", and llama.cpp knows 4 and 128: %s", i, ratio,
                            consequence);
            return;
        }
}

/* Reports whether the model has a tensor of a pattern. */
static bool has_tensor(const struct gguf_model *model, const char *pattern)
{
    uint64_t numbers[PATTERN_NUMBERS];
    for (size_t i = 0; i < model->tensors->n_tensors; i++)
        if (pattern_match(pattern, model->tensors->tensors[i].name, model->tensors->tensors[i].name_length, numbers))
            return true;
    return false;
}

/* Notes tensors that llama.cpp needs, and those that it does not know. */
static void note_tensors(const struct gguf_model *model, const char *architecture)
{
    for (size_t i = 0; i < COUNT(needed); i++)
        if (text_has_word(needed[i].architectures, architecture, strlen(architecture)) &&
            !has_tensor(model, needed[i].tensor))
            checkpoint_note(model->checkpoint, SUBJECT_GGUF,
                            "there is no tensor %s, which llama.cpp needs in this architecture: %s", needed[i].tensor,
                            consequence);
    for (size_t i = 0; i < COUNT(unknown); i++)
        if (text_has_word(unknown[i].architectures, architecture, strlen(architecture)) &&
            has_tensor(model, unknown[i].tensor))
            checkpoint_note(model->checkpoint, SUBJECT_GGUF,
                            "llama.cpp does not know the tensor %s in this architecture: %s", unknown[i].tensor,
                            consequence);
}

static bool has_blocks(const char *architecture)
{
    for (size_t i = 0; i < COUNT(without_blocks); i++)
        if (strcmp(without_blocks[i], architecture) == 0)
            return false;
    return true;
}

void loadable_note(const struct gguf_model *model)
{
    enum { MAX_LAYERS = 1 << 16 };
    struct arena *scratch = arena_new();
    const char *architecture = family_architecture(model->family);
    uint64_t n_layers = 0;
    note_rows(model);
    note_merges(model, scratch);
    gguf_get_u64(&model->kvs, arena_printf(scratch, "%s.block_count", architecture), &n_layers);
    if (n_layers > 0 && n_layers <= MAX_LAYERS && has_blocks(architecture))
        note_layers(model, "blk.{}.*", NULL, n_layers, scratch);
    note_sizes(model, architecture, n_layers, scratch);
    note_labels(model, architecture, scratch);
    note_forms(model, architecture, n_layers);
    note_tensors(model, architecture);
    if (strcmp(architecture, "ernie4_5-moe") == 0 && n_layers <= MAX_LAYERS)
        note_ernie(model, n_layers, scratch);
    if (strcmp(architecture, "minimax-m3") == 0 && n_layers <= MAX_LAYERS)
        note_minimax3(model, n_layers, scratch);
    note_deepseek4(model, scratch);
    for (size_t i = 0; i < COUNT(required) && n_layers <= MAX_LAYERS; i++)
        if (strcmp(required[i].architecture, architecture) == 0)
            note_layers(model, required[i].tensor, required[i].reason, n_layers, scratch);
    arena_free(scratch);
}
