#include "fs/cli/command.h"
#include "fs/cli/terminal.h"

#include <stdio.h>
#include <string.h>

enum { COMMAND_COLUMN = 11, HELP_COLUMN = 24, EXAMPLE_INDENT = 6 };

static void print_text(const char *text, unsigned column, unsigned indent)
{
    print_wrapped(text, column, indent, pager_columns());
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

static void print_option(const struct option_row *row)
{
    char words[64];
    snprintf(words, sizeof words, "%s%s%s", row->name, row->argument ? "=" : "", row->argument ? row->argument : "");
    print_row(words, row->help);
}

/* Prints the options of a command that most people need. */
static void print_common_options(const struct command *command)
{
    puts("\nOptions (-o NAME=VALUE,NAME,...; `wfs help options` lists all):");
    for (const struct option_row *row = option_rows; row->name != NULL; row++)
        if (row->is_common && command_takes_option(command, row))
            print_option(row);
}

void usage_print_options(void)
{
    static const char *const titles[N_OPTION_GROUPS] = {
        [SOURCE_OPTION] = "How the source is read",
        [MERGE_OPTION] = "Merged weights: adapters and recipes",
        [GGUF_OPTION] = "GGUF files",
        [QUANTIZED_OPTION] = "Quantized types and files",
        [ENGINE_OPTION] = "model.safetensors, hf/ and the directories of engines",
        [LIBRARY_OPTION] = "Libraries and lists",
        [STORE_OPTION] = "Servers, and bytes that are kept",
        [MOUNT_OPTION] = "Mounts only",
    };
    puts("Usage: -o NAME=VALUE,NAME,...; write a comma in a value as \"\\,\"");
    for (enum option_group group = 0; group < N_OPTION_GROUPS; group++) {
        printf("\n%s:\n", titles[group]);
        for (const struct option_row *row = option_rows; row->name != NULL; row++)
            if (row->group == group)
                print_option(row);
    }
}

static void print_example(const struct example *example)
{
    printf("  %s\n%*s", example->line, EXAMPLE_INDENT, "");
    print_text(example->meaning, EXAMPLE_INDENT, EXAMPLE_INDENT);
}

/* Prints the commands of a group; a build without FUSE has none that mount. */
static void print_commands(const char *title, enum command_group group)
{
    for (const struct command *const *command = commands; *command != NULL; command++) {
        if ((*command)->group != group)
            continue;
        if (title != NULL)
            puts(title);
        title = NULL;
        printf("  %-*s%s\n", COMMAND_COLUMN - 2, (*command)->name, (*command)->summary);
    }
}

static void print_first_example(const char *name)
{
    const struct command *command = command_find(name);
    if (command->group != UNLISTED_COMMAND)
        printf("  %s\n", command->examples->line);
}

void usage_print(void)
{
    puts("wfs shows any model checkpoint as files: each tensor in many types, model.gguf\n"
         "and its quantizations. It computes them when they are read.\n\n"
         "Usage: wfs COMMAND [FLAGS] [-o OPTION,...] SOURCE ...\n\n"
         "SOURCE is a file or directory of weights (safetensors, GGUF, torch, numpy, ONNX\n"
         "and others), ORG/NAME[@REV] in the local Hugging Face cache, hf://ORG/NAME,\n"
         "https://HOST/FOLDER/, s3://BUCKET/PREFIX, or a recipe.yaml of mergekit.\n");
    print_commands("Without a mount:", READ_COMMAND);
    print_commands("Mounts:", MOUNT_COMMAND);
    print_commands("Two models, or a file and its model:", COMPARE_COMMAND);
    print_commands("Servers and the cache:", SERVER_COMMAND);
    puts("\nExamples:");
    print_first_example("info");
    print_first_example("mount");
    print_first_example("cp");
    puts("\n`wfs COMMAND --help` describes a command, `wfs help options` all options,\n"
         "`man wfs` everything; `wfs --version` names the version.");
}

void usage_print_command(const struct command *command)
{
    printf("Usage: wfs %s %s%s%s\n\n", command->name, command->flags != NULL ? "[FLAGS] " : "",
           command->takes_options ? "[-o OPTION,...] " : "", command->usage);
    print_text(command->summary, 0, 0);
    if (command->examples != NULL)
        puts("\nExamples:");
    for (const struct example *example = command->examples; example != NULL && example->line != NULL; example++)
        print_example(example);
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
    print_row(command_has_letter(command, 'q') ? "    --quiet" : "-q, --quiet", "print no notes and no progress");
    print_row(command_has_letter(command, 'h') ? "    --help" : "-h, --help", "print this help");
    if (command->takes_options)
        print_common_options(command);
}
