#include "sources/archive/archive.h"

#include "base/attempt.h"
#include "base/checked.h"
#include "sources/archive/source_blob.h"
#include "text/json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

/* Limits of an archive: many members may have one manifest, which is read and held for each. */
enum {
    MOST_LAYERS = 1 << 19, /* some 90 bytes each */
    MOST_MANIFEST_BYTES = 128 << 20,
};

/* A pack, which several members may share. */
struct held_pack {
    struct archive_blob blob;
    struct pack *pack; /* NULL until it is needed; guarded by the lock */
};

struct archive {
    size_t n_users;       /* guarded by `opened.lock` */
    struct archive *next; /* of those that are open; guarded likewise */
    struct source_identity index;
    struct arena *arena;
    struct location *location;
    struct source *layout; /* locked while this process reads the archive; NULL: not locked */
    char *shown;
    struct archive_member *members;
    size_t n_members;
    uint64_t n_manifest_bytes, n_layers; /* of all members */
    struct lock lock;                    /* guards the lists and packs; taken for the time of reading one */
    struct files **lists;                /* of each member */
    struct held_pack *packs;
    size_t n_packs;
};

/* The archives that this process has open, which archive_open() serves again. */
static struct {
    struct lock lock;
    struct archive *first;
} opened = {.lock = LOCK_INITIALIZER};

bool archive_is_at(const struct location *location)
{
    return location_kind(location, ARCHIVE_LAYOUT_FILE) == LOCATION_FILE &&
           location_kind(location, ARCHIVE_INDEX_FILE) == LOCATION_FILE;
}

const char *archive_shown(const struct archive *archive)
{
    return archive->shown;
}

static struct source *open_blob(const void *context, const struct digest *digest, struct error *error)
{
    const struct archive *archive = context;
    char path[sizeof ARCHIVE_BLOBS + 1 + SHA256_HEX], hex[SHA256_HEX + 1];
    struct arena *arena = arena_new();
    digest_hex(digest, hex);
    strcpy(path, ARCHIVE_BLOBS "/");
    strcat(path, hex);
    struct source *source =
        location_source_as(archive->location, path, arena_printf(arena, "%s/%s", archive->shown, path), error);
    arena_free(arena);
    return source;
}

struct source *archive_open_blob(const struct archive *archive, const struct digest *digest, struct error *error)
{
    struct source *file = open_blob(archive, digest, error);
    return file != NULL && source_descriptor(file) >= 0 ? source_blob_new(file, digest, open_blob, archive) : file;
}

/* Opens a blob that must have the size of its descriptor. */
static struct source *open_sized(const struct archive *archive, const struct archive_blob *blob, struct error *error)
{
    struct source *source = archive_open_blob(archive, &blob->digest, error);
    if (source == NULL || source_size(source) == blob->size)
        return source;
    error_set(error, "%s: damaged: it has %" PRIu64 " bytes, and the archive states %" PRIu64, source_name(source),
              source_size(source), blob->size);
    source_close(source);
    return NULL;
}

/* Reads a document, whose text must have the digest unless that is NULL. Closes the source. */
static struct json_document *read_document(struct source *source, const struct digest *digest, struct error *error)
{
    size_t length;
    char *text = source_read_text(source, ARCHIVE_DOCUMENT, &length, error);
    struct json_document *document = NULL;
    struct digest found = text != NULL ? digest_of(text, length) : (struct digest){{0}};
    if (text != NULL && digest != NULL && !digest_same(&found, digest))
        error_set(error, "%s: damaged: its bytes have another SHA-256 than its name", source_name(source));
    else if (text != NULL && (document = json_parse(text, length, error)) == NULL)
        error_prefix(error, "%s", source_name(source));
    free(text);
    source_close(source);
    return document;
}

static bool take_blob(const struct json *descriptor, struct archive_blob *ret_blob)
{
    static const char algorithm[] = "sha256:";
    const char *digest = json_string(json_get(descriptor, "digest"), NULL);
    return digest != NULL && strncmp(digest, algorithm, sizeof algorithm - 1) == 0 &&
           digest_parse(digest + sizeof algorithm - 1, &ret_blob->digest) &&
           json_u64(json_get(descriptor, "size"), &ret_blob->size);
}

