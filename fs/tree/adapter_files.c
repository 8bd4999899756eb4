/* adapter.gguf and gguf/adapter-*.gguf: what convert_lora_to_gguf.py makes of a LoRA adapter.
 *
 * It takes the base's configuration. The base is what the user says, or what adapter_config.json names, where that is
 * in the local hub cache; it is opened when the first of the files is asked for. */
#include "fs/tree/content.h"
#include "fs/tree/content_options.h"
#include "fs/tree/gguf_file.h"
#include "fs/tree/lazy.h"

#include "models/adapter.h"

#include <string.h>

struct adapter_files {
    struct tree *tree;
    struct checkpoint *base; /* of the model */
    struct lazy model;       /* a gguf_model */
};

struct adapter_output {
    struct adapter_files *files;
    const char *outtype;
};

static const struct {
    bool at_top;
    const char *name, *outtype;
} outputs[] = {
    {true, "adapter.gguf", "f32"},
    {false, "adapter-F32.gguf", "f32"},
    {false, "adapter-F16.gguf", "f16"},
    {false, "adapter-BF16.gguf", "bf16"},
};

/* The base with its tensors' names, or without where there are no weights. */
static struct checkpoint *open_base(const struct tree *tree, struct error *error)
{
    struct error unused;
    struct arena *arena = arena_new();
    const char *path = tree_options(tree)->base;
    if (path == NULL)
        path = adapter_find_base(tree_checkpoint(tree), arena, error);
    struct checkpoint *base = NULL;
    if (path != NULL)
        base = checkpoint_open(path, &(struct open_options){0}, &unused);
    if (path != NULL && base == NULL)
        base = checkpoint_open_side_files(path, error);
    arena_free(arena);
    return base;
}

static void *make_model(void *context, struct error *error)
{
    struct adapter_files *files = context;
    struct checkpoint *base = open_base(files->tree, error);
    struct gguf_model *model = base != NULL ? gguf_adapter_new(tree_checkpoint(files->tree), base, error) : NULL;
    if (model != NULL)
        model->edits = &tree_options(files->tree)->edits;
    files->base = base;
    return model;
}

static const struct gguf_model *model_of(struct adapter_files *files)
{
    struct error error;
    const struct gguf_model *model = lazy_get(&files->model, make_model, files, &error);
    if (error.message[0] != '\0')
        checkpoint_note(tree_checkpoint(files->tree), "adapter.gguf and gguf/ are left out: %s", error.message);
    return model;
}

static bool plan(const void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    const struct adapter_output *output = context;
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
    struct adapter_files *files = context;
    gguf_model_free(files->model.value);
    checkpoint_close(files->base);
    lazy_destroy(&files->model);
}

static bool add(struct tree *tree, struct error *error)
{
    (void)error;
    if (!adapter_is_source(tree_checkpoint(tree)))
        return true;
    struct adapter_files *files = arena_alloc(tree_arena(tree), sizeof *files);
    *files = (struct adapter_files){.tree = tree};
    lazy_init(&files->model);
    tree_on_free(tree, release, files);
    node_id directory = tree_add_directory(tree, TREE_ROOT, "gguf");
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++) {
        struct adapter_output *output = arena_alloc(tree_arena(tree), sizeof *output);
        *output = (struct adapter_output){files, outputs[i].outtype};
        tree_add_file(tree, outputs[i].at_top ? TREE_ROOT : directory, outputs[i].name, plan, output);
    }
    return true;
}

const struct content adapter_files_content = {
    .name = "adapter",
    .summary = "of a LoRA adapter: adapter.gguf, gguf/adapter-*.gguf",
    .add = add,
};
