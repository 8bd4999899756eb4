#include "base/report.h"
#include "base/text.h"
#include "fs/cli/command.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FLAG_LONG, FLAG_RECURSIVE };

struct entry {
    const char *name;
    struct node_attributes attributes;
};

/* The entries of one directory, in the order of the tree. */
struct listing {
    struct arena *arena;
    struct entry *entries;
    size_t n_entries, capacity;
};

static bool add_entry(void *context, uint64_t index, const char *name, const struct node_attributes *attributes)
{
    (void)index;
    struct listing *listing = context;
    if (listing->n_entries == listing->capacity) {
        listing->capacity = listing->capacity * 2 + 64;
        listing->entries = memory_resize(listing->entries, listing->capacity * sizeof *listing->entries);
    }
    listing->entries[listing->n_entries++] = (struct entry){arena_strdup(listing->arena, name), *attributes};
    return true;
}

/* A terminal gets what is safe for it, a script the bytes as they are. */
static void print_name(const char *name)
{
    if (isatty(STDOUT_FILENO))
        text_put(name, stdout);
    else
        fputs(name, stdout);
}

static int size_width(const struct listing *listing)
{
    int widest = 1;
    for (size_t i = 0; i < listing->n_entries; i++) {
        int width = snprintf(NULL, 0, "%" PRIu64, listing->entries[i].attributes.size);
        widest = width > widest ? width : widest;
    }
    return widest;
}

static void print_long(const struct entry *entry, int width)
{
    char date[32] = "";
    struct tm local;
    time_t seconds = entry->attributes.mtime.tv_sec;
    if (localtime_r(&seconds, &local) != NULL)
        strftime(date, sizeof date, "%Y-%m-%d %H:%M", &local);
    printf("%s %*" PRIu64 " %s ", entry->attributes.directory ? "dr-xr-xr-x" : "-r--r--r--", width, entry->attributes.size, date);
}

static void print_listing(const struct listing *listing, bool in_full)
{
    int width = in_full ? size_width(listing) : 0;
    for (size_t i = 0; i < listing->n_entries; i++) {
        if (in_full)
            print_long(&listing->entries[i], width);
        print_name(listing->entries[i].name);
        putchar('\n');
    }
}

/* Directories are nested as deep as the side files are: not deep. */
static void list_directory(struct tree *tree, node_id directory, const char *path, const struct invocation *invocation)
{
    struct listing listing = {.arena = arena_new()};
    tree_list(tree, directory, 0, add_entry, &listing);
    print_listing(&listing, invocation->flags[FLAG_LONG]);
    for (size_t i = 0; i < listing.n_entries && invocation->flags[FLAG_RECURSIVE]; i++) {
        const struct entry *entry = &listing.entries[i];
        if (!entry->attributes.directory)
            continue;
        char *below = arena_printf(listing.arena, "%s%s%s", path, *path ? "/" : "", entry->name);
        putchar('\n');
        print_name(below);
        puts(":");
        list_directory(tree, entry->attributes.id, below, invocation);
    }
    free(listing.entries);
    arena_free(listing.arena);
}

static int run(const struct invocation *invocation)
{
    struct tree *tree = command_open(invocation->arguments[0], invocation->options);
    if (tree == NULL)
        return EXIT_BAD_INPUT;
    const char *path = invocation->n_arguments > 1 ? invocation->arguments[1] : "";
    struct entry entry = {.name = path};
    struct error error;
    int status = EXIT_SUCCESS;
    if (!tree_walk(tree, path, &entry.attributes, &error)) {
        report("%s", error.message);
        status = EXIT_BAD_INPUT;
    } else if (entry.attributes.directory) {
        list_directory(tree, entry.attributes.id, path, invocation);
    } else {
        print_listing(&(struct listing){.entries = &entry, .n_entries = 1}, invocation->flags[FLAG_LONG]);
    }
    command_close(tree);
    return finish_output(status);
}

const struct command ls_command = {
    .name = "ls",
    .usage = "SOURCE [PATH]",
    .summary = "List the files that a mount of SOURCE would have, without mounting",
    .flags =
        (const struct flag[]){{'l', "long", "with mode, size and time"}, {'R', "recursive", "and what is in directories"}, {0}},
    .examples =
        (const struct example[]){
            {"wfs ls -l model.safetensors", "the files at the top"},
            {"wfs ls -l Qwen/Qwen2.5-0.5B gguf", "how large each quantization would be"},
            {"wfs ls -lR model.safetensors tensors", "every tensor in every type"},
            {0},
        },
    .min_arguments = 1,
    .max_arguments = 2,
    .takes_options = true,
    .run = run,
};
