/* Any bytes as a checkpoint: open it, list everything, stat everything, read ranges of every file.
 *
 * Holds: listing and looking up agree, a range is the same as a slice of a longer one, and nothing outside a file is
 * read. */
#include "formats/checkpoint.h"
#include "fs/tree/content_options.h"
#include "fs/tree/tree.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_INPUT = 1 << 16, MAX_FILES = 400, READ_BYTES = 4096 };

struct visit {
    struct tree *tree;
    unsigned n_files, depth;
    node_id directory;
};

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void read_file(struct tree *tree, const struct node_attributes *attributes)
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

static bool visit(void *context, uint64_t index, const char *name, const struct node_attributes *attributes)
{
    (void)index;
    struct visit *parent = context;
    struct node_attributes found;
    require(tree_lookup(parent->tree, parent->directory, name, &found) && found.id == attributes->id);
    require(name[0] != '\0' && strchr(name, '/') == NULL && strlen(name) <= TREE_MAX_NAME);
    if (attributes->directory) {
        struct visit below = {parent->tree, parent->n_files, parent->depth + 1, attributes->id};
        require(below.depth < 16 && tree_parent(parent->tree, attributes->id) == parent->directory);
        tree_list(parent->tree, attributes->id, 0, visit, &below);
        parent->n_files = below.n_files;
    } else {
        read_file(parent->tree, attributes);
    }
    return ++parent->n_files < MAX_FILES;
}

static char directory[] = "/tmp/wfs-fuzz-XXXXXX";

static void remove_directory(void)
{
    rmdir(directory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char path[64];
    if (size > MAX_INPUT)
        return 0;
    if (path[0] == '\0') {
        require(mkdtemp(directory) != NULL && atexit(remove_directory) == 0);
        snprintf(path, sizeof path, "%s/input", directory);
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    require(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    close(fd);

    struct error error;
    struct open_options options = {0};
    struct content_options content_options = {0};
    struct checkpoint *checkpoint = checkpoint_open(path, &options, &error);
    struct tree *tree = checkpoint != NULL ? tree_new(checkpoint, &content_options, &error) : NULL;
    if (tree != NULL) {
        struct visit root = {.tree = tree, .directory = TREE_ROOT};
        tree_list(tree, TREE_ROOT, 0, visit, &root);
    } else {
        require(error.message[0] != '\0' && strchr(error.message, '\n') == NULL);
    }
    tree_free(tree);
    checkpoint_close(checkpoint);
    unlink(path);
    return 0;
}
