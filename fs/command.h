/* Subcommands, and the one table of them (commands.c).
 *
 * To add one: `fs/cmd_x.c` exporting `const struct command x_command`, and a row in the table. --help, the man page and the
 * shell completions are made from the rows. */
#pragma once

#include "fs/options.h"

enum { EXIT_BAD_INPUT = 1, EXIT_MISUSE = 2 };

struct flag {
    char letter;          /* 0: none */
    const char *name;     /* long name */
    const char *argument; /* NULL: takes none */
    const char *help;
};

struct command {
    const char *name;
    const char *usage;        /* "[-lR] SOURCE [PATH]" */
    const char *summary;      /* one line */
    const char *examples;     /* lines of commands with a word on each */
    const struct flag *flags; /* ended by one without a name; besides -o and --help, which all have */
    int (*run)(int n_arguments, char **arguments, struct options *options, const char *const *flag_values);
};

/* NULL at the end. */
extern const struct command *const commands[];
