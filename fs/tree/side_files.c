/* The source's side files, unchanged: config.json, the tokenizer, README.md ... */
#include "fs/tree/side_files.h"

#include "formats/components.h"
#include "fs/tree/content.h"

struct shown_file {
    const struct checkpoint *checkpoint;
    const struct side_file *side;
};

static enum outcome plan(void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    const struct shown_file *shown = context;
    *ret_file = vfile_of_source(arena, shown->side->source, origin_of_side_file(shown->checkpoint, shown->side));
    return OK;
}

bool side_files_add(struct tree *tree, node_id directory, const struct side_file *side)
{
    const char *name;
    struct shown_file *shown = arena_alloc(tree_arena(tree), sizeof *shown);
    *shown = (struct shown_file){tree_checkpoint(tree), side};
    tree_expect_whole(tree, side->source);
    directory = tree_add_path(tree, directory, side->name, &name);
    return directory != 0 && tree_add_file(tree, directory, name, plan, shown);
}

static bool add(struct tree *tree, struct error *error)
{
    const struct checkpoint *checkpoint = tree_checkpoint(tree);
    for (size_t i = 0; i < checkpoint->n_side_files; i++) {
        const struct side_file *file = &checkpoint->side_files[i];
        if (!file->hidden && !components_hold(checkpoint->components, file->name) &&
            !side_files_add(tree, TREE_ROOT, file))
            checkpoint_note(checkpoint, SUBJECT_SOURCE, "%s is hidden by the virtual file of that name", file->name);
    }
    return true;
}

const struct content side_files_content = {
    .name = "side files",
    .summary = "config.json, tokenizer.json, README.md ...: the source's small files, unchanged",
    .add = add,
};
