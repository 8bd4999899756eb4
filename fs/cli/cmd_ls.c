#include "base/report.h"
#include "fs/cli/command.h"
#include "fs/cli/info/json_page.h"
#include "fs/cli/terminal.h"
#include "fs/lib/paths.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { FLAG_LONG, FLAG_RECURSIVE, FLAG_HUMAN_READABLE, FLAG_ALL, FLAG_DIRECTORY, FLAG_JSON };

/* Entries in the order of the tree; the names belong to others. */
struct listing {
    struct wfs_entry *entries;
    size_t n_entries;
};

static void add_entry(struct listing *listing, const char *name, struct wfs_entry entry)
{
    entry.name = name;
    listing->entries = memory_grow(listing->entries, listing->n_entries, sizeof *listing->entries);
    listing->entries[listing->n_entries++] = entry;
}

static void add_path(struct listing *listing, wfs_model *model, const char *path, const char *name)
{
    struct wfs_entry entry;
    if (wfs_stat(model, path, &entry, NULL))
        add_entry(listing, name, entry);
}

/* Writes a size in bytes, or in units for people. */
static void size_of(const struct wfs_entry *entry, bool for_people, char out[SIZE_TEXT + 8])
{
    if (for_people)
        size_text(entry->size, out);
    else
        snprintf(out, SIZE_TEXT + 8, "%" PRIu64, entry->size);
}

static int size_width(const struct listing *listing, bool for_people)
{
    int widest = 1;
    for (size_t i = 0; i < listing->n_entries; i++) {
        char size[SIZE_TEXT + 8];
        size_of(&listing->entries[i], for_people, size);
        widest = (int)strlen(size) > widest ? (int)strlen(size) : widest;
    }
    return widest;
}

static void print_long(const struct wfs_entry *entry, bool for_people, int width)
{
    char date[32] = "", size[SIZE_TEXT + 8];
    struct tm local;
    time_t seconds = entry->mtime;
    if (localtime_r(&seconds, &local) != NULL)
        strftime(date, sizeof date, "%Y-%m-%d %H:%M", &local);
    size_of(entry, for_people, size);
    const char *mode = S_ISDIR(entry->mode) ? "drwxr-xr-x" : S_ISLNK(entry->mode) ? "lrwxrwxrwx" : "-r--r--r--";
    printf("%s %*s %s ", mode, width, size, date);
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

/* Returns a path of an entry, which the caller frees. */
static char *path_below(const char *directory, const char *name)
{
    char *path = NULL;
    if (asprintf(&path, "%s%s%s", directory, *directory != '\0' ? "/" : "", name) < 0)
        memory_exhausted(strlen(name));
    return path;
}

/* Adds "." and "..". */
static void add_dots(struct listing *listing, wfs_model *model, const char *path)
{
    const char *slash = strrchr(path, '/');
    char *above = memory_strndup(path, slash != NULL ? (size_t)(slash - path) : 0);
    add_path(listing, model, path, ".");
    add_path(listing, model, above, "..");
    free(above);
}

/* Opens the list of a directory; reports a failure, and returns NULL. */
static wfs_list *open_list(wfs_model *model, const char *path, bool only_names)
{
    struct wfs_error error;
    wfs_list *list = wfs_list_open(model, path, only_names, &error);
    if (list == NULL)
        report("%s", error.message);
    return list;
}

/* Lists a directory. Recurses as deep as side files are nested, which is not deep. */
static bool list_directory(wfs_model *model, const char *path, const struct invocation *invocation)
{
    struct listing listing = {0};
    wfs_list *list = open_list(model, path, !invocation->flags[FLAG_LONG]);
    if (list == NULL)
        return false;
    if (invocation->flags[FLAG_ALL])
        add_dots(&listing, model, path);
    for (size_t i = 0; i < wfs_list_count(list); i++)
        add_entry(&listing, wfs_list_entry(list, i)->name, *wfs_list_entry(list, i));
    print_listing(&listing, invocation);
    free(listing.entries);
    bool done = true;
    for (size_t i = 0; i < wfs_list_count(list) && invocation->flags[FLAG_RECURSIVE]; i++) {
        const struct wfs_entry *entry = wfs_list_entry(list, i);
        if (!S_ISDIR(entry->mode))
            continue;
        char *below = path_below(path, entry->name);
        putchar('\n');
        print_name(below);
        puts(":");
        done &= list_directory(model, below, invocation);
        free(below);
    }
    wfs_list_close(list);
    return done;
}

/* Lists the arguments, files first. */
static bool list_found(wfs_model *model, const struct found_list *found, const struct invocation *invocation)
{
    struct listing files = {0};
    bool with_headings = found->n_items > 1, done = true;
    for (size_t i = 0; i < found->n_items; i++)
        if (!found->items[i].attributes.directory || invocation->flags[FLAG_DIRECTORY])
            add_path(&files, model, found->items[i].path, *found->items[i].path != '\0' ? found->items[i].path : "/");
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
        done &= list_directory(model, item->path, invocation);
        is_first = false;
    }
    free(files.entries);
    return done;
}

