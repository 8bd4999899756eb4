/* Sources in archives. */
#include "sources/archive/location.h"

#include "base/lock.h"
#include "base/text.h"
#include "sources/location_scheme.h"
#include "sources/paths.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_LINKS = 40 }; /* as Linux follows */

/* A folder of an archive. */
struct view {
    struct archive *archive; /* held */
    char *folder;            /* "", "NAME" or "NAME/..." */
    char *file;              /* the file that the user named; NULL: none */
};

static const struct location_ops archive_ops;

/* A place of an archive: all sources, or an entry of one. */
struct place {
    bool is_top;
    size_t member, entry;
    const struct files *files;
};

/* Finds an entry without following its last name. */
static bool find_entry(struct archive *archive, const char *path, struct place *place, struct error *error)
{
    size_t length = strcspn(path, "/");
    const char *rest = path[length] == '/' ? path + length + 1 : "";
    bool found;
    *place = (struct place){.is_top = *path == '\0', .member = archive_find(archive, path, length)};
    if (place->is_top)
        return true;
    if (place->member == SIZE_MAX)
        return error_set(error, "%s has no source of that name", archive_shown(archive));
    place->files = archive_files(archive, place->member, error);
    if (place->files == NULL)
        return false;
    place->entry = files_find(place->files, rest, strlen(rest), &found);
    return found || error_set(error, "no such file or directory");
}

/* A path while its links are followed: `done` has none, `left` is still to be walked. */
struct walk {
    struct arena *arena;
    const char *done, *left;
    unsigned n_links;
};

static void go_up(struct walk *walk)
{
    const char *slash = strrchr(walk->done, '/');
    walk->done = slash != NULL ? arena_strndup(walk->arena, walk->done, (size_t)(slash - walk->done)) : "";
}

/* Takes the next name; follows the link that it is, the last only if `follow` is set. */
static bool step(struct archive *archive, struct walk *walk, bool follow, struct place *place, struct error *error)
{
    size_t length = strcspn(walk->left, "/");
    const char *name = arena_strndup(walk->arena, walk->left, length);
    walk->left += length + (walk->left[length] == '/');
    if (length == 0 || strcmp(name, ".") == 0)
        return true;
    if (strcmp(name, "..") == 0) {
        go_up(walk);
        return true;
    }
    const char *path = *walk->done != '\0' ? arena_printf(walk->arena, "%s/%s", walk->done, name) : name;
    if (!find_entry(archive, path, place, error))
        return false;
    const struct files_entry *entry = &place->files->entries[place->entry];
    if (entry->kind != FILES_LINK || (*walk->left == '\0' && !follow)) {
        walk->done = path;
        return true;
    }
    if (*entry->target == '/')
        return error_set(error, "a symbolic link to %s, outside of the archive", entry->target);
    walk->left = arena_printf(walk->arena, "%s/%s", entry->target, walk->left);
    return ++walk->n_links <= MOST_LINKS || error_set(error, "too many symbolic links");
}

static bool resolve(const struct view *view, const char *path, bool follow, struct place *place, struct error *error)
{
    struct walk walk = {.arena = arena_new(), .done = ""};
    walk.left = arena_printf(walk.arena, "%s/%s", view->folder, path);
    bool good = true;
    while (good && *walk.left != '\0')
        good = step(view->archive, &walk, follow, place, error);
    good = good && find_entry(view->archive, walk.done, place, error);
    arena_free(walk.arena);
    return good;
}

static enum files_kind kind_of(const struct place *place)
{
    return place->is_top ? FILES_FOLDER : (enum files_kind)place->files->entries[place->entry].kind;
}

static void view_close(void *context)
{
    struct view *view = context;
    archive_drop(view->archive);
    free(view->folder);
    free(view->file);
    free(view);
}

static struct location *view_new(struct archive *archive, char *folder, char *file)
{
    struct view *view = memory_alloc(sizeof *view);
    *view = (struct view){archive, folder, file};
    return location_new(&archive_ops, view);
}

