/* Recipes: what is read of them, and what is refused. Values of gradients and filters are those that mergekit's
 * ConfigReader has for the same recipes. */
#include "models/recipes/recipe.h"

#include "base/buffer.h"

#include "tests/unit/check.h"

#include <math.h>
#include <stdlib.h>

#define TWO "models: [{model: a, parameters: {weight: 1}}, {model: b, parameters: {weight: 2}}]\n"

static const struct recipe *read(struct arena *arena, const char *text)
{
    struct error error = {""};
    const struct recipe *recipe = recipe_read(arena, text, strlen(text), &error);
    if (recipe == NULL)
        CHECK_TEXT(error.message, text);
    return recipe;
}

static void test_models(struct arena *arena)
{
    const struct recipe *recipe =
        read(arena, "merge_method: linear\nbase_model: c\ndtype: torch.bfloat16\nout_dtype: float16\n"
                    "parameters: {weight: 0.5}\n"
                    "models:\n- model: a+lora\n- model: {model: {path: b, revision: main}, lora: {path: l+2}}\n");
    if (!CHECK(recipe != NULL && recipe->n_models == 3 && recipe->n_slices == 1))
        return;
    CHECK(recipe->dtype == &bf16_dtype && recipe->out_dtype == &f16_dtype && !recipe->has_slices);
    CHECK_TEXT(recipe->models[0].path, "c");
    CHECK(recipe->models[0].lora == NULL && recipe->base == 0);
    CHECK_TEXT(recipe->models[1].path, "a");
    CHECK_TEXT(recipe->models[1].lora, "lora");
    CHECK_TEXT(recipe->models[2].path, "b@main");
    CHECK_TEXT(recipe->models[2].lora, "l+2");
    /* the base is the last input */
    const struct recipe_slice *slice = &recipe->slices[0];
    CHECK(slice->n_sources == 3 && slice->sources[0].model == 1 && slice->sources[2].model == 0);
}

static void test_slices(struct arena *arena)
{
    const struct recipe *recipe = read(
        arena, "merge_method: passthrough\nslices:\n"
               "- sources: [{model: a, layer_range: [0, 3]}]\n"
               "- sources: [{model: b, layer_range: [1, 4], parameters: {scale: [{filter: o_proj, value: 0.5}]}}]\n");
    if (!CHECK(recipe != NULL && recipe->n_slices == 2 && recipe->has_slices))
        return;
    const struct recipe_slice *second = &recipe->slices[1];
    double value = 0;
    CHECK(second->sources[0].first_layer == 1 && second->sources[0].end_layer == 4);
    CHECK(recipe_input_value(recipe, second, second->sources, PARAMETER_SCALE, "layers.1.o_proj", 0, &value));
    CHECK(value == 0.5);
    CHECK(!recipe_input_value(recipe, second, second->sources, PARAMETER_SCALE, "layers.1.q_proj", 0, &value));
}

/* The value of `weight` for a tensor at a place of the slice; NAN: there is none. */
static double weight(struct arena *arena, const char *spelled, const char *tensor, double at)
{
    double value;
    const char *text =
        arena_printf(arena, "merge_method: linear\nmodels: [{model: a, parameters: {weight: %s}}]", spelled);
    const struct recipe *recipe = read(arena, text);
    bool found = recipe != NULL && recipe_input_value(recipe, recipe->slices, recipe->slices->sources, PARAMETER_WEIGHT,
                                                      tensor, at, &value);
    return found ? value : (double)NAN;
}

static void test_values(struct arena *arena)
{
    static const struct {
        const char *spelled, *tensor;
        double at, value;
    } rows[] = {
        {"0.5", "x", 0, 0.5},
        {"'0.25'", "x", 0, 0.25},
        {"1e-3", "x", 0, 1e-3},
        {"[0, 1]", "x", 0.25, 0.25},
        {"[7]", "x", 1, 7},
        {"[0.1, 0.4]", "x", 1.0 / 3, (1 - 1.0 / 3) * 0.1 + 1.0 / 3 * 0.4},
        {"[0, 0.5, 0.3, 0.7, 1]", "x", 2.0 / 3, (1 - (2.0 / 3 * 4 - 2)) * 0.3 + (2.0 / 3 * 4 - 2) * 0.7},
        {"[1, 0.7, 0.1]", "x", 1, 0.1},
        {"[{filter: mlp, value: [1, 0]}, {filter: '*', value: 3}, {value: 4}]", "m.mlp.up", 0.5, 0.5},
        {"[{filter: mlp, value: [1, 0]}, {filter: '*', value: 3}, {value: 4}]", "m.attn", 0.5, 3},
        {"{filter: mlp, value: 1}", "m.attn", 0, NAN},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double value = weight(arena, rows[i].spelled, rows[i].tensor, rows[i].at);
        CHECK_NAMED(value == rows[i].value || (isnan(value) && isnan(rows[i].value)), rows[i].spelled);
    }
}

