/* diffusers/: a model in its makers' file as diffusers opens it: a Stable Diffusion 1, 2 or XL checkpoint as a
 * pipeline, the transformer of Flux or Stable Diffusion 3 as a component. */
#include "fs/tree/content.h"

#include "models/diffusion/component.h"
#include "models/diffusion/pipeline.h"

/* A component of a pipeline. */
struct part {
    const struct tree *tree;
    const struct pipeline_kind *kind;
    const struct pipeline_part *part;
};

static enum outcome plan_weights(void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    const struct tree *tree = context;
    struct artifact artifact;
    if (!component_artifact(state_dict_of(tree_checkpoint(tree)), arena, &artifact, error))
        return REPORTED; /* such as Flux 2, which has the architecture of Flux, but other names */
    enum outcome outcome = vfile_of_artifact(&artifact, tree_origin_of_model(tree), arena, ret_file, error);
    artifact_free(&artifact);
    return outcome;
}

static enum outcome write_config(void *context, struct buffer *out, struct error *error)
{
    const struct tree *tree = context;
    return component_write_config(state_dict_of(tree_checkpoint(tree)), out, error) ? OK : REPORTED;
}

static enum outcome plan_part(void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    const struct part *part = context;
    struct artifact artifact;
    if (!pipeline_artifact(part->kind, part->part, tree_checkpoint(part->tree), arena, &artifact, error))
        return FAILED;
    enum outcome outcome = vfile_of_artifact(&artifact, tree_origin_of_model(part->tree), arena, ret_file, error);
    artifact_free(&artifact);
    return outcome;
}

static enum outcome write_part_config(void *context, struct buffer *out, struct error *error)
{
    const struct part *part = context;
    return pipeline_write_config(part->kind, part->part, tree_checkpoint(part->tree), out, error) ? OK : FAILED;
}

static enum outcome write_index(void *context, struct buffer *out, struct error *error)
{
    pipeline_write_index(pipeline_kind_of(tree_checkpoint(context)), out);
    return OK;
}

static enum outcome write_scheduler(void *context, struct buffer *out, struct error *error)
{
    pipeline_write_scheduler(pipeline_kind_of(tree_checkpoint(context)), out);
    return OK;
}

static void add_part(struct tree *tree, node_id parent, const struct pipeline_kind *kind,
                     const struct pipeline_part *part)
{
    struct part *context = arena_alloc(tree_arena(tree), sizeof *context);
    node_id directory = tree_add_directory(tree, parent, part->folder);
    *context = (struct part){tree, kind, part};
    tree_add_file(tree, directory, pipeline_weights_name(part), plan_part, context);
    tree_add_text(tree, directory, "config.json", tree_origin_of_model(tree), write_part_config, context);
}

static void add_pipeline(struct tree *tree, const struct pipeline_kind *kind)
{
    static const char no_vocabulary[] =
        "a single file has no vocabulary; pass one to diffusers: from_pretrained(..., tokenizer=...)";
    struct origin origin = tree_origin_of_model(tree);
    node_id directory = tree_add_directory(tree, TREE_ROOT, "diffusers");
    tree_add_text(tree, directory, "model_index.json", origin, write_index, tree);
    tree_add_text(tree, tree_add_directory(tree, directory, "scheduler"), "scheduler_config.json", origin,
                  write_scheduler, tree);
    for (const struct pipeline_part *part = kind->parts; part->folder != NULL; part++)
        if (part->prefix != NULL)
            add_part(tree, directory, kind, part);
    tree_add_hint(tree, "diffusers/tokenizer*", no_vocabulary);
    tree_add_hint(tree, "diffusers/tokenizer*/*", no_vocabulary);
    checkpoint_note(tree_checkpoint(tree), SUBJECT_PIPELINE, "no tokenizer: %s", no_vocabulary);
    if (kind->doubt != NULL)
        checkpoint_note(tree_checkpoint(tree), SUBJECT_PIPELINE, "%s", kind->doubt);
}

static void add_transformer(struct tree *tree)
{
    node_id directory = tree_add_directory(tree, tree_add_directory(tree, TREE_ROOT, "diffusers"), "transformer");
    tree_add_file(tree, directory, "diffusion_pytorch_model.safetensors", plan_weights, tree);
    tree_add_text(tree, directory, "config.json", tree_origin_of_model(tree), write_config, tree);
}

static bool add(struct tree *tree, struct error *error)
{
    const struct state_dict *dict = state_dict_of(tree_checkpoint(tree));
    const struct pipeline_kind *kind = pipeline_kind_of(tree_checkpoint(tree));
    if (kind != NULL)
        add_pipeline(tree, kind);
    else if (dict != NULL && !dict->is_component && component_is_known(dict)) /* a component is known as it is */
        add_transformer(tree);
    return true;
}

const struct content diffusers_files_content = {
    .name = "diffusers",
    .summary = "diffusers/: a Stable Diffusion checkpoint as a pipeline; the transformer of a Flux or SD3 model",
    .of_weights = true,
    .add = add,
};
