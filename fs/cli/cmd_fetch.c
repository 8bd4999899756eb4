#include "base/report.h"
#include "fs/cli/command.h"
#include "fs/cli/paths.h"
#include "fs/cli/progress.h"

#include <stdlib.h>

enum {
    STEP = 16 << 20,  /* bytes to wait for at once */
    AHEAD = 64 << 20, /* bytes to ask for ahead of waiting */
};

struct fetching {
    struct tree *tree;
    struct progress progress;
    bool failed;
};

/* Fetches the bytes that a file is computed from. */
static bool fetch_file(struct fetching *fetching, const struct vfile *file, struct error *error)
{
    for (uint64_t offset = 0, n; offset < file->size; offset += n) {
        uint64_t left = file->size - offset;
        n = left < STEP ? left : STEP;
        vfile_want(file, offset, left < AHEAD ? left : AHEAD, false);
        if (!vfile_wait(file, offset, n, error))
            return false;
        progress_add(&fetching->progress, n);
    }
    return true;
}

static void fetch_source(struct fetching *fetching, struct source *source)
{
    struct arena *arena = arena_new();
    struct error error;
    const struct vfile file = vfile_of_source(arena, source, (struct origin){0});
    progress_begin(&fetching->progress, source_name(source), file.size);
    if (source_is_remote(source) && !fetch_file(fetching, &file, &error)) {
        progress_hide(&fetching->progress);
        report("%s", error.message);
        fetching->failed = true;
    }
    progress_end(&fetching->progress);
    arena_free(arena);
}

/* Fetches all files of a checkpoint: weights, and the files beside them. */
static void fetch_checkpoint(void *context, const struct checkpoint *checkpoint)
{
    for (size_t i = 0; i < checkpoint->n_sources; i++)
        fetch_source(context, checkpoint->sources[i]);
    for (size_t i = 0; i < checkpoint->n_side_files; i++)
        if (!checkpoint->side_files[i].hidden)
            fetch_source(context, checkpoint->side_files[i].source);
}

/* Fetches all of a source. Opens its components, and fetches each as it opens. */
static void fetch_all(struct fetching *fetching)
{
    struct found_list list = {0};
    tree_on_checkpoint(fetching->tree, fetch_checkpoint, fetching);
    if (tree_checkpoint(fetching->tree)->components != NULL)
        paths_find_below(fetching->tree, "", TREE_ROOT, &list);
    tree_on_checkpoint(fetching->tree, NULL, NULL);
    found_free(&list);
}

static void fetch_found(struct fetching *fetching, const struct found *found)
{
    struct arena *arena = arena_new();
    struct error error;
    struct vfile file;
    progress_begin(&fetching->progress, found->path, found->attributes.size);
    if (!tree_file(fetching->tree, found->attributes.id, arena, &file, &error) ||
        !fetch_file(fetching, &file, &error)) {
        progress_hide(&fetching->progress);
        report("%s: %s", found->path, error.message);
        fetching->failed = true;
    }
    progress_end(&fetching->progress);
    arena_free(arena);
}

/* Fetches the bytes that the files named by the paths are computed from, including files in directories. */
static void fetch_paths(struct fetching *fetching, char *const *paths, size_t n_paths)
{
    struct found_list list = {0}, files = {0};
    fetching->failed = !paths_find_all(fetching->tree, paths, n_paths, &list);
    for (size_t i = 0; i < list.n_items; i++)
        if (list.items[i].attributes.directory)
            paths_find_below(fetching->tree, list.items[i].path, list.items[i].attributes.id, &files);
        else
            found_add(&files, list.items[i].path, &list.items[i].attributes);
    for (size_t i = 0; i < files.n_items; i++)
        fetch_found(fetching, &files.items[i]);
    found_free(&files);
    found_free(&list);
}

static int run(const struct invocation *invocation)
{
    struct fetching fetching = {.tree = command_open(invocation->arguments[0], invocation->options)};
    if (fetching.tree == NULL)
        return EXIT_BAD_INPUT;
    if (invocation->n_arguments == 1)
        fetch_all(&fetching);
    else
        fetch_paths(&fetching, invocation->arguments + 1, invocation->n_arguments - 1);
    command_close(fetching.tree);
    return fetching.failed ? EXIT_BAD_INPUT : EXIT_SUCCESS;
}

const struct command fetch_command = {
    .name = "fetch",
    .usage = "SOURCE [PATH...]",
    .summary = "Fetch a model from a server, or what its virtual files need",
    .text =
        "What is in the cache already is not fetched again, so that an interrupted fetch can be continued. After it, "
        "-o offline works.",
    .examples =
        (const struct example[]){
            {"wfs fetch hf://Qwen/Qwen2.5-0.5B", "fetch all of a model"},
            {"wfs fetch hf://Qwen/Qwen2.5-0.5B tensors/lm_head.weight", "fetch one tensor"},
            {0},
        },
    .min_arguments = 1,
    .max_arguments = SIZE_MAX,
    .takes_options = true,
    .run = run,
};
