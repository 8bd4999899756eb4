#include "base/report.h"
#include "fs/cli/command.h"
#include "fs/cli/json_page.h"
#include "fs/cli/paths.h"
#include "fs/cli/progress.h"
#include "fs/cli/terminal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FLAG_LONG, FLAG_RECURSIVE, FLAG_HUMAN_READABLE, FLAG_ALL, FLAG_DIRECTORY, FLAG_JSON };

struct entry {
    const char *name;
    struct node_attributes attributes;
};

/* The entries of one directory, in the order of the tree. */
struct listing {
    struct arena *arena;
    struct entry *entries;
    size_t n_entries;
};

static bool add_entry(void *context, uint64_t index, const char *name, const struct node_attributes *attributes)
{
    struct listing *listing = context;
    listing->entries = memory_grow(listing->entries, listing->n_entries, sizeof *listing->entries);
    listing->entries[listing->n_entries++] = (struct entry){arena_strdup(listing->arena, name), *attributes};
    return true;
}

/* Writes a size in bytes, or in units for people. */
static void size_of(const struct node_attributes *attributes, bool for_people, char out[SIZE_TEXT + 8])
{
    if (for_people)
        size_text(attributes->size, out);
    else
        snprintf(out, SIZE_TEXT + 8, "%" PRIu64, attributes->size);
}

static int size_width(const struct listing *listing, bool for_people)
{
    int widest = 1;
    for (size_t i = 0; i < listing->n_entries; i++) {
        char size[SIZE_TEXT + 8];
        size_of(&listing->entries[i].attributes, for_people, size);
        widest = (int)strlen(size) > widest ? (int)strlen(size) : widest;
    }
    return widest;
}

static void print_long(const struct entry *entry, bool for_people, int width)
{
    char date[32] = "", size[SIZE_TEXT + 8];
    struct tm local;
    time_t seconds = entry->attributes.mtime.tv_sec;
    if (localtime_r(&seconds, &local) != NULL)
        strftime(date, sizeof date, "%Y-%m-%d %H:%M", &local);
    size_of(&entry->attributes, for_people, size);
    printf("%s %*s %s ", entry->attributes.directory ? "drwxr-xr-x" : "-r--r--r--", width, size, date);
}

static void print_listing(const struct listing *listing, const struct invocation *invocation)
{
    bool in_full = invocation->flags[FLAG_LONG], for_people = invocation->flags[FLAG_HUMAN_READABLE];
    int width = in_full ? size_width(listing, for_people) : 0;
    for (size_t i = 0; i < listing->n_entries; i++) {
        if (in_full)
            print_long(&listing->entries[i], for_people, width);
        print_name(listing->entries[i].name);
        putchar('\n');
    }
}

