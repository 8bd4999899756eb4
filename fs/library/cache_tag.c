#include "fs/library/library.h"

#include "fs/tree/content.h"
#include "fs/tree/content_options.h"

/* Source: https://bford.info/cachedir/ */
static const char tag[] = "Signature: 8a477f597d28d172789f06886806bc55\n"
                          "# Files that wfs computes from a model. Back up the model instead.\n";

static enum outcome write_tag(void *context, struct buffer *out, struct error *error)
{
    buffer_append_text(out, tag);
    return OK;
}

void cache_tag_add(struct tree *tree)
{
    tree_add_text(tree, TREE_ROOT, "CACHEDIR.TAG", (struct origin){0}, write_tag, NULL);
}

static bool add(struct tree *tree, struct error *error)
{
    if (tree_options(tree)->cache_tag && tree_options(tree)->name_in_library == NULL)
        cache_tag_add(tree);
    return true;
}

const struct content cache_tag_content = {
    .name = "cachedir-tag",
    .summary = "CACHEDIR.TAG, by which backup programs know what can be made again",
    .of_parts = true,
    .add = add,
};
