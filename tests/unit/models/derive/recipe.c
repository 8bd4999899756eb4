/* Models merged by a recipe: which tensors, in which order, from which layers; config.json; and what does not fit, one
 * line each. Values of weights are element numbers, so that products are written out; tests/bats/recipes.bats compares
 * others with numpy. */
#include "models/derive/derive.h"
#include "models/derive/recipe_plan.h"
#include "models/formats.h"
#include "models/huggingface/hf_model.h"

#include "formats/documents.h"
#include "quant/views/convert.h"
#include "tests/unit/check.h"
#include "tests/unit/write_safetensors.h"

#include <stdlib.h>

#define LAYER(n)                                                                                                       \
    "model.layers." n ".input_layernorm.weight 0 4, model.layers." n ".post_attention_layernorm.weight 0 4, "          \
    "model.layers." n ".self_attn.q_proj.weight 4 4, model.layers." n ".self_attn.k_proj.weight 4 4, "                 \
    "model.layers." n ".self_attn.v_proj.weight 4 4, model.layers." n ".self_attn.o_proj.weight 4 4, "                 \
    "model.layers." n ".self_attn.q_proj.bias 0 4, model.layers." n ".mlp.gate_proj.weight 8 4, "                      \
    "model.layers." n ".mlp.up_proj.weight 8 4, model.layers." n ".mlp.down_proj.weight 4 8"
#define OUTSIDE "model.embed_tokens.weight 3 4, model.norm.weight 0 4, model.rotary_emb.inv_freq 0 2"
#define CONFIG(class, layers, more)                                                                                    \
    "{\"architectures\": [\"" class "\"], \"model_type\": \"llama\", \"num_hidden_layers\": " layers                   \
                                    ", \"torch_dtype\": \"float32\"" more "}"

static void write_model(const char *name, const char *config, const char *tensors)
{
    char path[256];
    snprintf(path, sizeof path, "%s/config.json", name);
    files_write_text(path, config);
    snprintf(path, sizeof path, "%s/model.safetensors", name);
    safetensors_write_ramps(path, tensors);
}

static void write_models(void)
{
    static const char llama[] = CONFIG("LlamaForCausalLM", "2", ", \"layer_types\": [\"full\", \"sliding\"]");
    write_model("a", llama, OUTSIDE ", " LAYER("0") ", " LAYER("1"));
    write_model("b", llama, OUTSIDE ", lm_head.weight 3 4, " LAYER("0") ", " LAYER("1"));
    write_model("short", CONFIG("LlamaForCausalLM", "1", ""), OUTSIDE ", " LAYER("0"));
    write_model("poor", llama, OUTSIDE ", " LAYER("0"));
    write_model("wide", CONFIG("LlamaForCausalLM", "1", ""),
                "model.embed_tokens.weight 3 8, model.norm.weight 0 4, " LAYER("0"));
    write_model("other", CONFIG("OtherForCausalLM", "1", ""), "x.h.0.w 2 2, x.h.0.b 0 2, x.norm 0 2, x.wte.weight 2 2");
    write_model("other2", CONFIG("OtherForCausalLM", "1", ""), "x.h.0.w 2 2, x.norm 0 2, x.wte.weight 2 2, x.more 0 2");
    static const char tokenized[] = CONFIG("LlamaForCausalLM", "1", ", \"vocab_size\": 4");
    write_model("small", CONFIG("LlamaForCausalLM", "1", ", \"vocab_size\": 3"), OUTSIDE ", " LAYER("0"));
    write_model("large", tokenized, "model.embed_tokens.weight 4 4, model.norm.weight 0 4, " LAYER("0"));
    files_write_text("small/tokenizer.json", "{\"added_tokens\": [{\"id\": 2, \"content\": \"C\", \"special\": true}], "
                                             "\"model\": {\"vocab\": {\"A\": 0, \"B\": 1}}}");
    files_write_text("large/tokenizer.json",
                     "{\"added_tokens\": [{\"id\": 3, \"content\": \"E\", \"lstrip\": true}, {\"id\": 4, \"content\": "
                     "\"pad\"}], \"model\": {\"vocab\": {\"A\": 0, \"C\": 1, \"D\": 2}}}");
    files_write_text("large/tokenizer_config.json",
                     "{\"chat_template\": \" {{ messages }}\\n\", \"added_tokens_decoder\": {}}");
    files_write_text("adapter/adapter_config.json", "{}");
    safetensors_write_ramps("adapter/adapter_model.safetensors", "x 2 2");
}

