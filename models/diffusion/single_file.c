#include "models/diffusion/single_file.h"

#include "base/text.h"
#include "formats/safetensors/safetensors.h"
#include "quant/views/convert.h"

#include <string.h>

const char *const single_file_parts[] = {"unet", "vae", "text_encoder", NULL, NULL};
const char *const single_file_xl_parts[] = {"unet", "vae", "text_encoder", "text_encoder_2", NULL};

struct making {
    struct arena *arena;
    struct tensor_set *tensors;
    const struct single_file_names *names;
    bool is_xl;
    struct error *error;
};

/* Adds a view under the prefix of its component. */
static void add(const struct making *making, const char *prefix, const char *name, const struct view *view)
{
    tensor_set_add_view(making->tensors, arena_printf(making->arena, "%s%s", prefix, name), view);
}

static bool add_unet(const struct making *making, const struct tensor_set *set)
{
    const char *missing = single_file_missing_name(making->names, set);
    if (missing != NULL)
        return error_set(making->error, "unet: tensor '%s' is missing, without which diffusers' script writes no file",
                         missing);
    for (size_t i = 0; i < set->n_tensors; i++)
        add(making, "model.diffusion_model.", single_file_name(making->names, SINGLE_FILE_UNET, set->tensors[i].name),
            tensor_view(&set->tensors[i], making->arena));
    return true;
}

static const struct view *convolved(struct arena *arena, const struct view *view)
{
    uint64_t shape[VIEW_MAX_RANK];
    if (view->rank == 1 || view->rank + 2 > VIEW_MAX_RANK)
        return view;
    memcpy(shape, view->shape, view->rank * sizeof *shape);
    shape[view->rank] = shape[view->rank + 1] = 1;
    return view_reshape(arena, view, view->rank + 2, shape);
}

static void add_vae(const struct making *making, const struct tensor_set *set)
{
    for (size_t i = 0; i < set->n_tensors; i++) {
        const struct view *view = tensor_view(&set->tensors[i], making->arena);
        const char *name = single_file_name(making->names, SINGLE_FILE_VAE, set->tensors[i].name);
        add(making, "first_stage_model.", name, single_file_is_convolved(name) ? convolved(making->arena, view) : view);
    }
}

static void add_clip(const struct making *making, const char *prefix, const struct tensor_set *set)
{
    for (size_t i = 0; i < set->n_tensors; i++)
        add(making, prefix, set->tensors[i].name, tensor_view(&set->tensors[i], making->arena));
}

/* Adds the queries, keys and values of one layer as one tensor; `queries` is the first. */
static bool add_joined(const struct making *making, const char *prefix, const struct tensor_set *set,
                       const struct tensor *queries, const char *suffix)
{
    static const char *const parts[] = {"q_proj", "k_proj", "v_proj"};
    const struct view *views[3];
    size_t length = queries->name_length - strlen("q_proj") - strlen(suffix);
    const char *module = arena_strndup(making->arena, queries->name, length);
    for (size_t i = 0; i < 3; i++) {
        const char *name = arena_printf(making->arena, "%s%s%s", module, parts[i], suffix);
        const struct tensor *tensor = tensor_set_find_text(set, name);
        if (tensor == NULL)
            return error_set(making->error, "tensor '%.200s' is missing", name);
        views[i] = tensor_view(tensor, making->arena);
        bool is_alike = views[i]->dtype == views[0]->dtype && views[i]->rank == views[0]->rank && views[i]->rank > 0;
        for (unsigned axis = 1; is_alike && axis < views[i]->rank; axis++)
            is_alike = views[i]->shape[axis] == views[0]->shape[axis];
        if (!is_alike)
            return error_set(making->error, "tensor '%.200s' and its queries have different types or shapes", name);
    }
    const char *name =
        single_file_name(making->names, SINGLE_FILE_OPEN_CLIP, arena_strndup(making->arena, module, length - 1));
    add(making, prefix, arena_printf(making->arena, "%s.in_proj_%s", name, suffix + 1),
        view_concatenate(making->arena, views, 3, 0));
    return true;
}

