#include "fs/cli/copying.h"

#include "fs/lib/copy.h"
#include "fs/lib/output.h"
#include "sources/paths.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Makes the folders that a path is in. */
static bool make_parents(const char *path, struct arena *arena, struct error *error)
{
    char *folder = arena_strdup(arena, path);
    for (char *slash = strchr(folder + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(folder, 0777) != 0 && errno != EEXIST)
            return error_set_errno(error, errno, "%s", folder);
        *slash = '/';
    }
    return true;
}

bool hub_cache_copy_begin(struct hub_cache_copy *copy, const struct location_snapshot *snapshot, struct arena *arena,
                          struct error *error)
{
    *copy = (struct hub_cache_copy){hub_cache_folder(arena, snapshot->repository), snapshot->commit, arena};
    return make_parents(arena_printf(arena, "%s/blobs/", copy->folder), arena, error) &&
           make_parents(arena_printf(arena, "%s/snapshots/%s/", copy->folder, copy->commit), arena, error);
}

static bool write_blob(const struct vfile *file, const char *path, struct error *error)
{
    struct output output;
    struct error unused;
    struct source *present = local_open_file(path, path, &unused);
    bool is_complete = present != NULL && source_size(present) == file->size;
    source_close(present);
    if (is_complete)
        return true;
    if (!unfinished_open(&output, path, file->size, OUTPUT_MODE, error))
        return false;
    bool copied = copy_file(file, output.fd, NULL, NULL, error);
    unfinished_none();
    if (copied)
        return output_finish(&output, error);
    output_discard(&output);
    return error_prefix(error, "%s", path);
}

/* Makes the link of a snapshot's file to its blob, relative, so that the cache can be moved. */
static bool link_blob(const struct hub_cache_copy *copy, const char *path, const char *blob, struct error *error)
{
    const char *link = arena_printf(copy->arena, "%s/snapshots/%s/%s", copy->folder, copy->commit, path);
    const char *target = arena_printf(copy->arena, "../../blobs/%s", blob);
    for (const char *slash = strchr(path, '/'); slash != NULL; slash = strchr(slash + 1, '/'))
        target = arena_printf(copy->arena, "../%s", target);
    if (!make_parents(link, copy->arena, error))
        return false;
    if ((unlink(link) != 0 && errno != ENOENT) || symlink(target, link) != 0)
        return error_set_errno(error, errno, "%s", link);
    return true;
}

bool hub_cache_copy_file(const struct hub_cache_copy *copy, const char *path, const char *blob, struct source *source,
                         struct error *error)
{
    struct arena *arena = arena_new();
    const struct vfile file = vfile_of_source(arena, source, (struct origin){0});
    bool done = write_blob(&file, arena_printf(arena, "%s/blobs/%s", copy->folder, blob), error) &&
                link_blob(copy, path, blob, error);
    arena_free(arena);
    return done;
}

bool hub_cache_copy_end(const struct hub_cache_copy *copy, const char *revision, struct error *error)
{
    struct output output;
    const char *path = arena_printf(copy->arena, "%s/refs/%s", copy->folder, revision);
    size_t length = strlen(copy->commit);
    if (strcmp(revision, copy->commit) == 0) /* a commit is its own revision */
        return true;
    if (!make_parents(path, copy->arena, error) || !output_open(&output, path, length, OUTPUT_MODE, error))
        return false;
    if (write(output.fd, copy->commit, length) == (ssize_t)length)
        return output_finish(&output, error);
    output_discard(&output);
    return error_set_errno(error, errno, "%s", path);
}
