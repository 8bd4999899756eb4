/* Adapters merged into a base: scales, whole tensors, names; and what does not fit, one line each. Values are small
 * whole numbers, whose sums are written out. */
#include "models/derive/derive.h"
#include "models/formats.h"

#include "formats/documents.h"
#include "quant/views/convert.h"
#include "tests/unit/check.h"
#include "tests/unit/numbers.h"
#include "tests/unit/write_safetensors.h"

#include <stdlib.h>

/* The error without the option that it begins with. */
static const char *without_option(const char *message)
{
    static const char option[] = "option lora: ";
    bool named = strncmp(message, option, strlen(option)) == 0;
    CHECK_NAMED(named, message);
    return named ? message + strlen(option) : message;
}

/* What was read stays as it was. */
static void check_origin(const struct checkpoint *merged)
{
    const struct tensor_set *set = checkpoint_base(merged, BASE_ORIGIN)->tensors;
    bool unchanged = set != merged->tensors;
    for (size_t i = 0; i < set->n_tensors; i++)
        unchanged &= tensor_is_stored(&set->tensors[i]);
    CHECK(unchanged && checkpoint_base(merged, BASE_ADAPTER) != NULL);
}

/* Merges lora:SCALE into base, and gives the values of a tensor, or the error. */
static const char *merged(const char *request, const char *config, const char *tensors, const char *wanted)
{
    static char text[4096];
    struct error error;
    struct lora_request item;
    struct arena *arena = arena_new();
    files_write_text("lora/adapter_config.json", config);
    safetensors_write_ramps("lora/adapter_model.safetensors", tensors);
    const struct checkpoint *base = checkpoint_open("base", formats, &(struct open_options){0}, &error);
    files_must(base != NULL, error.message);
    size_t used = 0;
    bool parsed = lora_request_parse(request, arena, &item, &error);
    if (parsed)
        base = derive(base, &(struct derive_options){.loras = {&item, 1}}, &error);
    bool done = parsed && base != NULL;
    if (done)
        check_origin(base);
    const struct tensor *tensor = done ? tensor_set_find_text(base->tensors, wanted) : NULL;
    sprintf(text, "%s", done ? "" : parsed ? without_option(error.message) : error.message);
    for (uint64_t i = 0; tensor != NULL && i < tensor_elements(tensor); i++) {
        float value = 0;
        read_numbers(tensor_view(tensor, base->arena), i, 1, &value, &error);
        used += (size_t)sprintf(text + used, "%s%g", i > 0 ? " " : "", (double)value);
    }
    checkpoint_close(base);
    arena_free(arena);
    return text;
}

#define PLAIN      "{\"r\": 1, \"lora_alpha\": 2}"
#define PREFIX     "base_model.model."
#define PAIR(name) PREFIX name ".lora_A.weight 1 2, " PREFIX name ".lora_B.weight 3 1"

/* A is [0 1], B is [0; 1; 2], so that B A is [0 0; 0 1; 0 2]; W is [0 1; 2 3; 4 5]. */
static void scales_of_urls(void)
{
    static const struct {
        const char *text, *path;
        double scale;
    } cases[] = {
        {"hf://org/lora", "hf://org/lora", 1},
        {"hf://org/lora@main:0.5", "hf://org/lora@main", 0.5},
        {"https://host:8080", "https://host:8080", 1},
        {"https://host:8080/lora/:2", "https://host:8080/lora/", 2},
    };
    struct arena *arena = arena_new();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error error;
        struct lora_request request;
        CHECK_NAMED(lora_request_parse(cases[i].text, arena, &request, &error) && request.scale == cases[i].scale,
                    cases[i].text);
        CHECK_TEXT(request.path, cases[i].path);
    }
    arena_free(arena);
}

