#include "base/report.h"
#include "base/text.h"
#include "fs/cli/command.h"
#include "fs/cli/copy.h"
#include "fs/cli/paths.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FLAG_BINARY };

/* Reports whether the beginning of a file is text without control sequences for a terminal. */
static bool looks_like_text(const char *bytes, size_t length, uint64_t size)
{
    enum { LONGEST_CHARACTER = 4 };
    for (size_t i = 0; i < length; i++)
        if (((unsigned char)bytes[i] < ' ' && memchr("\t\n\f\r", bytes[i], 4) == NULL) || bytes[i] == 0x7f)
            return false;
    size_t valid = text_valid_prefix(bytes, length);
    return valid == length || (length < size && length - valid < LONGEST_CHARACTER); /* the last character is cut */
}

static bool refuse_binary(const struct vfile *file, struct error *error)
{
    char beginning[512];
    size_t length = file->size < sizeof beginning ? (size_t)file->size : sizeof beginning;
    if (!vfile_read(file, 0, length, beginning, error))
        return false;
    return looks_like_text(beginning, length, file->size) ||
           error_set(error, "a binary file, which would garble the terminal; redirect it to a file with '>FILE', or "
                            "print it with --binary");
}

static bool print_file(struct tree *tree, const struct found *found, bool only_text, struct error *error)
{
    struct vfile file;
    if (found->attributes.directory)
        return error_set(error, "%s: is a directory", *found->path != '\0' ? found->path : "/");
    struct arena *arena = arena_new();
    bool done = tree_file(tree, found->attributes.id, arena, &file, error) &&
                (!only_text || refuse_binary(&file, error)) && copy_file(&file, STDOUT_FILENO, NULL, NULL, error);
    arena_free(arena);
    return done || error_prefix(error, "%s", found->path);
}

/* Prints all files that an argument names. */
static bool print_path(struct tree *tree, char *path, bool only_text)
{
    struct found_list list = {0};
    struct error error;
    bool all_printed = paths_find_all(tree, &path, 1, &list);
    for (size_t i = 0; i < list.n_items; i++)
        if (!print_file(tree, &list.items[i], only_text, &error)) {
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
    bool only_text = isatty(STDOUT_FILENO) && !invocation->flags[FLAG_BINARY];
    for (size_t i = 1; i < invocation->n_arguments; i++)
        if (!print_path(tree, invocation->arguments[i], only_text))
            status = EXIT_BAD_INPUT;
    command_close(tree);
    return status;
}

const struct command cat_command = {
    .name = "cat",
    .usage = "SOURCE PATH...",
    .summary = "Write virtual files to standard output without mounting",
    .flags = (const struct flag[]){{0, "binary", "print binary files even if standard output is a terminal"}, {0}},
    .examples =
        (const struct example[]){
            {"wfs cat model.safetensors metadata.json | jq '.tensors[].name'", "print the names of all tensors"},
            {"wfs cat model.safetensors tensors/lm_head.weight/f32 | od -A d -t f4 -N 400",
             "print the first hundred values"},
            {0},
        },
    .min_arguments = 2,
    .max_arguments = SIZE_MAX,
    .takes_options = true,
    .run = run,
};
