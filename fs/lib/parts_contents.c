#include "base/text.h"
#include "fs/lib/output.h"
#include "fs/lib/parts.h"
#include "fs/options/options.h"
#include "fs/tree/content_options.h"
#include "fs/tree/identity.h"
#include "sources/paths.h"

#include <stdlib.h>
#include <string.h>

/* The files of a copy while they are collected. */
struct collected {
    struct tree *tree;
    struct arena *arena;
    struct parts_file *files;
    size_t n_files;
    const char **directories;
    size_t n_directories;
    struct source **sources;
    size_t n_sources;
    const char *below; /* the path of the directory whose entries are being added */
    struct error *error;
    bool failed;
};

static bool has_source(const struct collected *all, const struct source *source)
{
    for (size_t i = 0; i < all->n_sources; i++)
        if (all->sources[i] == source)
            return true;
    return false;
}

static void add_sources(struct collected *all, struct source *const *sources, size_t n_sources)
{
    for (size_t i = 0; i < n_sources; i++)
        if (!has_source(all, sources[i])) {
            all->sources = arena_grow(all->arena, all->sources, all->n_sources, sizeof(struct source *));
            all->sources[all->n_sources++] = sources[i];
        }
}

static bool add_file(struct collected *all, const char *path, node_id id)
{
    struct vfile *file = arena_alloc(all->arena, sizeof *file);
    if (!tree_file(all->tree, id, all->arena, file, all->error))
        return error_prefix(all->error, "%s", path);
    all->files = arena_grow(all->arena, all->files, all->n_files, sizeof *all->files);
    all->files[all->n_files++] = (struct parts_file){path, file};
    /* Files of one model share their inputs. */
    const struct origin *before = all->n_files > 1 ? &all->files[all->n_files - 2].file->origin : NULL;
    if (before == NULL || before->sources != file->origin.sources || before->n_sources != file->origin.n_sources)
        add_sources(all, file->origin.sources, file->origin.n_sources);
    return true;
}

static bool add_entry(void *context, uint64_t index, const char *name, const struct node_attributes *attributes);

static void add_entries(struct collected *all, const char *path, node_id directory)
{
    const char *before = all->below;
    all->below = path;
    tree_list(all->tree, directory, 0, add_entry, all);
    all->below = before;
}

static bool add_entry(void *context, uint64_t index, const char *name, const struct node_attributes *attributes)
{
    struct collected *all = context;
    const char *path = arena_printf(all->arena, "%s%s%s", all->below, *all->below != '\0' ? "/" : "", name);
    if (!attributes->directory) {
        all->failed |= !add_file(all, path, attributes->id);
        return !all->failed;
    }
    all->directories = arena_grow(all->arena, all->directories, all->n_directories, sizeof *all->directories);
    all->directories[all->n_directories++] = path;
    add_entries(all, path, attributes->id);
    return !all->failed;
}

static bool collect(struct collected *all, const struct found *found, const struct options *options)
{
    size_t n_named;
    if (found->attributes.directory)
        add_entries(all, "", found->attributes.id);
    else
        all->failed = !add_file(all, "", found->attributes.id);
    struct source *const *named = request_open_files(options, all->arena, &n_named);
    add_sources(all, named, n_named);
    return !all->failed;
}

/* Returns the options that change bytes, as words: the request without sizes and times of the files that it names. */
static const char *options_text(const struct tree *tree, struct arena *arena)
{
    const char *request = tree_options(tree)->file_request.text;
    struct buffer text = {0};
    for (const char *line = request, *end; line != NULL && *line != '\0'; line = *end != '\0' ? end + 1 : end) {
        end = line + strcspn(line, "\n");
        bool is_flag = end > line && end[-1] == '=';
        if (*line != ' ')
            buffer_printf(&text, "%s%.*s", text.length > 0 ? "," : "", (int)(end - line) - is_flag, line);
    }
    const char *words = arena_strndup(arena, text.length > 0 ? (const char *)text.bytes : "", text.length);
    buffer_free(&text);
    return words;
}

/* Reports whether a directory is the copy itself: its parts are beside it, or it has a file of the copy. */
static bool is_the_copy(const struct collected *all, const char *directory)
{
    if (durable_exists(arena_printf(all->arena, "%s" PARTS_SUFFIX, directory)))
        return true;
    for (size_t i = 0; i < all->n_files; i++)
        if (durable_exists(arena_printf(all->arena, "%s/%s", directory, all->files[i].path)))
            return true;
    return false;
}

static const char *without_slashes(const char *path, struct arena *arena)
{
    return arena_strndup(arena, path, text_trimmed_length(path));
}

/* Returns the version and the build of wfs. */
static const char *this_wfs(struct arena *arena)
{
    return arena_printf(arena, "wfs " WFS_VERSION " (build %s)", wfs_build);
}