static void scales(void)
{
    const char *pair = PAIR("model.a");
    CHECK_TEXT(merged("lora", PLAIN, pair, "model.a.weight"), "0 1 2 5 4 9");
    CHECK_TEXT(merged("lora:0.5", PLAIN, pair, "model.a.weight"), "0 1 2 4 4 7");
    CHECK_TEXT(merged("lora:-1", PLAIN, pair, "model.a.weight"), "0 1 2 1 4 1");
    CHECK_TEXT(merged("lora", PLAIN, pair, "model.b.weight"), "0 1 2 3 4 5");
    scales_of_urls();
    CHECK_TEXT(
        merged("lora", "{\"r\": 9, \"lora_alpha\": 2, \"rank_pattern\": {\"b\": 7, \"a\": 1}}", pair, "model.a.weight"),
        "0 1 2 5 4 9");
    CHECK_TEXT(merged("lora",
                      "{\"r\": 1, \"lora_alpha\": 2, \"alpha_pattern\": {\"odel.a\": 9, \"m.*a\": 4, \"a\": 8}}", pair,
                      "model.a.weight"),
               "0 1 2 7 4 13");
    CHECK_TEXT(merged("lora",
                      "{\"r\": 1, \"lora_alpha\": 2, \"alpha_pattern\": {\"l.a\": 9, \"el-a\": 9, \"model.a\": 4}}",
                      pair, "model.a.weight"),
               "0 1 2 7 4 13");
    CHECK_TEXT(merged("lora", "{\"r\": 4, \"lora_alpha\": 6, \"use_rslora\": true}",
                      PREFIX "model.a.lora_A.weight 4 2, " PREFIX "model.a.lora_B.weight 3 4", "model.a.weight"),
               "84 103 230 297 376 491");
}

static void other_parts(void)
{
    CHECK_TEXT(merged("lora", PLAIN, PREFIX "model.e.lora_embedding_A 1 3, " PREFIX "model.e.lora_embedding_B 2 1",
                      "model.e.weight"),
               "0 1 2 5 4 9");
    CHECK_TEXT(merged("lora", "{\"r\": 1, \"lora_alpha\": 2, \"fan_in_fan_out\": true}",
                      PREFIX "model.a.lora_A.weight 1 3, " PREFIX "model.a.lora_B.weight 2 1", "model.a.weight"),
               "0 1 2 5 4 9");
    CHECK_TEXT(merged("lora", PLAIN, PREFIX "model.zeros.weight 0 3", "model.zeros.weight"), "0 1 2");
    CHECK_TEXT(
        merged("lora", PLAIN, PREFIX "model.a.modules_to_save.default.weight 3 2, " PAIR("model.b"), "model.b.weight"),
        "0 1 2 5 4 9");
    CHECK_TEXT(merged("lora", PLAIN,
                      PREFIX "model.e.base_layer.weight 3 2, " PREFIX "model.e.lora_embedding_A 1 3, " PREFIX
                             "model.e.lora_embedding_B 2 1",
                      "model.e.weight"),
               "0 1 2 5 4 9");
    CHECK_TEXT(merged("lora", PLAIN, PAIR("model.a") ", " PREFIX "model.a.lora_B.bias 0 3", "model.a.bias"), "0 3 6");
    /* as models are called in memory and in their files */
    CHECK_TEXT(merged("lora", PLAIN, PAIR("a"), "model.a.weight"), "0 1 2 5 4 9");
    CHECK_TEXT(merged("lora", PLAIN, PAIR("model.language_model.a"), "model.a.weight"), "0 1 2 5 4 9");
    CHECK_TEXT(merged("lora", PLAIN, PAIR("language_model.a"), "model.a.weight"), "0 1 2 5 4 9");
}

/* More names than can be looked for. */
static void too_many_parameters(void)
{
    enum { N = (1 << 19) + 1 };
    struct buffer config = {0};
    buffer_append_text(&config, "{\"target_parameters\": [\"\"");
    for (int i = 1; i < N; i++)
        buffer_append_text(&config, ",\"\"");
    buffer_append_text(&config, "]}");
    buffer_append_le(&config, 0, 1);
    CHECK_TEXT(merged("lora", (const char *)config.bytes, PAIR("model.a"), "model.a.weight"),
               "lora: adapter_config.json: target_parameters has 524289 names, more than 524288");
    buffer_free(&config);
}

#define TARGETS(...) "{\"r\": 1, \"lora_alpha\": 2, \"target_parameters\": [" __VA_ARGS__ "]}"
#define EXPERTS      PREFIX "model.experts."