static bool take_layers(struct archive *archive, struct archive_member *member, const struct json *layers,
                        struct error *error)
{
    archive->n_layers += json_count(layers);
    if (archive->n_layers > MOST_LAYERS)
        return error_set(error, "its manifest and those before it have more than %d layers", MOST_LAYERS);
    struct archive_blob *packs = arena_array(archive->arena, json_count(layers) + 1, sizeof *packs);
    size_t n_lists = 0;
    for (const struct json *layer = json_first(layers); layer != NULL; layer = json_next(layer)) {
        const struct json *type = json_get(layer, "mediaType");
        struct archive_blob blob;
        if (!take_blob(layer, &blob))
            return error_set(error, "a layer without size and digest");
        if (json_string_is(type, ARCHIVE_PACK_TYPE))
            packs[member->n_packs++] = blob;
        else if (json_string_is(type, ARCHIVE_FILES_TYPE) && n_lists++ == 0)
            member->list = blob;
        else
            return error_set(error, "a layer of type '%s', which this wfs cannot read",
                             json_string(type, NULL) != NULL ? json_string(type, NULL) : "");
    }
    member->packs = packs;
    return n_lists == 1 || error_set(error, "no layer is a list of files");
}

/* Reads the manifest of a member. */
static bool read_member(struct archive *archive, struct archive_member *member, struct error *error)
{
    if (!checked_add(archive->n_manifest_bytes, member->manifest.size, &archive->n_manifest_bytes) ||
        archive->n_manifest_bytes > MOST_MANIFEST_BYTES)
        return error_set(error, "%s: its manifests have more than %d MB", archive->shown, MOST_MANIFEST_BYTES >> 20);
    struct source *source = open_sized(archive, &member->manifest, error);
    struct json_document *document = source != NULL ? read_document(source, &member->manifest.digest, error) : NULL;
    if (document == NULL)
        return false;
    const struct json *root = json_root(document);
    bool good = json_string_is(json_get(root, "artifactType"), ARCHIVE_TYPE)
                    ? take_layers(archive, member, json_get(root, "layers"), error)
                    : error_set(error, "its manifest is not of " ARCHIVE_TYPE);
    json_free(document);
    return good || error_prefix(error, "%s/%s", archive->shown, member->name);
}

/* Reports whether a text can be the name of a member, which is the name of a folder. */
static bool is_name(const char *name)
{
    return name != NULL && *name != '\0' && strchr(name, '/') == NULL && strcmp(name, ".") != 0 &&
           strcmp(name, "..") != 0 && strlen(name) <= FILES_LONGEST_NAME;
}

static bool take_manifest(struct archive *archive, const struct json *descriptor, struct error *error)
{
    const struct json *annotations = json_get(descriptor, "annotations");
    const char *name = json_string(json_get(annotations, ARCHIVE_NAME_KEY), NULL);
    struct archive_member member = {.name = name};
    if (!is_name(name))
        return error_set(error, "%s: a manifest whose " ARCHIVE_NAME_KEY " is not the name of a folder",
                         archive->shown);
    if (!take_blob(descriptor, &member.manifest))
        return error_set(error, "%s/%s: its manifest has no size and digest", archive->shown, name);
    member.name = arena_strdup(archive->arena, name);
    archive->members = memory_grow(archive->members, archive->n_members, sizeof *archive->members);
    archive->members[archive->n_members++] = member;
    return true;
}

static int compare_members(const void *a, const void *b)
{
    return strcmp(((const struct archive_member *)a)->name, ((const struct archive_member *)b)->name);
}

static bool read_members(struct archive *archive, struct error *error)
{
    if (archive->n_members > 0)
        qsort(archive->members, archive->n_members, sizeof *archive->members, compare_members);
    for (size_t i = 0; i < archive->n_members; i++) {
        if (i > 0 && strcmp(archive->members[i - 1].name, archive->members[i].name) == 0)
            return error_set(error, "%s: two manifests are named '%s'", archive->shown, archive->members[i].name);
        if (!read_member(archive, &archive->members[i], error))
            return false;
    }
    return true;
}

