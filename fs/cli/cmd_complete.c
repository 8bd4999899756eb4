/* Completes the word at the cursor, in the same way for bash, zsh and fish.
 *
 * `wfs complete WORD... CURRENT` gets the words after "wfs" up to the cursor, the last one unfinished. The first line
 * of output tells the shell what to add to the candidates: "words" nothing, "files" names of files, "value" names of
 * files after the last '=' of CURRENT, "command" a program and its arguments. Each further line is a candidate: a whole
 * word, a tab, and its meaning. A word with an error has no candidates. */
#include "fs/cli/command.h"
#include "fs/mount/mountpoint.h"
#include "sources/paths.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct typed {
    const struct command *command;
    const char *current, *source; /* the first operand, or NULL */
    size_t n_operands;            /* before the current word */
    bool after_o, after_end;      /* the current word follows -o, or a "--" */
    struct options options;
};

static void print_candidate(const char *current, const char *before, const char *word, const char *after,
                            const char *meaning)
{
    struct buffer line = {0};
    buffer_printf(&line, "%s%s%s", before, word, after);
    if (line.length >= strlen(current) && memcmp(line.bytes, current, strlen(current)) == 0)
        printf("%.*s\t%s\n", (int)line.length, (const char *)line.bytes, meaning);
    buffer_free(&line);
}

static int complete_commands(const char *current, bool with_flags)
{
    puts("words");
    for (const struct command *const *command = commands; *command != NULL; command++)
        if ((*command)->group != UNLISTED_COMMAND)
            print_candidate(current, "", (*command)->name, "", (*command)->summary);
    if (with_flags) {
        print_candidate(current, "", "help", "", "what wfs can do, or one command");
        print_candidate(current, "", "--help", "", "what wfs can do");
        print_candidate(current, "", "--version", "", "which wfs this is");
    } else {
        print_candidate(current, "", "options", "", "all options, by what they change");
    }
    return EXIT_SUCCESS;
}

static int complete_flags(const struct typed *typed)
{
    char flag[64];
    puts("words");
    for (const struct flag *row = typed->command->flags; row != NULL && row->name != NULL; row++) {
        snprintf(flag, sizeof flag, "-%c", row->letter);
        if (row->letter != 0)
            print_candidate(typed->current, "", flag, "", row->help);
        print_candidate(typed->current, "--", row->name, "", row->help);
    }
    if (typed->command->takes_options)
        print_candidate(typed->current, "", "-o", "", "options, separated by commas");
    print_candidate(typed->current, "", "--help", "", "more about it");
    print_candidate(typed->current, "", "--quiet", "", "no notes and no progress");
    return EXIT_SUCCESS;
}

struct place {
    const char *current, *before; /* the word at the cursor, and its beginning before the value */
};

static void print_model(void *context, const char *id)
{
    const struct place *place = context;
    print_candidate(place->current, place->before, id, "", "in the hub cache");
}

static bool takes_path(const struct option_row *row)
{
    return strstr(row->argument, "FILE") != NULL || strstr(row->argument, "DIR") != NULL ||
           strstr(row->argument, "NAME[:") != NULL;
}

static void print_values(const char *current, const char *before, const struct option_row *row)
{
    char *rest = NULL;
    struct buffer values = {0};
    if (row->words != NULL)
        buffer_append_text(&values, row->words);
    else
        row->values(&values);
    buffer_append(&values, "", 1);
    for (const char *value = strtok_r((char *)values.bytes, " ", &rest); value != NULL;
         value = strtok_r(NULL, " ", &rest))
        print_candidate(current, before, value, "", row->help);
    buffer_free(&values);
}

/* Completes the value of an option, after "NAME=". */
static int complete_values(const char *current, const char *before, const struct option_row *row)
{
    puts(takes_path(row) ? "value" : "words");
    if (row->words != NULL || row->values != NULL)
        print_values(current, before, row);
    else if (strstr(row->argument, "ORG/NAME") != NULL)
        hub_cache_each(print_model, &(struct place){current, before});
    return EXIT_SUCCESS;
}

static int complete_options(const struct typed *typed)
{
    const char *comma = strrchr(typed->current, ','), *word = comma != NULL ? comma + 1 : typed->current;
    const char *equals = strchr(word, '=');
    struct arena *arena = arena_new();
    if (equals != NULL) {
        const struct option_row *row = option_find(arena_strndup(arena, word, (size_t)(equals - word)));
        if (row == NULL || row->argument == NULL)
            puts("words");
        else
            complete_values(typed->current, arena_strndup(arena, typed->current, (size_t)(equals + 1 - typed->current)),
                            row);
    } else {
        const char *before = arena_strndup(arena, typed->current, (size_t)(word - typed->current));
        puts("words");
        for (const struct option_row *row = option_rows; row->name != NULL; row++)
            if (command_takes_option(typed->command, row))
                print_candidate(typed->current, before, row->name, row->argument != NULL ? "=" : "", row->help);
    }
    arena_free(arena);
    return EXIT_SUCCESS;
}

