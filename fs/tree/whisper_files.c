/* ggml-model.bin, ggml-model-f32.bin and ggml/: Whisper models for whisper.cpp.
 *
 * The first plan makes the model, which all files share. Where the source is one of these files, that file is the
 * source itself. */
#include "fs/tree/content.h"

#include "formats/once.h"
#include "models/whisper/whisper.h"

struct whisper_files {
    struct tree *tree;
    struct once model;
};

struct shown_file {
    struct whisper_files *files;
    const struct whisper_file *file;
};

static void free_model(void *model)
{
    whisper_model_free(model);
}

static const void *make_model(void *context, struct arena *arena, struct error *error)
{
    const struct tree *tree = context;
    struct whisper_model *model = whisper_model_new(tree_checkpoint(tree), error);
    if (model != NULL)
        arena_on_free(arena, free_model, model);
    return model;
}

static enum outcome plan(void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    const struct shown_file *shown = context;
    struct tree *tree = shown->files->tree;
    const void *model;
    struct artifact artifact;
    enum outcome outcome = once_get(&shown->files->model, make_model, tree, &model, error);
    if (outcome == FAILED)
        checkpoint_note(tree_checkpoint(tree), SUBJECT_WHISPER, "left out: %s", error->message);
    if (model == NULL)
        return REPORTED;
    outcome = whisper_artifact(model, shown->file, arena, &artifact, error);
    if (outcome != OK)
        return outcome;
    outcome = vfile_of_artifact(&artifact, tree_origin_of_model(tree), arena, ret_file, error);
    artifact_free(&artifact);
    return outcome;
}

static enum outcome plan_source(void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    const struct checkpoint *checkpoint = tree_checkpoint(context);
    *ret_file = vfile_of_source(arena, checkpoint->sources[0], origin_of_weights(checkpoint));
    return OK;
}

static void release(void *context)
{
    once_destroy(&((struct whisper_files *)context)->model);
}

static void add_file(struct whisper_files *files, const struct whisper_file *file)
{
    struct tree *tree = files->tree;
    const char *name;
    node_id directory = tree_add_path(tree, TREE_ROOT, file->path, &name);
    if (whisper_is_source(tree_checkpoint(tree), file)) {
        tree_add_file(tree, directory, name, plan_source, tree);
        tree_expect_whole(tree, tree_checkpoint(tree)->sources[0]);
        return;
    }
    struct shown_file *shown = arena_alloc(tree_arena(tree), sizeof *shown);
    *shown = (struct shown_file){files, file};
    tree_add_file(tree, directory, name, plan, shown);
}

static bool add(struct tree *tree, struct error *error)
{
    if (!whisper_is(tree_checkpoint(tree))) {
        tree_add_hint(tree, "ggml-model*.bin", "only Whisper models become files of whisper.cpp");
        return true;
    }
    struct whisper_files *files = arena_alloc(tree_arena(tree), sizeof *files);
    files->tree = tree;
    once_init(&files->model);
    tree_on_free(tree, release, files);
    for (const struct whisper_file *file = whisper_files; file->path != NULL; file++)
        add_file(files, file);
    return true;
}

const struct content whisper_files_content = {
    .name = "whisper",
    .summary = "ggml-model.bin, ggml/: Whisper models for whisper.cpp",
    .of_weights = true,
    .add = add,
};