const struct kept_header *parts_contents_header(const char *path, const char *destination, size_t number,
                                                size_t n_parts, struct arena *arena)
{
    while (*path == '/' || (path[0] == '.' && path[1] == '/'))
        path++;
    const struct parts_plan own = {.path = path, .wfs = this_wfs(arena), .n_parts = n_parts};
    const char *name = without_slashes(destination, arena);
    if (durable_is_directory(name))
        name = arena_printf(arena, "%s/%s", name, text_last_name(path));
    return parts_header_find(name, &own, number, arena);
}

/* Returns the name of the copy: DEST, or a name in it. */
static const char *name_of_copy(const struct collected *all, const struct found *found, const char *destination)
{
    const char *name = text_last_name(found->path), *plain = without_slashes(destination, all->arena);
    if (*name == '\0' || !durable_is_directory(plain) || (found->attributes.directory && is_the_copy(all, plain)))
        return plain;
    return arena_printf(all->arena, "%s/%s", plain, name);
}

bool parts_contents_find(struct tree *tree, const struct found *found, const char *destination,
                         const struct options *options, size_t n_parts, struct arena *arena,
                         struct parts_copy *ret_copy, struct error *error)
{
    struct collected all = {.tree = tree, .arena = arena, .error = error};
    if (!collect(&all, found, options))
        return false;
    *ret_copy = (struct parts_copy){
        .destination = name_of_copy(&all, found, destination),
        .is_directory = found->attributes.directory,
        .files = all.files,
        .n_files = all.n_files,
        .directories = all.directories,
        .n_directories = all.n_directories,
        .sources = all.sources,
        .n_sources = all.n_sources,
        .plan = {.wfs = this_wfs(arena),
                 .path = found->path,
                 .model = tree_checkpoint(tree)->model_name,
                 .options = options_text(tree, arena)},
    };
    parts_lay_out(ret_copy, n_parts, arena);
    return true;
}

void parts_header_keep(const struct vfile *file, const char *path, struct parts_plan *plan)
{
    const struct span_header *header = &file->header;
    struct error unsaid;
    if (header->length == 0 || header->length > PARTS_MOST_HEADER)
        return;
    unsigned char *bytes = memory_alloc((size_t)header->length);
    bool kept = vfile_wait(file, 0, header->length, &unsaid) &&
                vfile_read(file, 0, (size_t)header->length, bytes, &unsaid) &&
                durable_write(path, bytes, (size_t)header->length, true) == 0;
    if (kept) {
        plan->header_bytes = header->length;
        sha256_hex(bytes, (size_t)header->length, plan->header);
        sha256_hex(bytes + header->table, (size_t)header->table_length, plan->table);
    }
    free(bytes);
}

static void close_source(void *context)
{
    source_close(context);
}

/* Reports whether the source begins with the header. */
static bool has_header(const struct source *source, const struct parts_plan *plan)
{
    struct error unsaid;
    char hash[SHA256_HEX + 1] = "";
    unsigned char *bytes = memory_alloc((size_t)plan->header_bytes);
    if (source_read(source, 0, (size_t)plan->header_bytes, bytes, &unsaid))
        sha256_hex(bytes, (size_t)plan->header_bytes, hash);
    free(bytes);
    return strcmp(hash, plan->header) == 0;
}

static struct source *open_header(const char *path, const struct parts_plan *plan, size_t number, struct arena *arena)
{
    struct error unsaid;
    struct source *source = local_open_file(path, path, &unsaid);
    if (source == NULL)
        return NULL;
    arena_on_free(arena, close_source, source);
    bool has_some = number == 1 || plan->ends[number - 2] < plan->header_bytes;
    bool is_good = source_size(source) == plan->header_bytes && (!has_some || has_header(source, plan));
    return is_good ? source : NULL;
}

static bool read_plan(const char *path, struct arena *arena, struct parts_plan *ret_plan)
{
    struct buffer text = {0};
    struct error unsaid;
    bool is_read = durable_read(path, PARTS_MOST_TEXT, &text) == 0 && parts_plan_read(&text, arena, ret_plan, &unsaid);
    buffer_free(&text);
    return is_read;
}

const struct kept_header *parts_header_find(const char *destination, const struct parts_plan *own, size_t number,
                                            struct arena *arena)
{
    struct parts_plan plan;
    if (!read_plan(arena_printf(arena, "%s" PARTS_SUFFIX "/plan", destination), arena, &plan) ||
        plan.n_parts != own->n_parts || strcmp(plan.path, own->path) != 0 || strcmp(plan.wfs, own->wfs) != 0 ||
        plan.header_bytes == 0 || plan.header_bytes > PARTS_MOST_HEADER)
        return NULL;
    const char *path = arena_printf(arena, "%s" PARTS_SUFFIX "/header", destination);
    struct source *source = open_header(path, &plan, number, arena);
    if (source == NULL)
        return NULL;
    const struct kept_header kept = {plan.path, {source, plan.header_bytes, arena_strdup(arena, plan.table)}};
    return arena_copy(arena, &kept, sizeof kept);
}
