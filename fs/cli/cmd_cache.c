/* `wfs cache`: the bytes that were fetched from servers and are kept on disk (remote/store.h). */
#include "base/report.h"
#include "base/text.h"
#include "fs/cli/command.h"
#include "fs/cli/progress.h"
#include "fs/cli/terminal.h"
#include "remote/evict.h"
#include "remote/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Returns, in the arena, the model that a file belongs to: hf://ORG/NAME, or the folder of a URL. */
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

struct model {
    const char *name;
    uint64_t bytes;
};

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct model *)a)->name, ((const struct model *)b)->name);
}

static void print_size(uint64_t bytes, const char *name)
{
    char size[SIZE_TEXT];
    printf("%9s  ", size_text(bytes, size));
    print_name(name);
    putchar('\n');
}

static int list(const struct stored_segments *segments, struct arena *arena)
{
    struct model *models = arena_array(arena, segments->count, sizeof *models);
    for (size_t i = 0; i < segments->count; i++)
        models[i] = (struct model){model_of(segments->items[i].name, arena), segments->items[i].bytes};
    if (segments->count > 0)
        qsort(models, segments->count, sizeof *models, compare_names);
    for (size_t i = 0, next; i < segments->count; i = next) {
        uint64_t bytes = 0;
        for (next = i; next < segments->count && strcmp(models[next].name, models[i].name) == 0; next++)
            bytes += models[next].bytes;
        print_size(bytes, models[i].name);
    }
    print_size(segments->bytes, "all");
    return finish_output(EXIT_SUCCESS);
}

/* Removes the segments of all models with one of these names. */
static int remove_models(const struct stored_segments *segments, char **names, struct arena *arena)
{
    int status = EXIT_SUCCESS;
    for (; *names != NULL; names++) {
        bool is_there = false;
        for (size_t i = 0; i < segments->count; i++) {
            const struct stored_segment *segment = &segments->items[i];
            if (strcmp(model_of(segment->name, arena), *names) != 0)
                continue;
            is_there = true;
            if (unlink(segment->path) != 0)
                status = EXIT_BAD_INPUT;
        }
        if (is_there)
            continue;
        report("%s: nothing of it is in the cache; 'wfs cache ls' lists the names", *names);
        status = EXIT_BAD_INPUT;
    }
    return status;
}

static int misuse(const char *what)
{
    report("cache: %s; usage: wfs cache ls | rm NAME... | prune", what);
    return EXIT_MISUSE;
}

static int run(const struct invocation *invocation)
{
    const char *what = invocation->arguments[0], *directory = store_directory();
    bool is_rm = strcmp(what, "rm") == 0, is_prune = strcmp(what, "prune") == 0;
    const struct remote_options *options = &invocation->options->open.remote;
    if (!is_rm && !is_prune && strcmp(what, "ls") != 0)
        return misuse("neither ls, rm nor prune");
    if (is_rm != (invocation->n_arguments > 1))
        return misuse(is_rm ? "a name is missing" : "extra operand");
    if (directory == NULL)
        return EXIT_BAD_INPUT;
    struct arena *arena = arena_new();
    const struct stored_segments segments = evict_list(directory, arena);
    int status = EXIT_SUCCESS;
    if (is_rm)
        status = remove_models(&segments, invocation->arguments + 1, arena);
    else if (is_prune)
        print_size(evict(directory, options->cache_size.is_set ? options->cache_size.bytes : EVICT_DEFAULT), "removed");
    else
        status = list(&segments, arena);
    arena_free(arena);
    return finish_output(status);
}

const struct command cache_command = {
    .name = "cache",
    .usage = "ls | rm NAME... | prune",
    .summary = "List or remove what was fetched from servers",
    .text =
        "ls prints the size of each model on disk. rm removes models by the names that ls prints. prune removes what "
        "was used longest\nago, until the rest fits -o cache-size= or, by default, 5% of the disk are free. Mounts "
        "fetch again what they need.",
    .examples =
        (const struct example[]){
            {"wfs cache ls", "see what takes how much space"},
            {"wfs cache rm hf://Qwen/Qwen2.5-0.5B", "remove one model"},
            {"wfs cache prune -o cache-size=20GB", "keep the 20 GB that were used last"},
            {0},
        },
    .min_arguments = 1,
    .max_arguments = SIZE_MAX,
    .takes_options = true,
    .only_opens = true,
    .run = run,
};
