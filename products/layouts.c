/* layouts/NAME/: the model, cut and named as an engine expects, for each requested layout.
 *
 * The set of files depends on the layout and on the model's tensors: a layout that does not fit the model fails the
 * whole tree. */
#include "products/product.h"

#include "models/layouts/make.h"

static bool is_offered(const struct product_input *input, struct product_list *hints)
{
    if (input->request->layouts.count == 0)
        product_hint(hints, "layouts", "-o layout=NAME or -o shards=ENGINE asks for one");
    return input->request->layouts.count != 0;
}

static void find_layouts(const struct product_input *input, struct arena *arena, product_found *found, void *context)
{
    const struct layout_requests *layouts = &input->request->layouts;
    for (size_t i = 0; i < layouts->count; i++)
        found(context, layouts->items[i].file->name, &layouts->items[i], true);
}

static enum outcome write_text(const struct product_input *input, const void *made, const void *what,
                               struct buffer *out, struct error *error)
{
    const struct layout_text *text = what;
    buffer_append(out, text->text, text->length);
    return OK;
}

static bool list_files(const struct product_input *input, const void *made, const void *variant,
                       struct product_list *list, struct error *error)
{
    const struct layout_request *request = variant;
    const struct hf_model *model = hf_model_of(input->checkpoint, error);
    struct layout_product product;
    if (model == NULL)
        return error_prefix(error, "layouts");
    if (!layout_make(request->file, request->parameters, model, list->arena, &product, error))
        return false;
    for (size_t i = 0; i < product.n_artifacts; i++)
        product_add(
            list, (struct product_file){.path = product.artifacts[i].name, .artifact = &product.artifacts[i].artifact});
    for (size_t i = 0; i < product.n_texts; i++)
        product_add(
            list, (struct product_file){.path = product.texts[i].name, .write = write_text, .what = &product.texts[i]});
    if (request->file->side_files)
        hf_add_beside(input, "", list);
    return true;
}

const struct product layouts_product = {
    .name = "layouts",
    .summary = "layouts/NAME/: the model in an engine's layout, with -o layout=",
    .root = "layouts",
    .ending = "-",
    .is_offered = is_offered,
    .variants = find_layouts,
    .files = list_files,
};
