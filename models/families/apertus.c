/* Apertus. conversion/llama.py.
 *
 * The activation function has four numbers a layer, tensors here and keys there. Making the model reads only these. */
#include "base/text.h"
#include "models/families/llama/llama.h"

#include <inttypes.h>
#include <string.h>

static const struct relation_row tensors[] = {
    {"model.layers.{}.mlp.act_fn.*", NULL},
    {"model.layers.{}.attention_layernorm", "blk.{}.attn_norm"},
    {"model.layers.{}.feedforward_layernorm", "blk.{}.ffn_norm"},
    {0},
};

static const struct parameter {
    const char *key, *tensor;
} parameters[] = {
    {"xielu.alpha_n", "model.layers.{}.mlp.act_fn.alpha_n"},
    {"xielu.alpha_p", "model.layers.{}.mlp.act_fn.alpha_p"},
    {"xielu.beta", "model.layers.{}.mlp.act_fn.beta"},
    {"xielu.eps", "model.layers.{}.mlp.act_fn.eps"},
};

enum { N_PARAMETERS = sizeof parameters / sizeof *parameters };

static bool read_number(struct arena *arena, const struct tensor *tensor, float *ret_value, struct error *error)
{
    if (tensor->refusal != NULL || dtype_kernels(tensor->dtype).decode == NULL || tensor->dtype->block_elements != 1)
        return error_set(error, "tensor '%.200s' has no values", tensor->name);
    const struct view *view = tensor_view(tensor, arena);
    if (view->n_elements != 1)
        return error_set(error, "tensor '%.200s' has %" PRIu64 " elements, expected 1", tensor->name, view->n_elements);
    return convert_values(view, 0, 1, ret_value, error);
}

/* Sets the key if all layers have the number. */
static bool set_parameter(struct model_builder *builder, const struct parameter *parameter, struct error *error)
{
    const struct tensor_set *set = builder->model->checkpoint->tensors;
    uint64_t n_layers = builder->dimensions.n_layers, numbers[PATTERN_NUMBERS], n_found = 0;
    if (n_layers > set->n_tensors)
        return true;
    uint32_t *bits = arena_array(builder->model->arena, n_layers + 1, sizeof *bits);
    for (size_t i = 0; i < set->n_tensors; i++) {
        const struct tensor *tensor = &set->tensors[i];
        float value;
        if (!pattern_match(parameter->tensor, tensor->name, tensor->name_length, numbers) || numbers[0] >= n_layers)
            continue;
        if (!read_number(builder->model->arena, tensor, &value, error))
            return false;
        memcpy(&bits[numbers[0]], &value, sizeof value);
        n_found++;
    }
    if (n_found != n_layers || n_layers == 0)
        return true;
    struct buffer elements = {0};
    for (uint64_t i = 0; i < n_layers; i++)
        buffer_append_le(&elements, bits[i], 4);
    gguf_set_array(&builder->model->kvs, parameter->key, GGUF_F32, n_layers, &elements);
    return true;
}

/* Returns the place of a parameter's last tensor. */
static size_t last_of(const struct tensor_set *set, const struct parameter *parameter)
{
    uint64_t numbers[PATTERN_NUMBERS];
    for (size_t i = set->n_tensors; i > 0; i--)
        if (pattern_match(parameter->tensor, set->tensors[i - 1].name, set->tensors[i - 1].name_length, numbers))
            return i;
    return 0;
}

/* The converter sets each key when it has read the last of its numbers. */
static bool add_extras(struct model_builder *builder, struct error *error)
{
    size_t lasts[N_PARAMETERS];
    bool is_done[N_PARAMETERS] = {false};
    for (size_t i = 0; i < N_PARAMETERS; i++)
        lasts[i] = last_of(builder->model->checkpoint->tensors, &parameters[i]);
    for (size_t n_done = 0; n_done < N_PARAMETERS; n_done++) {
        size_t next = N_PARAMETERS;
        for (size_t i = 0; i < N_PARAMETERS; i++)
            if (!is_done[i] && (next == N_PARAMETERS || lasts[i] < lasts[next]))
                next = i;
        is_done[next] = true;
        if (!set_parameter(builder, &parameters[next], error))
            return false;
    }
    return add_rope_freqs(builder, error);
}

/* Writes each number as a parameter with an axis, or a buffer without one. */
static void restore(const struct gguf_kvs *kvs, struct arena *arena, void *context,
                    void (*write)(void *context, const char *name, const struct view *view))
{
    struct gguf_array array;
    struct error unused;
    const uint64_t shape[] = {1};
    double value;
    for (size_t i = 0; i < N_PARAMETERS; i++) {
        const struct parameter *parameter = &parameters[i];
        if (!gguf_get_array(kvs, parameter->key, arena, &array, &unused))
            continue;
        for (uint64_t layer = 0; layer < array.count && gguf_array_f64(&array, layer, &value); layer++) {
            const uint64_t numbers[PATTERN_NUMBERS] = {layer};
            const float number = (float)value;
            const unsigned rank = text_starts_with(parameter->key, "xielu.alpha");
            write(context, pattern_fill(arena, parameter->tensor, numbers, ""),
                  view_numbers(arena, rank, shape, arena_copy(arena, &number, sizeof number)));
        }
    }
}

static const struct config_row common_rows[] = {
    {"hidden_act", FROM_TEXT, .text = "'xielu'"},
    {0},
};

/* The class scales its rope unless config.json turns that off. */
static const struct config_form forms[] = {
    {"ApertusForCausalLM", "apertus", "tensor:rope_freqs.weight|key:rope.scaling.type",
     CONFIG_TABLES(attention_bias_rows, mlp_bias_rows, common_rows)},
    {"ApertusForCausalLM", "apertus", NULL,
     CONFIG_TABLES(attention_bias_rows, mlp_bias_rows, common_rows,
                   CONFIG_ROWS({"rope_scaling", FROM_TEXT, .text = "null"}))},
    {0},
};

const struct family apertus_family = {
    .name = "apertus",
    .summary = "Apertus",
    .hf = FAMILY_NAMES({"ApertusForCausalLM"}),
    .tensors = {tensors, qk_norm_tensors, decoder_tensors},
    .forms = forms,
    .restore = restore,
    .keys = {base_keys, llama_keys},
    LLAMA_VOCABS,
    .add_extras = add_extras,
};
