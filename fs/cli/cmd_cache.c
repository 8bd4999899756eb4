/* `wfs cache`: the fetched and computed bytes that are kept on disk (remote/store.h). */
#include "base/report.h"
#include "base/text.h"
#include "fs/cli/command.h"
#include "fs/cli/info/json_page.h"
#include "fs/cli/terminal.h"
#include "remote/store.h"
#include "remote/store_directory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Returns, in the arena, the model that a fetched file belongs to: hf://ORG/NAME, or the folder of a URL. */
static const char *model_of(const char *name, struct arena *arena)
{
    static const char hub[] = "hf://";
    if (!text_starts_with(name, hub)) {
        const char *slash = strrchr(name, '/');
        return slash != NULL ? arena_strndup(arena, name, (size_t)(slash + 1 - name)) : name;
    }
    const char *rest = name + strlen(hub);
    rest += strcspn(rest, "/");
    rest += *rest != '\0' ? 1 + strcspn(rest + 1, "/") : 0;
    return arena_strndup(arena, name, (size_t)(rest - name));
}

/* Returns, in the arena, the name of a segment's line: the model if it was fetched, the virtual file if it was
 * computed. `name` begins a line of segment->name. */
static const char *line_of(const struct stored_segment *segment, const char *name, struct arena *arena)
{
    name = arena_strndup(arena, name, strcspn(name, "\n"));
    return segment->is_computed ? name : model_of(name, arena);
}

struct line {
    const char *name;
    uint64_t bytes;
};

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct line *)a)->name, ((const struct line *)b)->name);
}

static void print_size(uint64_t bytes, const char *name)
{
    char size[SIZE_TEXT];
    printf("%9s  ", size_text(bytes, size));
    print_name(name);
    putchar('\n');
}

/* Prints a line, or adds it to a page. */
static void put_line(struct json_page *page, uint64_t bytes, const char *name)
{
    if (page == NULL) {
        print_size(bytes, name);
        return;
    }
    json_begin_object(&page->writer, NULL);
    json_put_text(&page->writer, "name", name);
    json_put_number(&page->writer, "bytes", bytes);
    json_end(&page->writer);
}

/* Puts a line for each model and file. */
static void put_lines(struct json_page *page, const struct stored_segments *segments, struct arena *arena)
{
    struct line *lines = arena_array(arena, segments->count, sizeof *lines);
    for (size_t i = 0; i < segments->count; i++)
        lines[i] =
            (struct line){line_of(&segments->items[i], segments->items[i].name, arena), segments->items[i].bytes};
    if (segments->count > 0)
        qsort(lines, segments->count, sizeof *lines, compare_names);
    for (size_t i = 0, next; i < segments->count; i = next) {
        uint64_t bytes = 0;
        for (next = i; next < segments->count && strcmp(lines[next].name, lines[i].name) == 0; next++)
            bytes += lines[next].bytes;
        put_line(page, bytes, lines[i].name);
    }
}

static void list(const struct stored_segments *segments, struct arena *arena)
{
    put_lines(NULL, segments, arena);
    print_size(segments->bytes, "all");
}

static void list_json(const struct stored_segments *segments, struct arena *arena)
{
    struct json_page page;
    json_page_begin(&page);
    json_put_text(&page.writer, "directory", store_directory());
    json_begin_array(&page.writer, "kept");
    put_lines(&page, segments, arena);
    json_end(&page.writer);
    json_put_number(&page.writer, "bytes", segments->bytes);
    json_page_print(&page);
}

/* Reports whether a line has this name, or one below it: the computed files of a model. */
static bool is_below(const char *line, const char *name)
{
    size_t length = strlen(name);
    return text_starts_with(line, name) &&
           (line[length] == '\0' || (length > 0 && (line[length] == '/' || name[length - 1] == '/')));
}

