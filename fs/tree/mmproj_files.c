/* mmproj.gguf and gguf/mmproj-*.gguf: what the converter's --mmproj makes of the parts of a multimodal model that see
 * and hear. */
#include "fs/tree/content.h"
#include "fs/tree/content_options.h"
#include "fs/tree/converter_files.h"

#include "base/text.h"
#include "models/model.h"

static const struct converter_output outputs[] = {
    {true, "mmproj.gguf", "auto"},       {false, "mmproj-F32.gguf", "f32"},   {false, "mmproj-F16.gguf", "f16"},
    {false, "mmproj-BF16.gguf", "bf16"}, {false, "mmproj-Q8_0.gguf", "q8_0"}, {0},
};

/* The overrides of keys that such a file has: not those of the text model, and not its chat template. */
static const struct gguf_edits *edits_of_towers(const struct tree *tree, struct arena *arena)
{
    const char *const *all = tree_options(tree)->edits.override_kvs;
    size_t n = 0, n_all = 0;
    while (all != NULL && all[n_all] != NULL)
        n_all++;
    const char **ours = arena_array(arena, n_all + 1, sizeof *ours);
    for (size_t i = 0; i < n_all; i++)
        if (text_starts_with(all[i], "general.") || text_starts_with(all[i], "clip."))
            ours[n++] = all[i];
    ours[n] = NULL;
    struct gguf_edits *edits = arena_alloc(arena, sizeof *edits);
    *edits = (struct gguf_edits){.override_kvs = ours};
    return edits;
}

static void *make_model(void *tree, struct error *error)
{
    struct gguf_model *model = gguf_projector_new(tree_checkpoint(tree), error);
    if (model != NULL)
        model->edits = edits_of_towers(tree, model->arena);
    return model;
}

static bool add(struct tree *tree, struct error *error)
{
    (void)error;
    if (!gguf_has_projector(tree_checkpoint(tree))) {
        tree_add_hint(tree, "mmproj.gguf", "wfs knows of no part of this model that sees or hears");
        return true;
    }
    struct converter_files *files = arena_alloc(tree_arena(tree), sizeof *files);
    *files = (struct converter_files){
        .tree = tree, .make = make_model, .context = tree, .left_out = "mmproj.gguf and gguf/mmproj-* are"};
    converter_files_add(files, outputs);
    return true;
}

const struct content mmproj_files_content = {
    .name = "mmproj",
    .summary = "of a model that sees or hears: mmproj.gguf, gguf/mmproj-*.gguf",
    .of_weights = true,
    .add = add,
};
