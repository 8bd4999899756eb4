/* Parsing arguments by the tables of commands and options. */
#include "base/pool.h"
#include "base/process.h"
#include "base/report.h"
#include "base/text.h"
#include "fs/cli/command.h"
#include "fs/cli/terminal.h"
#include "sources/paths.h"

#include <ctype.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* getopt's values of the flags that all commands have, and of flag 0 of a command */
enum { QUIET = 998, HELP, LONG_FLAG };

/* Opens descriptors 0 to 2 if the caller closed them: a source opened as number 1 would get the output. Opens them in
 * the wrong direction, so that using them fails as it would have. */
static void hold_standard_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

static int misuse(const struct command *command, const char *why, const char *what)
{
    report("%s: %s%s; try 'wfs %s --help'", command->name, why, what, command->name);
    return EXIT_MISUSE;
}

/* Reports an unknown letter, with the flag that has it in the other case: ls and cp have -R. */
static int wrong_letter(const struct command *command, char letter)
{
    const char other = letter ^ ('a' ^ 'A'), typed[] = {'-', letter, '\0'};
    if (!isalpha((unsigned char)letter) || !command_has_letter(command, other))
        return misuse(command, "unknown flag ", typed);
    report("%s: unknown flag %s; did you mean -%c?", command->name, typed, other);
    return EXIT_MISUSE;
}

/* Reports a flag that getopt_long() rejects; `word` is the argument that holds it. */
static int wrong_flag(const struct command *command, const char *word)
{
    struct text_guess guess = {.typed = text_starts_with(word, "--") ? word + 2 : word};
    if (optopt >= QUIET)
        return misuse(command, "this flag takes no value: ", word);
    if (optopt != 0)
        return wrong_letter(command, (char)optopt);
    text_guess_try(&guess, "help");
    text_guess_try(&guess, "quiet");
    for (const struct flag *flag = command->flags; flag != NULL && flag->name != NULL; flag++)
        text_guess_try(&guess, flag->name);
    if (guess.best == NULL)
        return misuse(command, "unknown flag ", word);
    report("%s: unknown flag %s; did you mean --%s?", command->name, word, guess.best);
    return EXIT_MISUSE;
}

/* Reports a wrong number of operands: `extra` is the first extra one; NULL: one is missing. */
static int wrong_operands(const struct command *command, const char *extra)
{
    if (extra != NULL)
        report("%s: extra operand '%s'; usage: wfs %s %s", command->name, extra, command->name, command->usage);
    else
        report("missing operand; usage: wfs %s %s", command->name, command->usage);
    return EXIT_MISUSE;
}

/* Fills in getopt_long's tables for a command: the letters, such as ":o:hlR", and the long names. */
static void getopt_tables(const struct command *command, char *letters, struct option *names)
{
    letters += sprintf(letters, "%s", command->takes_options ? ":o:" : ":");
    *names++ = (struct option){"help", no_argument, NULL, HELP};
    *names++ = (struct option){"quiet", no_argument, NULL, QUIET};
    if (!command_has_letter(command, 'h'))
        *letters++ = 'h';
    if (!command_has_letter(command, 'q'))
        *letters++ = 'q';
    for (int i = 0; command->flags != NULL && command->flags[i].name != NULL; i++) {
        const struct flag *flag = &command->flags[i];
        if (flag->letter != 0)
            *letters++ = flag->letter;
        int argument = flag->needs_argument     ? required_argument
                       : flag->argument != NULL ? optional_argument
                                                : no_argument;
        *names++ = (struct option){flag->name, argument, NULL, LONG_FLAG + i};
    }
    *letters = '\0';
    *names = (struct option){0};
}

static int flag_index(const struct command *command, int found)
{
    if (found >= LONG_FLAG)
        return found - LONG_FLAG;
    int index = 0;
    while (command->flags[index].letter != found)
        index++;
    return index;
}

