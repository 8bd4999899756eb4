/* Subcommands, and the one table of them (commands.c).
 *
 * To add one: `fs/cli/cmd_x.c` exporting `const struct command x_command`, and a row in the table. Parsing, --help, the
 * man page and the shell completions are made from the rows. */
#pragma once

#include "fs/cli/options.h"

#include <stddef.h>

enum exit_status { EXIT_BAD_INPUT = 1, EXIT_MISUSE = 2, EXIT_MOUNT_FAILED = 32 /* for mount(8) */ };

enum { COMMAND_MAX_FLAGS = 8 };

struct flag {
    char letter; /* 0: none */
    const char *name;
    const char *help;
    const char *argument; /* what may follow "--name="; NULL: nothing may */
    bool needs_argument;  /* "--name=ARGUMENT" or "--name ARGUMENT" */
};

struct example {
    const char *line, *meaning;
};

/* The parsed command line. */
struct invocation {
    const struct command *command;
    const struct options *options;
    bool flags[COMMAND_MAX_FLAGS];         /* by the index of the command's row */
    const char *values[COMMAND_MAX_FLAGS]; /* their arguments; NULL: none was given */
    char **arguments;                      /* NULL-terminated */
    size_t n_arguments;
    char **program; /* what comes after "--" for a command that runs one, NULL-terminated */
};

struct command {
    const char *name;
    const char *usage;   /* what comes after the name and the flags: "SOURCE [PATH]" */
    const char *summary; /* one line */
    const char *text;    /* more about it, wrapped by hand; may be NULL */
    const struct flag *flags;
    const struct example *examples; /* both ended by a row of NULLs */
    size_t min_arguments, max_arguments;
    bool takes_options;                              /* -o */
    bool only_opens;                                 /* of the options only those that say how a source is opened */
    bool mounts;                                     /* options for mounts mean something */
    bool takes_program;                              /* "-- CMD ..." */
    bool compares;                                   /* exits with 1 where two things differ */
    bool hidden;                                     /* from --help */
    int (*run)(const struct invocation *invocation); /* returns the exit status */
};

/* NULL at the end. */
extern const struct command *const commands[];

/* The command of mount(8) and fstab, which name none. */
extern const struct command mount_command;

const struct command *command_find(const char *name);

/* Reports whether the command has a flag of that letter; -h is --help where it has none. */
bool command_has_letter(const struct command *command, char letter);

/* Reports whether an option means something to a command that takes options. */
bool command_takes_option(const struct command *command, const struct option_row *row);

/* A source as the options have it, with the adapters that are to be merged. */
const struct checkpoint *command_open_checkpoint(const char *source, const struct options *options,
                                                 struct error *error);

/* The tree of a source; where it cannot be opened, NULL, and the error has been reported. command_close() frees the
 * checkpoint as well. */
struct tree *command_open(const char *source, const struct options *options);

/* The same for what needs the tensors of one model: a pipeline is refused. */
struct tree *command_open_model(const char *source, const struct options *options);
void command_close(struct tree *tree);

/* Flushes stdout: what could not be written is reported, and makes the status 1. */
int finish_output(int status);

/* "wfs --help", "wfs CMD --help" on stdout. */
void usage_print(void);
void usage_print_command(const struct command *command);
