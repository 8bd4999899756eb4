/* The components of a pipeline, or the modules of a model: each in a directory of its name, as if mounted there alone.
 *
 * A component that cannot be read shows its side files, and metadata.json has the reason. If the model has weights of
 * its own, the components' hf/ directories are also in its hf/, where its loader looks for them. */
#include "formats/components.h"

#include "fs/tree/content.h"
#include "fs/tree/content_options.h"
#include "sources/source.h"

struct shown_component {
    struct tree *tree;
    const struct content_options *options;
    const struct component *component;
    const struct checkpoint *checkpoint; /* NULL until it is opened */
};

/* Makes the tree of the component; if `failure` is set, of its side files alone. */
static struct tree *make_tree(struct shown_component *shown, const struct error *failure, struct error *error)
{
    shown->checkpoint = checkpoint_open_component(tree_checkpoint(shown->tree), shown->component, failure, error);
    struct tree *tree = shown->checkpoint != NULL ? tree_new(shown->checkpoint, shown->options, error) : NULL;
    if (tree == NULL)
        checkpoint_close(shown->checkpoint);
    shown->checkpoint = tree != NULL ? shown->checkpoint : NULL;
    return tree;
}

static struct tree *open(void *context, struct error *error)
{
    struct shown_component *shown = context;
    struct error failure;
    uint64_t n_unreached = source_unreached();
    struct tree *tree = make_tree(shown, NULL, &failure);
    if (tree != NULL)
        return tree;
    if (source_unreached() != n_unreached) {
        *error = failure;
        return NULL;
    }
    checkpoint_note(tree_checkpoint(shown->tree), SUBJECT_SOURCE, "%s: its weights cannot be used: %s",
                    shown->component->name, failure.message);
    return make_tree(shown, &failure, error);
}

static void close(void *context)
{
    struct shown_component *shown = context;
    checkpoint_close(shown->checkpoint);
}

struct tree *tree_of_component(struct tree *tree, const struct component *component)
{
    struct node_attributes attributes;
    return tree_lookup(tree, TREE_ROOT, component->name, &attributes) ? tree_branch(tree, attributes.id) : NULL;
}

static void add_to_hf(struct tree *tree, const char *name)
{
    struct node_attributes component;
    node_id hf = tree_add_directory(tree, TREE_ROOT, "hf");
    if (hf != 0 && tree_lookup(tree, TREE_ROOT, name, &component))
        tree_add_part_of_branch(tree, hf, name, component.id, "hf");
}

/* Components get no layouts: a layout is for the whole model, not for its modules. */
static bool add(struct tree *tree, struct error *error)
{
    const struct checkpoint *checkpoint = tree_checkpoint(tree);
    const struct components *components = checkpoint->components;
    if (components == NULL)
        return true;
    struct content_options *options = arena_copy(tree_arena(tree), tree_options(tree), sizeof *options);
    options->request.kept_header = NULL;
    if (checkpoint->n_sources == 0 && options->request.layouts.count != 0) {
        components_ask_for_one(components, error);
        return error_prefix(error, "option layout");
    }
    options->request.layouts = (struct layout_requests){0};
    for (size_t i = 0; i < components->count; i++) {
        struct shown_component *shown = arena_alloc(tree_arena(tree), sizeof *shown);
        *shown = (struct shown_component){tree, options, &components->items[i], NULL};
        tree_on_free(tree, close, shown);
        if (!tree_add_branch(tree, TREE_ROOT, components->items[i].name, open, shown))
            checkpoint_note(checkpoint, SUBJECT_SOURCE, "%s is hidden by the entry of that name",
                            components->items[i].name);
        else if (checkpoint->n_sources != 0)
            add_to_hf(tree, components->items[i].name);
    }
    return true;
}

const struct content component_files_content = {
    .name = "components",
    .summary = "unet/, text_encoder/, 2_Dense/ ...: each component as if it were mounted alone",
    .add = add,
};
