#include "base/report.h"
#include "fs/cli/command.h"
#include "fs/cli/compare/checks.h"
#include "fs/cli/info/info_pages.h"
#include "fs/cli/info/json_page.h"
#include "fs/cli/terminal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Prints the page of a source; with `all`, also its lists, and then the pages of its components. The next command is
 * that of `invocation`; NULL: none, of a component. */
static void print_page(struct tree *tree, const struct profile *profile, bool all, bool colour,
                       const struct invocation *invocation)
{
    print_summary(tree, profile, colour);
    if (invocation != NULL)
        print_next(tree, invocation->arguments[0], invocation->options);
    if (all)
        print_lists(tree, profile);
    for (size_t i = 0; all && i < profile_components(tree); i++) {
        struct component_profile component;
        struct arena *arena = arena_new();
        putchar('\n');
        profile_component(&component, tree, i, arena);
        if (component.tree != NULL)
            print_page(component.tree, &component.facts, all, colour, NULL);
        arena_free(arena);
    }
}

static void print_source(struct tree *tree, bool all, bool colour, const struct invocation *invocation)
{
    struct profile profile;
    struct arena *arena = arena_new();
    profile_gather(&profile, tree, arena);
    print_page(tree, &profile, all, colour, invocation);
    arena_free(arena);
}

static void print_json(struct tree *tree)
{
    struct json_page page;
    json_page_begin(&page);
    info_put(&page.writer, tree);
    json_page_print(&page);
}

enum { FLAG_QUANTIZATION, FLAG_ALL, FLAG_JSON, FLAG_ARCHITECTURES, FLAG_COLOUR, FLAG_HTML, FLAG_CHECK };

/* Returns the word for the use of colours; NULL: not given. */
static const char *colour_word(const struct invocation *invocation)
{
    bool is_bare = invocation->flags[FLAG_COLOUR] && invocation->values[FLAG_COLOUR] == NULL;
    return is_bare ? "always" : invocation->values[FLAG_COLOUR];
}

/* Checks the combination of arguments; reports the first problem and returns false. */
static bool makes_sense(const struct invocation *invocation)
{
    const char *when = colour_word(invocation);
    if (invocation->n_arguments == 0)
        report("info: no SOURCE; try 'wfs info --help'");
    else if (invocation->flags[FLAG_HTML] && !invocation->flags[FLAG_QUANTIZATION])
        report("info: --html needs --quantization");
    else if (invocation->flags[FLAG_CHECK] && (invocation->flags[FLAG_JSON] || invocation->flags[FLAG_HTML]))
        report("info: --check writes text, not JSON or HTML");
    else if (when != NULL && strcmp(when, "always") != 0 && strcmp(when, "never") != 0 && strcmp(when, "auto") != 0)
        report("info: --color=%s must be always, never or auto", when);
    else
        return true;
    return false;
}

/* Returns false if an archive is damaged. */
static bool print_checks(const struct checkpoint *checkpoint)
{
    enum archives found = check_archives(checkpoint);
    if (found == ARCHIVES_NONE)
        puts("No checksums: no weights file is a zip archive.");
    return found != ARCHIVES_DAMAGED;
}

static int run(const struct invocation *invocation)
{
    struct error error;
    int status = EXIT_SUCCESS;
    if (invocation->flags[FLAG_ARCHITECTURES]) {
        (invocation->flags[FLAG_JSON] ? print_architectures_json : print_architectures)();
        return finish_output(EXIT_SUCCESS);
    }
    if (!makes_sense(invocation))
        return EXIT_MISUSE;
    bool colour = wants_colour(colour_word(invocation));
    bool is_library = invocation->options->library && !invocation->flags[FLAG_QUANTIZATION] &&
                      !invocation->flags[FLAG_JSON] && !invocation->flags[FLAG_CHECK];
    const struct quantization_page quantization_page = {
        .all = invocation->flags[FLAG_ALL],
        .json = invocation->flags[FLAG_JSON],
        .html = invocation->flags[FLAG_HTML],
        .colour = colour,
    };
    struct tree *tree = invocation->flags[FLAG_QUANTIZATION]
                            ? command_open_model(invocation->arguments[0], invocation->options)
                            : command_open(invocation->arguments[0], invocation->options);
    if (tree == NULL)
        return EXIT_BAD_INPUT;
    tree_on_checkpoint(tree, NULL, NULL); /* no messages about components: the page has them */
    if (is_library) {
        print_library(tree, invocation->arguments[0]);
    } else if (!invocation->flags[FLAG_QUANTIZATION] && invocation->flags[FLAG_JSON]) {
        print_json(tree);
    } else if (!invocation->flags[FLAG_QUANTIZATION]) {
        print_source(tree, invocation->flags[FLAG_ALL], colour, invocation);
    } else if (!print_quantizations(tree, &quantization_page, &error)) {
        report("%s", error.message);
        status = EXIT_BAD_INPUT;
    }
    if (invocation->flags[FLAG_CHECK] && !print_checks(tree_checkpoint(tree)))
        status = EXIT_BAD_INPUT;
    command_close(tree);
    return finish_output(status);
}

const struct command info_command = {
    .name = "info",
    .usage = "SOURCE",
    .summary = "Describe a model: its files, their sizes, what is left out and why",
    .group = READ_COMMAND,
    .flags =
        (const struct flag[]){
            {0, "quantization", "print size, bits and error of every quantization, and which to choose"},
            {0, "all", "print complete lists; with --quantization, measure all weights, not a sample"},
            {0, "json", "print JSON for scripts"},
            {0, "architectures", "list the model families with GGUF files; takes no SOURCE"},
            {0, "color", "use colours: always, never, or auto (on a terminal, unless NO_COLOR is set)",
             .argument = "WHEN"},
            {0, "html", "with --quantization, print an HTML page with plots"},
            {0, "check", "compare the checksum of every member of torch and numpy archives"},
            {0},
        },
    .examples =
        (const struct example[]){
            {"wfs info Qwen/Qwen2.5-0.5B", "describe a model in the local hub cache"},
            {"wfs info model.safetensors", "describe one file"},
            {"wfs info --quantization Qwen/Qwen2.5-0.5B", "measure the size and error of each quantized GGUF"},
            {"wfs info --quantization --html Qwen/Qwen2.5-0.5B >page.html", "draw the same figures for a browser"},
            {0},
        },
    .min_arguments = 0,
    .max_arguments = 1,
    .n_sources = 1,
    .takes_options = true,
    .run = run,
};