/* A of the experts [0 1] and [2 3], B [0; 2; 4] and [1; 3; 5], so that B A is [0 0; 0 2; 0 4] and [2 3; 6 9; 10 15]. */
static void parameters(void)
{
    static const char up[] = EXPERTS "lora_A.weight 2 2, " EXPERTS "lora_B.weight 3 2";
    static const char both[] = EXPERTS "base_layer.lora_A.weight 2 2, " EXPERTS "base_layer.lora_B.weight 3 2, " EXPERTS
                                       "lora_A.weight 4 3, " EXPERTS "lora_B.weight 3 4";
    CHECK_TEXT(merged("lora", TARGETS("\"experts.up\""), up, "model.experts.up"), "0 1 2 7 4 13 10 13 20 27 30 41");
    CHECK_TEXT(merged("lora", TARGETS("\"up\", \"experts.up\", \"model.experts.up\""), up, "model.experts.up"),
               "0 1 2 7 4 13 10 13 20 27 30 41");
    CHECK_TEXT(merged("lora", TARGETS("\"model.experts.turned\""), up, "model.experts.turned"),
               "0 1 2 3 8 13 10 19 28 15 28 41");
    CHECK_TEXT(merged("lora", TARGETS("\"experts.up\", \"xperts.down\""), PAIR("model.a"), "model.a.weight"),
               "0 1 2 5 4 9");
    CHECK_TEXT(merged("lora", TARGETS("\"a.weight\""), PAIR("model.a"), "model.a.weight"), "0 1 2 5 4 9");
    /* a square one is as the other one, which is not turned */
    CHECK_TEXT(merged("lora",
                      "{\"r\": 1, \"rank_pattern\": {\"square\": 2}, \"lora_alpha\": 2, \"target_parameters\": "
                      "[\"experts.square\", \"experts.up\"]}",
                      both, "model.experts.square"),
               "6 9 12 21 32 43 36 55 74 42 47 52 105 118 131 168 189 210");
    CHECK_TEXT(
        merged("lora", TARGETS("\"experts.square\""), EXPERTS "lora_A.weight 2 3, " EXPERTS "lora_B.weight 3 2", ""),
        "lora: parameter 'model.experts.square': A is [2, 3] and B [3, 2], which fit none of the base");
    CHECK_TEXT(merged("lora", TARGETS("\"experts.up\", \"experts.gate\""), up, ""),
               "lora: parameter 'model.experts.gate': A is [2, 2] and B [3, 2], which fit several of the base");
    CHECK_TEXT(merged("lora", TARGETS("\"experts.no\""), up, ""),
               "lora: tensor 'model.experts.weight' is not in the base");
    /* what is a matrix of each expert in files: rows of gate, then of up */
    CHECK_TEXT(merged("lora", TARGETS("\"gate_up_proj\""),
                      PREFIX "model.moe.lora_A.weight 2 2, " PREFIX "model.moe.lora_B.weight 4 2",
                      "model.moe.1.up_proj.weight"),
               "20 31 30 45");
    CHECK_TEXT(merged("lora", TARGETS("\"gate_up_proj\""),
                      PREFIX "model.mlp.lora_A.weight 2 2, " PREFIX "model.mlp.lora_B.weight 4 2",
                      "model.block_sparse_moe.0.w3.weight"),
               "0 9 2 15");
}

