#include "base/report.h"
#include "fs/cli/command.h"
#include "fs/cli/copy.h"
#include "fs/cli/paths.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static bool print_file(struct tree *tree, const struct found *found, struct error *error)
{
    struct vfile file;
    if (found->attributes.directory)
        return error_set(error, "%s: is a directory", *found->path != '\0' ? found->path : "/");
    struct arena *arena = arena_new();
    bool done = tree_file(tree, found->attributes.id, arena, &file, error) &&
                copy_file(&file, STDOUT_FILENO, NULL, NULL, error);
    arena_free(arena);
    return done || error_prefix(error, "%s", found->path);
}

/* Prints all files that an argument names. */
static bool print_path(struct tree *tree, const char *path)
{
    struct found_list list = {0};
    struct error error;
    bool all_printed = paths_find(tree, path, &list, &error);
    if (!all_printed)
        report("%s", error.message);
    for (size_t i = 0; i < list.n_items; i++)
        if (!print_file(tree, &list.items[i], &error)) {
            report("%s", error.message);
            all_printed = false;
        }
    found_free(&list);
    return all_printed;
}

static int run(const struct invocation *invocation)
{
    struct tree *tree = command_open(invocation->arguments[0], invocation->options);
    if (tree == NULL)
        return EXIT_BAD_INPUT;
    int status = EXIT_SUCCESS;
    for (size_t i = 1; i < invocation->n_arguments; i++)
        if (!print_path(tree, invocation->arguments[i]))
            status = EXIT_BAD_INPUT;
    command_close(tree);
    return status;
}

const struct command cat_command = {
    .name = "cat",
    .usage = "SOURCE PATH...",
    .summary = "Write files of the tree to standard output, without mounting",
    .examples =
        (const struct example[]){
            {"wfs cat model.safetensors metadata.json | jq '.tensors[].name'", "the names of all tensors"},
            {"wfs cat model.safetensors tensors/lm_head.weight/f32 | od -A d -t f4 -N 400", "the first hundred values"},
            {0},
        },
    .min_arguments = 2,
    .max_arguments = SIZE_MAX,
    .takes_options = true,
    .run = run,
};
