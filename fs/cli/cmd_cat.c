#include "base/report.h"
#include "fs/cli/command.h"
#include "fs/cli/copy.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static bool print_file(struct tree *tree, const char *path, struct error *error)
{
    struct node_attributes attributes;
    struct vfile file;
    if (!tree_walk(tree, path, &attributes, error))
        return false;
    if (attributes.directory)
        return error_set(error, "%s: is a directory", path);
    struct arena *arena = arena_new();
    bool done = tree_file(tree, attributes.id, arena, &file, error) && copy_file(&file, STDOUT_FILENO, NULL, NULL, error);
    arena_free(arena);
    return done || error_prefix(error, "%s", path);
}

static int run(const struct invocation *invocation)
{
    struct tree *tree = command_open(invocation->arguments[0], invocation->options);
    if (tree == NULL)
        return EXIT_BAD_INPUT;
    int status = EXIT_SUCCESS;
    for (size_t i = 1; i < invocation->n_arguments; i++) {
        struct error error;
        if (print_file(tree, invocation->arguments[i], &error))
            continue;
        report("%s", error.message);
        status = EXIT_BAD_INPUT;
    }
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
            {"wfs cat model.safetensors tensors/lm_head.weight/f32 | head -c 400", "the first hundred values"},
            {0},
        },
    .min_arguments = 2,
    .max_arguments = SIZE_MAX,
    .takes_options = true,
    .run = run,
};
