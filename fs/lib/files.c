/* The files of a model. */
#include "base/arena.h"
#include "base/text.h"
#include "fs/lib/copy.h"
#include "fs/lib/lib.h"
#include "fs/lib/output.h"
#include "fs/lib/parts_plan.h"
#include "fs/tree/read_ahead.h"
#include "fs/tree/tar.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct wfs_list {
    struct arena *arena; /* holds the list */
    struct wfs_entry *entries;
    size_t count;
};

struct wfs_file {
    wfs_model *model;
    struct arena *arena; /* holds the file */
    struct read_ahead *ahead;
    const char *path;
    struct vfile file;
};

/* Finds a path. An error that may pass, since a remote source could not be read, is no ENOENT. */
static bool find(wfs_model *model, const char *path, struct node_attributes *ret_attributes, struct error *error)
{
    uint64_t n_unreached = source_unreached();
    if (path == NULL)
        return lib_misuse(error, "no path is given");
    if (tree_walk(model->tree, path, ret_attributes, error))
        return true;
    return error_set_code(error, source_unreached() != n_unreached ? EIO : ENOENT);
}

static mode_t type_of(const struct node_attributes *attributes)
{
    if (attributes->link != NULL)
        return S_IFLNK;
    return attributes->directory ? S_IFDIR : S_IFREG;
}

static struct wfs_entry entry_of(const char *name, const struct node_attributes *attributes)
{
    return (struct wfs_entry){
        .name = name,
        .size = attributes->directory ? 0 : attributes->size,
        .mtime = attributes->mtime.tv_sec,
        .mtime_nanoseconds = (uint32_t)attributes->mtime.tv_nsec,
        .mode = (uint32_t)type_of(attributes) | attributes->permissions,
    };
}

struct stat_call {
    wfs_model *model;
    const char *path;
    struct wfs_entry entry;
};

static bool stat_path(void *context, struct error *error)
{
    struct stat_call *call = context;
    struct node_attributes attributes;
    bool found = find(call->model, call->path, &attributes, error);
    if (found)
        call->entry = entry_of(NULL, &attributes);
    return found;
}

bool wfs_stat(wfs_model *model, const char *path, struct wfs_entry *ret_entry, struct wfs_error *ret_error)
{
    struct stat_call call = {.model = model, .path = path};
    bool found = lib_call(model->context, stat_path, &call, ret_error);
    if (found)
        *ret_entry = call.entry;
    return found;
}

struct list_call {
    wfs_model *model;
    const char *path;
    bool only_names;
    wfs_list *list;
};

static bool add_entry(void *context, uint64_t index, const char *name, const struct node_attributes *attributes)
{
    wfs_list *list = context;
    list->entries = arena_grow(list->arena, list->entries, list->count, sizeof *list->entries);
    list->entries[list->count++] = entry_of(arena_strdup(list->arena, name), attributes);
    return true;
}

static bool list_directory(void *context, struct error *error)
{
    struct list_call *call = context;
    struct node_attributes attributes;
    if (!find(call->model, call->path, &attributes, error))
        return false;
    if (!attributes.directory) {
        error_set(error, "%s: is not a directory", call->path);
        return error_set_code(error, ENOTDIR);
    }
    struct arena *arena = arena_new();
    wfs_list *list = arena_alloc(arena, sizeof *list);
    list->arena = arena;
    (call->only_names ? tree_list_names : tree_list)(call->model->tree, attributes.id, 0, add_entry, list);
    call->list = list;
    return true;
}

wfs_list *wfs_list_open(wfs_model *model, const char *path, bool only_names, struct wfs_error *ret_error)
{
    struct list_call call = {model, path, only_names, NULL};
    if (lib_call(model->context, list_directory, &call, ret_error))
        return call.list;
    wfs_list_close(call.list);
    return NULL;
}

size_t wfs_list_count(const wfs_list *list)
{
    return list->count;
}

const struct wfs_entry *wfs_list_entry(const wfs_list *list, size_t index)
{
    return index < list->count ? &list->entries[index] : NULL;
}

void wfs_list_close(wfs_list *list)
{
    if (list != NULL)
        arena_free(list->arena);
}

static const char archive[] = ".tar";

struct open_call {
    wfs_model *model;
    const char *path;
    wfs_file *file;
};

/* Makes the archive of a directory for a path "DIRECTORY.tar" that no file has; returns false, and leaves the error,
 * for other paths. */
static bool make_archive(struct tree *tree, const char *path, struct arena *arena, struct vfile *ret_file,
                         struct error *error)
{
    struct error unsaid;
    struct node_attributes directory;
    const char *stem = text_ends_with(path, archive) ? arena_strndup(arena, path, strlen(path) - strlen(archive)) : "";
    if (*stem == '\0' || !tree_walk(tree, stem, &directory, &unsaid) || !directory.directory)
        return false;
    const char *name = text_last_name(stem);
    return *name != '\0' && tar_of_directory(tree, directory.id, name, arena, ret_file, error);
}

static bool make_file(const struct open_call *call, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    struct tree *tree = call->model->tree;
    struct node_attributes attributes;
    if (!find(call->model, call->path, &attributes, error))
        return call->path != NULL && make_archive(tree, call->path, arena, ret_file, error);
    if (attributes.directory) {
        error_set(error, "%s: is a directory", *call->path != '\0' ? call->path : "/");
        return error_set_code(error, EISDIR);
    }
    return tree_file(tree, attributes.id, arena, ret_file, error) || error_prefix(error, "%s", call->path);
}

