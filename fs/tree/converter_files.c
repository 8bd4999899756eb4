#include "fs/tree/converter_files.h"

#include "fs/tree/content.h"
#include "fs/tree/gguf_file.h"
#include "models/model.h"

struct planned_output {
    struct converter_files *files;
    const char *outtype;
};

/* NULL where there is none; why is noted once, for all the files. */
static const struct gguf_model *model_of(struct converter_files *files)
{
    struct error error;
    const struct gguf_model *model = lazy_get(&files->model, files->make, files->context, &error);
    if (error.message[0] != '\0')
        checkpoint_note(tree_checkpoint(files->tree), "%s left out: %s", files->left_out, error.message);
    return model;
}

static bool plan(const void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    const struct planned_output *output = context;
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
    struct converter_files *files = context;
    gguf_model_free(files->model.value);
    lazy_destroy(&files->model);
}

void converter_files_add(struct converter_files *files, const struct converter_output *outputs)
{
    struct tree *tree = files->tree;
    lazy_init(&files->model);
    tree_on_free(tree, release, files);
    node_id directory = tree_add_directory(tree, TREE_ROOT, "gguf");
    for (; outputs->name != NULL; outputs++) {
        struct planned_output *output = arena_alloc(tree_arena(tree), sizeof *output);
        *output = (struct planned_output){files, outputs->outtype};
        tree_add_file(tree, outputs->at_top ? TREE_ROOT : directory, outputs->name, plan, output);
    }
}