/* The values of a tensor of tied/ with the adapter merged, and its config.json; or the error. */
static const char *tied(const char *config, const char *tensors, const char *wanted)
{
    static char text[4096], json[256];
    struct error error;
    const struct checkpoint *base;
    struct lora_request item = {"lora", 1};
    size_t length;
    bool absent;
    files_write_text("lora/adapter_config.json", config);
    safetensors_write_ramps("lora/adapter_model.safetensors", tensors);
    base = checkpoint_open("tied", formats, &(struct open_options){0}, &error);
    files_must(base != NULL, error.message);
    base = derive(base, &(struct derive_options){.loras = {&item, 1}}, &error);
    bool done = base != NULL;
    const struct tensor *tensor = done ? tensor_set_find_text(base->tensors, wanted) : NULL;
    size_t used = (size_t)sprintf(text, "%s", done ? "" : without_option(error.message));
    for (uint64_t i = 0; tensor != NULL && i < tensor_elements(tensor); i++) {
        float value = 0;
        read_numbers(tensor_view(tensor, base->arena), i, 1, &value, &error);
        used += (size_t)sprintf(text + used, "%g ", (double)value);
    }
    char *changed = done ? document_text(base, "config.json", &length, &absent, &error) : NULL;
    snprintf(json, sizeof json, "%s", changed != NULL ? changed : "");
    free(changed);
    sprintf(text + used, "%s", done ? json : "");
    checkpoint_close(base);
    return text;
}

#define SAVED(...) "{\"r\": 1, \"lora_alpha\": 2, \"modules_to_save\": [" __VA_ARGS__ "]}"
#define CAUSAL     "{\"architectures\": [\"LlamaForCausalLM\"]"
#define APART      "{\n  \"architectures\": [\n    \"LlamaForCausalLM\"\n  ],\n  \"tie_word_embeddings\": false\n}\n"
#define HEAD       PREFIX "lm_head.weight 2 2"
#define EMBEDDING  PREFIX "model.embed_tokens.weight 2 2"

/* W is [0 1; 2 3] in the base, and so is what is saved of it; A and B of the output would add [0 0; 0 2]. */
/* What peft's merge_and_unload() makes of adapters with more than pairs. */
#define TOKENS(list) "{\"r\": 1, \"lora_alpha\": 2, \"trainable_token_indices\": " list "}"
#define ROWS         PREFIX "model.e.token_adapter.trainable_tokens_delta 2 2"

/* mlx-lm's adapters: W + scale (lora_b^T lora_a^T), by fuse() of mlx_lm/tuner/lora.py. */
static void adapters_of_mlx(void)
{
    static const char config[] = "{\"fine_tune_type\": \"lora\", \"num_layers\": 1, "
                                 "\"lora_parameters\": {\"rank\": 1, \"dropout\": 0.0, \"scale\": 2.0}}";
    CHECK_TEXT(merged("lora", config, "model.a.lora_a 2 1, model.a.lora_b 1 3", "model.a.weight"), "0 1 2 5 4 9");
    CHECK_TEXT(merged("lora", config, "a.lora_a 2 2, a.lora_b 2 3", "model.a.weight"), "6 19 10 31 14 43");
#define MLX_DORA "{\"fine_tune_type\": \"dora\", \"lora_parameters\": {\"scale\": 0}}"
    CHECK_TEXT(merged("lora", MLX_DORA, "model.a.lora_a 2 1, model.a.lora_b 1 3, model.a.m 0 3", "model.a.weight"),
               "0 0 0.5547 0.83205 1.24939 1.56174");
    CHECK_TEXT(merged("lora", MLX_DORA, "model.a.lora_a 2 1, model.a.lora_b 1 3", ""),
               "lora: tensor 'model.a.weight' has no m, which DoRA needs");
}

#define DORA "{\"r\": 1, \"lora_alpha\": 0, \"use_dora\": true}"