static bool read_index(struct archive *archive, struct error *error)
{
    struct arena *arena = arena_new();
    struct source *source = location_source_as(archive->location, ARCHIVE_INDEX_FILE,
                                               arena_printf(arena, "%s/" ARCHIVE_INDEX_FILE, archive->shown), error);
    struct json_document *document = source != NULL ? read_document(source, NULL, error) : NULL;
    arena_free(arena);
    if (document == NULL)
        return false;
    const struct json *manifests = json_get(json_root(document), "manifests");
    bool good = json_is(manifests, JSON_ARRAY) ||
                error_set(error, "%s/" ARCHIVE_INDEX_FILE ": it has no manifests", archive->shown);
    for (const struct json *at = json_first(manifests); good && at != NULL; at = json_next(at))
        good = take_manifest(archive, at, error);
    json_free(document);
    return good && read_members(archive, error);
}

/* Makes one holder for each pack, whichever members share it. */
static void hold_packs(struct archive *archive)
{
    size_t n = 0;
    for (size_t i = 0; i < archive->n_members; i++)
        n += archive->members[i].n_packs;
    archive->packs = arena_array(archive->arena, n + 1, sizeof *archive->packs);
    for (size_t i = 0; i < archive->n_members; i++)
        for (size_t j = 0; j < archive->members[i].n_packs; j++)
            archive->packs[archive->n_packs++].blob = archive->members[i].packs[j];
    archive->lists = arena_array(archive->arena, archive->n_members + 1, sizeof(struct files *));
}

/* Keeps others from pruning the archive. Prunes hold the lock for a moment, before they remove anything; who cannot get
 * it reads an index whose blobs stay. */
static void lock_layout(struct archive *archive)
{
    struct error unused;
    struct source *source = location_source_as(archive->location, ARCHIVE_LAYOUT_FILE, ARCHIVE_LAYOUT_FILE, &unused);
    int fd = source != NULL ? source_descriptor(source) : -1;
    if (fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) == 0)
        archive->layout = source;
    else
        source_close(source);
}

static struct archive *open_archive(struct location *location, const char *shown, bool locks, struct error *error)
{
    struct archive *archive = memory_alloc(sizeof *archive);
    bool inside;
    *archive = (struct archive){
        .n_users = 1, .arena = arena_new_shared(), .location = location, .shown = memory_strdup(shown)};
    lock_init(&archive->lock);
    if (!location_identify(location, ARCHIVE_INDEX_FILE, &archive->index, &inside))
        archive->index = (struct source_identity){.size = 0}; /* equals that of no index */
    if (locks)
        lock_layout(archive);
    if (read_index(archive, error)) {
        hold_packs(archive);
        return archive;
    }
    archive_drop(archive);
    return NULL;
}

struct archive *archive_open_to_add(struct location *location, const char *shown, struct error *error)
{
    return open_archive(location, shown, false, error);
}

