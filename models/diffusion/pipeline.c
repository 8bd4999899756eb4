#include "models/diffusion/pipeline.h"

#include "base/text.h"
#include "models/diffusion/component.h"
#include "models/facts.h"
#include "models/packings/packings.h"

#include <string.h>

struct making {
    const struct pipeline_part *part;
    const struct single_file_names *names;
    struct arena *arena;
    struct tensor_set *to;
    struct error *error;
};

/* Returns the tensor by which a component is recognized, or NULL. */
static const struct tensor *find_mark(const struct checkpoint *checkpoint, const struct pipeline_part *part,
                                      struct arena *arena)
{
    return tensor_set_find_text(checkpoint->tensors, arena_printf(arena, "%s%s", part->prefix, part->mark));
}

/* Reports whether a U-Net's first convolution reads nothing but a picture: models that complete or change a picture
 * read more, and have other pipelines. */
static bool makes_pictures(const struct tensor *convolution)
{
    enum { CHANNELS = 4 };
    return convolution->rank == 4 && convolution->shape[1] == CHANNELS;
}

static bool has_all_parts(const struct checkpoint *checkpoint, const struct pipeline_kind *kind, struct arena *arena)
{
    for (const struct pipeline_part *part = kind->parts; part->folder != NULL; part++) {
        const struct tensor *mark = part->prefix != NULL ? find_mark(checkpoint, part, arena) : NULL;
        if (part->prefix != NULL && (mark == NULL || (part->part == SINGLE_FILE_UNET && !makes_pictures(mark))))
            return false;
    }
    return true;
}

static const void *find_kind(const struct checkpoint *checkpoint, struct arena *arena)
{
    for (const struct pipeline_kind *kind = pipeline_kinds; kind->class_name != NULL; kind++)
        if (has_all_parts(checkpoint, kind, arena))
            return kind;
    return NULL;
}

const struct pipeline_kind *pipeline_kind_of(const struct checkpoint *checkpoint)
{
    return facts_of(checkpoint).has_class_names ? checkpoint_once(checkpoint, find_kind) : NULL;
}

const char *pipeline_weights_name(const struct pipeline_part *part)
{
    return strcmp(part->package, "diffusers") == 0 ? "diffusion_pytorch_model.safetensors" : "model.safetensors";
}

/* Returns the values of a tensor if they can be cut and turned; NULL on failure. */
static const struct view *plain_view(const struct making *making, const struct tensor *tensor)
{
    if (tensor->refusal != NULL)
        error_set(making->error, "tensor '%.200s': %s", tensor->name, tensor->refusal);
    else if (tensor->dtype->block_elements != 1)
        error_set(making->error, "tensor '%.200s' is quantized (%s)", tensor->name, tensor->dtype->name);
    else
        return tensor_view(tensor, making->arena);
    return NULL;
}

/* Returns a convolution of 1 by 1, or of 1, as a matrix; NULL on failure. */
static const struct view *matrix(const struct making *making, const char *name, const struct view *view)
{
    for (unsigned axis = 2; axis < view->rank; axis++)
        if (axis > 3 || view->shape[axis] != 1) {
            error_set(making->error, "tensor '%.200s' is no convolution of 1 by 1", name);
            return NULL;
        }
    return view->rank > 2 ? view_reshape(making->arena, view, 2, view->shape) : view;
}

/* Adds a tensor that holds queries, keys and values as three. */
static bool add_thirds(const struct making *making, const char *module, const char *suffix, const struct view *view)
{
    static const char *const thirds[] = {"q_proj", "k_proj", "v_proj"};
    if (view->rank == 0 || view->shape[0] % 3 != 0)
        return error_set(making->error, "tensor '%.200s.in_proj_%s' does not hold queries, keys and values of one size",
                         module, suffix);
    uint64_t n = view->shape[0] / 3;
    for (size_t i = 0; i < 3; i++)
        tensor_set_add_view(making->to, arena_printf(making->arena, "%s.%s.%s", module, thirds[i], suffix),
                            view_slice(making->arena, view, 0, i * n, n, 1));
    return true;
}

/* Returns the module of a tensor that holds queries, keys and values, and gets its suffix, "weight" or "bias"; NULL if
 * the tensor of that name in the file is none. */
static const char *joined_module(const struct making *making, const char *name, const char **ret_suffix)
{
    static const char joined[] = ".in_proj_";
    const char *place = strstr(name, joined);
    *ret_suffix = place != NULL ? place + strlen(joined) : "";
    if (making->part->part != SINGLE_FILE_OPEN_CLIP ||
        (strcmp(*ret_suffix, "weight") != 0 && strcmp(*ret_suffix, "bias") != 0))
        return NULL;
    const char *module = arena_strndup(making->arena, name, (size_t)(place - name));
    return single_file_component_name(making->names, SINGLE_FILE_OPEN_CLIP, module);
}

static bool has_projection(const struct pipeline_part *part)
{
    return strcmp(part->class_name, "CLIPTextModelWithProjection") == 0;
}