static void add_repeated(struct invocation *invocation, const char *value)
{
    invocation->repeated = memory_grow(invocation->repeated, invocation->n_repeated, sizeof *invocation->repeated);
    invocation->repeated[invocation->n_repeated++] = value;
}

static int end_help(void)
{
    int status = finish_output(EXIT_SUCCESS);
    pager_end();
    return status;
}

static int print_help(const struct command *command)
{
    pager_begin();
    usage_print_command(command);
    return end_help();
}

/* Parses the flags and operands. Returns an exit status if nothing is left to do, as after --help, or else -1. */
static int parse_arguments(int argc, char **argv, struct options *options, struct invocation *invocation)
{
    const struct command *command = invocation->command;
    char letters[8 + COMMAND_MAX_FLAGS];
    struct option names[COMMAND_MAX_FLAGS + 3];
    struct error error;
    int found, index;
    getopt_tables(command, letters, names);
    opterr = 0;
    while ((found = getopt_long(argc, argv, letters, names, NULL)) != -1) {
        found = found == 'h' && !command_has_letter(command, 'h') ? HELP : found;
        found = found == 'q' && !command_has_letter(command, 'q') ? QUIET : found;
        switch (found) {
        case HELP:
            return print_help(command);
        case QUIET:
            report_be_quiet();
            break;
        case 'o':
            if (options_parse(options, optarg, &error))
                break;
            report("%s", error.message);
            return options->has_bad_file ? command_bad_input(command) : EXIT_MISUSE;
        case ':':
            return misuse(command, "an argument must follow ", argv[optind - 1]);
        case '?':
            return wrong_flag(command, argv[optind - 1]);
        default:
            index = flag_index(command, found);
            invocation->flags[index] = true;
            invocation->values[index] = found >= LONG_FLAG ? optarg : NULL;
            if (command->flags[index].repeats)
                add_repeated(invocation, optarg);
        }
    }
    invocation->arguments = argv + optind;
    invocation->n_arguments = (size_t)(argc - optind);
    if (invocation->n_arguments < command->min_arguments)
        return wrong_operands(command, NULL);
    if (invocation->n_arguments > command->max_arguments)
        return wrong_operands(command, invocation->arguments[command->max_arguments]);
    return -1;
}

/* Cuts "-- CMD ..." off the arguments, and returns CMD. */
static char **split_program(int *argc, char **argv)
{
    for (int i = 0; i < *argc; i++)
        if (strcmp(argv[i], "--") == 0 && argv[i + 1] != NULL) {
            argv[i] = NULL;
            *argc = i;
            return argv + i + 1;
        }
    return NULL;
}

/* Returns the flag that a word is, "--name" without a value; NULL: none. */
static const struct flag *long_flag(const struct command *command, const char *word)
{
    for (const struct flag *flag = command->flags; flag != NULL && flag->name != NULL; flag++)
        if (word[0] == '-' && word[1] == '-' && strcmp(word + 2, flag->name) == 0)
            return flag;
    return NULL;
}

/* Joins "--name" and an optional value in the next word to "--name=value", which getopt_long() takes alone. */
static void join_values(const struct command *command, int *argc, char **argv, struct arena *arena)
{
    for (int i = 1; i + 1 < *argc && strcmp(argv[i], "--") != 0; i++) {
        const struct flag *flag = long_flag(command, argv[i]);
        if (flag == NULL || flag->is_value == NULL || !flag->is_value(argv[i + 1]))
            continue;
        argv[i] = arena_printf(arena, "%s=%s", argv[i], argv[i + 1]);
        memmove(argv + i + 1, argv + i + 2, (size_t)(*argc - i - 1) * sizeof *argv);
        --*argc;
    }
}

/* Takes rights away by the command's row, once its words are understood: nothing that they name has been opened yet. */
static int confine(const struct invocation *invocation)
{
    struct arena *arena = arena_new();
    const struct command_needs needs = command_needs(invocation, arena);
    int status = command_confine(invocation, &needs);
    arena_free(arena);
    return status;
}

