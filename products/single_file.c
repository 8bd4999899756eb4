/* Pipelines as the single checkpoints that other programs load: single_file.safetensors and
 * single_file-fp16.safetensors at the root of a Stable Diffusion pipeline, as diffusers' scripts write them;
 * original.safetensors in a component that has diffusers' names for tensors, under its makers' names, which no tool of
 * diffusers writes.
 *
 * The first plan of a file at the root opens the components that it is made from. */
#include "models/diffusion/single_file.h"
#include "formats/components.h"
#include "models/diffusion/state_dict.h"
#include "models/packings/packings.h"
#include "products/product.h"

/* The tensors of both files at the root of a pipeline, from all components. */
struct single_model {
    const struct tensor_set *tensors;
    struct origin origin;
};

/* Adds the inputs of a component. */
static void add_origin(struct single_model *model, const struct checkpoint *checkpoint, struct arena *arena)
{
    const struct origin more = origin_of_weights(checkpoint);
    struct source **sources = arena_array(arena, model->origin.n_sources + more.n_sources, sizeof(struct source *));
    for (size_t i = 0; i < model->origin.n_sources; i++)
        sources[i] = model->origin.sources[i];
    for (size_t i = 0; i < more.n_sources; i++)
        sources[model->origin.n_sources + i] = more.sources[i];
    model->origin = (struct origin){sources, model->origin.n_sources + more.n_sources};
}

/* Reports whether model_index.json names all these folders, and they have weights. */
static bool has_parts(const struct components *components, const char *const *folders)
{
    for (; *folders != NULL; folders++) {
        const struct component *component = components_named(components, *folders);
        if (component == NULL || component->class_name == NULL)
            return false;
    }
    return true;
}

static bool is_pipeline(const struct checkpoint *checkpoint)
{
    return checkpoint->n_sources == 0 && has_parts(checkpoint->components, single_file_parts);
}

static const void *make_model(const struct product_input *input, struct arena *arena, struct error *error)
{
    const struct tensor_set *parts[SINGLE_FILE_MAX_PARTS] = {NULL};
    struct single_model *model = arena_alloc(arena, sizeof *model);
    bool is_xl = has_parts(input->checkpoint->components, single_file_xl_parts);
    const char *const *folders = is_xl ? single_file_xl_parts : single_file_parts;
    *model = (struct single_model){0};
    for (size_t i = 0; folders[i] != NULL; i++) {
        const struct checkpoint *checkpoint = input->component(input->tree, folders[i]);
        if (checkpoint == NULL || checkpoint->n_sources == 0) {
            error_set(error, "%s: its weights cannot be used", folders[i]);
            return NULL;
        }
        const struct plain_tensors *plain = packings_plain(checkpoint);
        if (plain->set == NULL) {
            error_set(error, "%s: %s", folders[i], plain->refusal);
            return NULL;
        }
        parts[i] = plain->set;
        add_origin(model, checkpoint, arena);
    }
    model->tensors = single_file_new(parts, is_xl, arena, error);
    return model->tensors != NULL ? model : NULL;
}

static struct origin origin_of_model_made(const void *made)
{
    return ((const struct single_model *)made)->origin;
}

static enum outcome make_single(const struct product_input *input, const void *made, const void *is_half,
                                struct arena *arena, struct artifact *ret_artifact, struct error *error)
{
    const struct single_model *model = made;
    return single_file_artifact(model->tensors, is_half != NULL, arena, ret_artifact, error) ? OK : FAILED;
}

static enum outcome make_original(const struct product_input *input, const void *made, const void *what,
                                  struct arena *arena, struct artifact *ret_artifact, struct error *error)
{
    const struct state_dict *dict = state_dict_of(input->checkpoint);
    if (dict->refusal != NULL) {
        error_set(error, "%s", dict->refusal);
        return REPORTED;
    }
    return single_file_artifact(dict->tensors, false, arena, ret_artifact, error) ? OK : FAILED;
}

static bool is_offered(const struct product_input *input, struct product_list *hints)
{
    const struct state_dict *dict = state_dict_of(input->checkpoint);
    return is_pipeline(input->checkpoint) || (dict != NULL && dict->is_component);
}

static bool list_files(const struct product_input *input, const void *made, const void *variant,
                       struct product_list *list, struct error *error)
{
    if (is_pipeline(input->checkpoint)) {
        product_add(list, (struct product_file){.path = "single_file.safetensors", .make = make_single});
        product_add(list,
                    (struct product_file){.path = "single_file-fp16.safetensors", .make = make_single, .what = "half"});
        return true;
    }
    product_add(list,
                (struct product_file){.path = "original.safetensors", .make = make_original, .needs_no_object = true});
    checkpoint_hint(input->checkpoint, SUBJECT_WEIGHTS,
                    "original.safetensors has the makers' names and exact values; no tool of diffusers writes it");
    return true;
}

/* If there is no object, that is not worth a note: most pipelines with these components are not Stable Diffusion. */
const struct product single_file_product = {
    .name = "single-file",
    .summary =
        "single_file.safetensors of a Stable Diffusion pipeline; original.safetensors of a Flux or SD3 transformer",
    .needs_no_weights = true,
    .is_offered = is_offered,
    .make = make_model,
    .origin = origin_of_model_made,
    .files = list_files,
};
