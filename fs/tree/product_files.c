/* Products as files of a tree. The first plan makes the object that a product's files share. */
#include "fs/tree/content.h"
#include "fs/tree/content_options.h"

#include "formats/once.h"

/* A product in a tree. */
struct shown {
    struct tree *tree;
    const struct product *product;
    struct product_input input;
    struct once made;
};

struct shown_file {
    struct shown *of;
    struct product_file file;
};

static const void *run_make(void *context, struct arena *arena, struct error *error)
{
    struct shown *shown = context;
    return shown->product->make(&shown->input, arena, error);
}

/* Gets the object of a product; false, with the reason, if it cannot be made, which is noted once. */
static bool get_object(struct shown *shown, const void **ret_made, struct error *error)
{
    const struct product *product = shown->product;
    *ret_made = NULL;
    if (product->make == NULL)
        return true;
    if (once_get(&shown->made, run_make, shown, ret_made, error) == FAILED && product->left_out != NULL)
        checkpoint_note(shown->input.checkpoint, product->left_out_subject, "%s: %s", product->left_out,
                        error->message);
    return *ret_made != NULL;
}

static enum outcome plan(void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    const struct shown_file *shown = context;
    const struct product_file *file = &shown->file;
    const struct product_input *input = &shown->of->input;
    struct artifact artifact;
    const void *made;
    if (!get_object(shown->of, &made, error))
        return REPORTED;
    enum outcome outcome = file->make(input, made, file->what, arena, &artifact, error);
    if (outcome != OK)
        return outcome;
    outcome = vfile_of_artifact(&artifact, tree_origin_of_model(shown->of->tree), arena, ret_file, error);
    artifact_free(&artifact);
    return outcome;
}

static enum outcome plan_source(void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    const struct shown_file *shown = context;
    *ret_file = vfile_of_source(arena, shown->file.source, origin_of_weights(shown->of->input.checkpoint));
    return OK;
}

static void add_file(struct shown *shown, node_id root, const struct product_file *file)
{
    struct tree *tree = shown->tree;
    const char *name;
    node_id directory = tree_add_path(tree, root, file->path, &name);
    struct shown_file *added = arena_alloc(tree_arena(tree), sizeof *added);
    *added = (struct shown_file){shown, *file};
    tree_add_file(tree, directory, name, file->source != NULL ? plan_source : plan, added);
    if (file->source != NULL)
        tree_expect_whole(tree, file->source);
}

static void release(void *context)
{
    once_destroy(&((struct shown *)context)->made);
}

static struct shown *show(struct tree *tree, const struct product *product)
{
    struct shown *shown = arena_alloc(tree_arena(tree), sizeof *shown);
    shown->tree = tree;
    shown->product = product;
    shown->input = (struct product_input){tree_checkpoint(tree), &tree_options(tree)->request};
    once_init(&shown->made);
    tree_on_free(tree, release, shown);
    return shown;
}

void product_files_add(struct tree *tree, const struct product *product)
{
    struct product_list list = {.arena = tree_arena(tree)};
    const struct product_input input = {tree_checkpoint(tree), &tree_options(tree)->request};
    bool is_offered = product->is_offered(&input, &list);
    if (is_offered) {
        struct shown *shown = show(tree, product);
        node_id root = product->root != NULL ? tree_add_directory(tree, TREE_ROOT, product->root) : TREE_ROOT;
        product->files(&input, &list);
        for (size_t i = 0; i < list.n_files; i++)
            add_file(shown, root, &list.files[i]);
    }
    for (size_t i = 0; i < list.n_hints; i++)
        tree_add_hint(tree, list.hints[i].path, list.hints[i].text);
}
