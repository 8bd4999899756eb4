/* layouts/NAME/: the model cut and named as an engine wants it, for each layout that was asked for.
 *
 * What files there are depends on the layout and on the model's tensors; all are made at once, since whoever asked for
 * a layout that does not fit is told so, and gets no tree without it. */
#include "fs/tree/content.h"
#include "fs/tree/content_options.h"
#include "fs/tree/hf_files.h"
#include "fs/tree/safetensors_file.h"

#include "models/layouts/make.h"

#include <stdlib.h>

struct layouts_tree {
    struct tree *tree;
    struct canonical_model *model;
};

struct output_file {
    const struct layouts_tree *files;
    const struct layout_output *output;
};

struct text_file {
    const struct layouts_tree *files;
    const struct layout_text *text;
};

static bool plan_safetensors(const void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    const struct output_file *file = context;
    const struct layout_output *output = file->output;
    struct tensor_set *set = tensor_set_new(arena);
    for (size_t i = 0; i < output->n_tensors; i++)
        tensor_set_add_view(set, output->tensors[i].name, output->tensors[i].view);
    if (!tensor_set_seal(set, error))
        return false;
    struct safetensors_place *places = memory_alloc((output->n_tensors + 1) * sizeof *places);
    bool planned = true;
    for (size_t i = 0; planned && i < output->n_tensors; i++) {
        const struct tensor *tensor = &set->tensors[i];
        places[i] = (struct safetensors_place){.tensor = tensor, .type = output->tensors[i].encoding.dtype};
        const char *refusal = safetensors_refusal(tensor->name, tensor->name_length, places[i].type);
        planned = refusal == NULL || error_set(error, "'%.200s': %s", tensor->name, refusal);
    }
    struct origin origin = origin_of_model(file->files->model->checkpoint, arena);
    planned = planned && safetensors_file_plan(places, output->n_tensors, NULL, origin, arena, ret_file, error);
    free(places);
    return planned;
}

static bool plan_raw(const void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    (void)error;
    const struct output_file *file = context;
    const struct layout_tensor *tensor = &file->output->tensors[0];
    struct vfile_builder builder = {
        .arena = arena, .capacity = 1, .origin = origin_of_model(file->files->model->checkpoint, arena)};
    builder.spans = arena_array(arena, builder.capacity, sizeof *builder.spans);
    vfile_add_view(&builder, tensor->view, tensor->encoding);
    *ret_file = vfile_finish(&builder);
    return true;
}

static bool plan_text(const void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    (void)error;
    const struct text_file *file = context;
    struct vfile_builder builder = {
        .arena = arena, .capacity = 1, .origin = origin_of_model(file->files->model->checkpoint, arena)};
    builder.spans = arena_array(arena, builder.capacity, sizeof *builder.spans);
    vfile_add_literal(&builder, file->text->text, file->text->length);
    *ret_file = vfile_finish(&builder);
    return true;
}

static bool add_product(struct layouts_tree *files, node_id directory, const struct layout_file *layout,
                        const struct layout_product *product, struct error *error)
{
    struct arena *arena = tree_arena(files->tree);
    for (size_t i = 0; i < product->n_outputs; i++) {
        struct output_file *file = arena_alloc(arena, sizeof *file);
        *file = (struct output_file){files, &product->outputs[i]};
        if (!tree_add_file(files->tree, directory, product->outputs[i].name,
                           layout->files.raw ? plan_raw : plan_safetensors, file))
            return error_set(error, "layout %s: two files are called '%s'", layout->name, product->outputs[i].name);
    }
    for (size_t i = 0; i < product->n_texts; i++) {
        struct text_file *file = arena_alloc(arena, sizeof *file);
        *file = (struct text_file){files, &product->texts[i]};
        if (!tree_add_file(files->tree, directory, product->texts[i].name, plan_text, file))
            return error_set(error, "layout %s: two files are called '%s'", layout->name, product->texts[i].name);
    }
    if (layout->side_files)
        hf_files_add_beside(files->tree, directory);
    return true;
}

static bool add_layout(struct layouts_tree *files, node_id parent, const struct layout_request *request,
                       struct error *error)
{
    struct arena *arena = tree_arena(files->tree);
    struct layout_product *product = arena_alloc(arena, sizeof *product);
    if (!layout_make(request->file, request->parameters, files->model, arena, product, error))
        return false;
    node_id directory = tree_add_directory(files->tree, parent, request->file->name);
    return add_product(files, directory, request->file, product, error);
}

static void release(void *context)
{
    struct layouts_tree *files = context;
    canonical_model_free(files->model);
}

static bool add(struct tree *tree, struct error *error)
{
    const struct content_options *options = tree_options(tree);
    struct layouts_tree *files = arena_alloc(tree_arena(tree), sizeof *files);
    if (options->layouts.count == 0) {
        tree_add_hint(tree, "layouts", "-o layout=NAME or -o shards=ENGINE asks for one");
        return true;
    }
    *files = (struct layouts_tree){.tree = tree, .model = canonical_model_new(tree_checkpoint(tree), NULL, error)};
    if (files->model == NULL)
        return error_prefix(error, "layouts");
    tree_on_free(tree, release, files);
    node_id parent = tree_add_directory(tree, TREE_ROOT, "layouts");
    for (size_t i = 0; i < options->layouts.count; i++)
        if (!add_layout(files, parent, &options->layouts.items[i], error))
            return false;
    return true;
}

const struct content layout_files_content = {
    .name = "layouts",
    .summary = "layouts/NAME/: the model as an engine wants it, for -o layout=",
    .of_weights = true,
    .add = add,
};