static void test_scopes(struct arena *arena)
{
    const struct recipe *recipe =
        read(arena,
             "merge_method: linear\nslices:\n- parameters: {normalize: on}\n"
             "  sources: [{model: a, layer_range: [0, 1]}, {model: b, layer_range: [0, 1], parameters: {weight: 5}}]\n"
             "parameters: {weight: 2, normalize: 'no'}\n");
    const struct recipe_slice *slice = recipe != NULL ? recipe->slices : NULL;
    double value;
    CHECK(slice != NULL && recipe_shared_value(recipe, slice, PARAMETER_NORMALIZE, "x", 0, &value) && value == 1);
    CHECK(slice != NULL && recipe_input_value(recipe, slice, slice->sources, PARAMETER_WEIGHT, "x", 0, &value) &&
          value == 2);
    CHECK(slice != NULL && recipe_input_value(recipe, slice, slice->sources + 1, PARAMETER_WEIGHT, "x", 0, &value) &&
          value == 5);
    recipe = read(arena, "merge_method: linear\n" TWO);
    CHECK(recipe != NULL && recipe_shared_value(recipe, recipe->slices, PARAMETER_NORMALIZE, "x", 0, &value) &&
          value == 1);
}

static void test_tokenizers(struct arena *arena)
{
    const struct recipe *recipe =
        read(arena, "merge_method: linear\n" TWO "chat_template: chatml\ntokenizer:\n  pad_to_multiple_of: 64\n"
                    "  tokens:\n    <a>: {source: b, force: true}\n    <b>: {source: {kind: zero}}\n"
                    "    <c>: {source: {kind: model_token, model: c, token_id: 7}}\n");
    if (!CHECK(recipe != NULL && recipe->n_tokens == 3 && recipe->pad_to_multiple_of == 64))
        return;
    CHECK(recipe->vocabulary == VOCABULARY_UNION && recipe->tokens[0].force && recipe->tokens[0].model == 1);
    CHECK(recipe->tokens[1].kind == TOKEN_ZERO && recipe->tokens[2].other_id == 7 && recipe->tokens[2].model == 2);
    CHECK(strstr(recipe->chat_template, "<|im_end|>") != NULL);
    recipe = read(arena, "merge_method: linear\nbase_model: a\ntokenizer_source: base\n" TWO);
    CHECK(recipe != NULL && recipe->vocabulary == VOCABULARY_OF_BASE);
}