/* Runs a command, whose name is argv[0]. */
static int run_command(const struct command *command, int argc, char **argv)
{
    struct options options;
    struct invocation invocation = {.command = command, .options = &options};
    struct arena *arena = arena_new();
    if (command->takes_program)
        invocation.program = split_program(&argc, argv);
    join_values(command, &argc, argv, arena);
    options_init(&options);
    remote_use(&options.open.remote);
    options.only_opening = command->only_opens;
    options.delays_files = true;
    int status = parse_arguments(argc, argv, &options, &invocation);
    if (status < 0 && command->takes_program && invocation.program == NULL)
        status = wrong_operands(command, NULL);
    if (status < 0 && !command->enters_sandbox_itself)
        status = confine(&invocation);
    if (status < 0)
        status = command->run(&invocation);
    remote_use(NULL);
    options_free(&options);
    free(invocation.repeated);
    arena_free(arena);
    return status;
}

/* Runs as a helper of mount(8): `mount.wfs SOURCE MOUNTPOINT [-sfnv] [-N namespace] [-o options] [-t type]`. */
static int run_mount_helper(int argc, char **argv)
{
    struct options options;
    struct invocation invocation = {.command = &mount_command, .options = &options};
    struct error error;
    int found, status = EXIT_SUCCESS;
    bool fake = false, understood = true;
    options_init(&options);
    remote_use(&options.open.remote);
    options.for_helper = true;
    options.delays_files = true;
    opterr = 0;
    while ((found = getopt(argc, argv, "sfnvN:o:t:")) != -1) {
        fake |= found == 'f';
        if (found == 'o' && understood && !(understood = options_parse(&options, optarg, &error)))
            report("%s", error.message);
    }
    invocation.arguments = argv + optind;
    invocation.n_arguments = (size_t)(argc - optind);
    if (understood && invocation.n_arguments != 2)
        report("missing or extra operand; usage: mount.wfs SOURCE MOUNTPOINT [-o OPTION,...]");
    if (!understood || invocation.n_arguments != 2)
        status = EXIT_BAD_INPUT; /* mount(8) calls that misuse */
    else if (!fake && mount_command.run(&invocation) != EXIT_SUCCESS)
        status = EXIT_MOUNT_FAILED;
    remote_use(NULL);
    options_free(&options);
    return status;
}

/* Reports whether mount(8) runs wfs: as mount.wfs or mount.fuse.wfs, or by mount.fuse as "wfs SOURCE MOUNTPOINT -o". */
static bool is_mount_helper(int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/'), *name = slash != NULL ? slash + 1 : argv[0];
    return text_starts_with(name, "mount.") ||
           (argc > 3 && argv[1][0] != '-' && strcmp(argv[3], "-o") == 0 && command_find(argv[1]) == NULL);
}

/* Verbs of other tools, and the command or file of wfs for the same task. */
static const struct {
    const char *word, *hint;
} other_words[] = {
    {"convert", "'wfs cp SOURCE model.gguf DEST' writes a GGUF, 'wfs cp -r SOURCE hf DEST' a Hugging Face directory"},
    {"quantize",
     "'wfs cp SOURCE gguf/model-Q4_K_M.gguf DEST' writes a quantized GGUF; 'wfs ls SOURCE gguf' lists them"},
};

static bool is_source(const char *name)
{
    return strchr(name, '/') != NULL || local_kind(name) != LOCATION_NOTHING;
}

/* Guesses the meaning of a word that is not a command: a source, or another tool's verb. `directory` is the next word,
 * or NULL. */
