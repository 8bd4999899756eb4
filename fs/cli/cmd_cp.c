#include "base/report.h"
#include "formats/gguf/share.h"
#include "fs/cli/command.h"
#include "fs/cli/paths.h"
#include "fs/cli/progress.h"
#include "fs/cli/reflink.h"
#include "fs/cli/unfinished.h"
#include "fs/lib/copy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FLAG_RECURSIVE, FLAG_REFLINK };

struct copying {
    struct tree *tree;
    bool reflink;
    const char *destination;
    bool failed;
};

static void add_progress(void *context, uint64_t n_bytes)
{
    progress_add(context, n_bytes);
}

/* Writes a file that shares what blocks it can with its sources, and says so if that is none. */
static bool write_reflinked(const struct vfile *file, const char *destination, int fd, struct progress *progress,
                            struct error *error)
{
    struct reflinked reflinked;
    if (!reflink_file(file, fd, add_progress, progress, &reflinked, error))
        return false;
    if (reflinked.n_shared == 0 && reflinked.reason != 0)
        report("note: %s: copied, because it cannot share blocks with the source: %s", destination,
               strerror(reflinked.reason));
    else if (reflinked.n_shared == 0 && file->size >= GGUF_SHARED_BLOCK)
        report("note: %s: copied, because none of it is in a source at the same place of a block", destination);
    return true;
}

static bool copy_to(const struct vfile *file, const char *name, const char *destination, bool reflink,
                    struct error *error)
{
    struct output output;
    struct progress progress;
    if (!unfinished_open(&output, destination, reflink ? 0 : file->size, error))
        return false;
    progress_begin(&progress, name, file->size);
    bool copied = reflink && output.is_file ? write_reflinked(file, destination, output.fd, &progress, error)
                                            : copy_file(file, output.fd, add_progress, &progress, error);
    progress_end(&progress);
    unfinished_none();
    if (copied)
        return output_finish(&output, error);
    output_discard(&output);
    return error_prefix(error, "%s", destination);
}

static bool copy_node(struct copying *copying, const char *name, const struct node_attributes *attributes,
                      const char *destination);

static bool copy_entry(void *context, uint64_t index, const char *name, const struct node_attributes *attributes)
{
    struct copying *copying = context;
    struct arena *arena = arena_new();
    const char *destination = arena_printf(arena, "%s/%s", copying->destination, name);
    copying->failed |= !copy_node(copying, name, attributes, destination);
    arena_free(arena);
    return true;
}

/* Copies a directory, reporting entries that fail and going on with the rest. */
static bool copy_directory(const struct copying *copying, node_id directory, const char *destination)
{
    struct copying below = {.tree = copying->tree, .reflink = copying->reflink, .destination = destination};
    if (mkdir(destination, 0777) != 0 && errno != EEXIST) {
        report("%s: %s", destination, strerror(errno));
        return false;
    }
    tree_list(copying->tree, directory, 0, copy_entry, &below);
    return !below.failed;
}

static bool copy_node(struct copying *copying, const char *name, const struct node_attributes *attributes,
                      const char *destination)
{
    struct vfile file;
    struct error error;
    if (attributes->directory)
        return copy_directory(copying, attributes->id, destination);
    struct arena *arena = arena_new();
    bool done = tree_file(copying->tree, attributes->id, arena, &file, &error) &&
                copy_to(&file, name, destination, copying->reflink, &error);
    arena_free(arena);
    if (!done)
        report("%s", error.message);
    return done;
}

/* Returns the last name of a path, without slashes; "" for the root of the tree. */
static const char *last_part(struct arena *arena, const char *path)
{
    size_t end = strlen(path);
    while (end > 0 && path[end - 1] == '/')
        end--;
    size_t start = end;
    while (start > 0 && path[start - 1] != '/')
        start--;
    return arena_strndup(arena, path + start, end - start);
}

static bool is_directory(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static bool copy_found(struct copying *copying, const struct found *found, const char *destination, struct arena *arena)
{
    const char *name = last_part(arena, found->path);
    if (*name != '\0' && is_directory(destination))
        destination = arena_printf(arena, "%s/%s", destination, name);
    return copy_node(copying, name, &found->attributes, destination);
}

/* Finds the entries that the arguments except the first and last name; reports those that cannot be copied. */
static bool find_all(struct tree *tree, const struct invocation *invocation, struct found_list *list)
{
    bool all_found = paths_find_all(tree, invocation->arguments + 1, invocation->n_arguments - 2, list);
    for (size_t i = 0; i < list->n_items && !invocation->flags[FLAG_RECURSIVE]; i++)
        if (list->items[i].attributes.directory) {
            report("%s: is a directory; -r copies what is in it",
                   *list->items[i].path != '\0' ? list->items[i].path : "/");
            all_found = false;
        }
    return all_found;
}

/* Copies everything that the arguments name; returns true if all was copied. Writes nothing until all is found. */
static bool copy_all(struct tree *tree, const struct invocation *invocation, struct arena *arena)
{
    const char *destination = invocation->arguments[invocation->n_arguments - 1];
    struct copying copying = {.tree = tree, .reflink = invocation->flags[FLAG_REFLINK]};
    struct found_list list = {0};
    bool done = find_all(tree, invocation, &list);
    size_t n_named = invocation->n_arguments - 2, n_files = n_named > list.n_items ? n_named : list.n_items;
    if (n_files > 1 && !is_directory(destination)) {
        report("%s: is not a directory, and %zu files are to be copied; name a directory that is there", destination,
               n_files);
        done = false;
    }
    bool all_copied = done;
    for (size_t i = 0; done && i < list.n_items; i++)
        all_copied &= copy_found(&copying, &list.items[i], destination, arena);
    found_free(&list);
    return all_copied;
}

static int run(const struct invocation *invocation)
{
    struct options options = *invocation->options;
    options.content.request.shares_blocks = invocation->flags[FLAG_REFLINK];
    struct tree *tree = command_open(invocation->arguments[0], &options);
    if (tree == NULL)
        return EXIT_BAD_INPUT;
    struct arena *arena = arena_new();
    bool copied = copy_all(tree, invocation, arena);
    arena_free(arena);
    command_close(tree);
    return copied ? EXIT_SUCCESS : EXIT_BAD_INPUT;
}

const struct command cp_command = {
    .name = "cp",
    .usage = "SOURCE PATH... DEST",
    .summary = "Copy virtual files to disk, on all cores",
    .group = READ_COMMAND,
    .text = "Uses all cores. To copy several files, DEST must be a directory; if one of the files is missing, nothing "
            "is copied. A "
            "file gets its name only when it is complete. On a terminal, a bar shows the rate and the time left. With "
            "--reflink, what a file has in common with a source on the same XFS or Btrfs takes neither time nor space; "
            "model.gguf then has its tensors in another order and a key wfs.padding, so it is not the converter's file "
            "byte for byte.",
    .flags =
        (const struct flag[]){
            {'r', "recursive", "copy directories with their contents"},
            {0, "reflink", "share disk blocks with the source where the file system can"},
            {0},
        },
    .examples =
        (const struct example[]){
            {"wfs cp Qwen/Qwen2.5-0.5B gguf/model-Q4_K_M.gguf .", "quantize a model from the hub cache"},
            {"wfs cp -r ~/models/Llama-3.2-1B gguf .", "write every quantization to ./gguf"},
            {0},
        },
    .min_arguments = 3,
    .max_arguments = SIZE_MAX,
    .n_sources = 1,
    .takes_options = true,
    .writes = true,
    .run = run,
};
