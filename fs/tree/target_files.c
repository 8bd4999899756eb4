#include "fs/tree/target_files.h"

#include "formats/gguf/share.h"
#include "formats/gguf/write.h"
#include "fs/tree/content_options.h"

#include <string.h>

struct target_file {
    struct target_files *files;
    const struct target *target;
};

const struct gguf_edition *target_files_edition(struct target_files *files, struct error *error)
{
    const void *edition;
    enum outcome outcome = once_get(&files->model, files->make, files->context, &edition, error);
    if (outcome == FAILED && files->left_out != NULL)
        checkpoint_note(tree_checkpoint(files->tree), SUBJECT_SOURCE, "%s left out: %s", files->left_out,
                        error->message);
    return edition;
}

enum outcome target_files_make(struct target_files *files, const struct target *target,
                               const struct quantize_options *options, struct artifact *ret_artifact,
                               struct error *error)
{
    const struct gguf_edition *edition = target_files_edition(files, error);
    return edition != NULL ? target->make(edition, target->type, options, ret_artifact, error) : REPORTED;
}

/* Gives the artifact the header that was kept of its file. */
static enum outcome keep_header(const struct target *target, const struct kept_header *kept, struct artifact *artifact,
                                struct error *error)
{
    if (strcmp(target->path, kept->path) != 0 || strcmp(artifact->container->name, "gguf") != 0) {
        error_set(error, "only %s has the header that was kept", kept->path);
        return FAILED;
    }
    artifact->kept_header = &kept->header;
    return OK;
}

static enum outcome plan(void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    const struct target_file *file = context;
    const struct tree *tree = file->files->tree;
    const struct request *request = &tree_options(tree)->request;
    struct quantize_options options = request->quantize;
    struct artifact artifact;
    options.keep_split = false; /* gguf/split/ has the splits */
    enum outcome outcome = target_files_make(file->files, file->target, &options, &artifact, error);
    struct origin origin = file->files->origin.n_sources != 0 ? file->files->origin : tree_origin_of_model(tree);
    if (outcome != OK)
        return outcome;
    if (request->kept_header != NULL)
        outcome = keep_header(file->target, request->kept_header, &artifact, error);
    else if (request->shares_blocks && artifact.container == &gguf_container)
        artifact.container = &gguf_sharing_container;
    if (outcome == OK)
        outcome = vfile_of_artifact(&artifact, origin, arena, ret_file, error);
    artifact_free(&artifact);
    return outcome;
}

static void release(void *context)
{
    once_destroy(&((struct target_files *)context)->model);
}

void target_files_init(struct target_files *files)
{
    once_init(&files->model);
    tree_on_free(files->tree, release, files);
}

void target_files_add(struct target_files *files, const struct target *target)
{
    const char *name;
    struct target_file *file = arena_alloc(tree_arena(files->tree), sizeof *file);
    *file = (struct target_file){files, target};
    node_id directory = tree_add_path(files->tree, TREE_ROOT, target->path, &name);
    tree_add_file(files->tree, directory, name, plan, file);
}

void target_files_add_all(struct target_files *files, enum target_model of)
{
    tree_add_directory(files->tree, TREE_ROOT, "gguf");
    for (const struct target *target = targets; target->path != NULL; target++)
        if (target->of == of)
            target_files_add(files, target);
}