static bool open_file(void *context, struct error *error)
{
    struct open_call *call = context;
    struct arena *arena = arena_new();
    wfs_file *file = arena_alloc(arena, sizeof *file);
    *file = (wfs_file){.model = call->model, .arena = arena};
    if (!make_file(call, arena, &file->file, error)) {
        arena_free(arena);
        return false;
    }
    file->path = arena_strdup(arena, call->path);
    file->ahead = read_ahead_new();
    call->file = file;
    return true;
}

wfs_file *wfs_file_open(wfs_model *model, const char *path, struct wfs_error *ret_error)
{
    struct open_call call = {model, path, NULL};
    if (lib_call(model->context, open_file, &call, ret_error))
        return call.file;
    wfs_file_close(call.file);
    return NULL;
}

uint64_t wfs_file_size(const wfs_file *file)
{
    return file->file.size;
}

struct read_call {
    wfs_file *file;
    uint64_t offset;
    void *out;
    size_t length;
};

static bool read_range(const struct read_call *call, struct error *error)
{
    const struct vfile *file = &call->file->file;
    vfile_want(file, call->offset, call->length, true);
    read_ahead_follow(call->file->ahead, 0, file, call->offset, call->length);
    return vfile_wait(file, call->offset, call->length, error) &&
           vfile_read(file, call->offset, call->length, call->out, error);
}

static bool read_file(void *context, struct error *error)
{
    const struct read_call *call = context;
    bool done = lib_check_unchanged(&call->file->file.origin, error) && read_range(call, error);
    return done || error_prefix(error, "%s", call->file->path);
}

int64_t wfs_file_read(wfs_file *file, uint64_t offset, void *out, size_t length, struct wfs_error *ret_error)
{
    uint64_t left = offset < file->file.size ? file->file.size - offset : 0;
    struct read_call call = {file, offset, out, left < length ? (size_t)left : length};
    if (call.length == 0 || lib_call(file->model->context, read_file, &call, ret_error))
        return (int64_t)call.length;
    return -1;
}

struct write_call {
    wfs_file *file;
    int descriptor;
};

static bool write_file(void *context, struct error *error)
{
    const struct write_call *call = context;
    const struct vfile *file = &call->file->file;
    bool done = lib_check_unchanged(&file->origin, error) && copy_file(file, call->descriptor, NULL, NULL, error);
    return done || error_prefix(error, "%s", call->file->path);
}

bool wfs_file_write(wfs_file *file, int descriptor, struct wfs_error *ret_error)
{
    struct write_call call = {file, descriptor};
    return lib_call(file->model->context, write_file, &call, ret_error);
}

struct range_call {
    wfs_file *file;
    uint64_t offset, length;
    int descriptor;
};

static bool write_file_range(void *context, struct error *error)
{
    const struct range_call *call = context;
    const struct vfile *file = &call->file->file;
    bool done = lib_check_unchanged(&file->origin, error) &&
                copy_range(file, call->offset, call->length, call->descriptor, error);
    return done || error_prefix(error, "%s", call->file->path);
}

bool wfs_file_write_range(wfs_file *file, uint64_t offset, uint64_t length, int descriptor, struct wfs_error *ret_error)
{
    uint64_t left = offset < file->file.size ? file->file.size - offset : 0;
    struct range_call call = {file, offset, left < length ? left : length, descriptor};
    return call.length == 0 || lib_call(file->model->context, write_file_range, &call, ret_error);
}

struct parts_call {
    wfs_file *file;
    size_t n_parts;
    uint64_t *ends;
};

static bool find_parts(void *context, struct error *error)
{
    const struct parts_call *call = context;
    const struct vfile *file = &call->file->file;
    if (call->n_parts < 1 || call->n_parts > PARTS_MOST)
        return lib_misuse(error, "%zu is not a number of parts from 1 to %d", call->n_parts, PARTS_MOST);
    cut_files(&file, 1, call->n_parts, call->ends);
    return true;
}

bool wfs_file_parts(wfs_file *file, size_t n_parts, uint64_t *ret_ends, struct wfs_error *ret_error)
{
    struct parts_call call = {file, n_parts, ret_ends};
    return lib_call(file->model->context, find_parts, &call, ret_error);
}

struct copy_call {
    wfs_file *file;
    const char *path;
    wfs_watch *watch;
    void *user;
};

static bool copy_to_path(void *context, struct error *error)
{
    const struct copy_call *call = context;
    const struct vfile *file = &call->file->file;
    struct output output;
    if (!lib_check_unchanged(&file->origin, error))
        return error_prefix(error, "%s", call->file->path);
    if (!output_open(&output, call->path, file->size, OUTPUT_MODE, error))
        return false;
    if (copy_watched(file, output.fd, call->watch, call->user, error))
        return output_finish(&output, error);
    output_discard(&output);
    return error_prefix(error, "%s", call->file->path);
}

bool wfs_file_copy(wfs_file *file, const char *path, struct wfs_error *ret_error)
{
    return wfs_file_copy_watched(file, path, NULL, NULL, ret_error);
}

bool wfs_file_copy_watched(wfs_file *file, const char *path, wfs_watch *watch, void *user, struct wfs_error *ret_error)
{
    struct copy_call call = {file, path, watch, user};
    return lib_call(file->model->context, copy_to_path, &call, ret_error);
}

void wfs_file_close(wfs_file *file)
{
    if (file == NULL)
        return;
    read_ahead_free(file->ahead);
    arena_free(file->arena);
}