/* Lists a directory. Recurses as deep as side files are nested, which is not deep. */
static void list_directory(struct tree *tree, node_id directory, const char *path, const struct invocation *invocation)
{
    struct listing listing = {.arena = arena_new()};
    struct node_attributes attributes;
    if (invocation->flags[FLAG_ALL] && tree_attributes(tree, directory, &attributes))
        add_entry(&listing, 0, ".", &attributes);
    if (invocation->flags[FLAG_ALL] && tree_attributes(tree, tree_parent(tree, directory), &attributes))
        add_entry(&listing, 0, "..", &attributes);
    if (invocation->flags[FLAG_LONG])
        tree_list(tree, directory, 0, add_entry, &listing);
    else
        tree_list_names(tree, directory, 0, add_entry, &listing);
    print_listing(&listing, invocation);
    for (size_t i = 0; i < listing.n_entries && invocation->flags[FLAG_RECURSIVE]; i++) {
        const struct entry *entry = &listing.entries[i];
        if (!entry->attributes.directory || strcmp(entry->name, ".") == 0 || strcmp(entry->name, "..") == 0)
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

/* Lists the arguments, files first. */
static void list_found(struct tree *tree, const struct found_list *found, const struct invocation *invocation)
{
    struct listing files = {.arena = arena_new()};
    bool with_headings = found->n_items > 1;
    for (size_t i = 0; i < found->n_items; i++)
        if (!found->items[i].attributes.directory || invocation->flags[FLAG_DIRECTORY])
            add_entry(&files, i, *found->items[i].path != '\0' ? found->items[i].path : "/",
                      &found->items[i].attributes);
    print_listing(&files, invocation);
    bool is_first = files.n_entries == 0;
    for (size_t i = 0; i < found->n_items; i++) {
        const struct found *item = &found->items[i];
        if (!item->attributes.directory || invocation->flags[FLAG_DIRECTORY])
            continue;
        if (with_headings) {
            fputs(is_first ? "" : "\n", stdout);
            print_name(*item->path != '\0' ? item->path : "/");
            puts(":");
        }
        list_directory(tree, item->attributes.id, item->path, invocation);
        is_first = false;
    }
    free(files.entries);
    arena_free(files.arena);
}

/* A directory whose entries are written as JSON. */
struct directory {
    struct tree *tree;
    struct json_writer *writer;
    const char *path;
    bool recursive;
};

static void put_entry(struct json_writer *writer, const char *path, const struct node_attributes *attributes)
{
    json_put_template(writer, "\n{'path': %s, 'type': %s", path, attributes->directory ? "directory" : "file");
    if (attributes->directory)
        json_put_null(writer, "size");
    else
        json_put_number(writer, "size", attributes->size);
    json_put_i64(writer, "mtime", attributes->mtime.tv_sec);
    json_end(writer);
}

static bool put_below(void *context, uint64_t index, const char *name, const struct node_attributes *attributes)
{
    struct directory *directory = context;
    char *path = NULL;
    if (asprintf(&path, "%s%s%s", directory->path, *directory->path != '\0' ? "/" : "", name) < 0)
        memory_exhausted(strlen(name));
    put_entry(directory->writer, path, attributes);
    if (attributes->directory && directory->recursive) {
        struct directory below = {directory->tree, directory->writer, path, true};
        tree_list(directory->tree, attributes->id, 0, put_below, &below);
    }
    free(path);
    return true;
}

static void print_json(struct tree *tree, const struct found_list *found, const struct invocation *invocation)
{
    struct json_page page;
    json_page_begin(&page);
    json_put_template(&page.writer, "\n'entries': [");
    for (size_t i = 0; i < found->n_items; i++) {
        const struct found *item = &found->items[i];
        if (!item->attributes.directory || invocation->flags[FLAG_DIRECTORY]) {
            put_entry(&page.writer, item->path, &item->attributes);
            continue;
        }
        struct directory directory = {tree, &page.writer, item->path, invocation->flags[FLAG_RECURSIVE]};
        tree_list(tree, item->attributes.id, 0, put_below, &directory);
    }
    json_end(&page.writer);
    json_page_print(&page);
}

static int run(const struct invocation *invocation)
{
    struct tree *tree = command_open(invocation->arguments[0], invocation->options);
    if (tree == NULL)
        return EXIT_BAD_INPUT;
    struct found_list found = {0};
    struct error error;
    if (invocation->n_arguments == 1)
        paths_find(tree, "", &found, &error);
    bool all_found = paths_find_all(tree, invocation->arguments + 1, invocation->n_arguments - 1, &found);
    if (invocation->flags[FLAG_JSON])
        print_json(tree, &found, invocation);
    else
        list_found(tree, &found, invocation);
    found_free(&found);
    command_close(tree);
    return finish_output(all_found ? EXIT_SUCCESS : EXIT_BAD_INPUT);
}

const struct command ls_command = {
    .name = "ls",
    .usage = "SOURCE [PATH...]",
    .summary = "List the files of SOURCE without mounting",
    .flags =
        (const struct flag[]){
            {'l', "long", "print mode, size and time"},
            {'R', "recursive", "list subdirectories recursively"},
            {'h', "human-readable", "with -l, print sizes like 1.23 GB"},
            {'a', "all", "include . and .."},
            {'d', "directory", "list directories themselves, not their contents"},
            {0, "json", "print JSON for scripts: path, type, size and time of each entry"},
            {0},
        },
    .examples =
        (const struct example[]){
            {"wfs ls -l model.safetensors", "list the files at the top"},
            {"wfs ls -lh Qwen/Qwen2.5-0.5B gguf", "print the size of each quantization"},
            {"wfs ls -lR model.safetensors tensors", "list every tensor in every type"},
            {"wfs ls --json Qwen/Qwen2.5-0.5B gguf | jq '.entries[].path'", "list the quantizations for a script"},
            {0},
        },
    .min_arguments = 1,
    .max_arguments = SIZE_MAX,
    .takes_options = true,
    .run = run,
};