/* Returns the path of a place in the archive, which the caller frees. */
static char *path_of(const struct archive *archive, const struct place *place)
{
    if (place->is_top)
        return memory_strdup("");
    const char *name = archive_member(archive, place->member)->name, *path = place->files->entries[place->entry].path;
    char *joined = memory_alloc(strlen(name) + strlen(path) + 2);
    strcpy(joined, name);
    if (*path != '\0')
        strcat(strcat(joined, "/"), path);
    return joined;
}

static struct location *view_folder(const void *context, const char *folder, const char *name, struct error *error)
{
    const struct view *view = context;
    struct place place;
    if (resolve(view, folder, true, &place, error) && kind_of(&place) == FILES_FOLDER)
        return view_new(archive_hold(view->archive), path_of(view->archive, &place), NULL);
    error_set(error, "%s: not a directory of %s", name, archive_shown(view->archive));
    return NULL;
}

static void list_members(struct archive *archive, struct location_listing *listing)
{
    for (size_t i = 0; i < archive_count(archive); i++) {
        struct error unused;
        const struct files *files = archive_files(archive, i, &unused);
        bool is_file = files != NULL && files->entries[0].kind == FILES_FILE;
        location_add(listing, archive_member(archive, i)->name, is_file ? LOCATION_FILE : LOCATION_FOLDER);
    }
}

static void list_entries(const struct place *place, struct location_listing *listing)
{
    static const enum location_kind kinds[] = {
        [FILES_FOLDER] = LOCATION_FOLDER, [FILES_FILE] = LOCATION_FILE, [FILES_LINK] = LOCATION_LINK};
    const struct files *files = place->files;
    const char *folder = files->entries[place->entry].path;
    size_t length = strlen(folder);
    for (size_t i = place->entry + 1; i < files->n_entries; i++) {
        const char *path = files->entries[i].path;
        if (strncmp(path, folder, length) != 0)
            break;
        if (length > 0 && path[length] != '/') /* "a-b" comes between "a" and "a/b" */
            continue;
        const char *name = path + length + (length > 0);
        if (strchr(name, '/') == NULL)
            location_add(listing, name, kinds[files->entries[i].kind]);
    }
}

static bool view_list(const void *context, const char *folder, struct location_listing *listing, struct error *error)
{
    const struct view *view = context;
    struct place place;
    if (!resolve(view, folder, *folder == '\0', &place, error))
        return false;
    if (kind_of(&place) != FILES_FOLDER)
        return error_set(error, "not a directory");
    if (place.is_top)
        list_members(view->archive, listing);
    else
        list_entries(&place, listing);
    return true;
}

static enum location_kind view_kind(const void *context, const char *path)
{
    const struct view *view = context;
    struct place entry, target;
    struct error unused;
    if (!resolve(view, path, false, &entry, &unused))
        return LOCATION_NOTHING;
    if (kind_of(&entry) != FILES_LINK)
        return kind_of(&entry) == FILES_FOLDER ? LOCATION_FOLDER : LOCATION_FILE;
    bool is_folder = resolve(view, path, true, &target, &unused) && kind_of(&target) == FILES_FOLDER;
    return is_folder ? LOCATION_LINKED_FOLDER : LOCATION_FILE;
}

static bool view_identify(const void *context, const char *path, struct source_identity *ret_identity, bool *ret_inside)
{
    const struct view *view = context;
    struct place place;
    struct error unused;
    *ret_inside = true;
    if (!resolve(view, path, true, &place, &unused) || kind_of(&place) != FILES_FILE)
        return false;
    archive_identify(view->archive, place.member, &place.files->entries[place.entry], ret_identity);
    return true;
}