/* Adds OpenCLIP's projection, if the component has one. */
static bool add_projection(const struct making *making, const struct tensor *tensor)
{
    if (!has_projection(making->part))
        return true;
    const struct view *view = plain_view(making, tensor);
    if (view == NULL)
        return false;
    if (view->rank != 2)
        return error_set(making->error, "tensor '%.200s' is no matrix", tensor->name);
    tensor_set_add_view(making->to, "text_projection.weight", view_transpose(making->arena, view));
    return true;
}

/* Adds what the component has of a tensor of the file; `name` is without the prefix. */
static bool add_tensor(const struct making *making, const struct tensor *tensor, const char *name)
{
    const char *suffix;
    if (making->part->left_out != NULL && text_starts_with(name, making->part->left_out))
        return true;
    if (making->part->part == SINGLE_FILE_OPEN_CLIP && strcmp(name, "text_projection") == 0)
        return add_projection(making, tensor);
    const char *module = joined_module(making, name, &suffix);
    const char *renamed = single_file_component_name(making->names, making->part->part, name);
    if (module == NULL && renamed == NULL)
        return true; /* diffusers leaves out what it does not know */
    const struct view *view = plain_view(making, tensor);
    if (view != NULL && making->part->part == SINGLE_FILE_VAE && single_file_is_convolved(name))
        view = matrix(making, name, view);
    if (view == NULL)
        return false;
    if (module != NULL)
        return add_thirds(making, module, suffix, view);
    tensor_set_add_view(making->to, renamed, view);
    return true;
}

/* Returns the sealed tensors of a component, in the arena; NULL on failure. */
static const struct tensor_set *make_tensors(const struct pipeline_kind *kind, const struct pipeline_part *part,
                                             const struct checkpoint *checkpoint, struct arena *arena,
                                             struct error *error)
{
    const struct plain_tensors *plain = packings_plain(checkpoint);
    if (plain->set == NULL) {
        error_set(error, "%s", plain->refusal);
        return NULL;
    }
    const struct tensor_set *from = plain->set;
    const struct making making = {part, single_file_names_new(arena, kind->is_xl), arena, tensor_set_new(arena), error};
    size_t length = strlen(part->prefix);
    for (size_t i = 0; i < from->n_tensors; i++) {
        const struct tensor *tensor = &from->tensors[i];
        bool is_text = strlen(tensor->name) == tensor->name_length;
        if (is_text && text_starts_with(tensor->name, part->prefix) &&
            !add_tensor(&making, tensor, tensor->name + length))
            return NULL;
    }
    if (!tensor_set_seal(making.to, error))
        return NULL;
    const char *missing = part->part == SINGLE_FILE_UNET ? single_file_missing_name(making.names, making.to) : NULL;
    if (missing == NULL)
        return making.to;
    error_set(error, "tensor '%s' is missing", missing);
    return NULL;
}

bool pipeline_artifact(const struct pipeline_kind *kind, const struct pipeline_part *part,
                       const struct checkpoint *checkpoint, struct arena *arena, struct artifact *ret_artifact,
                       struct error *error)
{
    const struct tensor_set *tensors = make_tensors(kind, part, checkpoint, arena, error);
    if (tensors != NULL)
        component_weights(tensors, ret_artifact);
    return tensors != NULL;
}

bool pipeline_write_config(const struct pipeline_kind *kind, const struct pipeline_part *part,
                           const struct checkpoint *checkpoint, struct buffer *out, struct error *error)
{
    struct arena *arena = arena_new();
    struct json_writer writer = {.out = out};
    struct describing describing = {make_tensors(kind, part, checkpoint, arena, error), &writer, error, false};
    bool is_made = describing.set != NULL;
    if (is_made) {
        json_begin_object(&writer, NULL);
        part->describe(&describing, kind);
        json_end(&writer);
        buffer_append_text(out, "\n");
    }
    arena_free(arena);
    return is_made && !describing.failed;
}

void pipeline_write_index(const struct pipeline_kind *kind, struct buffer *out)
{
    struct json_writer writer = {.out = out};
    json_begin_object(&writer, NULL);
    json_put_text(&writer, "_class_name", kind->class_name);
    if (kind->settings != NULL)
        json_put_template(&writer, kind->settings);
    for (const struct pipeline_part *part = kind->parts; part->folder != NULL; part++) {
        json_begin_array(&writer, part->folder);
        json_put_text(&writer, NULL, part->package);
        json_put_text(&writer, NULL, part->class_name);
        json_end(&writer);
    }
    json_end(&writer);
    buffer_append_text(out, "\n");
}

void pipeline_write_scheduler(const struct pipeline_kind *kind, struct buffer *out)
{
    struct json_writer writer = {.out = out};
    json_begin_object(&writer, NULL);
    json_put_template(&writer, kind->scheduler);
    json_end(&writer);
    buffer_append_text(out, "\n");
}
