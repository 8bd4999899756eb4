#include "base/encodings.h"
#include "base/report.h"
#include "fs/cli/command.h"
#include "fs/cli/copying.h"
#include "fs/cli/terminal.h"
#include "fs/lib/copy.h"
#include "fs/lib/paths.h"

#include <nettle/base16.h>
#include <nettle/sha1.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FLAG_HUB_CACHE };

enum {
    STEP = 16 << 20,  /* bytes to wait for at once */
    AHEAD = 64 << 20, /* bytes to ask for ahead of waiting */
};

struct fetching {
    struct tree *tree; /* NULL: the files of a repository are fetched as they are */
    struct progress progress;
    bool failed;
};

static void fail(struct fetching *fetching, const struct error *error)
{
    progress_hide(&fetching->progress);
    report("%s", error->message);
    fetching->failed = true;
}

/* Fetches the bytes that a file is computed from. */
static bool fetch_file(struct fetching *fetching, const struct vfile *file, struct error *error)
{
    for (uint64_t offset = 0, n; offset < file->size; offset += n) {
        uint64_t left = file->size - offset;
        n = left < STEP ? left : STEP;
        vfile_want(file, offset, left < AHEAD ? left : AHEAD, false);
        if (!vfile_wait(file, offset, n, error))
            return false;
        progress_add(&fetching->progress, n);
    }
    return true;
}

static bool add_bytes(void *context, const void *bytes, size_t length, struct error *error)
{
    sha256_update(context, length, bytes);
    return true;
}

static bool find_sha256(const struct vfile *file, char ret_found[SHA256_HEX + 1], struct error *error)
{
    struct sha256_ctx context;
    uint8_t digest[SHA256_DIGEST_SIZE];
    sha256_init(&context);
    if (!take_file(file, add_bytes, &context, error))
        return false;
    sha256_digest(&context, sizeof digest, digest);
    base16_encode_update(ret_found, sizeof digest, digest);
    ret_found[SHA256_HEX] = '\0';
    return true;
}

/* Compares the bytes with the SHA-256 that the server states, if it states one, and has the store keep what agrees. */
static bool verify(const struct vfile *file, const struct source *source, struct error *error)
{
    char found[SHA256_HEX + 1];
    struct source_server server;
    if (!source_server(source, &server) || server.sha256 == NULL)
        return true;
    return find_sha256(file, found, error) && source_confirm(source, found, true, error);
}

/* Fetches and verifies a file of a server. */
static bool fetch_source(struct fetching *fetching, struct source *source)
{
    struct arena *arena = arena_new();
    struct error error;
    const struct vfile file = vfile_of_source(arena, source, (struct origin){0});
    progress_begin(&fetching->progress, source_name(source), file.size);
    bool fetched = !source_is_remote(source) || (fetch_file(fetching, &file, &error) && verify(&file, source, &error));
    if (!fetched)
        fail(fetching, &error);
    progress_end(&fetching->progress);
    arena_free(arena);
    return fetched;
}

/* Fetches all files of a checkpoint: weights, and the files beside them. */
static void fetch_checkpoint(void *context, const struct checkpoint *checkpoint)
{
    for (size_t i = 0; i < checkpoint->n_sources; i++)
        fetch_source(context, checkpoint->sources[i]);
    for (size_t i = 0; i < checkpoint->n_side_files; i++)
        if (!checkpoint->side_files[i].hidden)
            fetch_source(context, checkpoint->side_files[i].source);
}

/* Fetches all of a source. Opens its components, and fetches each as it opens. */
static void fetch_all(struct fetching *fetching)
{
    struct found_list list = {0};
    tree_on_checkpoint(fetching->tree, fetch_checkpoint, fetching);
    if (tree_checkpoint(fetching->tree)->components != NULL)
        paths_find_below(fetching->tree, "", TREE_ROOT, &list);
    tree_on_checkpoint(fetching->tree, NULL, NULL);
    found_free(&list);
}

static void fetch_found(struct fetching *fetching, const struct found *found)
{
    struct arena *arena = arena_new();
    struct error error;
    struct vfile file;
    progress_begin(&fetching->progress, found->path, found->attributes.size);
    if (!tree_file(fetching->tree, found->attributes.id, arena, &file, &error) ||
        !fetch_file(fetching, &file, &error)) {
        error_prefix(&error, "%s", found->path);
        fail(fetching, &error);
    }
    progress_end(&fetching->progress);
    arena_free(arena);
}