/* Reports whether one of a segment's names is `name`, or below it: servers share what has the same SHA-256. */
static bool belongs_to(const struct stored_segment *segment, const char *name, struct arena *arena)
{
    for (const char *at = segment->name; at != NULL; at = strchr(at, '\n')) {
        at += *at == '\n';
        if (is_below(line_of(segment, at, arena), name))
            return true;
    }
    return false;
}

/* Removes the segments of all lines with one of these names, or below it. */
static int remove_named(const struct stored_segments *segments, char **names, struct arena *arena)
{
    int status = EXIT_SUCCESS;
    for (; *names != NULL; names++) {
        bool is_there = false;
        for (size_t i = 0; i < segments->count; i++) {
            const struct stored_segment *segment = &segments->items[i];
            if (!belongs_to(segment, *names, arena))
                continue;
            is_there = true;
            if (unlink(segment->path) == 0 || errno == ENOENT) /* another process may have been faster */
                continue;
            report("%s: %s", segment->path, strerror(errno));
            status = EXIT_BAD_INPUT;
        }
        if (is_there)
            continue;
        report("%s: nothing of it is in the cache; 'wfs cache ls' lists the names", *names);
        status = EXIT_BAD_INPUT;
    }
    return status;
}

enum { FLAG_JSON };

static int misuse(const char *what)
{
    report("cache: %s; usage: wfs cache [ls | rm NAME... | prune]", what);
    return EXIT_MISUSE;
}

static int run(const struct invocation *invocation)
{
    const char *what = invocation->n_arguments > 0 ? invocation->arguments[0] : "ls", *directory = store_directory();
    bool is_rm = strcmp(what, "rm") == 0, is_prune = strcmp(what, "prune") == 0;
    const struct remote_options *options = &invocation->options->open.remote;
    if (!is_rm && !is_prune && strcmp(what, "ls") != 0)
        return misuse("neither ls, rm nor prune");
    if (is_rm != (invocation->n_arguments > 1))
        return misuse(is_rm ? "a name is missing" : "extra operand");
    if (invocation->flags[FLAG_JSON] && (is_rm || is_prune))
        return misuse("--json is for ls");
    if (directory == NULL) {
        report("cache: there is no directory of fetched bytes; -o cache=DIR names one");
        return EXIT_BAD_INPUT;
    }
    struct arena *arena = arena_new();
    const struct stored_segments segments = evict_list(directory, arena);
    int status = EXIT_SUCCESS;
    if (is_rm)
        status = remove_named(&segments, invocation->arguments + 1, arena);
    else if (is_prune)
        print_size(evict(directory, options->cache_size.is_set ? options->cache_size.bytes : EVICT_DEFAULT), "removed");
    else
        (invocation->flags[FLAG_JSON] ? list_json : list)(&segments, arena);
    arena_free(arena);
    return finish_output(status);
}

const struct command cache_command = {
    .name = "cache",
    .usage = "[ls | rm NAME... | prune]",
    .summary = "List or remove what was fetched or computed",
    .group = SERVER_COMMAND,
    .text =
        "ls, or no word, prints the size of each model that was fetched, and of each virtual file that -o keep= keeps. "
        "rm removes "
        "models and files by\nthe names that ls prints; a model's name also removes its computed files. prune removes "
        "what was used longest ago, until the rest\nfits -o cache-size= or, by default, 5% of the disk are free. "
        "Mounts fetch and compute again what they need.",
    .flags = (const struct flag[]){{0, "json", "ls: print JSON for scripts: name and bytes of each line"}, {0}},
    .examples =
        (const struct example[]){
            {"wfs cache ls", "see what takes how much space"},
            {"wfs cache rm hf://Qwen/Qwen2.5-0.5B", "remove one model"},
            {"wfs cache rm ~/model/gguf/model-Q4_K_M.gguf", "remove the kept bytes of one file"},
            {"wfs cache prune -o cache-size=20GB", "keep the 20 GB that were used last"},
            {0},
        },
    .min_arguments = 0,
    .max_arguments = SIZE_MAX,
    .takes_options = true,
    .only_opens = true,
    .uses_store = true,
    .run = run,
};
