#include "fs/tree/kept_files.h"

#include "base/lock.h"
#include "fs/tree/content_options.h"
#include "fs/tree/identity.h"
#include "fs/tree/nodes.h"

#include <stdlib.h>
#include <string.h>

enum { N_CHAINS = 1024 };

struct kept_file {
    struct kept_file *next;
    struct tree *tree;
    node_id id;
    struct kept *kept; /* NULL: nothing of the file is kept */
};

struct kept_files {
    struct lock lock;
    struct kept_file *chains[N_CHAINS]; /* guarded by the lock; a file is never removed */
};

struct kept_files *kept_files_new(void)
{
    struct kept_files *files = memory_alloc(sizeof *files);
    *files = (struct kept_files){.chains = {NULL}};
    lock_init(&files->lock);
    return files;
}

void kept_files_free(struct kept_files *files)
{
    if (files == NULL)
        return;
    for (size_t i = 0; i < N_CHAINS; i++)
        for (struct kept_file *file = files->chains[i], *next; file != NULL; file = next) {
            next = file->next;
            kept_free(file->kept);
            free(file);
        }
    lock_destroy(&files->lock);
    free(files);
}

static struct kept_file **chain_of(struct kept_files *files, node_id id)
{
    return &files->chains[(id * UINT64_C(0x9e3779b97f4a7c15)) >> 54];
}
_Static_assert(N_CHAINS == 1 << (64 - 54), "the hash of a node has as many values as there are chains");

static struct kept_file *find(struct kept_files *files, node_id id)
{
    lock_take(&files->lock);
    struct kept_file *file = *chain_of(files, id);
    while (file != NULL && file->id != id)
        file = file->next;
    lock_drop(&files->lock);
    return file;
}

/* The files of a collection share a name. */
static const char *name_of(struct tree *tree, node_id id, struct arena *arena)
{
    struct computed computed;
    if (computed_of(tree, id, &computed))
        id = tree->nodes[computed.owner->node]->number;
    return kept_name(tree->checkpoint->path, tree_path(tree, id, arena), arena);
}

/* Returns a stored node's file, whose spans live as long as the tree. */
static bool remake(void *context, struct vfile *ret_file)
{
    struct error unsaid;
    const struct kept_file *file = context;
    struct arena *unused = arena_new();
    bool made = tree_file(file->tree, file->id, unused, ret_file, &unsaid);
    arena_free(unused);
    return made;
}

/* The files of a collection are parts of a model, which nobody runs: they are not sealed. */
static struct kept *make(struct kept_file *kept_file, const struct vfile *file)
{
    char identity[SHA256_HEX + 1];
    struct tree *tree = kept_file->tree;
    node_id id = kept_file->id;
    const struct content_options *options = tree_options(tree);
    struct arena *arena = arena_new();
    file_identity(&file->origin, tree->checkpoint->model_name, options->file_request.text, tree_path(tree, id, arena),
                  identity);
    struct kept_request request = {options->keep, identity, name_of(tree, id, arena), options->file_request.newest};
    if (node_of(tree, id) != NULL) {
        request.remake = remake;
        request.context = kept_file;
    }
    struct kept *kept = kept_new(file, &request);
    arena_free(arena);
    return kept;
}

/* Adds a file, unless another thread has. Returns the file that is there. */
static struct kept_file *add(struct kept_files *files, struct kept_file *added)
{
    lock_take(&files->lock);
    struct kept_file **chain = chain_of(files, added->id), *file = *chain;
    while (file != NULL && file->id != added->id)
        file = file->next;
    if (file == NULL) {
        added->next = *chain;
        *chain = file = added;
    }
    lock_drop(&files->lock);
    return file;
}

struct kept *kept_files_get(struct kept_files *files, struct tree *tree, node_id id, const struct vfile *file)
{
    struct kept_file *found = find(files, id);
    if (found != NULL)
        return found->kept;
    struct kept_file *added = memory_alloc(sizeof *added);
    *added = (struct kept_file){.tree = tree, .id = id};
    added->kept = make(added, file);
    found = add(files, added);
    if (found == added) {
        kept_begin(found->kept);
        return found->kept;
    }
    kept_free(added->kept);
    free(added);
    return found->kept;
}