struct listing {
    const char *current, *directory;
};

static bool print_entry(void *context, uint64_t index, const char *name, const struct node_attributes *attributes)
{
    const struct listing *listing = context;
    print_candidate(listing->current, listing->directory, name, attributes->directory ? "/" : "",
                    attributes->directory ? "directory" : "file");
    return true;
}

/* Completes paths inside the source, and names of files for commands with a DEST. */
static int complete_paths(const struct typed *typed)
{
    struct error error;
    struct node_attributes directory;
    puts(strstr(typed->command->usage, "DEST") != NULL ? "files" : "words");
    struct tree *tree = command_open(typed->source, &typed->options);
    if (tree == NULL)
        return EXIT_SUCCESS;
    const char *slash = strrchr(typed->current, '/');
    char *above = strndup(typed->current, slash != NULL ? (size_t)(slash + 1 - typed->current) : 0);
    if (tree_walk(tree, above, &directory, &error) && directory.directory)
        tree_list_names(tree, directory.id, 0, print_entry, &(struct listing){typed->current, above});
    free(above);
    command_close(tree);
    return EXIT_SUCCESS;
}

static void print_mountpoint(void *context, const char *path, const char *source)
{
    const struct place *place = context;
    print_candidate(place->current, place->before, path, "", source);
}

/* Completes "check LAYOUT SOURCE". */
static int complete_layout(const struct typed *typed)
{
    puts(typed->n_operands == 0 ? "words" : "files");
    if (typed->n_operands == 0)
        print_candidate(typed->current, "", "check", "", typed->command->summary);
    else if (typed->n_operands == 1)
        print_values(typed->current, "", option_find("layout"));
    else
        hub_cache_each(print_model, &(struct place){typed->current, ""});
    return EXIT_SUCCESS;
}

static int complete_operand(const struct typed *typed)
{
    const struct command *command = typed->command;
    if (typed->after_end && command->takes_program) {
        puts("command");
    } else if (command == command_find("umount")) {
        puts("words");
        mountpoint_each(print_mountpoint, &(struct place){typed->current, ""});
    } else if (command == command_find("layout")) {
        return complete_layout(typed);
    } else if (typed->n_operands > 0 && strstr(command->usage, "PATH") != NULL) {
        return complete_paths(typed);
    } else {
        puts("files");
        if (typed->n_operands == 0)
            hub_cache_each(print_model, &(struct place){typed->current, ""});
    }
    return EXIT_SUCCESS;
}

/* Reads the words before the cursor as getopt will. */
static void read_words(struct typed *typed, char **words, size_t n_words)
{
    struct error error;
    for (size_t i = 0; i < n_words; i++) {
        const char *word = words[i];
        if (typed->after_o) {
            typed->after_o = false;
            options_parse(&typed->options, word, &error);
        } else if (!typed->after_end && strcmp(word, "--") == 0) {
            typed->after_end = true;
        } else if (!typed->after_end && strcmp(word, "-o") == 0) {
            typed->after_o = typed->command->takes_options;
        } else if (typed->after_end || *word != '-') {
            typed->source = typed->n_operands++ == 0 ? word : typed->source;
        }
    }
}

/* Enters the sandbox, and reads the files of options. */
static void confine(struct typed *typed)
{
    struct error error;
    struct options *options = &typed->options;
    const char *sources[] = {typed->source};
    enter_command_sandbox(
        &(struct command_needs){
            .sources = sources,
            .n_sources = typed->source != NULL ? 1 : 0,
            .is_library = options->library,
        },
        options);
    options_read_files(options, &error);
}

static int run(const struct invocation *invocation)
{
    size_t n_words = invocation->n_arguments;
    struct typed typed = {.current = invocation->arguments[n_words - 1]};
    if (n_words == 1)
        return complete_commands(typed.current, true);
    if (strcmp(invocation->arguments[0], "help") == 0)
        return complete_commands(typed.current, false);
    typed.command = command_find(invocation->arguments[0]);
    if (typed.command == NULL) {
        puts("words");
        return EXIT_SUCCESS;
    }
    options_init(&typed.options);
    remote_use(&typed.options.open.remote);
    typed.options.delays_files = true;
    read_words(&typed, invocation->arguments + 1, n_words - 2);
    confine(&typed);
    int status;
    if (typed.after_o)
        status = complete_options(&typed);
    else if (*typed.current == '-' && !typed.after_end)
        status = complete_flags(&typed);
    else
        status = complete_operand(&typed);
    remote_use(NULL);
    options_free(&typed.options);
    return status;
}

const struct command complete_command = {
    .name = "complete",
    .usage = "WORD...",
    .summary = "Print the completions of the word at the cursor, for a shell",
    .examples = (const struct example[]){{"wfs complete -- ls model.safetensors tens", "tensors/"}, {0}},
    .min_arguments = 1,
    .max_arguments = SIZE_MAX,
    .enters_sandbox_itself = true,
    .run = run,
};