/* Rows [0 1], [2 3], [4 5] with norms 0, 1, 2, by numpy. */
static void dora(void)
{
    CHECK_TEXT(merged("lora", DORA, PAIR("model.a") ", " PREFIX "model.a.lora_magnitude_vector 0 3", "model.a.weight"),
               "0 0 0.5547 0.83205 1.24939 1.56174");
    CHECK_TEXT(merged("lora", DORA,
                      PREFIX "model.a.lora_A.default.weight 1 2, " PREFIX "model.a.lora_B.default.weight 3 1, " PREFIX
                             "model.a.lora_magnitude_vector.default.weight 0 3",
                      "model.a.weight"),
               "0 0 0.5547 0.83205 1.24939 1.56174");
    /* columns [0 2 4], [1 3 5] with norms 0, 1: of an embedding, and of a weight that is stored transposed */
    CHECK_TEXT(merged("lora", DORA,
                      PREFIX "model.e.lora_embedding_A 1 3, " PREFIX "model.e.lora_embedding_B 2 1, " PREFIX
                             "model.e.lora_magnitude_vector 0 2",
                      "model.e.weight"),
               "0 0.169031 0 0.507093 0 0.845154");
    CHECK_TEXT(merged("lora", "{\"r\": 1, \"lora_alpha\": 0, \"use_dora\": true, \"fan_in_fan_out\": true}",
                      PREFIX "model.a.lora_A.weight 1 3, " PREFIX "model.a.lora_B.weight 2 1, " PREFIX
                             "model.a.lora_magnitude_vector 0 2",
                      "model.a.weight"),
               "0 0.169031 0 0.507093 0 0.845154");
    CHECK_TEXT(merged("lora", DORA, PAIR("model.a") ", " PREFIX "model.a.lora_magnitude_vector 0 2", ""),
               "lora: tensor '" PREFIX "model.a.lora_magnitude_vector' is no list of a norm for each row of "
               "'model.a.weight'");
}

static void copies_and_rows(void)
{
    /* a state dict has the adapter's name */
    CHECK_TEXT(merged("lora", PLAIN,
                      PREFIX "model.a.lora_A.default.weight 1 2, " PREFIX "model.a.lora_B.default.weight 3 1",
                      "model.a.weight"),
               "0 1 2 5 4 9");
    CHECK_TEXT(merged("lora", PLAIN,
                      PREFIX "model.e.lora_embedding_A.default 1 3, " PREFIX "model.e.lora_embedding_B.default 2 1",
                      "model.e.weight"),
               "0 1 2 5 4 9");
    /* modules_to_save and save_embedding_layers write three copies; the trained one counts */
    CHECK_TEXT(merged("lora", PLAIN,
                      PREFIX "model.zeros.original_module.weight 0 4, " PREFIX "model.zeros.weight 0 3, " PREFIX
                             "model.zeros.modules_to_save.weight 0 3",
                      "model.zeros.weight"),
               "0 1 2");
    CHECK_TEXT(merged("lora", PLAIN, PREFIX "model.zeros.original_module.weight 0 4", "model.zeros.weight"), "0 1 2");
    CHECK_TEXT(merged("lora", TOKENS("[2, 0]"), ROWS, "model.e.weight"), "2 3 2 3 0 1");
    CHECK_TEXT(merged("lora", TOKENS("{\"e\": [1, 2]}"), ROWS, "model.e.weight"), "0 1 0 1 2 3");
    /* a module that the base lacks */
    CHECK_TEXT(merged("lora", PLAIN, PREFIX "score.modules_to_save.weight 1 2", "score.weight"), "0 1");
}

/* The head of a classifier as peft saves it, without "modules_to_save" in its name. */
static void classifier(void)
{
#define CLASSIFIER "{\"task_type\": \"SEQ_CLS\", \"modules_to_save\": [\"classifier\", \"score\"]}"
    safetensors_write_ramps("tied/model.safetensors", "model.embed_tokens.weight 2 2, lm_head.weight 2 2");
    files_write_text("tied/config.json", CAUSAL ", \"num_labels\": 5}");
    CHECK_TEXT(tied(CLASSIFIER, PREFIX "score.weight 1 2", "score.weight"),
               "0 1 {\n  \"architectures\": [\n    \"LlamaForSequenceClassification\"\n  ],\n  \"id2label\": {\n    "
               "\"0\": \"LABEL_0\"\n  },\n  \"label2id\": {\n    \"LABEL_0\": 0\n  }\n}\n");
    files_write_text("tied/config.json", "{\"architectures\": [\"GPT2LMHeadModel\"], \"id2label\": {\"0\": \"no\"}}");
    CHECK_TEXT(tied(CLASSIFIER, PREFIX "score.weight 1 2", "lm_head.weight"),
               "{\n  \"architectures\": [\n    \"GPT2ForSequenceClassification\"\n  ],\n  \"id2label\": {\n    "
               "\"0\": \"no\"\n  }\n}\n");
    CHECK_TEXT(tied(CLASSIFIER, PREFIX "other.weight 1 2", ""), "lora: tensor 'other.weight' is not in the base");
}

