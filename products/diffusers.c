/* diffusers/: a model in its makers' file as diffusers opens it: a Stable Diffusion 1, 2 or XL checkpoint as a
 * pipeline, the transformer of Flux or Stable Diffusion 3 as a component. */
#include "models/diffusion/component.h"
#include "models/diffusion/pipeline.h"
#include "products/product.h"

/* A component of a pipeline. */

static enum outcome make_part(const struct product_input *input, const void *made, const void *part,
                              struct arena *arena, struct artifact *ret_artifact, struct error *error)
{
    const struct checkpoint *checkpoint = input->checkpoint;
    return pipeline_artifact(pipeline_kind_of(checkpoint), part, checkpoint, arena, ret_artifact, error) ? OK : FAILED;
}

static enum outcome write_part_config(const struct product_input *input, const void *made, const void *part,
                                      struct buffer *out, struct error *error)
{
    const struct checkpoint *checkpoint = input->checkpoint;
    return pipeline_write_config(pipeline_kind_of(checkpoint), part, checkpoint, out, error) ? OK : FAILED;
}

static void add_part(const struct pipeline_part *part, struct product_list *list)
{
    product_add(list, (struct product_file){
                          .path = arena_printf(list->arena, "%s/%s", part->folder, pipeline_weights_name(part)),
                          .make = make_part,
                          .what = part,
                      });
    product_add(list, (struct product_file){
                          .path = arena_printf(list->arena, "%s/config.json", part->folder),
                          .write = write_part_config,
                          .what = part,
                      });
}

/* A pipeline. */

static enum outcome write_index(const struct product_input *input, const void *made, const void *what,
                                struct buffer *out, struct error *error)
{
    pipeline_write_index(pipeline_kind_of(input->checkpoint), out);
    return OK;
}

static enum outcome write_scheduler(const struct product_input *input, const void *made, const void *what,
                                    struct buffer *out, struct error *error)
{
    pipeline_write_scheduler(pipeline_kind_of(input->checkpoint), out);
    return OK;
}

static void list_pipeline(const struct checkpoint *checkpoint, const struct pipeline_kind *kind,
                          struct product_list *list)
{
    static const char no_vocabulary[] =
        "a single file has no vocabulary; pass one to diffusers: from_pretrained(..., tokenizer=...)";
    product_add(list, (struct product_file){.path = "model_index.json", .write = write_index});
    product_add(list, (struct product_file){.path = "scheduler/scheduler_config.json", .write = write_scheduler});
    for (const struct pipeline_part *part = kind->parts; part->folder != NULL; part++)
        if (part->prefix != NULL)
            add_part(part, list);
    product_hint(list, "diffusers/tokenizer*", no_vocabulary);
    product_hint(list, "diffusers/tokenizer*/*", no_vocabulary);
    checkpoint_note(checkpoint, SUBJECT_PIPELINE, "no tokenizer: %s", no_vocabulary);
    if (kind->doubt != NULL)
        checkpoint_note(checkpoint, SUBJECT_PIPELINE, "%s", kind->doubt);
}

/* A transformer. */

static enum outcome make_transformer(const struct product_input *input, const void *made, const void *what,
                                     struct arena *arena, struct artifact *ret_artifact, struct error *error)
{
    bool is_made = component_artifact(state_dict_of(input->checkpoint), arena, ret_artifact, error);
    return is_made ? OK : REPORTED; /* such as Flux 2, which has the architecture of Flux, but other names */
}

static enum outcome write_config(const struct product_input *input, const void *made, const void *what,
                                 struct buffer *out, struct error *error)
{
    return component_write_config(state_dict_of(input->checkpoint), out, error) ? OK : REPORTED;
}

static void list_transformer(struct product_list *list)
{
    product_add(list, (struct product_file){.path = "transformer/diffusion_pytorch_model.safetensors",
                                            .make = make_transformer});
    product_add(list, (struct product_file){.path = "transformer/config.json", .write = write_config});
}

/* A component is known as it is. */
static bool is_transformer(const struct state_dict *dict)
{
    return dict != NULL && !dict->is_component && component_is_known(dict);
}

static bool is_offered(const struct product_input *input, struct product_list *hints)
{
    return pipeline_kind_of(input->checkpoint) != NULL || is_transformer(state_dict_of(input->checkpoint));
}

static bool list_files(const struct product_input *input, const void *made, const void *variant,
                       struct product_list *list, struct error *error)
{
    const struct pipeline_kind *kind = pipeline_kind_of(input->checkpoint);
    if (kind != NULL)
        list_pipeline(input->checkpoint, kind, list);
    else
        list_transformer(list);
    return true;
}

const struct product diffusers_product = {
    .name = "diffusers",
    .summary = "diffusers/: a Stable Diffusion checkpoint as a pipeline; the transformer of a Flux or SD3 model",
    .root = "diffusers",
    .ending = "-diffusers",
    .is_offered = is_offered,
    .files = list_files,
};
