/* Products as files of a tree. The first plan that needs it makes the object that a product's files share. */
#include "formats/components.h"
#include "formats/once.h"
#include "fs/tree/content.h"
#include "fs/tree/content_options.h"
#include "fs/tree/nodes.h"

/* A product in a tree. */
struct shown_product {
    struct tree *tree;
    const struct product *product;
    struct product_input input;
    bool is_offered;
    struct shared_object {
        struct shown_product *of;
        product_object_maker *make; /* NULL: the product has no such object */
        struct once made;
    } objects[N_OBJECTS];
    struct shown_product *next;
};

struct shown_file {
    struct shown_product *of;
    struct product_file file;
    bool has_size; /* it was planned from the object for sizes, and needs the whole one */
};

static const struct checkpoint *open_component(struct tree *tree, const char *name)
{
    const struct component *component = components_named(tree_checkpoint(tree)->components, name);
    const struct tree *own = component != NULL ? tree_of_component(tree, component) : NULL;
    return own != NULL ? tree_checkpoint(own) : NULL;
}

static const void *run_make(void *context, struct arena *arena, struct error *error)
{
    const struct shared_object *object = context;
    return object->make(&object->of->input, arena, error);
}

/* Gets an object of a product; NULL, with the reason, if it cannot be made, which is noted once for the whole one. */
static const void *object_of(struct shown_product *shown, enum product_object which, struct error *error)
{
    const struct product *product = shown->product;
    struct shared_object *object = &shown->objects[which];
    const void *made = NULL;
    if (object->make != NULL && once_get(&object->made, run_make, object, &made, error) == FAILED &&
        which == OBJECT_WHOLE && product->left_out != NULL)
        checkpoint_note(shown->input.checkpoint, product->left_out_subject, "%s: %s", product->left_out(&shown->input),
                        error->message);
    return made;
}

/* Gets the object that a file is made from, or NULL if it needs none; false, with the reason, if there is none. */
static bool get_object(const struct shown_file *shown, const void **ret_made, struct error *error)
{
    bool needs_one = shown->of->product->make != NULL && !shown->file.needs_no_object;
    *ret_made = needs_one ? object_of(shown->of, OBJECT_WHOLE, error) : NULL;
    return !needs_one || *ret_made != NULL;
}

/* Returns the object for sizes, if this is the file's first plan; NULL: the whole object is needed. */
static const void *object_for_size(struct shown_file *shown)
{
    struct error unsaid;
    bool is_first = !shown->has_size && !shown->file.needs_no_object;
    const void *made = is_first ? object_of(shown->of, OBJECT_FOR_SIZES, &unsaid) : NULL;
    shown->has_size |= made != NULL;
    return made;
}

/* Returns the inputs of a file that is made from the product's object, or from none. */
static struct origin origin_of_made(const struct shown_file *shown, const void *made)
{
    const struct product *product = shown->of->product;
    struct origin own = product->origin != NULL && made != NULL ? product->origin(made) : (struct origin){0};
    return own.n_sources != 0 ? own : tree_origin_of_model(shown->of->tree);
}

static struct origin origin_of(const struct shown_file *shown)
{
    const struct checkpoint *checkpoint = shown->of->input.checkpoint;
    if (shown->file.side != NULL)
        return origin_of_side_file(checkpoint, shown->file.side);
    bool of_weights = shown->file.source != NULL || shown->file.of_weights;
    return of_weights ? origin_of_weights(checkpoint) : tree_origin_of_model(shown->of->tree);
}

static enum outcome plan_artifact(void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    const struct shown_file *shown = context;
    return vfile_of_artifact(shown->file.artifact, origin_of(shown), arena, ret_file, error);
}

static enum outcome plan(void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    struct shown_file *shown = context;
    const struct product_file *file = &shown->file;
    const struct product_input *input = &shown->of->input;
    struct artifact artifact;
    const void *made = object_for_size(shown);
    if (made == NULL && !get_object(shown, &made, error))
        return REPORTED;
    struct source *source = file->is != NULL ? file->is(made) : NULL;
    if (source != NULL) {
        *ret_file = vfile_of_source(arena, source, origin_of_weights(input->checkpoint));
        return OK;
    }
    enum outcome outcome = file->make(input, made, file->what, arena, &artifact, error);
    if (outcome != OK)
        return outcome;
    outcome = vfile_of_artifact(&artifact, origin_of_made(shown, made), arena, ret_file, error);
    artifact_free(&artifact);
    return outcome;
}

