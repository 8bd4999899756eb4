#include "base/report.h"
#include "base/text.h"
#include "fs/cli/command.h"
#include "fs/lib/paths.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FLAG_BINARY, FLAG_RANGE };

/* What is printed of each file. */
struct wanted {
    bool only_text;
    uint64_t offset, length; /* bytes; a length past the end is no error */
};

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

/* Reports whether a file may be printed on a terminal, from an offset on; if not, reports why. */
static bool is_printable(wfs_file *file, const char *path, uint64_t offset)
{
    char beginning[512];
    struct wfs_error error;
    int64_t length = wfs_file_read(file, offset, beginning, sizeof beginning, &error);
    if (length < 0)
        report("%s", error.message);
    else if (looks_like_text(beginning, (size_t)length, wfs_file_size(file) - offset))
        return true;
    else
        report("%s: a binary file, which would garble the terminal; redirect it to a file with '>FILE', or print it "
               "with --binary",
               path);
    return false;
}

/* Prints the error for a range that begins after the end of a file. */
static bool is_in_file(const wfs_file *file, const char *path, uint64_t offset)
{
    if (offset <= wfs_file_size(file))
        return true;
    report("%s: has %" PRIu64 " bytes, and --range begins at %" PRIu64, path, wfs_file_size(file), offset);
    return false;
}

static bool print_file(wfs_model *model, const char *path, const struct wanted *wanted)
{
    struct wfs_error error;
    wfs_file *file = wfs_file_open(model, path, &error);
    bool is_wanted = file != NULL && is_in_file(file, path, wanted->offset) &&
                     (!wanted->only_text || is_printable(file, path, wanted->offset));
    bool done = is_wanted && wfs_file_write_range(file, wanted->offset, wanted->length, STDOUT_FILENO, &error);
    if (!done && (file == NULL || is_wanted))
        report("%s", error.message);
    wfs_file_close(file);
    return done;
}

/* Reports whether a path names no file, but the archive of a directory: "hf.tar". */
static bool is_archive(wfs_model *model, const char *path)
{
    static const char ending[] = ".tar";
    struct error unsaid;
    struct node_attributes attributes;
    struct arena *arena = arena_new();
    bool is_one =
        text_ends_with(path, ending) && !tree_walk(model->tree, path, &attributes, &unsaid) &&
        tree_walk(model->tree, arena_strndup(arena, path, strlen(path) - strlen(ending)), &attributes, &unsaid) &&
        attributes.directory;
    arena_free(arena);
    return is_one;
}

/* Prints all files that an argument names. */
static bool print_path(wfs_model *model, char *path, const struct wanted *wanted)
{
    if (is_archive(model, path))
        return print_file(model, path, wanted);
    struct found_list list = {0};
    bool all_printed = paths_find_all(model->tree, &path, 1, &list);
    for (size_t i = 0; i < list.n_items; i++)
        all_printed &= print_file(model, list.items[i].path, wanted);
    found_free(&list);
    return all_printed;
}

/* Parses digits up to `end`, which *text then points behind. */
static bool parse_number(const char **text, char end, uint64_t *ret_number)
{
    char *rest;
    errno = 0;
    *ret_number = strtoull(*text, &rest, 10);
    if (!isdigit((unsigned char)**text) || errno != 0 || *rest != end)
        return false;
    *text = end != '\0' ? rest + 1 : rest;
    return true;
}

/* Parses OFFSET:LENGTH; without LENGTH, the range goes to the end. */
static bool parse_range(const char *text, struct wanted *wanted)
{
    return parse_number(&text, ':', &wanted->offset) && (*text == '\0' || parse_number(&text, '\0', &wanted->length));
}

static int run(const struct invocation *invocation)
{
    struct wanted wanted = {.only_text = isatty(STDOUT_FILENO) && !invocation->flags[FLAG_BINARY],
                            .length = UINT64_MAX};
    if (invocation->flags[FLAG_RANGE] && !parse_range(invocation->values[FLAG_RANGE], &wanted)) {
        report("cat: --range: '%s' is not OFFSET:LENGTH in bytes", invocation->values[FLAG_RANGE]);
        return EXIT_MISUSE;
    }
    wfs_model *model = command_open_library(invocation->arguments[0], invocation->options);
    if (model == NULL)
        return EXIT_BAD_INPUT;
    int status = EXIT_SUCCESS;
    for (size_t i = 1; i < invocation->n_arguments; i++)
        if (!print_path(model, invocation->arguments[i], &wanted))
            status = EXIT_BAD_INPUT;
    wfs_close(model);
    return status;
}

const struct command cat_command = {
    .name = "cat",
    .usage = "SOURCE PATH...",
    .summary = "Write virtual files to standard output",
    .group = READ_COMMAND,
    .flags =
        (const struct flag[]){
            {0, "binary", "print binary files even if standard output is a terminal"},
            {0, "range",
             "print LENGTH bytes of each file from OFFSET on, or all up to its end if LENGTH is left out; "
             "nothing else is computed",
             "OFFSET:LENGTH", .needs_argument = true},
            {0},
        },
    .examples =
        (const struct example[]){
            {"wfs cat model.safetensors metadata.json | jq '.tensors[].name'", "print the names of all tensors"},
            {"wfs cat model.safetensors tensors/lm_head.weight/f32 | od -A d -t f4 -N 400",
             "print the first hundred values"},
            {"wfs cat model hf.tar | ssh host tar x", "send a directory as one archive"},
            {"wfs cat --range 1048576:65536 model.safetensors model.gguf >piece",
             "write 64 KiB from the second MiB on"},
            {0},
        },
    .min_arguments = 2,
    .max_arguments = SIZE_MAX,
    .n_sources = 1,
    .takes_options = true,
    .run = run,
};