static void put_entry(struct json_writer *writer, const char *path, const struct wfs_entry *entry)
{
    json_put_template(writer, "\n{'path': %s, 'type': %s", path, S_ISDIR(entry->mode) ? "directory" : "file");
    if (S_ISDIR(entry->mode))
        json_put_null(writer, "size");
    else
        json_put_number(writer, "size", entry->size);
    json_put_i64(writer, "mtime", entry->mtime);
    json_end(writer);
}

/* Writes the entries of a directory as JSON. Recurses as list_directory() does. */
static bool put_directory(struct json_writer *writer, wfs_model *model, const char *path, bool recursive)
{
    wfs_list *list = open_list(model, path, false);
    bool done = list != NULL;
    for (size_t i = 0; list != NULL && i < wfs_list_count(list); i++) {
        const struct wfs_entry *entry = wfs_list_entry(list, i);
        char *below = path_below(path, entry->name);
        put_entry(writer, below, entry);
        if (S_ISDIR(entry->mode) && recursive)
            done &= put_directory(writer, model, below, true);
        free(below);
    }
    wfs_list_close(list);
    return done;
}

static bool print_json(wfs_model *model, const struct found_list *found, const struct invocation *invocation)
{
    struct json_page page;
    struct wfs_entry entry;
    bool done = true;
    json_page_begin(&page);
    json_put_template(&page.writer, "\n'entries': [");
    for (size_t i = 0; i < found->n_items; i++) {
        const struct found *item = &found->items[i];
        if (item->attributes.directory && !invocation->flags[FLAG_DIRECTORY])
            done &= put_directory(&page.writer, model, item->path, invocation->flags[FLAG_RECURSIVE]);
        else if (wfs_stat(model, item->path, &entry, NULL))
            put_entry(&page.writer, item->path, &entry);
    }
    json_end(&page.writer);
    json_page_print(&page);
    return done;
}

static int run(const struct invocation *invocation)
{
    wfs_model *model = command_open_library(invocation->arguments[0], invocation->options);
    if (model == NULL)
        return EXIT_BAD_INPUT;
    struct found_list found = {0};
    struct error error;
    if (invocation->n_arguments == 1)
        paths_find(model->tree, "", &found, &error);
    bool all_found = paths_find_all(model->tree, invocation->arguments + 1, invocation->n_arguments - 1, &found);
    bool all_listed = (invocation->flags[FLAG_JSON] ? print_json : list_found)(model, &found, invocation);
    found_free(&found);
    wfs_close(model);
    return finish_output(all_found && all_listed ? EXIT_SUCCESS : EXIT_BAD_INPUT);
}

const struct command ls_command = {
    .name = "ls",
    .usage = "SOURCE [PATH...]",
    .summary = "List the virtual files",
    .group = READ_COMMAND,
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
    .n_sources = 1,
    .takes_options = true,
    .run = run,
};