static enum outcome plan_source(void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    const struct shown_file *shown = context;
    struct source *source = shown->file.side != NULL ? shown->file.side->source : shown->file.source;
    *ret_file = vfile_of_source(arena, source, origin_of(shown));
    return OK;
}

static enum outcome write_text(void *context, struct buffer *out, struct error *error)
{
    const struct shown_file *shown = context;
    const void *made;
    return get_object(shown, &made, error) ? shown->file.write(&shown->of->input, made, shown->file.what, out, error)
                                           : REPORTED;
}

static void release(void *once)
{
    once_destroy(once);
}

static struct shown_product *find_shown(const struct tree *tree, const struct product *product)
{
    struct shown_product *shown = tree->products;
    while (shown != NULL && shown->product != product)
        shown = shown->next;
    return shown;
}

const void *tree_object(const struct tree *tree, const struct product *product, enum product_object which)
{
    struct error noted;
    struct shown_product *shown = find_shown(tree, product);
    return shown != NULL && shown->is_offered ? object_of(shown, which, &noted) : NULL;
}

/* Returns the product as this tree shows it. */
static struct shown_product *shown_of(struct tree *tree, const struct product *product)
{
    struct shown_product *shown = find_shown(tree, product);
    if (shown != NULL)
        return shown;
    shown = tree->products =
        arena_copy(tree_arena(tree),
                   &(struct shown_product){
                       .tree = tree,
                       .product = product,
                       .input = {tree_checkpoint(tree), &tree_options(tree)->request, open_component, tree},
                       .next = tree->products,
                   },
                   sizeof *shown);
    shown->objects[OBJECT_WHOLE] = (struct shared_object){.of = shown, .make = product->make};
    shown->objects[OBJECT_FOR_SIZES] = (struct shared_object){.of = shown, .make = product->make_for_sizes};
    for (int i = 0; i < N_OBJECTS; i++) {
        once_init(&shown->objects[i].made);
        tree_on_free(tree, release, &shown->objects[i].made);
    }
    return shown;
}

static void expect_whole(struct tree *tree, const struct product_file *file)
{
    const struct source *side = file->side != NULL && file->write == NULL ? file->side->source : NULL;
    const struct source *const sources[] = {side, file->source, file->may_be};
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
        if (sources[i] != NULL)
            tree_expect_whole(tree, sources[i]);
}

static void add_file(struct shown_product *lister, node_id root, const struct product_file *file)
{
    struct tree *tree = lister->tree;
    const char *name;
    node_id directory = tree_add_path(tree, root, file->path, &name);
    if (directory == 0 || *name == '\0')
        return;
    struct shown_file *added = arena_alloc(tree_arena(tree), sizeof *added);
    *added = (struct shown_file){file->of != NULL ? shown_of(tree, file->of) : lister, *file};
    if (file->write != NULL)
        tree_add_text(tree, directory, name, origin_of(added), write_text, added);
    else if (file->artifact != NULL)
        tree_add_file(tree, directory, name, plan_artifact, added);
    else
        tree_add_file(tree, directory, name, file->make != NULL ? plan : plan_source, added);
    expect_whole(tree, file);
    if (file->alias != NULL)
        tree_add_alias(tree, directory, name, file->alias);
}

static void add_list(struct shown_product *lister, node_id root, const struct product_list *list)
{
    for (size_t i = 0; i < list->n_files; i++)
        add_file(lister, root, &list->files[i]);
    for (size_t i = 0; i < list->n_hints; i++)
        if (list->hints[i].place != NULL)
            tree_add_place(lister->tree, list->hints[i].path, list->hints[i].place, list->hints[i].text);
        else
            tree_add_hint(lister->tree, list->hints[i].path, list->hints[i].text);
    for (size_t i = 0; i < list->n_releases; i++)
        tree_on_free(lister->tree, list->releases[i].release, list->releases[i].context);
}

/* Lists files, and first makes the object if their names follow from it. */
static bool list_files(struct shown_product *shown, const void *variant, struct product_list *list, struct error *error)
{
    const struct product *product = shown->product;
    struct error unsaid; /* the plan of a file says it */
    bool needs_object = product->needs_object != NULL && product->needs_object(&shown->input);
    const void *made = needs_object ? object_of(shown, OBJECT_WHOLE, &unsaid) : NULL;
    return product->files(&shown->input, made, variant, list, error);
}

