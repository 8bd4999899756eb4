/* tensors/: directories by name, those with names that are cut among them. */
#include "fs/tree/content_options.h"
#include "fs/tree/tree.h"
#include "models/formats.h"

#include "tests/unit/check.h"
#include "tests/unit/write_safetensors.h"

enum { LONG_NAMES = 20000, NAME_BYTES = 300 };

struct visit {
    struct tree *tree;
    node_id directory;
    size_t n_names, n_cut, n_found;
};

static bool visit(void *context, uint64_t index, const char *name, const struct node_attributes *attributes)
{
    struct visit *visit = context;
    struct node_attributes found;
    (void)index;
    visit->n_names++;
    visit->n_cut += strstr(name, "%~") != NULL;
    visit->n_found += tree_lookup(visit->tree, visit->directory, name, &found) && found.id == attributes->id;
    return true;
}

/* Each name that is cut is found, and not by looking at all others. */
static void long_names(void)
{
    static const struct open_options options = {0};
    static const struct content_options content_options = {0};
    struct error error = {""};
    char *header = malloc(LONG_NAMES * (NAME_BYTES + 64)), *end = header;
    for (int i = 0; i < LONG_NAMES; i++)
        end += sprintf(end, "%c\"%0*d\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}", i > 0 ? ',' : '{',
                       NAME_BYTES, i);
    *end++ = '}';
    files_write_safetensors("long.safetensors", header, (size_t)(end - header), 0);
    free(header);

    const struct checkpoint *checkpoint = checkpoint_open("long.safetensors", formats, &options, &error);
    struct tree *tree = checkpoint != NULL ? tree_new(checkpoint, &content_options, &error) : NULL;
    struct node_attributes tensors, nothing;
    if (!CHECK(tree != NULL && tree_lookup(tree, TREE_ROOT, "tensors", &tensors)))
        return;
    struct visit found = {.tree = tree, .directory = tensors.id};
    tree_list(tree, tensors.id, 0, visit, &found);
    CHECK(found.n_names == LONG_NAMES && found.n_cut == LONG_NAMES && found.n_found == LONG_NAMES);
    CHECK(!tree_lookup(tree, tensors.id, "0000%~0123456789abcdef", &nothing));
    tree_free(tree);
    checkpoint_close(checkpoint);
}

int main(void)
{
    files_begin();
    long_names();
    files_remove();
    return check_done();
}
