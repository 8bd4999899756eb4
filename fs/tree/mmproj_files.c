/* mmproj.gguf and gguf/mmproj-*.gguf: what the converter's --mmproj makes of the parts of a multimodal model that see
 * and hear. */
#include "fs/tree/content.h"
#include "fs/tree/converter_files.h"

#include "models/model.h"

static const struct converter_output outputs[] = {
    {true, "mmproj.gguf", "auto"},       {false, "mmproj-F32.gguf", "f32"},   {false, "mmproj-F16.gguf", "f16"},
    {false, "mmproj-BF16.gguf", "bf16"}, {false, "mmproj-Q8_0.gguf", "q8_0"}, {0},
};

static void *make_model(void *tree, struct error *error)
{
    return gguf_projector_new(tree_checkpoint(tree), error);
}

static bool add(struct tree *tree, struct error *error)
{
    (void)error;
    if (!gguf_has_projector(tree_checkpoint(tree)))
        return true;
    struct converter_files *files = arena_alloc(tree_arena(tree), sizeof *files);
    *files = (struct converter_files){
        .tree = tree, .make = make_model, .context = tree, .left_out = "mmproj.gguf and gguf/mmproj-* are"};
    converter_files_add(files, outputs);
    return true;
}

const struct content mmproj_files_content = {
    .name = "mmproj",
    .summary = "of a model that sees or hears: mmproj.gguf, gguf/mmproj-*.gguf",
    .add = add,
};
