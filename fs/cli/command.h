/* Subcommands, and the one table of them (commands.c).
 *
 * A new command takes a file `fs/cli/cmd_x.c` that exports `const struct command x_command`, and a row in the table.
 * Parsing, --help, the man page and the shell completions all use the rows. */
#pragma once

#include "fs/cli/sandbox.h"
#include "fs/lib/lib.h"

#include <stddef.h>

enum exit_status {
    EXIT_BAD_INPUT = 1,
    EXIT_MISUSE = 2,
    EXIT_TRY_AGAIN = 3,    /* for a scheduler of parts: the system failed, and the same command may succeed */
    EXIT_MOUNT_FAILED = 32 /* for mount(8) */
};

enum { COMMAND_MAX_FLAGS = 8 };

struct flag {
    char letter; /* 0: none */
    const char *name;
    const char *help;
    const char *argument; /* the value that may follow "--name="; NULL: none may */
    bool needs_argument;  /* the value is required: "--name=ARGUMENT" or "--name ARGUMENT" */
    bool repeats;         /* each value counts, not only the last; at most one flag of a command repeats */
    bool names_input;     /* the value is a file that is read as sources are */
    /* An optional value may also be the next word, if this accepts it; NULL: only "--name=value" has one. */
    bool (*is_value)(const char *word);
};

/* What a command is for, in the order of `wfs --help`. */
enum command_group { UNLISTED_COMMAND, MOUNT_COMMAND, READ_COMMAND, COMPARE_COMMAND, SERVER_COMMAND };

struct example {
    const char *line, *meaning;
};

/* The parsed command line. */
struct invocation {
    const struct command *command;
    struct options *options;
    bool flags[COMMAND_MAX_FLAGS];         /* by index in command->flags */
    const char *values[COMMAND_MAX_FLAGS]; /* the flags' values; NULL: not given */
    const char **repeated;                 /* the values of the flag that repeats, in the order given */
    size_t n_repeated;
    char **arguments; /* NULL-terminated */
    size_t n_arguments;
    char **program; /* the words after "--" for a command that runs a program, NULL-terminated */
};

struct command {
    const char *name;
    const char *usage;        /* the operands: "SOURCE [PATH]" */
    const char *summary;      /* fits in a line of `wfs --help` */
    enum command_group group; /* UNLISTED_COMMAND: left out of help */
    const char *text;         /* more lines of help; may be NULL */
    const struct flag *flags;
    const struct example *examples; /* both ended by a row of NULLs, or NULL */
    size_t min_arguments, max_arguments;
    size_t n_sources;           /* how many operands are sources, from the first on; SIZE_MAX: all */
    bool takes_options;         /* -o */
    bool only_opens;            /* takes only options for opening a source */
    bool mounts;                /* options for mounts have an effect */
    bool takes_program;         /* "-- CMD ..." */
    bool compares;              /* exits with 1 if two things differ */
    bool writes;                /* to the last operand */
    bool uses_store;            /* the store of kept bytes, whatever the sources are */
    bool enters_sandbox_itself; /* or needs the environment, or rights that the sandbox takes away */
    int (*run)(const struct invocation *invocation); /* returns the exit status */
};

/* In the order of --help; ends with NULL. */
extern const struct command *const commands[];

/* The command for mount(8) and fstab, which name no command. */
extern const struct command mount_command;

/* Returns the command of that name, or NULL. */
const struct command *command_find(const char *name);

/* Reports whether the command has a flag of that letter; without such a flag, -h is --help. */
bool command_has_letter(const struct command *command, char letter);

/* Reports whether an option has an effect on a command that takes options. */
bool command_takes_option(const struct command *command, const struct option_row *row);

/* Opens a source and returns its tree, or reports the error and returns NULL. The options must outlive the tree. */
struct tree *command_open(const char *source, const struct options *options);

/* Like command_open(), for commands that need the tensors of one model: refuses pipelines. */
struct tree *command_open_model(const char *source, const struct options *options);

void command_close(struct tree *tree); /* frees the checkpoint, too */

/* Returns what a command reads and writes by its row, in the arena. */
struct command_needs command_needs(const struct invocation *invocation, struct arena *arena);

/* Enters the sandbox with these needs, and reads the files of options. Returns -1, or the exit status after a failure,
 * which it reports. */
int command_confine(const struct invocation *invocation, const struct command_needs *needs);

/* Returns the status for bad input: to commands that compare, 1 means a difference. */
int command_bad_input(const struct command *command);

/* Like command_open(), for commands that use wfs.h; wfs_close() closes the model. */
wfs_model *command_open_library(const char *source, const struct options *options);

/* Flushes stdout and returns the status; reports a failed write and returns 1. */
int finish_output(int status);

/* Print `wfs --help`, `wfs CMD --help` and `wfs help options` to stdout. */
void usage_print(void);
void usage_print_command(const struct command *command);
void usage_print_options(void);

/* The commit that the program was built from, as `git describe` says it: "v0.2.0", "v0.2.0-3-g1a2b3c4d",
 * "1a2b3c4d-dirty"; "none" where the sources are no clone. It is for people: builds of equal sources agree, whatever it
 * is (fs/tree/identity.h). */

extern const char wfs_revision[];