static bool is_same_file(const struct source_identity *a, const struct source_identity *b)
{
    return a->key[0] == b->key[0] && a->key[1] == b->key[1] && a->size == b->size &&
           a->mtime.tv_sec == b->mtime.tv_sec && a->mtime.tv_nsec == b->mtime.tv_nsec &&
           a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

/* Returns the archive with the index of a location, if it is open; NULL: it is not. */
static struct archive *find_open(const struct location *location)
{
    struct source_identity index;
    bool inside;
    if (!location_identify(location, ARCHIVE_INDEX_FILE, &index, &inside))
        return NULL;
    lock_take(&opened.lock);
    struct archive *found = opened.first;
    while (found != NULL && !is_same_file(&found->index, &index))
        found = found->next;
    if (found != NULL)
        found->n_users++;
    lock_drop(&opened.lock);
    return found;
}

static void add_open(struct archive *archive)
{
    lock_take(&opened.lock);
    archive->next = opened.first;
    opened.first = archive;
    lock_drop(&opened.lock);
}

/* Counts a user less; the last one's archive is no longer among those that are open. */
static bool is_last_user(struct archive *archive)
{
    lock_take(&opened.lock);
    const bool is_last = --archive->n_users == 0;
    struct archive **at = &opened.first;
    while (is_last && *at != NULL && *at != archive)
        at = &(*at)->next;
    if (is_last && *at != NULL)
        *at = archive->next;
    lock_drop(&opened.lock);
    return is_last;
}

struct archive *archive_open(struct location *location, const char *shown, struct error *error)
{
    struct archive *archive = find_open(location);
    if (archive != NULL) {
        location_close(location);
        return archive;
    }
    archive = open_archive(location, shown, true, error);
    if (archive != NULL && archive->n_members > 0) {
        add_open(archive);
        return archive;
    }
    if (archive != NULL)
        error_set(error, "%s: an archive without sources", shown);
    archive_drop(archive);
    return NULL;
}

struct archive *archive_hold(struct archive *archive)
{
    lock_take(&opened.lock);
    archive->n_users++;
    lock_drop(&opened.lock);
    return archive;
}

void archive_drop(struct archive *archive)
{
    if (archive == NULL || !is_last_user(archive))
        return;
    for (size_t i = 0; archive->lists != NULL && i < archive->n_members; i++)
        files_free(archive->lists[i]);
    for (size_t i = 0; i < archive->n_packs; i++)
        pack_close(archive->packs[i].pack);
    lock_destroy(&archive->lock);
    source_close(archive->layout);
    location_close(archive->location);
    free(archive->members);
    free(archive->shown);
    arena_free(archive->arena);
    free(archive);
}

size_t archive_count(const struct archive *archive)
{
    return archive->n_members;
}

const struct archive_member *archive_member(const struct archive *archive, size_t index)
{
    return &archive->members[index];
}

size_t archive_find(const struct archive *archive, const char *name, size_t length)
{
    for (size_t i = 0; i < archive->n_members; i++)
        if (strlen(archive->members[i].name) == length && memcmp(archive->members[i].name, name, length) == 0)
            return i;
    return SIZE_MAX;
}

/* Lists and packs are read under the lock, in an attempt of their own: others wait for them. */

struct reading_list {
    struct archive *archive;
    size_t member;
    struct files *files;
    struct error *error;
};

static void read_list(void *context)
{
    struct reading_list *reading = context;
    const struct archive_member *member = &reading->archive->members[reading->member];
    struct source *source = open_sized(reading->archive, &member->list, reading->error);
    if (source != NULL)
        reading->files = files_read(source, &member->list.digest, (uint32_t)member->n_packs, reading->error);
    source_close(source);
}

const struct files *archive_files(struct archive *archive, size_t member, struct error *error)
{
    struct reading_list reading = {archive, member, NULL, error};
    attempt_lock(&archive->lock);
    if (archive->lists[member] == NULL) {
        read_list(&reading);
        archive->lists[member] = reading.files;
    }
    const struct files *files = archive->lists[member];
    attempt_unlock(&archive->lock);
    return files;
}

static bool find_pack(void *context, const struct digest *digest, struct pack **ret_pack, struct error *error);

static struct pack *open_pack(struct archive *archive, struct held_pack *held, struct error *error)
{
    struct source *source = held->pack == NULL ? open_sized(archive, &held->blob, error) : NULL;
    if (source != NULL)
        held->pack = pack_open(source, find_pack, archive, error);
    return held->pack;
}

/* Opens a pack by its digest: the first holder of it serves all. */
static struct pack *pack_of_digest(struct archive *archive, const struct digest *digest, struct error *error)
{
    struct pack *pack = NULL;
    bool found = false;
    attempt_lock(&archive->lock);
    for (size_t i = 0; !found && i < archive->n_packs; i++) {
        found = digest_same(&archive->packs[i].blob.digest, digest);
        if (found)
            pack = open_pack(archive, &archive->packs[i], error);
    }
    attempt_unlock(&archive->lock);
    if (!found)
        error_set(error, "%s: a tensor is coded against one of a pack that no manifest lists", archive->shown);
    return pack;
}

static bool find_pack(void *context, const struct digest *digest, struct pack **ret_pack, struct error *error)
{
    *ret_pack = pack_of_digest(context, digest, error);
    return *ret_pack != NULL;
}

struct pack *archive_pack(struct archive *archive, size_t member, size_t pack, struct error *error)
{
    return pack_of_digest(archive, &archive->members[member].packs[pack].digest, error);
}