/* Opens the recipe; NULL with an error. */
static const struct checkpoint *open_recipe(const char *recipe, struct error *error)
{
    files_write_text("r/merge.yaml", recipe);
    const struct checkpoint *read =
        checkpoint_open("r/merge.yaml", formats, &(struct open_options){.follow_links = true}, error);
    return read != NULL ? derive(read, &(struct derive_options){.base = NULL}, error) : NULL;
}

static const struct checkpoint *merged(const char *recipe)
{
    struct error error;
    const struct checkpoint *checkpoint = open_recipe(recipe, &error);
    files_must(checkpoint != NULL, checkpoint == NULL ? error.message : "");
    return checkpoint;
}

/* The value of element 3 of a tensor; -1: there is no such tensor. */
static float third(const struct checkpoint *checkpoint, const char *name)
{
    struct error error;
    float value = -1;
    const struct tensor *tensor = tensor_set_find_text(checkpoint->tensors, name);
    if (tensor != NULL)
        CHECK(convert_values(tensor_view(tensor, checkpoint->arena), 3, 1, &value, &error));
    return value;
}

static void check_config(const struct checkpoint *checkpoint, const char *expected)
{
    struct error error;
    bool absent;
    size_t length;
    char *text = document_text(checkpoint, "config.json", &length, &absent, &error);
    CHECK_TEXT(text, expected);
    free(text);
}

static void test_linear(void)
{
    const struct checkpoint *checkpoint =
        merged("merge_method: linear\ndtype: float32\nout_dtype: bfloat16\nparameters: {normalize: false}\nmodels:\n"
               "- {model: ../a, parameters: {weight: [2, 3]}}\n- {model: ../b, parameters: {weight: 1}}\n");
    CHECK_TEXT(checkpoint->model_name, "merge");
    CHECK(checkpoint->kind == CHECKPOINT_WEIGHTS && checkpoint->n_sources == 2);
    /* a table has neither biases nor rotary_emb; lm_head is there because one model has it */
    CHECK(checkpoint->tensors->n_tensors == 2 * 9 + 3);
    CHECK(third(checkpoint, "model.embed_tokens.weight") == 9 && third(checkpoint, "lm_head.weight") == 9);
    CHECK(third(checkpoint, "model.layers.0.mlp.up_proj.weight") == 9);
    CHECK(third(checkpoint, "model.layers.1.mlp.up_proj.weight") == 12);
    CHECK(tensor_set_find_text(checkpoint->tensors, "model.norm.weight")->dtype == &bf16_dtype);
    check_config(checkpoint, "{\n  \"architectures\": [\n    \"LlamaForCausalLM\"\n  ],\n  \"model_type\": \"llama\",\n"
                             "  \"num_hidden_layers\": 2,\n  \"dtype\": \"bfloat16\",\n"
                             "  \"layer_types\": [\n    \"full\",\n    \"sliding\"\n  ]\n}\n");
    checkpoint_close(checkpoint);
}

static void test_slices(void)
{
    const struct checkpoint *checkpoint =
        merged("merge_method: passthrough\nslices:\n- sources: [{model: ../a, layer_range: [0, 2]}]\n"
               "- sources: [{model: ../b, layer_range: [1, 2], parameters: {scale: [{filter: mlp, value: 0.5}]}}]\n");
    CHECK(checkpoint->tensors->n_tensors == 3 * 9 + 3);
    CHECK(third(checkpoint, "model.layers.1.mlp.up_proj.weight") == 3);
    CHECK(third(checkpoint, "model.layers.2.mlp.up_proj.weight") == 1.5F);
    CHECK(third(checkpoint, "model.layers.2.self_attn.q_proj.weight") == 3);
    CHECK(tensor_is_stored(tensor_set_find_text(checkpoint->tensors, "model.layers.2.self_attn.q_proj.weight")));
    check_config(checkpoint, "{\n  \"architectures\": [\n    \"LlamaForCausalLM\"\n  ],\n  \"model_type\": \"llama\",\n"
                             "  \"num_hidden_layers\": 3,\n  \"dtype\": \"float32\",\n"
                             "  \"layer_types\": [\n    \"full\",\n    \"sliding\",\n    \"sliding\"\n  ]\n}\n");
    checkpoint_close(checkpoint);
}

/* Layers of one model are stored as its file has them, but are not the file. */
static void test_layers_of_one_model(void)
{
    struct error error;
    const struct checkpoint *checkpoint =
        merged("merge_method: passthrough\nslices:\n- sources: [{model: ../a, layer_range: [1, 2]}]\n"
               "- sources: [{model: ../a, layer_range: [0, 1]}]\n");
    const struct hf_model *model = hf_model_of(checkpoint, &error);
    CHECK(model != NULL && model->whole == NULL && model->tensors->n_tensors == 2 * 9 + 2);
    checkpoint_close(checkpoint);
}

