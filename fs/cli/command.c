#include "fs/cli/command.h"

#include "base/report.h"
#include "fs/cli/library.h"
#include "models/derive/derive.h"
#include "models/formats.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

bool command_takes_option(const struct command *command, const struct option_row *row)
{
    return (command->mounts || !row->for_mounts) && (!command->only_opens || option_is_for_opening(row));
}

bool command_has_letter(const struct command *command, char letter)
{
    for (const struct flag *flag = command->flags; flag != NULL && flag->name != NULL; flag++)
        if (flag->letter == letter)
            return true;
    return false;
}

const struct checkpoint *command_open_checkpoint(const char *source, const struct options *options, struct error *error)
{
    if (options->library) {
        error_set(error, "option library: this command reads one model; name a model in %s", source);
        return NULL;
    }
    const struct checkpoint *read = checkpoint_open(source, formats, &options->open, error);
    const struct derive_options wanted = {
        .loras = options->loras, .recipe = options->recipe, .base = options->content.base, .whisper = options->whisper};
    return read != NULL ? derive(read, &wanted, error) : NULL;
}

/* Reports a component without usable weights when it opens. */
static void report_failure(void *unused, const struct checkpoint *checkpoint)
{
    if (checkpoint->failure != NULL)
        report("%s: %s", checkpoint->model_name, checkpoint->failure);
}

static struct tree *open_tree(const char *source, const struct options *opening, const struct options *options,
                              struct error *error)
{
    const struct checkpoint *checkpoint = command_open_checkpoint(source, opening, error);
    struct tree *tree = checkpoint != NULL ? tree_new(checkpoint, &options->content, error) : NULL;
    if (tree == NULL) {
        checkpoint_close(checkpoint);
        return NULL;
    }
    tree_on_checkpoint(tree, report_failure, NULL);
    return tree;
}

static struct tree *reported(struct tree *tree, const struct error *error)
{
    if (tree == NULL)
        report("%s", error->message);
    return tree;
}

struct tree *command_open(const char *source, const struct options *options)
{
    if (options->library)
        return library_open(&source, 1, options);
    struct options with_components = *options;
    struct error error;
    with_components.open.components = true;
    return reported(open_tree(source, &with_components, options, &error), &error);
}

struct tree *command_open_model(const char *source, const struct options *options)
{
    struct error error;
    return reported(open_tree(source, options, options, &error), &error);
}

struct tree *command_try_model(const char *source, const struct options *options, struct error *error)
{
    return open_tree(source, options, options, error);
}

void command_close(struct tree *tree)
{
    const struct checkpoint *checkpoint = tree_checkpoint(tree);
    tree_free(tree);
    checkpoint_close(checkpoint);
}

int finish_output(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    report("standard output: %s", strerror(errno));
    return EXIT_BAD_INPUT;
}