/* Returns the suffix of a query, key or value, ".weight" or ".bias", with the letter of its kind; NULL: it is none. */
static const char *attention_suffix(const char *name, char *ret_kind)
{
    static const char *const endings[] = {".self_attn.q_proj", ".self_attn.k_proj", ".self_attn.v_proj"};
    static const char *const suffixes[] = {".weight", ".bias"};
    for (size_t i = 0; i < 6; i++) {
        const char *suffix = suffixes[i % 2];
        size_t length = strlen(name), whole = strlen(endings[i / 2]) + strlen(suffix);
        if (length >= whole && text_ends_with(name, suffix) &&
            strncmp(name + length - whole, endings[i / 2], strlen(endings[i / 2])) == 0) {
            *ret_kind = "qkv"[i / 2];
            return suffix;
        }
    }
    return NULL;
}

/* Adds an OpenCLIP text encoder. */
static bool add_open_clip(const struct making *making, const char *prefix, const struct tensor_set *set)
{
    for (size_t i = 0; i < set->n_tensors; i++) {
        const struct tensor *tensor = &set->tensors[i];
        char kind;
        const char *suffix = attention_suffix(tensor->name, &kind);
        if (suffix != NULL && kind != 'q')
            continue;
        if (suffix != NULL) {
            if (!add_joined(making, prefix, set, tensor, suffix))
                return false;
            continue;
        }
        const struct view *view = tensor_view(tensor, making->arena);
        const char *name = single_file_name(making->names, SINGLE_FILE_OPEN_CLIP, tensor->name);
        if (making->is_xl && strcmp(tensor->name, "text_projection.weight") == 0 && view->rank == 2)
            add(making, prefix, "text_projection", view_transpose(making->arena, view));
        else
            add(making, prefix, name, view);
    }
    return true;
}

static bool add_text_encoders(const struct making *making, const struct tensor_set *const *parts)
{
    if (!making->is_xl && tensor_set_find_text(parts[2], "text_model.encoder.layers.22.layer_norm2.bias") != NULL)
        return add_open_clip(making, "cond_stage_model.model.", parts[2]);
    add_clip(making, making->is_xl ? "conditioner.embedders.0.transformer." : "cond_stage_model.transformer.",
             parts[2]);
    if (!making->is_xl)
        return true;
    if (tensor_set_find_text(parts[3], "text_projection.weight") == NULL)
        return error_set(making->error, "text_encoder_2: tensor 'text_projection.weight' is missing");
    return add_open_clip(making, "conditioner.embedders.1.model.", parts[3]);
}

static bool are_readable(const struct tensor_set *const *parts, const char *const *folders, struct error *error)
{
    for (size_t part = 0; folders[part] != NULL; part++)
        for (size_t i = 0; i < parts[part]->n_tensors; i++) {
            const struct tensor *tensor = &parts[part]->tensors[i];
            if (tensor->refusal != NULL)
                return error_set(error, "%s: tensor '%.200s': %s", folders[part], tensor->name, tensor->refusal);
            if (strlen(tensor->name) != tensor->name_length)
                return error_set(error, "%s: tensor '%.200s': its name contains a NUL byte", folders[part],
                                 tensor->name);
        }
    return true;
}

const struct tensor_set *single_file_new(const struct tensor_set *const *parts, bool is_xl, struct arena *arena,
                                         struct error *error)
{
    const struct making making = {arena, tensor_set_new(arena), single_file_names_new(arena, is_xl), is_xl, error};
    if (!are_readable(parts, is_xl ? single_file_xl_parts : single_file_parts, error) || !add_unet(&making, parts[0]))
        return NULL;
    add_vae(&making, parts[1]);
    return add_text_encoders(&making, parts) && tensor_set_seal(making.tensors, error) ? making.tensors : NULL;
}

bool single_file_artifact(const struct tensor_set *tensors, bool is_half, struct arena *arena,
                          struct artifact *ret_artifact, struct error *error)
{
    struct artifact artifact = {.container = &safetensors_container};
    struct tensor *written = arena_array(arena, tensors->n_tensors + 1, sizeof *written);
    artifact_reserve(&artifact, tensors->n_tensors);
    for (size_t i = 0; i < tensors->n_tensors; i++) {
        const struct view *view = tensor_view(&tensors->tensors[i], arena);
        const char *reason;
        if (is_half && !convert_possible(view, encoding_of(&f16_dtype), &reason)) {
            artifact_free(&artifact);
            return error_set(error, "tensor '%.200s' (%s): %s", tensors->tensors[i].name, view->dtype->name, reason);
        }
        written[i] = tensor_of_view(tensors->tensors[i].name, is_half ? view_half(arena, view) : view);
        artifact.tensors[i] = (struct artifact_tensor){&written[i], encoding_of(written[i].dtype)};
    }
    *ret_artifact = artifact;
    return true;
}
