/* mmproj.gguf and gguf/mmproj-*.gguf: what the converter's --mmproj makes of the parts of a multimodal model that see
 * and hear. */
#include "fs/tree/content.h"
#include "fs/tree/content_options.h"
#include "fs/tree/gguf_file.h"
#include "fs/tree/lazy.h"

#include "models/model.h"

struct mmproj_files {
    struct tree *tree;
    struct lazy model; /* a gguf_model */
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

static void *make_model(void *context, struct error *error)
{
    const struct mmproj_files *files = context;
    return gguf_projector_new(tree_checkpoint(files->tree), error);
}

static const struct gguf_model *model_of(struct mmproj_files *files)
{
    struct error error;
    const struct gguf_model *model = lazy_get(&files->model, make_model, files, &error);
    if (error.message[0] != '\0')
        checkpoint_note(tree_checkpoint(files->tree), "mmproj.gguf and gguf/mmproj-* are left out: %s", error.message);
    return model;
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
    gguf_model_free(files->model.value);
    lazy_destroy(&files->model);
}

static bool add(struct tree *tree, struct error *error)
{
    (void)error;
    if (!gguf_has_projector(tree_checkpoint(tree)))
        return true;
    struct mmproj_files *files = arena_alloc(tree_arena(tree), sizeof *files);
    *files = (struct mmproj_files){.tree = tree};
    lazy_init(&files->model);
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
