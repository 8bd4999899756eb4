#include "base/arena.h"
#include "base/buffer.h"
#include "base/encodings.h"
#include "base/lock.h"
#include "base/pool.h"
#include "base/report.h"
#include "fs/cli/command.h"
#include "fs/cli/info/json_page.h"
#include "fs/cli/terminal.h"
#include "fs/lib/copy.h"
#include "fs/lib/paths.h"

#include <nettle/base16.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FLAG_JSON };

struct file_sum {
    bool ready;
    char hex[SHA256_HEX + 1];
    char *failure; /* why there is no sum; NULL: there is one */
};

struct summing {
    struct tree *tree;
    const struct found_list *files;
    struct json_writer *writer; /* inside the array of files; NULL: print lines */
    struct file_sum *sums;      /* one for each file */
    struct lock lock;           /* guards the following fields, and sums[].ready */
    struct progress progress;
    size_t n_printed;
    bool failed;
};

/* A file that is being read. */
struct reading {
    struct summing *summing;
    struct sha256_ctx context;
};

static bool take(void *context, const void *bytes, size_t length, struct error *error)
{
    struct reading *reading = context;
    sha256_update(&reading->context, length, bytes);
    lock_take(&reading->summing->lock);
    progress_add(&reading->summing->progress, length);
    lock_drop(&reading->summing->lock);
    return true;
}

/* Prints a line in sha256sum's format: if the name has backslashes or line ends, they are escaped, and the line begins
 * with a backslash. */
static void print_sum(const char *hex, const char *path)
{
    struct buffer name = {0};
    for (const char *c = path; *c != '\0'; c++)
        if (*c == '\\' || *c == '\n' || *c == '\r')
            buffer_append_text(&name, *c == '\\' ? "\\\\" : *c == '\n' ? "\\n" : "\\r");
        else
            buffer_append(&name, c, 1);
    printf("%s%s  ", name.length != strlen(path) ? "\\" : "", hex);
    buffer_append(&name, "", 1);
    print_name((const char *)name.bytes);
    putchar('\n');
    buffer_free(&name);
}

static void put_sum(struct json_writer *writer, const struct found *file, const struct file_sum *sum)
{
    json_put_template(writer, "\n{'path': %s, 'size': %u, 'sha256': %s, 'failure': %s}", file->path,
                      file->attributes.size, sum->failure == NULL ? sum->hex : NULL, sum->failure);
}

/* Prints the sums that are ready, in the order of the files. The caller has the lock. */
static void print_ready(struct summing *summing)
{
    if (!summing->sums[summing->n_printed].ready)
        return;
    progress_hide(&summing->progress);
    while (summing->n_printed < summing->files->n_items && summing->sums[summing->n_printed].ready) {
        struct file_sum *sum = &summing->sums[summing->n_printed];
        const struct found *file = &summing->files->items[summing->n_printed];
        if (summing->writer != NULL)
            put_sum(summing->writer, file, sum);
        else if (sum->failure == NULL)
            print_sum(sum->hex, file->path);
        if (sum->failure != NULL)
            report("%s", sum->failure);
        summing->failed |= sum->failure != NULL;
        free(sum->failure);
        summing->n_printed++;
    }
}

static void sum_file(void *context, size_t index)
{
    struct summing *summing = context;
    const struct found *found = &summing->files->items[index];
    struct file_sum *sum = &summing->sums[index];
    struct reading reading = {.summing = summing};
    struct vfile file;
    struct error error;
    uint8_t digest[SHA256_DIGEST_SIZE];
    struct arena *arena = arena_new();
    sha256_init(&reading.context);
    bool done = tree_file(summing->tree, found->attributes.id, arena, &file, &error) &&
                take_file(&file, take, &reading, &error);
    sha256_digest(&reading.context, sizeof digest, digest);
    base16_encode_update(sum->hex, sizeof digest, digest);
    if (!done || (file.whole != NULL && !source_confirm(file.whole, sum->hex, false, &error))) {
        error_prefix(&error, "%s", found->path);
        sum->failure = memory_strdup(error.message);
    }
    arena_free(arena);
    lock_take(&summing->lock);
    sum->ready = true;
    print_ready(summing);
    lock_drop(&summing->lock);
}

static bool sum_files(struct tree *tree, const struct found_list *files, struct json_writer *writer)
{
    struct summing summing = {.tree = tree, .files = files, .writer = writer};
    uint64_t n_bytes = 0;
    for (size_t i = 0; i < files->n_items; i++)
        n_bytes += files->items[i].attributes.size;
    summing.sums = memory_alloc((files->n_items + 1) * sizeof *summing.sums);
    memset(summing.sums, 0, (files->n_items + 1) * sizeof *summing.sums);
    lock_init(&summing.lock);
    progress_begin(&summing.progress, "sha256", n_bytes);
    pool_run(files->n_items, sum_file, &summing);
    progress_end(&summing.progress);
    lock_destroy(&summing.lock);
    free(summing.sums);
    return !summing.failed;
}

static bool print_json(struct tree *tree, const struct found_list *files)
{
    struct json_page page;
    json_page_begin(&page);
    json_put_template(&page.writer, "\n'files': [");
    bool all_read = sum_files(tree, files, &page.writer);
    json_end(&page.writer);
    json_page_print(&page);
    return all_read;
}

static int run(const struct invocation *invocation)
{
    struct tree *tree = command_open(invocation->arguments[0], invocation->options);
    if (tree == NULL)
        return EXIT_BAD_INPUT;
    struct found_list files = {0};
    bool all_found = paths_find_files(tree, invocation->arguments + 1, invocation->n_arguments - 1, &files),
         all_read = invocation->flags[FLAG_JSON] ? print_json(tree, &files) : sum_files(tree, &files, NULL);
    found_free(&files);
    command_close(tree);
    return finish_output(all_found && all_read ? EXIT_SUCCESS : EXIT_BAD_INPUT);
}

const struct command sha256_command = {
    .name = "sha256",
    .usage = "SOURCE [PATH...]",
    .summary = "Print checksums of virtual files, in sha256sum's format",
    .group = READ_COMMAND,
    .text =
        "A directory stands for every file below it. Without PATH, all files are summed. Several files are summed in "
        "parallel.",
    .flags = (const struct flag[]){{0, "json", "print JSON for scripts: path, size and sha256 of each file"}, {0}},
    .examples =
        (const struct example[]){
            {"wfs sha256 ~/models/Llama-3.2-1B gguf/model-Q4_K_M.gguf",
             "print the checksum of a file that is not on disk"},
            {"wfs sha256 Qwen/Qwen2.5-0.5B 'gguf/*' >~/SUMS; cd ~/m && sha256sum -c ~/SUMS", "check a mount or a copy"},
            {0},
        },
    .min_arguments = 1,
    .max_arguments = SIZE_MAX,
    .n_sources = 1,
    .takes_options = true,
    .run = run,
};