static struct source *view_open(const void *context, const char *path, const char *name, struct error *error)
{
    const struct view *view = context;
    struct place place;
    bool found = resolve(view, path, true, &place, error);
    if (found && kind_of(&place) == FILES_FILE)
        return archive_source(view->archive, place.member, place.entry, name, error);
    if (found)
        error_set(error, "not a regular file");
    error_prefix(error, "%s", name);
    return NULL;
}

static const struct location_ops archive_ops = {
    .close = view_close,
    .folder = view_folder,
    .list = view_list,
    .kind = view_kind,
    .identify = view_identify,
    .open = view_open,
};

struct location *archive_location(struct archive *archive, const char *path, const char **ret_file, struct error *error)
{
    struct view top = {.archive = archive, .folder = (char *)""};
    struct place place;
    if (!resolve(&top, path, true, &place, error)) {
        error_prefix(error, "%s/%s", archive_shown(archive), path);
        archive_drop(archive);
        return NULL;
    }
    char *found = path_of(archive, &place);
    if (ret_file != NULL)
        *ret_file = NULL;
    if (kind_of(&place) == FILES_FOLDER)
        return view_new(archive, found, NULL);
    char *slash = strrchr(found, '/'), *file = memory_strdup(slash != NULL ? slash + 1 : found);
    *(slash != NULL ? slash : found) = '\0';
    if (ret_file != NULL) {
        *ret_file = file;
        return view_new(archive, found, file);
    }
    error_set(error, "%s/%s: not a directory", archive_shown(archive), path);
    free(found);
    free(file);
    archive_drop(archive);
    return NULL;
}

/* Reports whether a directory of this machine is an archive's. */
static bool is_archive(const char *path, size_t length)
{
    struct arena *arena = arena_new();
    bool is = local_kind(arena_printf(arena, "%.*s/" ARCHIVE_LAYOUT_FILE, (int)length, path)) == LOCATION_FILE &&
              local_kind(arena_printf(arena, "%.*s/" ARCHIVE_INDEX_FILE, (int)length, path)) == LOCATION_FILE;
    arena_free(arena);
    return is;
}

/* The archives on servers that this process has opened: what begins with their URL leads into them. */
static struct {
    struct lock lock;
    struct remote_archive {
        char *url; /* without '/' at its end */
        struct archive *archive;
    } * items;
    size_t count;
} remotes = {.lock = LOCK_INITIALIZER};

static bool is_remote(const char *text)
{
    return strstr(text, "://") != NULL;
}

static size_t trimmed(const char *url)
{
    size_t length = strcspn(url, "?#");
    while (length > 0 && url[length - 1] == '/')
        length--;
    return length;
}

/* Returns the archive that a URL leads into, not held; NULL: none that was opened. */
static struct archive *find_remote(const char *text, size_t *ret_length)
{
    struct archive *found = NULL;
    *ret_length = 0;
    lock_take(&remotes.lock);
    for (size_t i = 0; i < remotes.count; i++) {
        size_t length = strlen(remotes.items[i].url);
        bool leads = strncmp(text, remotes.items[i].url, length) == 0 && strchr("/?#", text[length]) != NULL;
        if (leads && length > *ret_length) {
            found = remotes.items[i].archive;
            *ret_length = length;
        }
    }
    lock_drop(&remotes.lock);
    return found;
}

/* Remembers an archive for the life of the process. */
static void add_remote(const char *text, struct archive *archive)
{
    char *url = memory_strndup(text, trimmed(text));
    struct remote_archive *items = memory_alloc((remotes.count + 1) * sizeof *items);
    lock_take(&remotes.lock);
    if (remotes.count > 0)
        memcpy(items, remotes.items, remotes.count * sizeof *items);
    items[remotes.count++] = (struct remote_archive){url, archive_hold(archive)};
    free(remotes.items);
    remotes.items = items;
    lock_drop(&remotes.lock);
}

