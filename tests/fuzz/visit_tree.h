/* Reads the beginning and the end of every file of a tree.
 *
 * Holds: listing and looking up agree, a range is the same as a slice of a longer one, and nothing outside a file is
 * read. */
#pragma once

#include "fs/tree/content_options.h"
#include "fs/tree/tree.h"
#include "models/formats.h"

#include "tests/fuzz/fuzz.h"

enum { MAX_FILES = 400, READ_BYTES = 4096 };

struct visit {
    struct tree *tree;
    const char *skipped; /* a directory that is not read; NULL: none */
    unsigned n_files, depth;
    node_id directory;
};

static inline void read_file(struct tree *tree, const struct node_attributes *attributes)
{
    struct arena *arena = arena_new();
    struct vfile file;
    struct error error;
    if (tree_file(tree, attributes->id, arena, &file, &error)) {
        static unsigned char head[READ_BYTES], part[READ_BYTES];
        require(file.size == attributes->size);
        size_t length = file.size < READ_BYTES ? (size_t)file.size : READ_BYTES, skip = length / 3;
        if (vfile_read(&file, 0, length, head, &error) && vfile_read(&file, skip, length - skip, part, &error))
            require(memcmp(head + skip, part, length - skip) == 0);
        if (file.size > READ_BYTES)
            vfile_read(&file, file.size - READ_BYTES, READ_BYTES, part, &error);
    }
    arena_free(arena);
}

static inline bool visit(void *context, uint64_t index, const char *name, const struct node_attributes *attributes)
{
    (void)index;
    struct visit *parent = context;
    struct node_attributes found;
    require(tree_lookup(parent->tree, parent->directory, name, &found) && found.id == attributes->id);
    require(name[0] != '\0' && strchr(name, '/') == NULL && strlen(name) <= TREE_MAX_NAME);
    if (attributes->directory) {
        if (parent->skipped != NULL && strcmp(name, parent->skipped) == 0)
            return true;
        struct visit below = {parent->tree, parent->skipped, parent->n_files, parent->depth + 1, attributes->id};
        require(below.depth < 16 && tree_parent(parent->tree, attributes->id) == parent->directory);
        tree_list(parent->tree, attributes->id, 0, visit, &below);
        parent->n_files = below.n_files;
    } else {
        read_file(parent->tree, attributes);
    }
    return ++parent->n_files < MAX_FILES;
}

/* Opens what is at `path` and visits all of it. What is refused is refused with one line. */
static inline void visit_path(const char *path, const struct content_options *content_options, const char *skipped)
{
    struct error error = {""};
    struct open_options options = {0};
    const struct checkpoint *checkpoint = checkpoint_open(path, formats, &options, &error);
    struct tree *tree = checkpoint != NULL ? tree_new(checkpoint, content_options, &error) : NULL;
    if (tree != NULL) {
        struct visit root = {.tree = tree, .skipped = skipped, .directory = TREE_ROOT};
        tree_list(tree, TREE_ROOT, 0, visit, &root);
    } else {
        require_one_line(&error);
    }
    tree_free(tree);
    checkpoint_close(checkpoint);
}
