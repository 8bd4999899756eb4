#include "fs/cli/command.h"
#include "fs/cli/terminal.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { HELP_COLUMN = 24, EXAMPLE_INDENT = 6 };

static void print_text(const char *text, unsigned column, unsigned indent)
{
    print_wrapped(text, column, indent, terminal_columns(STDOUT_FILENO));
}

/* Prints "  words          help", on two lines if the words are long. */
static void print_row(const char *words, const char *help)
{
    if (strlen(words) + 4 > HELP_COLUMN)
        printf("  %s\n%*s", words, HELP_COLUMN, "");
    else
        printf("  %-*s", HELP_COLUMN - 2, words);
    print_text(help, HELP_COLUMN, HELP_COLUMN);
}

/* Prints the options of a command; NULL: of all commands. */
static void print_options(const struct command *command)
{
    int last = command == NULL || command->mounts;
    for (int mounts = 0; mounts <= last; mounts++) {
        puts(mounts ? "\nOptions for mounts only:"
                    : "\nOptions (-o NAME=VALUE,NAME,...; write a comma in a value as \"\\,\"):");
        for (const struct option_row *row = option_rows; row->name != NULL; row++) {
            char words[64];
            snprintf(words, sizeof words, "%s%s%s", row->name, row->argument ? "=" : "",
                     row->argument ? row->argument : "");
            if (row->for_mounts == (bool)mounts && (command == NULL || command_takes_option(command, row)))
                print_row(words, row->help);
        }
    }
}

static void print_example(const struct example *example)
{
    printf("  %s\n%*s", example->line, EXAMPLE_INDENT, "");
    print_text(example->meaning, EXAMPLE_INDENT, EXAMPLE_INDENT);
}

void usage_print(void)
{
    print_text("wfs shows any model checkpoint as files: each tensor in many types, model.gguf and its quantizations. "
               "It computes them when they are read.",
               0, 0);
    putchar('\n');
    puts("Usage: wfs COMMAND [FLAGS] [-o OPTION,...] SOURCE ...\n");
    print_text("SOURCE is a weights file (safetensors, GGUF, torch, numpy), a model directory, or ORG/NAME[@REV] in "
               "the local Hugging Face cache.",
               0, 0);
    puts("\nCommands:");
    for (const struct command *const *command = commands; *command != NULL; command++)
        if (!(*command)->hidden)
            print_row((*command)->name, (*command)->summary);
    print_row("COMMAND --help", "describe one command, with examples");
    print_row("--version", "print the version");
    print_options(NULL);
    puts("\nExamples:");
    for (const struct command *const *command = commands; *command != NULL; command++)
        if (!(*command)->hidden)
            print_example((*command)->examples);
}

void usage_print_command(const struct command *command)
{
    printf("Usage: wfs %s %s%s%s\n\n", command->name, command->flags != NULL ? "[FLAGS] " : "",
           command->takes_options ? "[-o OPTION,...] " : "", command->usage);
    print_text(command->summary, 0, 0);
    if (command->text != NULL) {
        putchar('\n');
        print_text(command->text, 0, 0);
    }
    puts("\nFlags:");
    for (const struct flag *flag = command->flags; flag != NULL && flag->name != NULL; flag++) {
        char words[64];
        if (flag->letter != 0)
            snprintf(words, sizeof words, "-%c, --%s", flag->letter, flag->name);
        else
            snprintf(words, sizeof words, "    --%s%s%s%s", flag->name,
                     flag->argument == NULL ? ""
                     : flag->needs_argument ? "="
                                            : "[=",
                     flag->argument != NULL ? flag->argument : "",
                     flag->argument != NULL && !flag->needs_argument ? "]" : "");
        print_row(words, flag->help);
    }
    print_row(command_has_letter(command, 'h') ? "    --help" : "-h, --help", "print this help");
    if (command->takes_options)
        print_options(command);
    puts("\nExamples:");
    for (const struct example *example = command->examples; example->line != NULL; example++)
        print_example(example);
}