/* Fetches the bytes that the files named by the paths are computed from, including files in directories. */
static void fetch_paths(struct fetching *fetching, char *const *paths, size_t n_paths)
{
    struct found_list list = {0}, files = {0};
    fetching->failed = !paths_find_all(fetching->tree, paths, n_paths, &list);
    for (size_t i = 0; i < list.n_items; i++)
        if (list.items[i].attributes.directory)
            paths_find_below(fetching->tree, list.items[i].path, list.items[i].attributes.id, &files);
        else
            found_add(&files, list.items[i].path, &list.items[i].attributes);
    for (size_t i = 0; i < files.n_items; i++)
        fetch_found(fetching, &files.items[i]);
    found_free(&files);
    found_free(&list);
}

static bool add_to_git_hash(void *context, const void *bytes, size_t length, struct error *error)
{
    sha1_update(context, length, bytes);
    return true;
}

/* Compares a small file, which the hub keeps in Git, with its hash there: clients of the hub's cache rely on it. */
static bool verify_git(const struct source *source, const struct vfile *file, const char *stated, struct error *error)
{
    enum { GIT_HEX = 2 * SHA1_DIGEST_SIZE };
    char found[GIT_HEX + 1] = "", head[32];
    uint8_t digest[SHA1_DIGEST_SIZE];
    struct sha1_ctx context;
    if (strlen(stated) != GIT_HEX)
        return true;
    sha1_init(&context);
    int length = snprintf(head, sizeof head, "blob %llu", (unsigned long long)file->size);
    sha1_update(&context, (size_t)length + 1, (const uint8_t *)head); /* with its NUL */
    if (!take_file(file, add_to_git_hash, &context, error))
        return false;
    sha1_digest(&context, sizeof digest, digest);
    base16_encode_update(found, sizeof digest, digest);
    return strcmp(found, stated) == 0 ||
           error_set(error,
                     "%s: the bytes that arrived have the Git hash %s, but the hub states %s; 'wfs cache rm' "
                     "removes them",
                     source_name(source), found, stated);
}

/* Adds a fetched file to the hub's cache. Where the hub states no hash, as `wfs serve` does, the blob is named by its
 * SHA-256: clients look only for the links. */
static bool hand_over(const struct hub_cache_copy *copy, const char *path, const char *blob, struct source *source,
                      struct error *error)
{
    char own[SHA256_HEX + 1];
    struct arena *arena = arena_new();
    const struct vfile file = vfile_of_source(arena, source, (struct origin){0});
    bool named = blob != NULL ? verify_git(source, &file, blob, error) : find_sha256(&file, own, error);
    bool done = named && hub_cache_copy_file(copy, path, blob != NULL ? blob : own, source, error);
    arena_free(arena);
    return done;
}

/* Fetches a file of a repository, and hands it over to the hub's cache. */
static void fetch_to_hub_cache(struct fetching *fetching, const struct hub_cache_copy *copy,
                               const struct location *location, const struct location_snapshot *snapshot,
                               const char *name)
{
    struct error error;
    struct arena *arena = arena_new();
    struct source *source = location_source(location, name, &error);
    const char *path = arena_printf(arena, "%s%s", snapshot->folder, name), *blob = location_blob(location, name);
    if (source == NULL || (fetch_source(fetching, source) && !hand_over(copy, path, blob, source, &error)))
        fail(fetching, &error);
    source_close(source);
    arena_free(arena);
}

/* Hands over all files of a location, folder after folder. */
static void fetch_folders(struct fetching *fetching, const struct hub_cache_copy *copy, const struct location *location,
                          const struct location_snapshot *snapshot)
{
    struct location_list list;
    struct error error;
    const char **folders = memory_alloc(sizeof *folders);
    folders[0] = "";
    for (size_t n = 1; n > 0;) {
        const char *folder = folders[--n];
        if (!location_list(location, folder, copy->arena, &list, &error))
            fail(fetching, &error);
        for (size_t i = 0; i < list.count; i++) {
            const char *path =
                arena_printf(copy->arena, "%s%s%s", folder, *folder != '\0' ? "/" : "", list.entries[i].name);
            if (list.entries[i].kind == LOCATION_FOLDER) {
                folders = memory_resize(folders, (n + 1) * sizeof *folders);
                folders[n++] = path;
            } else {
                fetch_to_hub_cache(fetching, copy, location, snapshot, path);
            }
        }
    }
    free(folders);
}