/* An embedding and an output of another number of tokens. */
static void vocabulary(void)
{
    safetensors_write_ramps("tied/model.safetensors", "model.embed_tokens.weight 2 2, lm_head.weight 2 2");
    files_write_text("tied/config.json", "{\"vocab_size\": 2}");
    CHECK_TEXT(tied(PLAIN, PREFIX "model.embed_tokens.weight 3 2, " PREFIX "lm_head.weight 3 2", "lm_head.weight"),
               "0 1 2 3 4 5 {\n  \"vocab_size\": 3\n}\n");
    CHECK_TEXT(
        tied(PLAIN, PREFIX "model.embed_tokens.weight 1 2, " PREFIX "lm_head.weight 1 2", "model.embed_tokens.weight"),
        "0 1 {\n  \"vocab_size\": 1\n}\n");
    CHECK_TEXT(tied(PLAIN, PREFIX "model.embed_tokens.weight 3 2", ""),
               "lora resizes the vocabulary to 3 tokens, but tensor 'lm_head.weight' has 2 rows: it lacks a resized "
               "copy of that tensor");
    CHECK_TEXT(tied(PLAIN, PREFIX "model.embed_tokens.weight 3 3, " PREFIX "lm_head.weight 3 3", ""),
               "lora: tensor 'model.embed_tokens.weight' is [2, 2] in the base, but [3, 3] in the adapter");
    files_write_text("tied/config.json", "{\"text_config\": {\"vocab_size\": 2}}");
    CHECK_TEXT(tied(PLAIN, PREFIX "model.embed_tokens.weight 3 2, " PREFIX "lm_head.weight 3 2", "lm_head.weight"),
               "0 1 2 3 4 5 {\n  \"text_config\": {\n    \"vocab_size\": 3\n  }\n}\n");
}

static void output_and_embedding(void)
{
    static const char pair[] = PREFIX "lm_head.lora_A.weight 1 2, " PREFIX "lm_head.lora_B.weight 2 1";
    safetensors_write_ramps("tied/model.safetensors", "model.embed_tokens.weight 2 2");
    files_write_text("tied/config.json", CAUSAL ", \"tie_word_embeddings\": true}");
    CHECK_TEXT(tied(SAVED("\"lm_head\""), HEAD, "lm_head.weight"), "0 1 2 3 " APART);
    CHECK_TEXT(tied(SAVED("\"model.embed_tokens\""), EMBEDDING, "lm_head.weight"), "0 1 2 3 " APART);
    CHECK_TEXT(tied(SAVED(), EMBEDDING, "lm_head.weight"), CAUSAL ", \"tie_word_embeddings\": true}");
    CHECK_TEXT(tied(SAVED(), HEAD, "lm_head.weight"), "lora: tensor 'lm_head.weight' is not in the base");
    CHECK_TEXT(
        tied("{\"r\": 1, \"lora_alpha\": 2, \"modules_to_save\": [\"embed_tokens\"], \"ensure_weight_tying\": true}",
             HEAD ", " EMBEDDING, "lm_head.weight"),
        CAUSAL ", \"tie_word_embeddings\": true}");
    CHECK_TEXT(tied("{\"r\": 1, \"lora_alpha\": 2, \"ensure_weight_tying\": true}", pair, "model.embed_tokens.weight"),
               "0 1 2 3 " CAUSAL ", \"tie_word_embeddings\": true}");
    /* without weights of its own, the output is the embedding: peft adds the product to both */
    CHECK_TEXT(tied(PLAIN, pair, "model.embed_tokens.weight"), "0 1 2 5 " CAUSAL ", \"tie_word_embeddings\": true}");
    CHECK_TEXT(tied(PLAIN, HEAD ", " EMBEDDING, "lm_head.weight"), CAUSAL ", \"tie_word_embeddings\": true}");
    files_write_text("tied/config.json", CAUSAL "}");
    CHECK_TEXT(tied(SAVED("\"lm_head\""), HEAD, "lm_head.weight"), "0 1 2 3 " APART);
    files_write_text("tied/config.json", CAUSAL ", \"text_config\": {\"tie_word_embeddings\": true}}");
    CHECK_TEXT(tied(SAVED("\"lm_head\""), HEAD, "lm_head.weight"),
               "0 1 2 3 {\n  \"architectures\": [\n    \"LlamaForCausalLM\"\n  ],\n  \"text_config\": {\n    "
               "\"tie_word_embeddings\": false\n  }\n}\n");
    files_write_text("tied/config.json", "{\"architectures\": [\"LlamaModel\"]}");
    CHECK_TEXT(tied(SAVED("\"embed_tokens\""), EMBEDDING, "lm_head.weight"), "{\"architectures\": [\"LlamaModel\"]}");
}

