/* wfs layout check: the files and tensors that a layout makes from a model. */
#include "fs/cli/command.h"

#include "base/report.h"
#include "base/text.h"
#include "fs/cli/source_roots.h"
#include "fs/lib/layouts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LISTED_SOURCES = 3 };

static void print_file(const char *name, size_t n_tensors, uint64_t n_bytes)
{
    text_put(name, stdout);
    printf(": %zu tensors, %" PRIu64 " bytes of values\n", n_tensors, n_bytes);
}

static void print_tensor(const struct layout_tensor *tensor)
{
    char shape[256];
    printf("  ");
    text_put(tensor->name, stdout);
    printf(" %s %s <- ", tensor->type, shape_text(tensor->shape, tensor->rank, shape, sizeof shape));
    for (unsigned i = 0; i < tensor->n_sources && i < LISTED_SOURCES; i++) {
        printf(i > 0 ? ", " : "");
        text_put(tensor->sources[i], stdout);
    }
    fputs(tensor->n_sources > LISTED_SOURCES ? ", ...  (" : "  (", stdout);
    text_put(tensor->place, stdout);
    puts(")");
}

static void print_document(const char *name, size_t length)
{
    text_put(name, stdout);
    printf(": %zu bytes\n", length);
}

static void print_unused(const char *tensor)
{
    static bool has_title;
    printf(has_title ? "  " : "not used:\n  ");
    has_title = true;
    text_put(tensor, stdout);
    putchar('\n');
}

/* Enters the sandbox. The layout may be a file, and its parameters may name others. */
static int confine(const struct invocation *invocation, struct arena *arena)
{
    const char *const *layout = texts_of_value(invocation->arguments[1], arena);
    size_t n = 0;
    while (layout[n] != NULL)
        n++;
    const char **sources = arena_array(arena, n + 1, sizeof *sources);
    memcpy(sources, layout, n * sizeof *sources);
    sources[n] = invocation->arguments[2];
    return command_confine(invocation, &(struct command_needs){.sources = sources, .n_sources = n + 1});
}

static int run(const struct invocation *invocation)
{
    struct error error;
    if (strcmp(invocation->arguments[0], "check") != 0) {
        report("layout: unknown action '%s'; the action is check", invocation->arguments[0]);
        return EXIT_MISUSE;
    }
    struct arena *arena = arena_new();
    int status = confine(invocation, arena);
    if (status >= 0) {
        arena_free(arena);
        return status;
    }
    static const struct layout_taker printer = {print_file, print_tensor, print_document, print_unused};
    bool fits = layout_check(invocation->arguments[1], invocation->arguments[2], invocation->options, &printer, &error);
    if (!fits)
        report("%s", error.message);
    arena_free(arena);
    return finish_output(fits ? EXIT_SUCCESS : EXIT_BAD_INPUT);
}

const struct command layout_command = {
    .name = "layout",
    .usage = "check LAYOUT SOURCE",
    .summary = "Print what a layout of an engine makes from a model, or the error",
    .group = READ_COMMAND,
    .text = "LAYOUT is the name of a built-in layout or a .json file, with parameters after a colon as for -o layout=. "
            "Each tensor is printed with its\nsources and the row of the layout file.",
    .examples =
        (const struct example[]){
            {"wfs layout check antigravity meta-llama/Llama-3.2-1B", "print the files for an on-device engine"},
            {"wfs layout check my.json:tp=2 model/", "try your own layout file"},
            {0},
        },
    .min_arguments = 3,
    .max_arguments = 3,
    .takes_options = true,
    .enters_sandbox_itself = true,
    .run = run,
};
