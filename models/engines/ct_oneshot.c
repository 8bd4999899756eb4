#include "models/engines/ct_model.h"

#include "base/text.h"
#include "models/engines/ct_ignored.h"
#include "models/huggingface/shards.h"

#include <inttypes.h>
#include <string.h>

/* The names of experts' matrices in the checkpoints of a class, if they are not those that the tool gives to modules.
 * Classes with experts but no row are not known well enough. */
static const struct expert_names {
    const char *model_type;
    bool has_numbers; /* w1, w3 and w2 for gate_proj, up_proj and down_proj */
} expert_names[] = {
    {"mixtral", true},
    {"qwen2_moe", false},
    {"qwen3_moe", false},
    {"olmoe", false},
};

static const char lm_head[] = "lm_head";

struct loading {
    struct arena *arena;
    struct ct_model *made;
    const struct expert_names *experts; /* NULL: none */
    const struct ct_ignored *ignored;
    struct error *error;
};

/* Fails for models that the tool handles in a way not known here. */
static bool check_class(struct loading *loading, const struct json *config)
{
    static const char *const others[] = {"text_config", "vision_config", "audio_config", "num_mtp_layers",
                                         "mtp_num_hidden_layers"};
    const char *type = json_string(json_get(config, "model_type"), NULL);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (json_get(config, others[i]) != NULL)
            return error_set(loading->error,
                             "oneshot() is supported for text models alone, and config.json has \"%s\"; use "
                             "compressed-tensors/SCHEME/",
                             others[i]);
    for (size_t i = 0; i < sizeof expert_names / sizeof *expert_names && type != NULL; i++)
        if (strcmp(type, expert_names[i].model_type) == 0)
            loading->experts = &expert_names[i];
    if (ct_names_experts(config) && loading->experts == NULL)
        return error_set(loading->error,
                         "oneshot() is not supported for the experts of '%.100s'; use compressed-tensors/SCHEME/",
                         type != NULL ? type : "");
    if (loading->experts == NULL && (type == NULL || saved_class_find(type) == NULL))
        return error_set(loading->error,
                         "oneshot() is not supported for the model type '%.100s'; use compressed-tensors/SCHEME/",
                         type != NULL ? type : "");
    return true;
}

static const char *name_of(const struct loading *loading, const char *name)
{
    static const struct {
        const char *from, *to;
    } matrices[] = {
        {".w1.weight", ".gate_proj.weight"}, {".w2.weight", ".down_proj.weight"}, {".w3.weight", ".up_proj.weight"}};
    bool has_numbers = loading->experts != NULL && loading->experts->has_numbers;
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices && has_numbers; i++)
        if (strstr(name, ".experts.") != NULL && text_ends_with(name, matrices[i].from))
            return arena_printf(loading->arena, "%.*s%s", (int)(strlen(name) - strlen(matrices[i].from)), name,
                                matrices[i].to);
    return name;
}

/* Routers are not Linear in these classes. */
static bool is_router(const struct loading *loading, const char *name)
{
    return loading->experts != NULL && text_ends_with(name, ".gate.weight");
}

/* Fills in the tensors, and which are quantized. */
static bool load_tensors(struct loading *loading)
{
    struct ct_model *made = loading->made;
    const struct loaded_model *loaded = made->loaded;
    struct tensor_set *set = tensor_set_new(loading->arena);
    made->file_of = arena_array(loading->arena, loaded->n_tensors, sizeof *made->file_of);
    made->is_target = arena_array(loading->arena, loaded->n_tensors, sizeof *made->is_target);
    for (size_t i = 0; i < loaded->n_tensors; i++) {
        const struct loaded_tensor *tensor = &loaded->tensors[i];
        const char *name = name_of(loading, tensor->name);
        bool is_linear = tensor->kind == LOADED_LINEAR || tensor->kind == LOADED_HEAD;
        made->is_target[i] =
            is_linear && !is_router(loading, name) && !ct_is_ignored(loading->ignored, name, loaded_module(name));
        tensor_set_add_view(set, name, tensor->view);
    }
    made->tensors = set;
    return tensor_set_seal(set, loading->error);
}

