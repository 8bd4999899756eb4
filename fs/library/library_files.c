/* The files of a model in a library (library.h), and what `-o show=` lists.
 *
 * NAME-Q4_K_M.gguf at the root is gguf/model-Q4_K_M.gguf, and so on; a GGUF's projector and drafts keep their names;
 * all other entries of the root are not listed. llama-server takes the last file that a directory lists: what the first
 * pattern matches comes last. */
#include "fs/tree/content.h"
#include "fs/tree/content_options.h"

#include "base/text.h"
#include "models/facts.h"

#include <fnmatch.h>
#include <string.h>

static const char model[] = "model-", predictor[] = "mtp-model-", projector[] = "mmproj-F16.gguf",
                  draft[] = "mtp-model-Q8_0.gguf", original[] = "model.gguf", ending[] = ".gguf";

/* Without -o show=. A GGUF then shows itself alone, which may be quantized already. */
static const char *const usual[] = {"Q4_K_M", "Q8_0", "F16", NULL};
static const char *const nothing[] = {NULL};

struct same_file {
    struct tree *tree;
    const char *path;
    bool has_size;
};

/* The entries of a directory, before any is planned. */
struct entries {
    struct arena *arena;
    struct entry {
        const char *name;
        node_id id;
        bool directory;
    } * items;
    size_t count;
};

static bool take_entry(void *context, uint64_t index, const char *name, const struct node_attributes *attributes)
{
    struct entries *entries = context;
    entries->items = arena_grow(entries->arena, entries->items, entries->count, sizeof *entries->items);
    entries->items[entries->count++] =
        (struct entry){arena_strdup(entries->arena, name), attributes->id, attributes->directory};
    return true;
}

static struct entries entries_of(struct tree *tree, node_id directory, struct arena *arena)
{
    struct entries entries = {.arena = arena};
    tree_list_prepared(tree, directory, 0, take_entry, &entries);
    return entries;
}

static enum outcome plan(void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    struct same_file *same = context;
    struct node_attributes attributes;
    bool found = tree_walk(same->tree, same->path, &attributes, error) &&
                 tree_same_file(same->tree, attributes.id, &same->has_size, arena, ret_file, error);
    return found ? OK : REPORTED;
}

/* Adds another name, at the root, for the file at `path`. */
static void add_name(struct tree *tree, const char *path, const char *name)
{
    struct same_file *same = arena_alloc(tree_arena(tree), sizeof *same);
    *same = (struct same_file){tree, path, false};
    if (!tree_add_file(tree, TREE_ROOT, name, plan, same))
        checkpoint_note(tree_checkpoint(tree), SUBJECT_SOURCE, "%s is hidden by the file of that name", name);
}

/* Returns the type in "model-Q4_K_M.gguf", after the beginning "model-", in the arena, or NULL. */
static const char *type_after(const char *beginning, const struct entry *entry, struct arena *arena)
{
    if (entry->directory || !text_starts_with(entry->name, beginning) || !text_ends_with(entry->name, ending))
        return NULL;
    size_t length = strlen(beginning);
    return arena_strndup(arena, entry->name + length, strlen(entry->name) - length - strlen(ending));
}

static const char *type_of(const struct entry *entry, struct arena *arena)
{
    return type_after(model, entry, arena);
}

/* Returns the number of the first pattern that a type matches; SIZE_MAX: none. */
static size_t match(const char *const *patterns, const char *type)
{
    for (size_t i = 0; patterns[i] != NULL; i++)
        if (fnmatch(patterns[i], type, FNM_CASEFOLD) == 0)
            return i;
    return SIZE_MAX;
}

static void add_named(struct tree *tree, const struct entries *gguf, const char *name)
{
    struct arena *arena = tree_arena(tree);
    bool is_gguf = facts_of(tree_checkpoint(tree)).keys != NULL;
    const char *const *patterns = tree_options(tree)->shown, *type;
    size_t n_patterns = 0;
    if (patterns == NULL)
        patterns = is_gguf ? nothing : usual;
    while (patterns[n_patterns] != NULL)
        n_patterns++;
    for (size_t j = 0; j < gguf->count; j++)
        if (strcmp(gguf->items[j].name, projector) == 0)
            add_name(tree, arena_printf(arena, "gguf/%s", projector), arena_printf(arena, "mmproj-%s-F16.gguf", name));
        else if (strcmp(gguf->items[j].name, draft) == 0)
            add_name(tree, arena_printf(arena, "gguf/%s", draft), arena_printf(arena, "mtp-%s-Q8_0.gguf", name));
    for (size_t i = n_patterns; i-- > 0;)
        for (size_t j = 0; j < gguf->count; j++)
            if ((type = type_of(&gguf->items[j], arena)) != NULL && match(patterns, type) == i)
                add_name(tree, arena_printf(arena, "gguf/%s", gguf->items[j].name),
                         arena_printf(arena, "%s-%s%s", name, type, ending));
    const char *whole = arena_printf(arena, "%s%s", name, ending);
    if (is_gguf && strcmp(whole, original) == 0)
        tree_list_last(tree, TREE_ROOT, original);
    else if (is_gguf)
        add_name(tree, original, whole);
}

static void add_entries(struct tree *tree, struct arena *scratch)
{
    const struct content_options *options = tree_options(tree);
    struct node_attributes directory;
    struct entries gguf = {0};
    const char *type;
    if (tree_lookup(tree, TREE_ROOT, "gguf", &directory))
        gguf = entries_of(tree, directory.id, scratch);
    for (size_t i = 0; options->shown != NULL && i < gguf.count; i++) {
        if ((type = type_of(&gguf.items[i], scratch)) == NULL)
            type = type_after(predictor, &gguf.items[i], scratch);
        if (type != NULL && match(options->shown, type) == SIZE_MAX)
            tree_unlist(tree, gguf.items[i].id);
    }
    if (options->name_in_library == NULL)
        return;
    struct entries root = entries_of(tree, TREE_ROOT, scratch);
    for (size_t i = 0; i < root.count; i++)
        if (root.items[i].directory || !checkpoint_is_companion(tree_checkpoint(tree), root.items[i].name))
            tree_unlist(tree, root.items[i].id);
    if (!facts_of(tree_checkpoint(tree)).is_adapter)
        add_named(tree, &gguf, options->name_in_library);
}

static bool add(struct tree *tree, struct error *error)
{
    const struct content_options *options = tree_options(tree);
    if (options->name_in_library == NULL && options->shown == NULL)
        return true;
    struct arena *scratch = arena_new();
    add_entries(tree, scratch);
    arena_free(scratch);
    return true;
}

const struct content library_files_content = {
    .name = "library",
    .summary = "models/PUBLISHER/NAME/NAME-Q4_K_M.gguf, in a library of models",
    .of_weights = true,
    .add = add,
};