static void refused(void)
{
    const char *pair = PAIR("model.a");
    CHECK_TEXT(merged("lora:nan", PLAIN, pair, ""), "'nan' is not a scale");
    CHECK_TEXT(merged("lora:1e999", PLAIN, pair, ""), "'1e999' is not a scale");
    CHECK_TEXT(merged(":2", PLAIN, pair, ""), "':2' names no adapter");
    CHECK_TEXT(merged("lora:x", PLAIN, pair, ""), "lora:x: No such file or directory");
    CHECK_TEXT(merged("lora", "{\"r\": 1, \"lora_alpha\": 1e300}", pair, ""),
               "lora: tensor 'model.a.weight': its scale is not finite");
    CHECK_TEXT(merged("lora", "{\"r\": 1}", pair, ""),
               "lora: adapter_config.json: lora_alpha of 'model.a.weight' is not a number");
    CHECK_TEXT(merged("lora", "{\"r\": 2, \"lora_alpha\": 2}", pair, ""),
               "lora: tensor 'model.a.weight' has rank 1, but adapter_config.json says 2");
    CHECK_TEXT(merged("lora", "{\"lora_alpha\": 2}", pair, ""),
               "lora: adapter_config.json has no rank for 'model.a.weight'");
    CHECK_TEXT(merged("lora", "{\"r\": 1, \"lora_alpha\": 2, \"use_dora\": true}", pair, ""),
               "lora: tensor 'model.a.weight' has no lora_magnitude_vector, which DoRA needs");
    CHECK_TEXT(merged("lora", DORA, PAIR("model.a") ", " PREFIX "model.a.lora_magnitude_vector 0 2", ""),
               "lora: tensor '" PREFIX "model.a.lora_magnitude_vector' is no list of a norm for each row of "
               "'model.a.weight'");
    CHECK_TEXT(merged("lora", "{\"r\": 1, \"lora_alpha\": 2, \"init_lora_weights\": \"pissa_niter_4\"}", pair, ""),
               "lora: it was trained on a modified base (init_lora_weights 'pissa_niter_4'), which cannot be merged");
    CHECK_TEXT(merged("lora", "{\"r\": 1, \"lora_alpha\": 2, \"init_lora_weights\": \"OLoRA\"}", pair, ""),
               "lora: it was trained on a modified base (init_lora_weights 'OLoRA'), which cannot be merged");
    CHECK_TEXT(merged("lora", "{\"r\": 1, \"lora_alpha\": 2, \"alora_invocation_tokens\": [1, 2]}", pair, ""),
               "lora: it is aLoRA (active only after certain tokens), which cannot be merged");
    CHECK_TEXT(merged("lora", "{\"r\": 1, \"lora_alpha\": 2, \"trainable_token_indices\": [3]}", pair, ""),
               "lora: adapter_config.json: trainable_token_indices names tokens, but the adapter has no rows for them "
               "(trainable_tokens_delta)");
    CHECK_TEXT(merged("lora",
                      "{\"r\": 1, \"lora_alpha\": 2, \"kasa_config\": null, \"use_dora\": false, "
                      "\"target_parameters\": null, \"layer_replication\": []}",
                      pair, "model.b.weight"),
               "0 1 2 3 4 5");
    CHECK_TEXT(merged("lora", "{\"r\": 1, \"lora_alpha\": 2, \"rank_pattern\": {\"(\": 1}}", pair, ""),
               "lora: adapter_config.json: rank_pattern: '(' is not a pattern");
    CHECK_TEXT(merged("lora", "{\"r\": 1, \"lora_alpha\": 2, \"alpha_pattern\": {\"((.+)*)*[0-9]\": 1}}", pair, ""),
               "lora: adapter_config.json: alpha_pattern: '((.+)*)*[0-9]' takes too many steps to compare with "
               "'model.a'");
    CHECK_TEXT(merged("lora", PLAIN, PAIR("model.a") ", " PAIR("a"), ""),
               "lora: tensor 'a.weight' is adapted twice, under two names of one base tensor");
    CHECK_TEXT(merged("lora", PLAIN, PREFIX "model.zeros.weight 0 3, " PREFIX "zeros.weight 0 3", ""),
               "lora: tensor 'zeros.weight' is adapted twice, under two names of one base tensor");
    CHECK_TEXT(merged("lora", PLAIN, PREFIX "model.b.weight 4 2", ""),
               "lora: tensor 'model.b.weight' is [3, 2] in the base, but [4, 2] in the adapter");
    CHECK_TEXT(merged("lora", TOKENS("[0, 3]"), ROWS, ""),
               "lora: adapter_config.json: token 1 of trainable_token_indices is no token of the base, or appears "
               "twice");
    CHECK_TEXT(merged("lora", TOKENS("[1, 1]"), ROWS, ""),
               "lora: adapter_config.json: token 1 of trainable_token_indices is no token of the base, or appears "
               "twice");
    CHECK_TEXT(merged("lora", TOKENS("[1]"), ROWS, ""),
               "lora: adapter_config.json: trainable_token_indices has 1 tokens, but there are 2 rows");
    CHECK_TEXT(merged("lora", TOKENS("{\"other\": [0, 1]}"), ROWS, ""),
               "lora: adapter_config.json: trainable_token_indices has 0 tokens, but there are 2 rows");
    CHECK_TEXT(merged("lora", PLAIN, PAIR("model.nobody"), ""),
               "lora: tensor 'model.nobody.weight' is not in the base");
    CHECK_TEXT(merged("lora", PLAIN, PREFIX "model.a.lora_A.weight 1 3, " PREFIX "model.a.lora_B.weight 2 1", ""),
               "lora: tensor 'model.a.weight' is [3, 2] in the base, but [2, 3] in the adapter");
    CHECK_TEXT(merged("lora", PLAIN, PREFIX "model.zeros.weight 0 4", ""),
               "lora: tensor 'model.zeros.weight' is [3] in the base, but [4] in the adapter");
    CHECK_TEXT(merged("lora", PLAIN, PREFIX "model.a.lora_B.bias 0 3", ""),
               "lora: tensor '" PREFIX "model.a.lora_B.bias' has no LoRA matrices");
    CHECK_TEXT(merged("lora", PLAIN, "", ""), "lora: it has no tensors");
}

int main(void)
{
    files_begin();
    files_write_text("base/config.json", "{}");
    safetensors_write_ramps(
        "base/model.safetensors",
        "model.a.weight 3 2, model.a.bias 0 3, model.b.weight 3 2, model.e.weight 3 2, "
        "model.zeros.weight 0 3, model.experts.up 3 2x2, model.experts.gate 3 2x2, model.experts.turned 2 3x2, "
        "model.experts.square 3 3x2, model.moe.0.gate_proj.weight 2 2, model.moe.0.up_proj.weight 2 2, "
        "model.moe.1.gate_proj.weight 2 2, model.moe.1.up_proj.weight 2 2, "
        "model.block_sparse_moe.0.w1.weight 2 2, model.block_sparse_moe.0.w3.weight 2 2, "
        "model.block_sparse_moe.1.w1.weight 2 2, model.block_sparse_moe.1.w3.weight 2 2");
    scales();
    other_parts();
    parameters();
    too_many_parameters();
    output_and_embedding();
    copies_and_rows();
    adapters_of_mlx();
    dora();
    vocabulary();
    classifier();
    refused();
    files_remove();
    return check_done();
}
