/* The parameters of a recipe: scalars, gradients and filters. */
#include "models/recipes/parsing.h"

#include "base/text.h"
#include "models/recipes/recipe.h"

#include <string.h>

/* A mapping of parameters while it is read. */
struct scope {
    struct parsing *parsing;
    const struct parameter *parameter;
};

static bool read_scalar(const struct scope *scope, const struct yaml_value *value, double *ret_value)
{
    const struct parameter *parameter = scope->parameter;
    uint64_t count;
    if (scope->parsing->n_values++ == RECIPE_MAX_VALUES)
        return parsing_fail(scope->parsing, value, "more than %d values of parameters", RECIPE_MAX_VALUES);
    if (parameter->type == TRUTH)
        return parsing_truth(scope->parsing, value, parameter->text, ret_value);
    if (parameter->type == NUMBER)
        return parsing_number(scope->parsing, value, parameter->text, ret_value);
    if (!parsing_count(scope->parsing, value, parameter->text, MERGE_MAX_ITER, &count))
        return false;
    *ret_value = (double)count;
    return true;
}

/* Reads a scalar, or a gradient. */
static bool read_values(const struct scope *scope, const struct yaml_value *value, struct condition *ret_condition)
{
    bool is_gradient = value->type == YAML_LIST;
    if (is_gradient && !parsing_list(scope->parsing, value, scope->parameter->text, RECIPE_MAX_LAYERS))
        return false;
    size_t n_values = is_gradient ? value->n_pairs : 1;
    double *values = arena_array(scope->parsing->arena, n_values, sizeof *values);
    for (size_t i = 0; i < n_values; i++)
        if (!read_scalar(scope, is_gradient ? value->pairs[i].value : value, &values[i]))
            return false;
    ret_condition->values = values;
    ret_condition->n_values = n_values;
    ret_condition->has_steps = scope->parameter->type != NUMBER;
    return true;
}

static bool read_condition(const struct scope *scope, const struct yaml_value *value, struct condition *ret_condition)
{
    static const char *const keys[] = {"filter", "value", NULL};
    if (!parsing_keys(scope->parsing, value, scope->parameter->text, keys))
        return false;
    const struct yaml_value *filter = parsing_get(value, "filter"), *own = parsing_get(value, "value");
    if (own == NULL)
        return parsing_fail(scope->parsing, value, "%s: 'value' is missing", scope->parameter->text);
    if (filter != NULL) {
        ret_condition->filter = parsing_text(scope->parsing, filter, "filter");
        if (ret_condition->filter == NULL)
            return false;
        if (strcmp(ret_condition->filter, "*") == 0)
            ret_condition->filter = NULL;
    }
    return read_values(scope, own, ret_condition);
}

/* Reads a value: a scalar, a gradient, a condition, or a list of conditions. */
static bool read_setting(const struct scope *scope, const struct yaml_value *value, struct setting *ret_setting)
{
    bool is_list = value->type == YAML_LIST && value->n_pairs > 0 && value->pairs[0].value->type == YAML_MAPPING;
    size_t n_conditions = is_list ? value->n_pairs : 1;
    if (is_list && !parsing_list(scope->parsing, value, scope->parameter->text, RECIPE_MAX_SLICES))
        return false;
    struct condition *conditions = arena_array(scope->parsing->arena, n_conditions, sizeof *conditions);
    for (size_t i = 0; i < n_conditions; i++) {
        const struct yaml_value *one = is_list ? value->pairs[i].value : value;
        bool is_condition = is_list || value->type == YAML_MAPPING;
        if (!(is_condition ? read_condition(scope, one, &conditions[i]) : read_values(scope, one, &conditions[i])))
            return false;
    }
    *ret_setting = (struct setting){scope->parameter->name, conditions, n_conditions};
    return true;
}

/* The keys that `parameters` of a method may have; the last is NULL. */
static size_t known_parameters(const struct method *method, bool of_input, const char *names[N_PARAMETERS + 1])
{
    size_t count = 0;
    for (size_t i = 0; i < method->n_parameters; i++) {
        const struct parameter *parameter = &parameters[method->parameters[i].name];
        if (parameter->is_of_input || !of_input)
            names[count++] = parameter->text;
    }
    names[count] = NULL;
    return count;
}

/* Explains that a parameter of all inputs is among those of one. */
static bool check_shared(const struct parsing *parsing, const struct yaml_value *value)
{
    const struct method *method = parsing->recipe->method;
    for (size_t i = 0; i < method->n_parameters; i++) {
        const struct parameter *parameter = &parameters[method->parameters[i].name];
        if (!parameter->is_of_input && yaml_get(value, parameter->text) != NULL)
            return parsing_fail(parsing, value,
                                "'%s' is one for all models; write it in the parameters of the recipe or of a slice",
                                parameter->text);
    }
    return true;
}