/* Returns the names of the tensors in the order of the plan, each with a blank, without what all have. */
static void append_order(const struct checkpoint *checkpoint, struct buffer *out)
{
    struct arena *arena = arena_new();
    const struct recipe_steps steps = recipe_plan_steps(recipe_plan_of(checkpoint), arena);
    for (size_t i = 0; i < steps.count; i++) {
        const char *name = steps.items[i].name, *layers = "model.layers.", *end = strstr(name, ".weight");
        name += strncmp(name, layers, strlen(layers)) == 0 ? strlen(layers) : 0;
        buffer_printf(out, "%.*s ", (int)(end - name), name);
    }
    buffer_append(out, "", 1);
    arena_free(arena);
}

/* Slices that share layers: the order in which mergekit 0.1.5 computes this recipe's tensors, as its graph has it. */
static void test_order_of_shared_layers(void)
{
    static const char expected[] =
        "lm_head model.embed_tokens 0.input_layernorm 3.input_layernorm 3.mlp.down_proj 0.mlp.down_proj "
        "0.mlp.gate_proj 3.mlp.gate_proj 3.mlp.up_proj 0.mlp.up_proj 3.post_attention_layernorm "
        "0.post_attention_layernorm 3.self_attn.k_proj 0.self_attn.k_proj 3.self_attn.o_proj "
        "0.self_attn.o_proj 0.self_attn.q_proj 3.self_attn.q_proj 3.self_attn.v_proj 0.self_attn.v_proj "
        "4.input_layernorm 1.input_layernorm 2.input_layernorm 1.mlp.down_proj 2.mlp.down_proj "
        "4.mlp.down_proj 4.mlp.gate_proj 1.mlp.gate_proj 2.mlp.gate_proj 4.mlp.up_proj 1.mlp.up_proj "
        "2.mlp.up_proj 4.post_attention_layernorm 1.post_attention_layernorm 2.post_attention_layernorm "
        "4.self_attn.k_proj 1.self_attn.k_proj 2.self_attn.k_proj 4.self_attn.o_proj 1.self_attn.o_proj "
        "2.self_attn.o_proj 4.self_attn.q_proj 1.self_attn.q_proj 2.self_attn.q_proj 1.self_attn.v_proj "
        "2.self_attn.v_proj 4.self_attn.v_proj model.norm ";
    const struct checkpoint *checkpoint =
        merged("merge_method: linear\nparameters: {weight: 1}\nslices:\n"
               "- sources: [{model: ../a, layer_range: [0, 2]}, {model: ../b, layer_range: [0, 2]}]\n"
               "- sources: [{model: ../a, layer_range: [1, 2]}, {model: ../b, layer_range: [1, 2]}]\n"
               "- sources: [{model: ../a, layer_range: [0, 2]}, {model: ../b, layer_range: [0, 2]}]\n");
    struct buffer order = {0};
    append_order(checkpoint, &order);
    CHECK_TEXT((const char *)order.bytes, expected);
    buffer_free(&order);
    checkpoint_close(checkpoint);
}

/* For the weights after the layers, mergekit takes as many sources of the last slice as the first slice has. */
static void test_sources_after_layers(void)
{
    const struct checkpoint *checkpoint = merged(
        "merge_method: linear\nparameters: {normalize: false}\nslices:\n"
        "- sources: [{model: ../a, layer_range: [0, 1], parameters: {weight: 2}}]\n"
        "- sources: [{model: ../a, layer_range: [1, 2], parameters: {weight: 3}}, {model: ../b, layer_range: [1, "
        "2], parameters: {weight: 4}}]\n");
    CHECK(third(checkpoint, "model.norm.weight") == 3 * 3);
    CHECK(third(checkpoint, "model.layers.1.mlp.up_proj.weight") == 3 * (3 + 4));
    checkpoint_close(checkpoint);
}

/* A class without a table has the tensors that all models have. */
static void test_unknown_class(void)
{
    const struct checkpoint *checkpoint =
        merged("merge_method: linear\nparameters: {weight: 1}\nmodels: [{model: ../other}, {model: ../other2}]\n");
    CHECK(checkpoint->tensors->n_tensors == 3 && third(checkpoint, "x.h.0.w") == 3);
    checkpoint_close(checkpoint);
}

/* Tensors are in the order of a safetensors file. */
static void test_order(void)
{
    const struct checkpoint *checkpoint = merged("merge_method: passthrough\nmodels: [{model: ../a}]\n");
    const struct tensor_set *set = checkpoint->tensors;
    bool is_sorted = true;
    for (size_t i = 1; i < set->n_tensors; i++)
        is_sorted &= strcmp(set->tensors[i - 1].name, set->tensors[i].name) < 0;
    CHECK(is_sorted);
    checkpoint_close(checkpoint);
}