static void test_errors(struct arena *arena)
{
    static const struct {
        const char *text, *error;
    } rows[] = {
        {"", "the recipe is empty"},
        {"[1]", "line 1: expected a mapping"},
        {"a: [", "line 2: did not find expected node content"},
        {"models: [{model: a}]", "line 1: 'merge_method' is missing"},
        {"merge_method: liner\n" TWO, "line 1: merge_method: 'liner' is not a merge method; did you mean 'linear'?"},
        {"merge_method: arcee_fusion\n" TWO, "line 1: merge_method: the method arcee_fusion cannot be computed: its "
                                             "thresholds depend on the processor (softmax and log of torch)"},
        {"base_model: a\ngate_mode: random\nexperts: []",
         "line 2: a recipe of mergekit-moe: wfs cannot compute its gates (gate_mode: random)"},
        {"merge_method: ties\nbase_model: b\nparameters: {weight: 1}\nslices:\n"
         "- sources: [{model: b, layer_range: [0, 1]}]\n"
         "- sources: [{model: a, layer_range: [0, 1]}, {model: b, layer_range: [0, 1]}]\n",
         "the last slice has more sources than the first, which has as many as mergekit takes for weights after the "
         "layers: line 1: ties needs the base model 'b' among the sources"},
        {"experts: []", "line 1: a recipe of mergekit-moe: wfs cannot compute its gates (gate_mode: hidden)"},
        {"merge_method: linear\nmodel: a", "line 2: recipe: unknown key 'model'; did you mean 'models'?"},
        {"merge_method: linear\nmerge_method: linear\n" TWO, "line 2: recipe: 'merge_method' is there twice"},
        {"merge_method: linear\nmodels: [{model: a, parameters: {wieght: 1}}]",
         "line 2: parameters of linear: unknown key 'wieght'; did you mean 'weight'?"},
        {"merge_method: linear\nmodels: [{model: a, parameters: {normalize: true}}]",
         "line 2: 'normalize' is one for all models; write it in the parameters of the recipe or of a slice"},
        {"merge_method: linear\nmodels: [{model: a, parameters: {weight: much}}]", "line 2: weight: expected a number"},
        {"merge_method: linear\nmodels: [{model: a, parameters: {weight: .inf}}]",
         "line 2: weight: the number is not finite"},
        {"merge_method: linear\nmodels: [{model: a, parameters: {weight: []}}]",
         "line 2: weight: expected a list with elements"},
        {"merge_method: linear\nmodels: [{model: a, parameters: {weight: [1, {value: 2}]}}]",
         "line 2: weight: expected a number"},
        {"merge_method: linear\nparameters: {normalize: 2}\n" TWO, "line 2: normalize: expected true or false"},
        {"merge_method: linear", "line 1: expected one of 'models' and 'slices'"},
        {"merge_method: linear\nslices: [{sources: []}]\n" TWO, "line 1: expected one of 'models' and 'slices'"},
        {"merge_method: linear\nmodels: []", "line 2: models: expected a list with elements"},
        {"merge_method: linear\nmodels: [{model: a}, {model: a}]", "line 2: the model 'a' is there twice"},
        {"merge_method: linear\nmodels: [{model: a+b+c}]",
         "line 2: 'a+b+c' is not MODEL or MODEL+LORA; for a path with "
         "a '+' write model: {model: {path: PATH}}"},
        {"merge_method: passthrough\n"
         "models: [{model: a}, {model: b}]",
         "line 2: passthrough merges exactly 1 model, and here are 2"},
        {"merge_method: linear\nslices: [{sources: [{model: a}]}]", "line 2: sources: 'layer_range' is missing"},
        {"merge_method: linear\nslices: [{sources: [{model: a, layer_range: [2, 2]}]}]",
         "line 2: layer_range: the end must be greater than the first layer"},
        {"merge_method: linear\nslices: [{sources: [{model: a, layer_range: [0, 2]}, {model: b, layer_range: [0, "
         "3]}]}]",
         "line 2: layer_range: the sources of a slice must have the same number of layers"},
        {"merge_method: linear\nslices: [{sources: [{model: a, layer_range: [0, 99999999]}]}]",
         "line 2: layer_range: expected a number from 0 to 65536"},
        {"merge_method: linear\ndtype: float64\n" TWO,
         "line 2: dtype: 'float64' is not supported; use bfloat16, float16 or float32"},
        {"merge_method: linear\ntokenizer_source: union\ntokenizer: {}\n" TWO,
         "line 2: expected one of 'tokenizer' and 'tokenizer_source'"},
        {"merge_method: linear\ntokenizer_source: base\n" TWO, "line 2: the tokenizer of the base needs a base_model"},
        {"merge_method: linear\nchat_template: alpaca\n" TWO,
         "line 2: chat_template: 'alpaca' is neither auto, chatml nor the text of a template"},
        {"merge_method: linear\nmodules: {vision: {models: []}}",
         "line 2: modules: wfs merges models of one module, 'default'"},
        {"name: a\n---\nname: b\n", "several documents, as for mergekit-multi; write each to a file of its own, and "
                                    "name the files as models"},
        {"merge_method: linear\nmodels: &x\n- model: *x", "line 2: model: expected a text"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct error error = {"read"};
        bool is_read = recipe_read(arena, rows[i].text, strlen(rows[i].text), &error) != NULL;
        CHECK_TEXT(is_read ? "read" : error.message, rows[i].error);
    }
}

/* Aliases of aliases: 10 values in each of 7 lists of the one before are ten million. */
static void test_aliases(struct arena *arena)
{
    char text[1024] = "merge_method: linear\nx: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n";
    struct error error = {""};
    CHECK(recipe_read(arena, text, strlen(text), &error) == NULL);
    strcpy(text, "merge_method: linear\nmodels:\n- {model: m0, parameters: {weight: &w [");
    for (size_t i = 0; i < 100; i++)
        strcat(text, "1,");
    strcat(text, "1]}}\n");
    struct buffer many = {0};
    buffer_append_text(&many, text);
    for (size_t i = 1; i < RECIPE_MAX_SOURCES; i++)
        buffer_printf(&many, "- {model: m%zu, parameters: {weight: *w}}\n", i);
    CHECK(recipe_read(arena, (const char *)many.bytes, many.length, &error) != NULL);
    buffer_printf(&many, "- {model: m, parameters: {weight: *w}}\n");
    CHECK(recipe_read(arena, (const char *)many.bytes, many.length, &error) == NULL);
    CHECK_TEXT(error.message, "line 3: models: 257 elements, the limit is 256");
    buffer_free(&many);
}

static void test_likely(void)
{
    static const char *const yes[] = {"merge_method: x", "# a\nmerge_method: x\n"}, *const no[] = {
                                                                                        "",
                                                                                        "x: merge_method:", "merge"};
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        CHECK_NAMED(recipe_is_likely(yes[i], strlen(yes[i])), yes[i]);
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        CHECK_NAMED(!recipe_is_likely(no[i], strlen(no[i])), no[i]);
}

int main(void)
{
    struct arena *arena = arena_new();
    test_models(arena);
    test_slices(arena);
    test_values(arena);
    test_scopes(arena);
    test_tokenizers(arena);
    test_errors(arena);
    test_aliases(arena);
    test_likely();
    arena_free(arena);
    return check_done();
}
