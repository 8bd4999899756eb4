/* layouts/NAME/: the model, cut and named as an engine expects, for each requested layout.
 *
 * The set of files depends on the layout and on the model's tensors. All are made at once: a layout that does not fit
 * the model fails the whole tree. */
#include "fs/tree/content.h"
#include "fs/tree/content_options.h"
#include "fs/tree/hf_files.h"

#include "models/layouts/make.h"

struct layouts_tree {
    struct tree *tree;
    const struct hf_model *model;
};

struct artifact_file {
    const struct tree *tree;
    const struct artifact *artifact;
};

static enum outcome plan_artifact(void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    const struct artifact_file *file = context;
    return vfile_of_artifact(file->artifact, tree_origin_of_model(file->tree), arena, ret_file, error);
}

static enum outcome write_text(void *context, struct buffer *out, struct error *error)
{
    const struct layout_text *text = context;
    buffer_append(out, text->text, text->length);
    return OK;
}

/* Adds the files of a layout, whose names differ. */
static void add_product(struct layouts_tree *files, node_id directory, const struct layout_product *product)
{
    struct arena *arena = tree_arena(files->tree);
    for (size_t i = 0; i < product->n_artifacts; i++) {
        const struct layout_artifact *made = &product->artifacts[i];
        struct artifact_file *file = arena_alloc(arena, sizeof *file);
        *file = (struct artifact_file){files->tree, &made->artifact};
        tree_add_file(files->tree, directory, made->name, plan_artifact, file);
    }
    for (size_t i = 0; i < product->n_texts; i++) {
        struct layout_text *text = &product->texts[i];
        tree_add_text(files->tree, directory, text->name, tree_origin_of_model(files->tree), write_text, text);
    }
}

static bool add_layout(struct layouts_tree *files, node_id parent, const struct layout_request *request,
                       struct error *error)
{
    struct arena *arena = tree_arena(files->tree);
    struct layout_product *product = arena_alloc(arena, sizeof *product);
    if (!layout_make(request->file, request->parameters, files->model, arena, product, error))
        return false;
    node_id directory = tree_add_directory(files->tree, parent, request->file->name);
    add_product(files, directory, product);
    if (request->file->side_files)
        hf_files_add_beside(files->tree, directory);
    return true;
}

static bool add(struct tree *tree, struct error *error)
{
    const struct content_options *options = tree_options(tree);
    struct layouts_tree *files = arena_alloc(tree_arena(tree), sizeof *files);
    if (options->request.layouts.count == 0) {
        tree_add_hint(tree, "layouts", "-o layout=NAME or -o shards=ENGINE asks for one");
        return true;
    }
    *files = (struct layouts_tree){.tree = tree, .model = hf_model_of(tree_checkpoint(tree), error)};
    if (files->model == NULL)
        return error_prefix(error, "layouts");
    node_id parent = tree_add_directory(tree, TREE_ROOT, "layouts");
    for (size_t i = 0; i < options->request.layouts.count; i++)
        if (!add_layout(files, parent, &options->request.layouts.items[i], error))
            return false;
    return true;
}

const struct content layout_files_content = {
    .name = "layouts",
    .summary = "layouts/NAME/: the model in an engine's layout, with -o layout=",
    .of_weights = true,
    .add = add,
};
