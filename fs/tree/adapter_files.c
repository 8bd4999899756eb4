/* adapter.gguf and gguf/adapter-*.gguf: what convert_lora_to_gguf.py makes of a LoRA adapter.
 *
 * It takes the base's configuration. The base is what the user says, or what adapter_config.json names, where that is
 * in the local hub cache; it is opened when the first of the files is asked for. */
#include "fs/tree/content.h"
#include "fs/tree/content_options.h"
#include "fs/tree/converter_files.h"

#include "models/adapter.h"
#include "models/canonical_checkpoint.h"
#include "models/from_gguf.h"

struct adapter_files {
    struct tree *tree;
    struct checkpoint *base; /* of the model */
    struct converter_files files;
};

static const struct converter_output outputs[] = {
    {true, "adapter.gguf", "f32"}, /* the default */
    {false, "adapter-F32.gguf", "f32"},
    {false, "adapter-F16.gguf", "f16"},
    {false, "adapter-BF16.gguf", "bf16"},
    {false, "adapter-Q8_0.gguf", "q8_0"},
    {0},
};

/* A base that is a GGUF as what adapters name; takes it. */
static struct checkpoint *named_as_adapters_do(struct checkpoint *gguf, struct error *error)
{
    struct checkpoint *base = canonical_checkpoint_new(gguf, error);
    if (base != NULL)
        checkpoint_keep(base, gguf);
    else
        checkpoint_close(gguf);
    return base;
}

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
    return base != NULL && gguf_is_source(base) ? named_as_adapters_do(base, error) : base;
}

static void *make_model(void *context, struct error *error)
{
    struct adapter_files *adapter = context;
    struct checkpoint *base = open_base(adapter->tree, error);
    struct gguf_model *model = base != NULL ? gguf_adapter_new(tree_checkpoint(adapter->tree), base, error) : NULL;
    if (model != NULL)
        model->edits = &tree_options(adapter->tree)->edits;
    adapter->base = base;
    return model;
}

static void close_base(void *context)
{
    struct adapter_files *adapter = context;
    checkpoint_close(adapter->base);
}

static bool add(struct tree *tree, struct error *error)
{
    (void)error;
    if (!adapter_is_source(tree_checkpoint(tree))) {
        tree_add_hint(tree, "adapter.gguf", "the source is not a LoRA adapter");
        return true;
    }
    struct adapter_files *adapter = arena_alloc(tree_arena(tree), sizeof *adapter);
    *adapter = (struct adapter_files){.tree = tree};
    tree_on_free(tree, close_base, adapter); /* called after the model is freed */
    adapter->files = (struct converter_files){
        .tree = tree, .make = make_model, .context = adapter, .left_out = "adapter.gguf and gguf/ are"};
    converter_files_add(&adapter->files, outputs);
    return true;
}

const struct content adapter_files_content = {
    .name = "adapter",
    .summary = "of a LoRA adapter: adapter.gguf, gguf/adapter-*.gguf",
    .of_weights = true,
    .add = add,
};
