#include "models/quantize.h"

#include "base/arena.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { QUANTIZATION_VERSION = 2 };

/* The tool's order: by the layer of "blk.N.", those of no layer first, then by name. */

static int compare_tensors(const void *a, const void *b)
{
    const char *x = (*(const struct tensor *const *)a)->name, *y = (*(const struct tensor *const *)b)->name;
    uint64_t x_layer = 0, y_layer = 0;
    bool x_in_layer = mix_layer_of(x, &x_layer), y_in_layer = mix_layer_of(y, &y_layer);
    if (x_in_layer != y_in_layer)
        return x_in_layer ? 1 : -1;
    if (x_layer != y_layer)
        return x_layer < y_layer ? -1 : 1;
    return strcmp(x, y);
}

/* Pointers to the model's tensors in the tool's order, to be freed by the caller. */
static const struct tensor **sort_tensors(const struct tensor_set *set)
{
    const struct tensor **sorted = memory_alloc(set->n_tensors * sizeof *sorted);
    for (size_t i = 0; i < set->n_tensors; i++)
        sorted[i] = &set->tensors[i];
    qsort(sorted, set->n_tensors, sizeof *sorted, compare_tensors);
    return sorted;
}

/* A whole number among the keys of the architecture, or the first of an array of them; `otherwise` where there is none. */
static uint64_t model_number(const struct gguf_kvs *kvs, const char *architecture, const char *name, uint64_t otherwise)
{
    char key[256];
    uint64_t number = otherwise;
    struct gguf_array array;
    struct error error;
    struct arena *arena = arena_new();
    snprintf(key, sizeof key, "%s.%s", architecture, name);
    if (!gguf_get_u64(kvs, key, &number) && gguf_get_array(kvs, key, arena, &array, &error) && array.count > 0)
        gguf_array_u64(&array, 0, &number);
    arena_free(arena);
    return number;
}

static struct mix_model describe_model(const struct gguf_kvs *kvs, const char *architecture)
{
    uint64_t n_heads = model_number(kvs, architecture, "attention.head_count", 0);
    return (struct mix_model){
        .architecture = architecture,
        .n_layers = model_number(kvs, architecture, "block_count", 0),
        .n_heads = n_heads,
        .n_kv_heads = model_number(kvs, architecture, "attention.head_count_kv", n_heads),
        .n_experts = model_number(kvs, architecture, "expert_count", 0),
    };
}

/* What the tool reads: a GGUF, or the f32 conversion of another model. */
static const struct dtype *input_type(const struct gguf_model *model, const struct tensor *tensor)
{
    const struct dtype *forced = model->forced[tensor - model->tensors->tensors];
    return forced != NULL ? forced : &f32_dtype;
}

/* The tensors of the plan in their order, with their types. */
static bool plan_tensors(const struct gguf_model *model, const char *architecture, const struct mix *mix,
                         const struct quantize_options *options, struct gguf_plan *plan, struct error *error)
{
    size_t n_tensors = model->tensors->n_tensors;
    const struct tensor **sorted = sort_tensors(model->tensors);
    const struct dtype **types = memory_alloc(n_tensors * sizeof *types);
    for (size_t i = 0; i < n_tensors; i++)
        types[i] = input_type(model, sorted[i]);
    struct mix_model mix_model = describe_model(&plan->kvs, architecture);
    bool chosen = mix_choose_types(mix, options, &mix_model, sorted, types, n_tensors, error);
    if (chosen) {
        plan->n_tensors = n_tensors;
        plan->places = memory_alloc(n_tensors * sizeof *plan->places);
        for (size_t i = 0; i < n_tensors; i++)
            plan->places[i] = (struct gguf_place){.tensor = sorted[i], .type = types[i]};
    }
    free(types);
    free(sorted);
    return chosen;
}

/* Keys that the tool does not copy. */
static const char *const dropped[] = {"general.quantization_version", "general.file_type", "split.no", "split.count",
                                      "split.tensors.count"};

static void plan_keys(const struct gguf_model *model, const struct mix *mix, struct gguf_plan *plan)
{
    plan->kvs = gguf_kvs_copy(&model->kvs);
    for (size_t i = 0; i < sizeof dropped / sizeof *dropped; i++)
        gguf_kvs_remove(&plan->kvs, dropped[i]);
    gguf_set_u32(&plan->kvs, "general.quantization_version", QUANTIZATION_VERSION);
    gguf_set_u32(&plan->kvs, "general.file_type", mix->file_type);
    gguf_edit(&plan->kvs, model->edits);
}

bool gguf_plan_quantize(const struct gguf_model *model, const struct mix *mix, const struct quantize_options *options,
                        struct gguf_plan *ret_plan, struct error *error)
{
    size_t length;
    struct error absent;
    struct arena *arena = arena_new();
    struct gguf_plan plan = {.trim_ones = true};
    plan_keys(model, mix, &plan);
    const char *architecture = gguf_get_string(&plan.kvs, "general.architecture", arena, &length, &absent);
    bool planned = (model->family != NULL || model->is_gguf) && architecture != NULL
                       ? plan_tensors(model, architecture, mix, options, &plan, error)
                       : error_set(error, "llama-quantize takes only architectures that it knows");
    arena_free(arena);
    if (planned)
        *ret_plan = plan;
    else
        gguf_plan_free(&plan);
    return planned;
}
