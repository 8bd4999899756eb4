/* wfs layout check: the files and tensors that a layout makes from a model. */
#include "fs/cli/command.h"

#include "base/report.h"
#include "base/text.h"
#include "formats/shape.h"
#include "fs/cli/source_roots.h"
#include "models/layouts/make.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LISTED_SOURCES = 3 };

static void print_tensor(const struct artifact_tensor *written, const struct layout_origin *origin)
{
    const struct tensor *tensor = written->tensor;
    char shape[256];
    printf("  ");
    text_put(tensor->name, stdout);
    printf(" %s %s <- ", written->encoding.dtype->name, shape_text(tensor->shape, tensor->rank, shape, sizeof shape));
    for (unsigned i = 0; i < origin->n_sources && i < LISTED_SOURCES; i++) {
        printf(i > 0 ? ", " : "");
        text_put(origin->sources[i], stdout);
    }
    fputs(origin->n_sources > LISTED_SOURCES ? ", ...  (" : "  (", stdout);
    text_put(origin->place, stdout);
    puts(")");
}

static uint64_t bytes_of_values(const struct artifact *artifact)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < artifact->n_tensors; i++)
        bytes += artifact_tensor_bytes(&artifact->tensors[i]);
    return bytes;
}

static void print_product(const struct layout_product *product, const struct tensor_set *set)
{
    size_t n_unused = 0;
    for (size_t i = 0; i < product->n_artifacts; i++) {
        const struct artifact *artifact = &product->artifacts[i].artifact;
        text_put(product->artifacts[i].name, stdout);
        printf(": %zu tensors, %" PRIu64 " bytes of values\n", artifact->n_tensors, bytes_of_values(artifact));
        for (size_t j = 0; j < artifact->n_tensors; j++)
            print_tensor(&artifact->tensors[j], &product->artifacts[i].origins[j]);
    }
    for (size_t i = 0; i < product->n_texts; i++) {
        text_put(product->texts[i].name, stdout);
        printf(": %zu bytes\n", product->texts[i].length);
    }
    for (size_t i = 0; i < set->n_tensors; i++) {
        if (product->used[i])
            continue;
        printf(n_unused++ == 0 ? "not used:\n  " : "  ");
        text_put(set->tensors[i].name, stdout);
        putchar('\n');
    }
}

static bool check(const char *layout, const char *path, const struct options *options, struct arena *arena,
                  struct error *error)
{
    struct layout_request request;
    struct layout_product product;
    const struct hf_model *model = NULL;
    const struct checkpoint *checkpoint =
        layout_find(layout, arena, &request, error) ? lib_open_checkpoint(path, options, error) : NULL;
    bool fits = checkpoint != NULL && (model = hf_model_of(checkpoint, error)) != NULL &&
                layout_make(request.file, request.parameters, model, arena, &product, error);
    if (fits)
        print_product(&product, model->tensors);
    checkpoint_close(checkpoint);
    return fits;
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
    bool fits = check(invocation->arguments[1], invocation->arguments[2], invocation->options, arena, &error);
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
