#include "base/report.h"
#include "base/text.h"
#include "fs/cli/command.h"
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

/* Reports whether a file may be printed on a terminal; if not, reports why. */
static bool is_printable(wfs_file *file, const char *path)
{
    char beginning[512];
    struct wfs_error error;
    int64_t length = wfs_file_read(file, 0, beginning, sizeof beginning, &error);
    if (length < 0)
        report("%s", error.message);
    else if (looks_like_text(beginning, (size_t)length, wfs_file_size(file)))
        return true;
    else
        report("%s: a binary file, which would garble the terminal; redirect it to a file with '>FILE', or print it "
               "with --binary",
               path);
    return false;
}

static bool print_file(wfs_model *model, const char *path, bool only_text)
{
    struct wfs_error error;
    wfs_file *file = wfs_file_open(model, path, &error);
    bool is_wanted = file != NULL && (!only_text || is_printable(file, path));
    bool done = is_wanted && wfs_file_write(file, STDOUT_FILENO, &error);
    if (!done && (file == NULL || is_wanted))
        report("%s", error.message);
    wfs_file_close(file);
    return done;
}

/* Prints all files that an argument names. */
static bool print_path(wfs_model *model, char *path, bool only_text)
{
    struct found_list list = {0};
    bool all_printed = paths_find_all(model->tree, &path, 1, &list);
    for (size_t i = 0; i < list.n_items; i++)
        all_printed &= print_file(model, list.items[i].path, only_text);
    found_free(&list);
    return all_printed;
}

static int run(const struct invocation *invocation)
{
    wfs_model *model = command_open_library(invocation->arguments[0], invocation->options);
    if (model == NULL)
        return EXIT_BAD_INPUT;
    int status = EXIT_SUCCESS;
    bool only_text = isatty(STDOUT_FILENO) && !invocation->flags[FLAG_BINARY];
    for (size_t i = 1; i < invocation->n_arguments; i++)
        if (!print_path(model, invocation->arguments[i], only_text))
            status = EXIT_BAD_INPUT;
    wfs_close(model);
    return status;
}

const struct command cat_command = {
    .name = "cat",
    .usage = "SOURCE PATH...",
    .summary = "Write virtual files to standard output",
    .group = READ_COMMAND,
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
    .n_sources = 1,
    .takes_options = true,
    .run = run,
};
