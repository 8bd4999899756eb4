/* mmproj.gguf and gguf/mmproj-*.gguf: the converter's --mmproj output for the vision and audio towers of a multimodal
 * model. */
#include "fs/tree/content.h"
#include "fs/tree/content_options.h"
#include "fs/tree/target_files.h"

#include "base/text.h"
#include "models/convert/model.h"

/* Selects the key overrides for these files: without those of the text model, and without its chat template. */
static const struct gguf_edits *edits_of_towers(const struct tree *tree, struct arena *arena)
{
    const char *const *all = tree_options(tree)->request.edits.override_kvs;
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

static const void *make_model(void *tree, struct arena *arena, struct error *error)
{
    struct gguf_model *model =
        gguf_projector_new(tree_checkpoint(tree), &tree_options(tree)->request.references, error);
    return gguf_edition_new(arena, model, model != NULL ? edits_of_towers(tree, arena) : NULL, NULL);
}

static bool add(struct tree *tree, struct error *error)
{
    if (!gguf_has_projector(tree_checkpoint(tree))) {
        tree_add_hint(tree, "mmproj.gguf", "this is not a vision or audio model that wfs knows");
        return true;
    }
    struct target_files *files = arena_alloc(tree_arena(tree), sizeof *files);
    *files = (struct target_files){
        .tree = tree, .make = make_model, .context = tree, .left_out = "mmproj.gguf and gguf/mmproj-* are"};
    target_files_init(files);
    target_files_add_all(files, OF_PROJECTOR);
    return true;
}

const struct content mmproj_files_content = {
    .name = "mmproj",
    .summary = "for vision and audio models: mmproj.gguf, gguf/mmproj-*.gguf",
    .of_weights = true,
    .add = add,
};
