/* adapter.gguf and gguf/adapter-*.gguf: the output of convert_lora_to_gguf.py for a LoRA adapter.
 *
 * The files need the base model's configuration. The user names the base model (the checkpoint's BASE_TARGET), or
 * adapter_config.json names one in the local hub cache, which the first plan of a file opens. */
#include "fs/tree/content.h"
#include "fs/tree/content_options.h"
#include "fs/tree/target_files.h"

#include "models/derive/adapter.h"
#include "models/derive/target.h"
#include "models/facts.h"

struct adapter_files {
    struct tree *tree;
    const struct checkpoint *base; /* opened here; NULL if the checkpoint has it as BASE_TARGET */
    struct arena *arena;           /* of the origin */
    struct target_files files;
};

/* Opens the base model: the user's, for an adapter in a component, or the one that adapter_config.json names. */
static const struct checkpoint *open_base(const struct tree *tree, struct error *error)
{
    struct arena *arena = arena_new();
    const char *path = tree_options(tree)->request.base;
    if (path == NULL)
        path = adapter_find_base(tree_checkpoint(tree), arena, error);
    const struct checkpoint *base = path != NULL ? base_open(path, tree_checkpoint(tree), error) : NULL;
    arena_free(arena);
    return base;
}

static const void *make_model(void *context, struct arena *arena, struct error *error)
{
    struct adapter_files *adapter = context;
    const struct checkpoint *checkpoint = tree_checkpoint(adapter->tree),
                            *base = checkpoint_base(checkpoint, BASE_TARGET);
    if (base == NULL) {
        base = adapter->base = open_base(adapter->tree, error);
        adapter->files.origin = origin_with_base(tree_origin_of_model(adapter->tree), base, adapter->arena);
    }
    bool folds_scale = tree_options(adapter->tree)->request.fold_scale;
    struct gguf_model *model =
        base != NULL
            ? gguf_adapter_new(checkpoint, base, &tree_options(adapter->tree)->request.references, folds_scale, error)
            : NULL;
    return gguf_edition_new(arena, model, &tree_options(adapter->tree)->request.edits, NULL);
}

static void close_base(void *context)
{
    struct adapter_files *adapter = context;
    checkpoint_close(adapter->base);
    arena_free(adapter->arena);
}

static bool add(struct tree *tree, struct error *error)
{
    if (!facts_of(tree_checkpoint(tree)).is_adapter) {
        tree_add_hint(tree, "adapter.gguf", "the source is not a LoRA adapter");
        return true;
    }
    struct adapter_files *adapter = arena_alloc(tree_arena(tree), sizeof *adapter);
    *adapter = (struct adapter_files){.tree = tree, .arena = arena_new()};
    tree_on_free(tree, close_base, adapter); /* called after the model is freed */
    adapter->files = (struct target_files){
        .tree = tree, .make = make_model, .context = adapter, .left_out = "adapter.gguf and gguf/ are"};
    gguf_adapter_note_scale(tree_checkpoint(tree), tree_options(tree)->request.fold_scale);
    target_files_init(&adapter->files);
    target_files_add_all(&adapter->files, OF_ADAPTER);
    return true;
}

const struct content adapter_files_content = {
    .name = "adapter",
    .summary = "for a LoRA adapter: adapter.gguf, gguf/adapter-*.gguf",
    .of_weights = true,
    .add = add,
};
