/* The source's side files, unchanged: config.json, the tokenizer, README.md ... */
#include "fs/tree/content.h"

#include "formats/components.h"

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

static bool add_file(struct tree *tree, const struct side_file *side)
{
    const char *name;
    struct shown_file *shown = arena_alloc(tree_arena(tree), sizeof *shown);
    *shown = (struct shown_file){tree_checkpoint(tree), side};
    tree_expect_whole(tree, side->source);
    node_id directory = tree_add_path(tree, TREE_ROOT, side->name, &name);
    return directory != 0 && tree_add_file(tree, directory, name, plan, shown);
}

static bool add(struct tree *tree, struct error *error)
{
    const struct checkpoint *checkpoint = tree_checkpoint(tree);
    for (size_t i = 0; i < checkpoint->n_side_files; i++) {
        const struct side_file *file = &checkpoint->side_files[i];
        if (!file->hidden && !components_hold(checkpoint->components, file->name) && !add_file(tree, file))
            checkpoint_note(checkpoint, SUBJECT_SOURCE, "%s is hidden by the virtual file of that name", file->name);
    }
    return true;
}

const struct content side_files_content = {
    .name = "side files",
    .summary = "config.json, tokenizer.json, README.md ...: the source's small files, unchanged",
    .add = add,
};
