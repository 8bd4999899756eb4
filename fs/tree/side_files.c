/* The source's side files, as they are: config.json, the tokenizer, README.md ... */
#include "fs/tree/content.h"

#include <string.h>

static bool plan(const void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    (void)error;
    static const struct dtype *const bytes = &u8_dtype;
    const struct side_file *side = context;
    uint64_t size = source_size(side->source);
    struct vfile_builder builder = {.arena = arena, .origin = {&side->source, 1}};
    vfile_add_view(&builder, view_of_source(arena, side->source, 0, bytes, 1, &size), encoding_of(bytes));
    *ret_file = vfile_finish(&builder);
    return true;
}

/* The directory that a name with slashes is in, made where it is missing, or 0; *name becomes the last part. */
static node_id directory_of(struct tree *tree, const char **name)
{
    node_id directory = TREE_ROOT;
    for (const char *slash; directory != 0 && (slash = strchr(*name, '/')) != NULL; *name = slash + 1) {
        char *part = arena_strndup(tree_arena(tree), *name, (size_t)(slash - *name));
        directory = tree_add_directory(tree, directory, part);
    }
    return directory;
}

static bool add(struct tree *tree, struct error *error)
{
    (void)error;
    const struct checkpoint *checkpoint = tree_checkpoint(tree);
    for (size_t i = 0; i < checkpoint->n_side_files; i++) {
        const struct side_file *side = &checkpoint->side_files[i];
        const char *name = side->name;
        node_id directory = directory_of(tree, &name);
        if (directory == 0 || !tree_add_file(tree, directory, name, plan, side))
            checkpoint_note(checkpoint, "%s is hidden by the virtual file of that name", side->name);
    }
    return true;
}

const struct content side_files_content = {
    .name = "side files",
    .summary = "config.json, tokenizer.json, README.md ...: the source's small files, as they are",
    .add = add,
};