size_t archive_prefix(const char *text)
{
    size_t length = strlen(text);
    enum location_kind kind = LOCATION_NOTHING;
    if (is_remote(text)) {
        find_remote(text, &length);
        return length;
    }
    while (length > 0 && kind == LOCATION_NOTHING) {
        while (length > 1 && text[length - 1] == '/')
            length--;
        char *path = memory_strndup(text, length);
        kind = local_kind(path);
        free(path);
        if (kind == LOCATION_FOLDER && is_archive(text, length))
            return length;
        if (kind == LOCATION_NOTHING)
            while (length > 0 && text[length - 1] != '/')
                length--;
    }
    return 0;
}

struct location *archive_directory(const char *path, struct error *error)
{
    return local_scheme.open(path, LOCATION_INSIDE, NULL, error);
}

struct archive *archive_of_text(const char *text, const char **ret_rest, bool *ret_is_archive, struct error *error)
{
    size_t length = archive_prefix(text);
    *ret_is_archive = length > 0;
    if (length == 0)
        return NULL;
    *ret_rest = text + length + strspn(text + length, "/");
    if (is_remote(text))
        return archive_hold(find_remote(text, &length));
    char *path = memory_strndup(text, length);
    struct location *location = archive_directory(path, error);
    struct archive *archive = location != NULL ? archive_open(location, path, error) : NULL;
    free(path);
    return archive;
}

const char *archive_real_path(const char *text, struct arena *arena)
{
    const char *rest, *real = NULL;
    bool is_archive;
    struct error unused;
    struct place place;
    struct archive *archive = archive_of_text(text, &rest, &is_archive, &unused);
    struct view top = {.archive = archive, .folder = (char *)""};
    if (archive != NULL && resolve(&top, rest, true, &place, &unused)) {
        const char *top_path = arena_strndup(arena, text, archive_prefix(text));
        char *path = path_of(archive, &place);
        if (!is_remote(text))
            top_path = local_real_path(top_path, arena);
        if (top_path != NULL)
            real = arena_printf(arena, "%s%s%s", top_path, *path != '\0' ? "/" : "", path);
        free(path);
    }
    archive_drop(archive);
    return real;
}

struct location *archive_location_open(const char *text, const char **ret_file, bool *ret_is_archive,
                                       struct error *error)
{
    const char *rest;
    struct archive *archive = archive_of_text(text, &rest, ret_is_archive, error);
    return archive != NULL ? archive_location(archive, rest, ret_file, error) : NULL;
}

struct location *archive_location_of(struct location *location, const char *text, struct error *error)
{
    if (location == NULL || !archive_is_at(location))
        return location;
    struct arena *arena = arena_new();
    struct archive *archive = archive_open(location, location_shown(text, arena), error);
    arena_free(arena);
    if (archive != NULL)
        add_remote(text, archive);
    return archive != NULL ? archive_location(archive, "", NULL, error) : NULL;
}

struct location *archive_location_above(const char *text, archive_opener *open, const char **ret_file,
                                        struct error *error)
{
    enum { MOST_ABOVE = 2 };
    struct arena *arena = arena_new();
    struct location *location = NULL;
    struct error unused;
    bool is_archive;
    size_t length = trimmed(text);
    for (int i = 0; location == NULL && i < MOST_ABOVE; i++) {
        while (length > 0 && text[length - 1] != '/')
            length--;
        const char *folder = arena_strndup(arena, text, length), *file = NULL;
        struct location *layout =
            open(arena_printf(arena, "%s" ARCHIVE_LAYOUT_FILE, folder), LOCATION_INSIDE, &file, &unused);
        bool is_layout = layout != NULL && file != NULL;
        location_close(layout);
        layout = is_layout ? archive_location_of(open(folder, LOCATION_INSIDE, NULL, &unused), folder, &unused) : NULL;
        location_close(layout);
        location = archive_location_open(text, ret_file, &is_archive, error);
        length -= length > 0;
    }
    arena_free(arena);
    return location;
}
