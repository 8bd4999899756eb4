/* Paddle's static models: inference.pdiparams, whose tensors have no names, beside inference.json or .pdmodel, which
 * has them; or __params__ beside __model__ (static.h). The program itself is not shown.
 *
 * Files of paddle.save() are pickles: formats/torch. */
#include "base/text.h"
#include "formats/checkpoint_builder.h"
#include "formats/format.h"
#include "formats/paddle/static.h"

#include <string.h>

/* The endings of a file of tensors, and of the programs that may lie beside it. */
static const struct pair {
    const char *tensors, *program;
    bool is_json;
} pairs[] = {
    {".pdiparams", ".json", true},
    {".pdiparams", ".pdmodel", false},
    {"__params__", "__model__", false},
};
enum { N_PAIRS = sizeof pairs / sizeof *pairs };

/* Returns the only file of tensors in a directory; NULL: none, or several. */
static const char *find_tensors(const struct input *input)
{
    const char *found = NULL;
    for (size_t i = 0; i < input->list.count; i++) {
        const char *name = input->list.entries[i].name;
        if (!text_ends_with(name, pairs[0].tensors) && strcmp(name, pairs[N_PAIRS - 1].tensors) != 0)
            continue;
        if (found != NULL)
            return NULL;
        found = name;
    }
    return found;
}

/* Returns the pair of a file of tensors whose program is beside it; *ret_program is the program's name. */
static const struct pair *find_program(const struct input *input, struct arena *arena, const char *file,
                                       const char **ret_program)
{
    for (const struct pair *pair = pairs; pair < pairs + N_PAIRS; pair++) {
        if (!text_ends_with(file, pair->tensors))
            continue;
        int stem = (int)(strlen(file) - strlen(pair->tensors));
        *ret_program = arena_printf(arena, "%.*s%s", stem, file, pair->program);
        if (input_has(input, *ret_program))
            return pair;
    }
    return NULL;
}

static bool paddle_open(struct checkpoint *checkpoint, const struct input *input, const struct open_options *options,
                        struct error *error)
{
    const char *name = input->file_name != NULL ? input->file_name : find_tensors(input), *program_name;
    struct source *file = location_source(input->location, name, error);
    if (file == NULL)
        return false;
    checkpoint_add_source(checkpoint, file);
    const struct pair *pair = find_program(input, checkpoint->arena, name, &program_name);
    if (pair == NULL)
        return error_set(error, "%s: the program that has its tensors' names, .json or .pdmodel, is not beside it",
                         name);
    struct source *program = location_source(input->location, program_name, error);
    if (program == NULL)
        return false;
    checkpoint_add_guide(checkpoint, program);
    if (!paddle_static_read(checkpoint, file, program, pair->is_json, options->allow_trailing, error))
        return false;
    format_add_side_files(checkpoint, input);
    return true;
}

static enum probe probe(const struct input *input)
{
    if (input->location == NULL)
        return PROBE_NO;
    if (input->file == NULL)
        return find_tensors(input) != NULL ? PROBE_LIKELY : PROBE_NO;
    return text_ends_with(input->file_name, pairs[0].tensors) ||
                   strcmp(input->file_name, pairs[N_PAIRS - 1].tensors) == 0
               ? PROBE_SURE
               : PROBE_NO;
}

static const struct extension extensions[] = {{".pdiparams"}, {0}};

const struct format paddle_format = {
    .name = "paddle",
    .extensions = extensions,
    .summary = "Paddle's static models: .pdiparams beside .json or .pdmodel",
    .probe = probe,
    .open = paddle_open,
};