bool parsing_parameters(struct parsing *parsing, const struct yaml_value *value, bool of_input,
                        struct settings *ret_settings)
{
    const struct method *method = parsing->recipe->method;
    const char *names[N_PARAMETERS + 1];
    *ret_settings = (struct settings){NULL, 0};
    if (value == NULL || value->type == YAML_NULL)
        return true;
    if (of_input && value->type == YAML_MAPPING && !check_shared(parsing, value))
        return false;
    known_parameters(method, of_input, names);
    if (!parsing_keys(parsing, value, arena_printf(parsing->arena, "parameters of %s", method->name), names))
        return false;
    struct setting *items = arena_array(parsing->arena, N_PARAMETERS, sizeof *items);
    for (size_t i = 0; i < method->n_parameters; i++) {
        const struct scope scope = {parsing, &parameters[method->parameters[i].name]};
        const struct yaml_value *own = parsing_get(value, scope.parameter->text);
        bool is_allowed = scope.parameter->is_of_input || !of_input;
        if (own != NULL && is_allowed && !read_setting(&scope, own, &items[ret_settings->count++]))
            return false;
    }
    ret_settings->items = items;
    return true;
}

static const char embedding[] = "model.embed_tokens.weight", output[] = "lm_head.weight";

/* The weights of a layer, up to a NULL, in mergekit's order. */

static const char *const llama_layer[] = {
    "input_layernorm.weight",  "self_attn.q_proj.weight",
    "self_attn.k_proj.weight", "self_attn.v_proj.weight",
    "self_attn.o_proj.weight", "post_attention_layernorm.weight",
    "mlp.up_proj.weight",      "mlp.gate_proj.weight",
    "mlp.down_proj.weight",    NULL,
};

static const char *const qwen2_layer[] = {
    "input_layernorm.weight",
    "mlp.down_proj.weight",
    "mlp.gate_proj.weight",
    "mlp.up_proj.weight",
    "post_attention_layernorm.weight",
    "self_attn.k_proj.bias",
    "self_attn.k_proj.weight",
    "self_attn.o_proj.weight",
    "self_attn.q_proj.bias",
    "self_attn.q_proj.weight",
    "self_attn.v_proj.bias",
    "self_attn.v_proj.weight",
    NULL,
};

static const char *const qwen3_layer[] = {
    "input_layernorm.weight",          "mlp.down_proj.weight",    "mlp.gate_proj.weight",    "mlp.up_proj.weight",
    "post_attention_layernorm.weight", "self_attn.k_norm.weight", "self_attn.k_proj.weight", "self_attn.q_norm.weight",
    "self_attn.q_proj.weight",         "self_attn.v_proj.weight", "self_attn.o_proj.weight", NULL,
};

static const struct {
    const char *class_name;
    const char *const *layer;
} classes[] = {
    {"LlamaForCausalLM", llama_layer},
    {"MistralForCausalLM", llama_layer},
    {"Qwen2ForCausalLM", qwen2_layer},
    {"Qwen3ForCausalLM", qwen3_layer},
};

static size_t add_layer(struct weight_template *items, size_t count, const char *const *names)
{
    for (; *names != NULL; names++)
        items[count++] = (struct weight_template){.before = "model.layers.", .after = *names};
    return count;
}

bool weights_of_class(const char *class_name, struct arena *arena, struct weight_templates *ret_weights)
{
    enum { MOST = 16 };
    size_t row = 0, count = 0, n_rows = sizeof classes / sizeof *classes;
    while (row < n_rows && strcmp(classes[row].class_name, class_name) != 0)
        row++;
    if (row == n_rows)
        return false;
    struct weight_template *items = arena_array(arena, MOST, sizeof *items);
    items[count++] = weight_outside_layers(embedding);
    count = add_layer(items, count, classes[row].layer);
    items[count++] = weight_outside_layers("model.norm.weight");
    items[count++] = weight_outside_layers(output);
    *ret_weights = (struct weight_templates){items, count};
    return true;
}

/* Reports whether a name is that of an embedding of tokens. */
static bool is_embedding(const char *name)
{
    return text_ends_with(name, "embed_tokens.weight") || text_ends_with(name, "wte.weight") ||
           text_ends_with(name, "word_embeddings.weight") || text_ends_with(name, "embed_in.weight");
}

struct weight_template weight_outside_layers(const char *name)
{
    bool is_output = text_ends_with(name, output) || text_ends_with(name, "embed_out.weight");
    bool is_first =
        strstr(name, "embed") != NULL || text_ends_with(name, "wte.weight") || text_ends_with(name, "wpe.weight");
    bool is_head = strcmp(name, output) == 0;
    return (struct weight_template){
        .before = name,
        .is_optional = is_head,
        .is_last = is_output || !is_first,
        .tied = is_head ? embedding : NULL,
        .has_vocabulary = is_output || is_embedding(name),
    };
}
