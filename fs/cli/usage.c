#include "fs/cli/command.h"

#include <stdio.h>
#include <string.h>

enum { HELP_COLUMN = 30 };

/* "  words          help": on two lines where the words are long. */
static void print_row(const char *words, const char *help)
{
    if (strlen(words) + 4 > HELP_COLUMN)
        printf("  %s\n%*s%s\n", words, HELP_COLUMN, "", help);
    else
        printf("  %-*s%s\n", HELP_COLUMN - 2, words, help);
}

static void print_options(void)
{
    for (int mounts = 0; mounts <= 1; mounts++) {
        puts(mounts ? "\nOptions that matter only for mounts:"
                    : "\nOptions (-o NAME=VALUE,NAME,...; a comma in a value is \"\\,\"):");
        for (const struct option_row *row = option_rows; row->name != NULL; row++) {
            char words[64];
            snprintf(words, sizeof words, "%s%s%s", row->name, row->argument ? "=" : "", row->argument ? row->argument : "");
            if (row->for_mounts == (bool)mounts)
                print_row(words, row->help);
        }
    }
}

static void print_examples(const struct command *command)
{
    for (const struct example *example = command->examples; example->line != NULL; example++)
        printf("  %s\n      %s\n", example->line, example->meaning);
}

void usage_print(void)
{
    puts("wfs shows any model checkpoint as files: each tensor in many types, model.gguf and its quantizations, computed on "
         "read.\n");
    puts("Usage: wfs COMMAND [FLAGS] [-o OPTION,...] SOURCE ...\n");
    puts("SOURCE is a .safetensors file, a directory with a model, or ORG/NAME in the local hub cache.\n\nCommands:");
    for (const struct command *const *command = commands; *command != NULL; command++)
        if (!(*command)->hidden)
            print_row((*command)->name, (*command)->summary);
    print_row("COMMAND --help", "more about one, with examples");
    print_row("--version", "which wfs this is");
    print_options();
    puts("\nExamples:");
    for (const struct command *const *command = commands; *command != NULL; command++)
        if (!(*command)->hidden)
            printf("  %s\n      %s\n", (*command)->examples->line, (*command)->examples->meaning);
}

void usage_print_command(const struct command *command)
{
    printf("Usage: wfs %s %s%s%s\n\n%s.\n", command->name, command->flags != NULL ? "[FLAGS] " : "",
           command->takes_options ? "[-o OPTION,...] " : "", command->usage, command->summary);
    if (command->text != NULL)
        printf("\n%s\n", command->text);
    puts("\nFlags:");
    for (const struct flag *flag = command->flags; flag != NULL && flag->name != NULL; flag++) {
        char words[64];
        if (flag->letter != 0)
            snprintf(words, sizeof words, "-%c, --%s", flag->letter, flag->name);
        else
            snprintf(words, sizeof words, "    --%s", flag->name);
        print_row(words, flag->help);
    }
    print_row("-h, --help", "this text");
    if (command->takes_options)
        print_options();
    puts("\nExamples:");
    print_examples(command);
}
