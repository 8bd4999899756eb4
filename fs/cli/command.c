#include "fs/cli/command.h"

#include "base/report.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

bool command_takes_option(const struct command *command, const struct option_row *row)
{
    return (command->mounts || row->group != MOUNT_OPTION) && (!command->only_opens || option_is_for_opening(row));
}

bool command_has_letter(const struct command *command, char letter)
{
    for (const struct flag *flag = command->flags; flag != NULL && flag->name != NULL; flag++)
        if (flag->letter == letter)
            return true;
    return false;
}

/* Reports a component without usable weights when it opens. */
static void report_failure(void *unused, const struct checkpoint *checkpoint)
{
    if (checkpoint->failure != NULL)
        report("%s: %s", checkpoint->model_name, checkpoint->failure);
}

/* Reports the error if there is no tree. */
static struct tree *reported(struct tree *tree, const struct error *error)
{
    if (tree == NULL)
        report("%s", error->message);
    else
        tree_on_checkpoint(tree, report_failure, NULL);
    return tree;
}

struct tree *command_open(const char *source, const struct options *options)
{
    struct error error;
    return reported(lib_open(source, options, &error), &error);
}

struct tree *command_open_model(const char *source, const struct options *options)
{
    struct error error;
    return reported(lib_open_model(source, options, &error), &error);
}

void command_close(struct tree *tree)
{
    lib_close_tree(tree);
}

wfs_model *command_open_library(const char *source, const struct options *options)
{
    struct tree *tree = command_open(source, options);
    return tree != NULL ? lib_model(tree, options) : NULL;
}

struct command_needs command_needs(const struct invocation *invocation, struct arena *arena)
{
    const struct command *command = invocation->command;
    size_t n = invocation->n_arguments, count = n < command->n_sources ? n : command->n_sources;
    const char **sources = arena_array(arena, count + COMMAND_MAX_FLAGS, sizeof *sources);
    for (size_t i = 0; i < count; i++)
        sources[i] = invocation->arguments[i];
    for (size_t i = 0; command->flags != NULL && command->flags[i].name != NULL; i++)
        if (command->flags[i].names_input && invocation->values[i] != NULL)
            sources[count++] = invocation->values[i];
    return (struct command_needs){
        .sources = sources,
        .n_sources = count,
        .is_library = invocation->options->library,
        .destination = command->writes && n > 0 ? invocation->arguments[n - 1] : NULL,
        .uses_store = command->uses_store,
    };
}

int command_confine(const struct invocation *invocation, const struct command_needs *needs)
{
    struct error error;
    enter_command_sandbox(needs, invocation->options);
    if (options_read_files(invocation->options, &error))
        return -1;
    report("%s", error.message);
    return invocation->options->has_bad_file ? command_bad_input(invocation->command) : EXIT_MISUSE;
}

int command_bad_input(const struct command *command)
{
    return command->compares ? EXIT_MISUSE : EXIT_BAD_INPUT;
}

int finish_output(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    report("standard output: %s", strerror(errno));
    return EXIT_BAD_INPUT;
}