static void report_meant(const char *name, const char *directory)
{
    char question[TEXT_QUESTION];
    struct text_guess guess = {.typed = name};
    for (size_t i = 0; i < sizeof other_words / sizeof *other_words; i++)
        if (strcmp(other_words[i].word, name) == 0) {
            report("unknown command '%s'; %s", name, other_words[i].hint);
            return;
        }
    for (const struct command *const *command = commands; *command != NULL; command++)
        if ((*command)->group != UNLISTED_COMMAND)
            text_guess_try(&guess, (*command)->name);
    if (is_source(name))
        report("'%s' is not a command; did you mean 'wfs %s %s%s%s'?", name, directory != NULL ? "mount" : "info", name,
               directory != NULL ? " " : "", directory != NULL ? directory : "");
    else
        report("unknown command '%s'%s", name,
               guess.best != NULL ? text_guess_question(&guess, question) : "; try 'wfs --help'");
}

/* Reports a first word that is neither a command nor a flag; `next` is the one after it, or NULL. */
static int unknown_command(const char *name, const char *next)
{
    char question[TEXT_QUESTION];
    struct text_guess guess = {.typed = name};
    text_guess_try(&guess, "--help");
    text_guess_try(&guess, "--version");
    if (*name != '-')
        report_meant(name, next);
    else if (guess.best == NULL && next != NULL && command_find(next) != NULL)
        report("unknown flag %s; flags follow the command: wfs %s %s", name, next, name);
    else
        report("unknown flag %s%s", name,
               guess.best != NULL ? text_guess_question(&guess, question) : "; try 'wfs --help'");
    return EXIT_MISUSE;
}

static int unknown_topic(const char *name)
{
    struct text_guess guess = {.typed = name};
    text_guess_try(&guess, "options");
    for (const struct command *const *command = commands; *command != NULL; command++)
        if ((*command)->group != UNLISTED_COMMAND)
            text_guess_try(&guess, (*command)->name);
    if (guess.best == NULL)
        return unknown_command(name, NULL);
    report("help: unknown topic '%s'; did you mean 'wfs help %s'?", name, guess.best);
    return EXIT_MISUSE;
}

/* Runs `wfs help [COMMAND|options]`. */
static int help(int argc, char **argv)
{
    const char *name = argc > 2 ? argv[2] : NULL;
    if (argc > 3) {
        report("help: extra operand '%s'; usage: wfs help [COMMAND|options]", argv[3]);
        return EXIT_MISUSE;
    }
    bool wants_options = name != NULL && strcmp(name, "options") == 0;
    const struct command *command = name != NULL ? command_find(name) : NULL;
    if (name != NULL && command == NULL && !wants_options)
        return unknown_topic(name);
    if (command != NULL)
        return print_help(command);
    if (!wants_options)
        usage_print();
    else {
        pager_begin();
        usage_print_options();
    }
    return end_help();
}

static void print_version(void)
{
    struct buffer line = {0};
    lib_append_version(wfs_revision, &line);
    fwrite(line.bytes, 1, line.length, stdout);
    buffer_free(&line);
}

int main(int argc, char **argv)
{
    process_allow(PROCESS_ALL);
    pool_share(pool_new(0));
    progress_of_stages();
    hold_standard_descriptors();
    setenv("TZ", ":/etc/localtime", 0); /* the default, which libzip's mktime() then need not look for at each member */
    if (argc > 1 && is_mount_helper(argc, argv))
        return run_mount_helper(argc, argv);
    if (argc < 2) {
        dup2(STDERR_FILENO, STDOUT_FILENO);
        usage_print();
        fflush(stdout);
        report("no command given");
        return EXIT_MISUSE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        usage_print();
        return finish_output(EXIT_SUCCESS);
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        print_version();
        return finish_output(EXIT_SUCCESS);
    }
    if (strcmp(argv[1], "help") == 0)
        return help(argc, argv);
    const struct command *command = command_find(argv[1]);
    if (command == NULL)
        return unknown_command(argv[1], argv[2]);
    return run_command(command, argc - 1, argv + 1);
}