/* A deferred directory: a variant. */
struct shown_variant {
    struct shown_product *of;
    const void *variant;
    struct once listed; /* a product_list */
};

static const void *make_list(void *context, struct arena *arena, struct error *error)
{
    const struct shown_variant *shown = context;
    struct product_list *list = arena_alloc(arena, sizeof *list);
    *list = (struct product_list){.arena = arena, .scratch = arena};
    return list_files(shown->of, shown->variant, list, error) ? list : NULL;
}

static void prepare_variant(void *context)
{
    struct shown_variant *shown = context;
    const void *unused;
    struct error unsaid;
    once_get(&shown->listed, make_list, shown, &unused, &unsaid);
}

static void fill_variant(void *context, node_id directory)
{
    struct shown_variant *shown = context;
    if (shown->listed.value != NULL)
        add_list(shown->of, directory, shown->listed.value);
}

static node_id defer_variant(struct shown_product *shown, node_id root, const char *name, const void *variant)
{
    struct shown_variant *added = arena_alloc(tree_arena(shown->tree), sizeof *added);
    added->of = shown;
    added->variant = variant;
    once_init(&added->listed);
    tree_on_free(shown->tree, release, &added->listed);
    return tree_add_deferred(shown->tree, root, name, prepare_variant, fill_variant, added);
}

static bool add_files(struct shown_product *shown, node_id directory, const void *variant, struct error *error)
{
    struct product_list list = {.arena = tree_arena(shown->tree), .scratch = arena_new()};
    bool listed = list_files(shown, variant, &list, error);
    if (listed)
        add_list(shown, directory, &list);
    arena_free(list.scratch);
    return listed;
}

/* The directory that a product's variants are added to, until one fails. */
struct variants {
    struct shown_product *of;
    node_id root;
    bool has_failed;
    struct error *error;
};

static void add_variant(void *context, const char *name, const void *variant, bool is_listed)
{
    struct variants *variants = context;
    if (variants->has_failed)
        return;
    struct tree *tree = variants->of->tree;
    const char *last;
    node_id directory;
    if (variants->of->product->opened == OPENED_AT_VARIANT) {
        directory = defer_variant(variants->of, variants->root, name, variant);
    } else {
        directory = tree_add_path(tree, variants->root, arena_printf(tree_arena(tree), "%s/", name), &last);
        variants->has_failed = !add_files(variants->of, directory, variant, variants->error);
    }
    if (!is_listed)
        tree_unlist(tree, directory);
}

static bool add_all(struct shown_product *shown, node_id root, struct error *error)
{
    struct variants variants = {.of = shown, .root = root, .error = error};
    if (shown->product->variants == NULL)
        return add_files(shown, root, NULL, error);
    shown->product->variants(&shown->input, tree_arena(shown->tree), add_variant, &variants);
    return !variants.has_failed;
}

static void fill(void *context, node_id root)
{
    struct error unsaid;
    add_all(context, root, &unsaid);
}

/* Makes the object that the names in the root follow from. */
static void prepare(void *context)
{
    struct shown_product *shown = context;
    struct error unsaid;
    object_of(shown, OBJECT_WHOLE, &unsaid);
}

static bool add_root(struct shown_product *shown, struct error *error)
{
    const struct product *product = shown->product;
    struct tree *tree = shown->tree;
    bool needs_object = product->opened == OPENED_AT_ROOT && product->needs_object != NULL;
    if (product->opened == OPENED_WITH_TREE) {
        node_id root = product->root != NULL ? tree_add_directory(tree, TREE_ROOT, product->root) : TREE_ROOT;
        return add_all(shown, root, error);
    }
    tree_add_deferred(tree, TREE_ROOT, product->root, needs_object ? prepare : NULL, fill, shown);
    return true;
}

bool product_files_add(struct tree *tree, const struct product *product, struct error *error)
{
    struct shown_product *shown = shown_of(tree, product);
    struct product_list hints = {.arena = tree_arena(tree), .scratch = arena_new()};
    shown->is_offered = product->is_offered(&shown->input, &hints);
    add_list(shown, TREE_ROOT, &hints);
    arena_free(hints.scratch);
    return !shown->is_offered || add_root(shown, error);
}