#define SMALL_AND_LARGE                                                                                                \
    "merge_method: linear\nparameters: {weight: 1}\nmodels: [{model: ../small}, {model: ../large}]\n"
#define WEIGHT "merge_method: linear\nparameters: {weight: 1}\n"

static void test_errors(void)
{
    static const struct {
        const char *recipe, *error;
    } rows[] = {
        {WEIGHT "models: [{model: ../none}]", "model '../none': ../none: No such file or directory"},
        {WEIGHT "models: [{model: ../a}, {model: ../short}]",
         "'../short' has 1 layers, but '../a' has 2; slices choose layers"},
        {WEIGHT "models: [{model: ../a}, {model: ../poor}]",
         "tensor 'model.layers.1.input_layernorm.weight' is missing in the model '../poor'"},
        {WEIGHT "models: [{model: ../short}, {model: ../wide}]",
         "tensor 'model.embed_tokens.weight' is [3, 8] in '../wide', but [3, 4] in '../short'; tokenizer_source: union "
         "merges different vocabularies"},
        {WEIGHT "models: [{model: ../a}, {model: ../other}]",
         "'../other' is a OtherForCausalLM, but '../a' is a LlamaForCausalLM; models of a merge must be of one class"},
        {"merge_method: linear\nmodels: [{model: ../a}, {model: ../b, parameters: {weight: {filter: mlp, value: 1}}}]",
         "'../a' has no weight for the tensor 'model.embed_tokens.weight'; give it one without a filter, or in the "
         "parameters of "
         "the recipe"},
        {"merge_method: passthrough\nslices: [{sources: [{model: ../a, layer_range: [0, 3]}]}]",
         "layer_range ends at 3, but '../a' has 2 layers"},
        {WEIGHT "models: [{model: ../adapter}]",
         "model '../adapter': a LoRA adapter, not a model; write MODEL+ADAPTER"},
        {WEIGHT "models: [{model: merge.yaml}]",
         "model 'merge.yaml': r/merge.yaml: model 'merge.yaml': r/merge.yaml: model 'merge.yaml': r/merge.yaml: model "
         "'merge.yaml': r/merge.yaml: recipes name each other more than 4 deep; does one name itself?"},
        {"merge_method: dare_ties\nbase_model: ../a\nmodels: [{model: ../b, parameters: {weight: 1}}]",
         "dare_ties drops weights at random; -o seed=N chooses which, as mergekit's --random-seed"},
        {"merge_method: slerp\nbase_model: ../a\nparameters: {t: [{filter: mlp, value: 1}]}\nmodels: [{model: ../b}]",
         "the tensor 'model.embed_tokens.weight' has no t; give it one without a filter"},
        {SMALL_AND_LARGE, "tensor 'model.embed_tokens.weight' is [4, 4] in '../large', but [3, 4] in '../small'; "
                          "tokenizer_source: union "
                          "merges different vocabularies"},
        {SMALL_AND_LARGE "tokenizer: {tokens: {A: {source: ../small}, G: {source: ../small}}}",
         "tokens: '../small' has no token 'G'"},
        {"merge_method: linear\nparameters: {weight: 1}\nmodels: [{model: ../a}]\ntokenizer_source: union",
         "model '../a': no tokenizer.json or tokenizer.model, which the recipe's tokenizer needs"},
        {"merge_method: karcher\nmodels: [{model: ../a}, {model: ../b}]",
         "tensor 'model.embed_tokens.weight': karcher in float32 cannot be computed: mergekit's dot products come from "
         "MKL, whose order of summation is unknown; use dtype: bfloat16"},
        {"merge_method: nothing", "line 1: merge_method: 'nothing' is not a merge method"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct error error = {"opened"};
        const struct checkpoint *checkpoint = open_recipe(rows[i].recipe, &error);
        static const char place[] = "r/merge.yaml: ";
        bool is_placed = checkpoint == NULL && strncmp(error.message, place, strlen(place)) == 0;
        CHECK_TEXT(is_placed ? error.message + strlen(place) : error.message, rows[i].error);
        checkpoint_close(checkpoint);
    }
}

/* Seeds choose; densities that are no probabilities are refused. */
static void test_random(void)
{
    static const char recipe[] = "merge_method: della\nbase_model: ../a\n"
                                 "models: [{model: ../b, parameters: {weight: 1, density: 0.5, epsilon: %s}}]";
    for (int is_bad = 0; is_bad < 2; is_bad++) {
        char text[sizeof recipe + 8];
        struct error error = {""};
        snprintf(text, sizeof text, recipe, is_bad ? "0.5" : "0.25");
        files_write_text("r/merge.yaml", text);
        const struct checkpoint *read =
            checkpoint_open("r/merge.yaml", formats, &(struct open_options){.follow_links = true}, &error);
        const struct checkpoint *checkpoint =
            derive(read, &(struct derive_options){.recipe = {.has_seed = true, .seed = 1}}, &error);
        CHECK((checkpoint == NULL) == is_bad);
        CHECK(!is_bad ||
              strstr(error.message, "'../b' has density 0.5 and epsilon 0.5 for the tensor 'model.embed") != NULL);
        CHECK(is_bad || third(checkpoint, "model.layers.1.mlp.up_proj.weight") == 3); /* a and b are equal */
        checkpoint_close(checkpoint);
    }
}

/* The first elements of the rows of the embedding, which are 4 apart in the models. */
static const char *embedding(const struct checkpoint *checkpoint)
{
    static char text[256];
    struct error error;
    float values[64];
    const struct tensor *tensor = tensor_set_find_text(checkpoint->tensors, "model.embed_tokens.weight");
    CHECK(convert_values(tensor_view(tensor, checkpoint->arena), 0, tensor->shape[0] * 4, values, &error));
    *text = '\0';
    for (uint64_t i = 0; i < tensor->shape[0]; i++)
        sprintf(text + strlen(text), "%g ", (double)values[4 * i]);
    return text;
}

static char *side_text(const struct checkpoint *checkpoint, const char *name)
{
    struct error error;
    bool absent;
    size_t length;
    return document_text(checkpoint, name, &length, &absent, &error);
}

/* Tokens are A B C and A C D E: rows of one model stand for both where the other one lacks the token. */
static void test_vocabularies(void)
{
    static const struct {
        const char *recipe, *rows;
    } rows[] = {
        {SMALL_AND_LARGE "tokenizer_source: union\n", "0 4 6 8 12 "},
        {SMALL_AND_LARGE "tokenizer_source: base\nbase_model: ../small\n", "0 4 6 "},
        {SMALL_AND_LARGE "tokenizer_source: ../large\n", "0 6 8 12 0 "},
        {SMALL_AND_LARGE
         "tokenizer: {tokens: {A: {source: {kind: zero}, force: true}, B: {source: {kind: model_token, model: "
         "../large, token: E}}, F: {}}}\n",
         "0 8 6 8 12 0 "},
        {SMALL_AND_LARGE "tokenizer: {pad_to_multiple_of: 6}\n", "0 4 6 8 12 6 "},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct checkpoint *checkpoint = merged(rows[i].recipe);
        CHECK_TEXT(embedding(checkpoint), rows[i].rows);
        checkpoint_close(checkpoint);
    }
}

static void test_tokenizer_files(void)
{
    const struct checkpoint *checkpoint = merged(SMALL_AND_LARGE "tokenizer_source: union\nchat_template: auto\n");
    char *tokenizer = side_text(checkpoint, "tokenizer.json"), *config = side_text(checkpoint, "config.json");
    char *template = side_text(checkpoint, "chat_template.jinja");
    CHECK(strstr(config, "\"vocab_size\": 5") != NULL);
    CHECK(strstr(tokenizer,
                 "\"id\": 4,\n      \"content\": \"E\",\n      \"single_word\": false,\n      \"lstrip\": true") !=
          NULL);
    CHECK_TEXT(template, "{{ messages }}");
    free(tokenizer);
    free(config);
    free(template);
    checkpoint_close(checkpoint);
}

/* A recipe is a model, which another recipe may name. */
static void test_recipe_of_recipes(void)
{
    files_write_text("r/half.yaml", WEIGHT "models: [{model: ../a}, {model: ../b}]\n");
    const struct checkpoint *checkpoint =
        merged("merge_method: passthrough\nmodels: [{model: half.yaml, parameters: {scale: 2}}]\n");
    CHECK(third(checkpoint, "model.layers.1.mlp.up_proj.weight") == 6 && checkpoint->n_sources == 2);
    checkpoint_close(checkpoint);
}

int main(void)
{
    files_begin();
    write_models();
    test_linear();
    test_slices();
    test_layers_of_one_model();
    test_order_of_shared_layers();
    test_sources_after_layers();
    test_unknown_class();
    test_order();
    test_errors();
    test_random();
    test_vocabularies();
    test_tokenizer_files();
    test_recipe_of_recipes();
    files_remove();
    return check_done();
}
