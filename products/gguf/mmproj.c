/* mmproj.gguf and gguf/mmproj-*.gguf: the converter's --mmproj output for the vision and audio towers of a multimodal
 * model. */
#include "products/gguf/target_list.h"

#include "base/text.h"
#include "models/convert/model.h"

/* Selects the key overrides for these files: without those of the text model, and without its chat template. */
static const struct gguf_edits *edits_of_towers(const struct request *request, struct arena *arena)
{
    const char *const *all = request->edits.override_kvs;
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

static const void *make_model(const struct product_input *input, struct arena *arena, struct error *error)
{
    const struct gguf_edits *edits = edits_of_towers(input->request, arena);
    return gguf_edition_new(arena, gguf_projector_new(input->checkpoint, &input->request->references, error), edits,
                            NULL);
}

static bool is_offered(const struct product_input *input, struct product_list *hints)
{
    if (gguf_has_projector(input->checkpoint))
        return true;
    product_hint(hints, "mmproj.gguf", "this is not a vision or audio model that wfs knows");
    return false;
}

static bool list_files(const struct product_input *input, const void *made, const void *variant,
                       struct product_list *list, struct error *error)
{
    target_list_add_all(list, OF_PROJECTOR, NULL);
    return true;
}

static const char *left_out(const struct product_input *input)
{
    return "mmproj.gguf and gguf/mmproj-* are left out";
}

const struct product mmproj_product = {
    .name = "mmproj",
    .summary = "for vision and audio models: mmproj.gguf, gguf/mmproj-*.gguf",
    .is_offered = is_offered,
    .make = make_model,
    .files = list_files,
    .left_out = left_out,
};