/* Lists the modules that are left as they are: linear ones and routers, in the order of the class. */
static bool list_ignored(struct loading *loading, const char *model_type)
{
    struct ct_model *made = loading->made;
    const struct loaded_model *loaded = made->loaded;
    const size_t *order = module_order(made->tensors, model_type, loading->arena);
    const char **list = arena_array(loading->arena, loaded->n_tensors + 2, sizeof *list);
    size_t n = 0, n_targets = 0;
    bool has_head = false;
    for (size_t i = 0; i < loaded->n_tensors; i++) {
        const char *name = made->tensors->tensors[order[i]].name;
        enum loaded_kind kind = loaded->tensors[order[i]].kind;
        n_targets += made->is_target[order[i]];
        has_head = has_head || kind == LOADED_HEAD;
        if (!made->is_target[order[i]] && (kind == LOADED_LINEAR || kind == LOADED_HEAD || is_router(loading, name)))
            list[n++] = arena_strndup(loading->arena, name, loaded_module(name));
    }
    if (!has_head)
        list[n++] = lm_head;
    made->ignored = list;
    if (n_targets == 0)
        return error_set(loading->error, "there is no linear module to quantize");
    return has_head || ct_is_ignored(loading->ignored, lm_head, strlen(lm_head)) ||
           error_set(loading->error, "the output head is the embedding; add ignore=lm_head");
}

struct ct_model *ct_model_load(struct arena *arena, const struct hf_model *model, const char *const *patterns,
                               struct error *error)
{
    static const char *const usual[] = {lm_head, NULL}, *const with_experts[] = {lm_head, "re:.*gate$", NULL};
    static const char *only_name[] = {"model.safetensors"};
    struct ct_model *made = arena_alloc(arena, sizeof *made);
    struct loading loading = {.arena = arena, .made = made, .error = error};
    *made = (struct ct_model){.model = model, .names = only_name, .n_files = 1, .fused_sets = ct_fused_modules};
    made->loaded = loaded_model_new(arena, model, error);
    if (made->loaded == NULL)
        return NULL;
    const struct json *config = json_root(made->loaded->config);
    if (!check_class(&loading, config))
        return NULL;
    made->patterns = patterns != NULL ? patterns : ct_names_experts(config) ? with_experts : usual;
    loading.ignored = ct_ignored_new(arena, made->patterns, error);
    bool good = loading.ignored != NULL && load_tensors(&loading) &&
                list_ignored(&loading, json_string(json_get(config, "model_type"), NULL));
    return good ? made : NULL;
}

/* Documents. */

/* Appends the patterns as PyYAML writes a list of at most 88 columns, where a line may end after each comma. */
static void put_patterns(const char *const *patterns, struct buffer *out)
{
    enum { WIDTH = 88 };
    static const char key[] = "      ignore: [",
                      plain[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_.";
    size_t column = strlen(key);
    buffer_append_text(out, key);
    for (size_t i = 0; patterns[i] != NULL; i++) {
        const char *quote = patterns[i][strspn(patterns[i], plain)] == '\0' ? "" : "'";
        bool is_late = column > WIDTH;
        column = is_late ? strlen("        ") : column + (i > 0);
        column += strlen(patterns[i]) + 2 * strlen(quote) + strlen(",");
        buffer_printf(out, "%s%s%s%s%s",
                      is_late ? "\n        "
                      : i > 0 ? " "
                              : "",
                      quote, patterns[i], quote, patterns[i + 1] != NULL ? "," : "");
    }
    buffer_append_text(out, "]\n");
}

bool ct_write_recipe(const struct ct_model *model, const struct ct_scheme *scheme, struct buffer *out,
                     struct error *error)
{
    if (checkpoint_side_file(model->model->checkpoint, "recipe.yaml") != NULL)
        return error_set(error, "the tool would add to the model's own recipe.yaml, which is not supported");
    buffer_append_text(out,
                       "default_stage:\n  default_modifiers:\n    QuantizationModifier:\n      targets: [Linear]\n");
    put_patterns(model->patterns, out);
    buffer_printf(out,
                  "      scheme: %s\n      bypass_divisibility_checks: false\n      requires_calibration_data: false\n",
                  scheme->name);
    return true;
}

bool ct_write_generation_config(const struct ct_model *model, struct buffer *out, struct error *error)
{
    return loaded_write_generation_config(model->loaded, TRANSFORMERS_5, out, error);
}