/* Fetches a model, or a file or folder of it, into the cache of the hub's Python clients. */
static bool fetch_for_clients(const char *text)
{
    struct fetching fetching = {.tree = NULL};
    struct location_snapshot snapshot;
    struct hub_cache_copy copy;
    struct error error;
    const char *file;
    struct arena *arena = arena_new();
    struct location *location = location_open(text, LOCATION_INSIDE, &file, &error);
    bool begun = location != NULL;
    if (begun && !location_snapshot(location, &snapshot))
        begun = error_set(&error, "%s: not on the hub; --hub-cache takes hf://ORG/NAME", location_shown(text, arena));
    begun = begun && hub_cache_copy_begin(&copy, &snapshot, arena, &error);
    if (begun && file != NULL)
        fetch_to_hub_cache(&fetching, &copy, location, &snapshot, file);
    else if (begun)
        fetch_folders(&fetching, &copy, location, &snapshot);
    bool done = begun && (fetching.failed || hub_cache_copy_end(&copy, snapshot.revision, &error));
    if (!done)
        report("%s", error.message);
    location_close(location);
    arena_free(arena);
    return done && !fetching.failed;
}

static int refuse_paths(void)
{
    report("--hub-cache: no PATH of virtual files can follow; hf://ORG/NAME/PATH names a file of the model");
    return EXIT_MISUSE;
}

/* Enters the sandbox, in which the hub's cache can be filled if it is to be. */
static int confine(const struct invocation *invocation)
{
    struct arena *arena = arena_new();
    struct command_needs needs = command_needs(invocation, arena);
    needs.fills_hub_cache = invocation->flags[FLAG_HUB_CACHE];
    int status = command_confine(invocation, &needs);
    arena_free(arena);
    return status;
}

static int run(const struct invocation *invocation)
{
    int status = confine(invocation);
    if (status >= 0)
        return status;
    if (invocation->flags[FLAG_HUB_CACHE]) {
        if (invocation->n_arguments > 1)
            return refuse_paths();
        return fetch_for_clients(invocation->arguments[0]) ? EXIT_SUCCESS : EXIT_BAD_INPUT;
    }
    struct fetching fetching = {.tree = command_open(invocation->arguments[0], invocation->options)};
    if (fetching.tree == NULL)
        return EXIT_BAD_INPUT;
    if (invocation->n_arguments == 1)
        fetch_all(&fetching);
    else
        fetch_paths(&fetching, invocation->arguments + 1, invocation->n_arguments - 1);
    command_close(fetching.tree);
    return fetching.failed ? EXIT_BAD_INPUT : EXIT_SUCCESS;
}

const struct command fetch_command = {
    .name = "fetch",
    .usage = "SOURCE [PATH...]",
    .summary = "Fetch a model from a server, or only what its virtual files need",
    .group = SERVER_COMMAND,
    .text =
        "What is in the cache already is not fetched again, so that an interrupted fetch can be continued. After it, "
        "-o offline works. Compares files of the hub with the SHA-256 that it states.",
    .flags =
        (const struct flag[]){
            {0, "hub-cache", "also put the files into the hub cache, where Python programs find them offline"},
            {0},
        },
    .examples =
        (const struct example[]){
            {"wfs fetch hf://Qwen/Qwen2.5-0.5B", "fetch all of a model"},
            {"wfs fetch hf://Qwen/Qwen2.5-0.5B tensors/lm_head.weight", "fetch one tensor"},
            {"wfs fetch --hub-cache hf://Qwen/Qwen2.5-0.5B", "fetch all files for transformers, too"},
            {0},
        },
    .min_arguments = 1,
    .max_arguments = SIZE_MAX,
    .n_sources = 1,
    .takes_options = true,
    .enters_sandbox_itself = true,
    .run = run,
};
