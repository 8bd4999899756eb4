/* mmproj.gguf and gguf/mmproj-*.gguf: what the converter's --mmproj makes of the parts of a multimodal model that see
 * and hear. */
#include "fs/tree/content.h"
#include "fs/tree/content_options.h"
#include "fs/tree/gguf_file.h"

#include "base/attempt.h"
#include "models/model.h"

#include <pthread.h>

struct mmproj_files {
    struct tree *tree;
    pthread_mutex_t making; /* of the model, for which all files wait */
    struct gguf_model *model;
    bool failed; /* none can be made: said once */
};

struct mmproj_output {
    struct mmproj_files *files;
    const char *outtype;
};

static const struct {
    bool at_top;
    const char *name, *outtype;
} outputs[] = {
    {true, "mmproj.gguf", "auto"},       {false, "mmproj-F32.gguf", "f32"},   {false, "mmproj-F16.gguf", "f16"},
    {false, "mmproj-BF16.gguf", "bf16"}, {false, "mmproj-Q8_0.gguf", "q8_0"},
};

struct making {
    struct mmproj_files *files;
    struct error *error;
};

static void make_model(void *context)
{
    struct making *making = context;
    making->files->model = gguf_projector_new(tree_checkpoint(making->files->tree), making->error);
}

static const struct gguf_model *model_of(struct mmproj_files *files)
{
    struct error error;
    attempt_lock(&files->making);
    if (files->model == NULL && !files->failed) {
        attempt(make_model, &(struct making){files, &error}, &error);
        files->failed = files->model == NULL;
        if (files->failed)
            checkpoint_note(tree_checkpoint(files->tree), "mmproj.gguf and gguf/mmproj-* are left out: %s",
                            error.message);
    }
    attempt_unlock(&files->making);
    return files->model;
}

static bool plan(const void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    const struct mmproj_output *output = context;
    const struct gguf_model *model = model_of(output->files);
    struct gguf_plan plan;
    if (model == NULL)
        return error_set(error, "%s", "");
    if (!gguf_plan_converter(model, output->outtype, &plan, error))
        return false;
    struct origin origin = origin_of_model(tree_checkpoint(output->files->tree), arena);
    bool planned = gguf_file_plan(&plan, origin, arena, ret_file, error);
    gguf_plan_free(&plan);
    return planned;
}

static void release(void *context)
{
    struct mmproj_files *files = context;
    gguf_model_free(files->model);
    pthread_mutex_destroy(&files->making);
}

static bool add(struct tree *tree, struct error *error)
{
    (void)error;
    if (!gguf_has_projector(tree_checkpoint(tree)))
        return true;
    struct mmproj_files *files = arena_alloc(tree_arena(tree), sizeof *files);
    *files = (struct mmproj_files){.tree = tree};
    pthread_mutex_init(&files->making, NULL);
    tree_on_free(tree, release, files);
    node_id directory = tree_add_directory(tree, TREE_ROOT, "gguf");
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++) {
        struct mmproj_output *output = arena_alloc(tree_arena(tree), sizeof *output);
        *output = (struct mmproj_output){files, outputs[i].outtype};
        tree_add_file(tree, outputs[i].at_top ? TREE_ROOT : directory, outputs[i].name, plan, output);
    }
    return true;
}

const struct content mmproj_files_content = {
    .name = "mmproj",
    .summary = "of a model that sees or hears: mmproj.gguf, gguf/mmproj-*.gguf",
    .add = add,
};
