#include "sources/archive/files.h"

#include "base/encodings.h"
#include "base/text.h"
#include "text/json_write.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const kind_names[] = {[FILES_FOLDER] = "folder", [FILES_FILE] = "file", [FILES_LINK] = "link"};

struct files *files_new(void)
{
    struct files *files = memory_alloc(sizeof *files);
    *files = (struct files){.arena = arena_new_shared()};
    return files;
}

void files_free(struct files *files)
{
    if (files == NULL)
        return;
    arena_free(files->arena);
    free(files->entries);
    free(files->segments);
    free(files);
}

void files_add(struct files *files, const struct files_entry *entry)
{
    files->entries = memory_grow(files->entries, files->n_entries, sizeof *files->entries);
    struct files_entry *added = &files->entries[files->n_entries];
    *added = *entry;
    added->path = arena_strdup(files->arena, entry->path);
    added->target = entry->target != NULL ? arena_strdup(files->arena, entry->target) : NULL;
    added->first_segment = files->n_segments;
    added->n_segments = 0;
    files->n_entries++;
}

void files_add_segment(struct files *files, size_t index, const struct files_segment *segment)
{
    struct files_entry *entry = &files->entries[index];
    if (entry->n_segments++ == 0)
        entry->first_segment = files->n_segments;
    files->segments = memory_grow(files->segments, files->n_segments, sizeof *files->segments);
    files->segments[files->n_segments++] = *segment;
}

size_t files_find(const struct files *files, const char *path, size_t length, bool *ret_found)
{
    size_t from = 0, to = files->n_entries;
    *ret_found = false;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        const char *found = files->entries[middle].path;
        int order = text_compare(found, strlen(found), path, length);
        if (order == 0)
            *ret_found = true;
        if (order < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

const struct files_segment *files_segment_at(const struct files *files, const struct files_entry *entry,
                                             uint64_t offset, uint64_t *ret_end)
{
    const struct files_segment *segments = files->segments + entry->first_segment;
    size_t from = 0, to = entry->n_segments;
    while (to - from > 1) {
        size_t middle = from + (to - from) / 2;
        *(segments[middle].start <= offset ? &from : &to) = middle;
    }
    *ret_end = from + 1 < entry->n_segments ? segments[from + 1].start : entry->size;
    return &segments[from];
}

/* Reading. */

struct reading {
    struct files *files;
    struct arena *scratch;
    uint64_t budget; /* bytes that may be kept */
    uint64_t filled; /* of the last file, by its segments */
    uint32_t n_packs;
};

/* Reads a text of any bytes: `key`, or `key`64 in Base64. Returns NULL, with an error, if it has none or holds NULs. */
static const char *take_text(struct reading *reading, const struct json *value, const char *key, struct error *error)
{
    size_t length = 0;
    const char *text = json_string(json_get(value, key), &length);
    if (text == NULL) {
        size_t n;
        const char *digits = json_string(json_get(value, arena_printf(reading->scratch, "%s64", key)), &n);
        void *bytes = digits != NULL ? base64_decode(reading->scratch, digits, n, &length) : NULL;
        text = bytes != NULL ? arena_strndup(reading->scratch, bytes, length) : NULL;
    }
    if (text == NULL || strlen(text) != length || length > FILES_LONGEST_PATH) {
        error_set(error, "its %s is missing, has a NUL, or more than %d bytes", key, FILES_LONGEST_PATH);
        return NULL;
    }
    return text;
}

/* Reports whether a path has only names that stay in their folder. */
static bool is_inside(const char *path)
{
    for (;;) {
        size_t length = strcspn(path, "/");
        bool is_dots = (length == 1 || (length == 2 && path[1] == '.')) && path[0] == '.';
        if (length == 0 || length > FILES_LONGEST_NAME || is_dots)
            return false;
        if (path[length] == '\0')
            return true;
        path += length + 1;
    }
}

static bool check_place(const struct files *files, const struct files_entry *entry, struct error *error)
{
    const char *slash = strrchr(entry->path, '/');
    size_t length = slash != NULL ? (size_t)(slash - entry->path) : 0;
    bool found;
    if (files->n_entries == 0)
        return *entry->path == '\0' || error_set(error, "the first path is '%s', not that of the source", entry->path);
    const char *last = files->entries[files->n_entries - 1].path;
    if (strcmp(last, entry->path) >= 0)
        return error_set(error, "path '%s' does not come after '%s'", entry->path, last);
    if (!is_inside(entry->path))
        return error_set(error, "path '%s' leads out of its folder", entry->path);
    size_t parent = files_find(files, entry->path, length, &found);
    return (found && files->entries[parent].kind == FILES_FOLDER) ||
           error_set(error, "path '%s' is in no folder of the list", entry->path);
}

/* Ends the last file: its segments must fill it. */
static bool end_file(const struct reading *reading, struct error *error)
{
    const struct files *files = reading->files;
    const struct files_entry *last = files->n_entries > 0 ? &files->entries[files->n_entries - 1] : NULL;
    if (last == NULL || last->kind != FILES_FILE || last->same != files->n_entries - 1)
        return true;
    return reading->filled == last->size ||
           error_set(error, "the segments of '%s' have %" PRIu64 " bytes, and the file %" PRIu64, last->path,
                     reading->filled, last->size);
}

static bool take_time(const struct json *value, struct files_entry *entry, struct error *error)
{
    const struct json *time = json_get(value, "mtime");
    uint64_t mode, nanoseconds;
    if (!json_i64(json_at(time, 0), &entry->seconds) || !json_u64(json_at(time, 1), &nanoseconds) ||
        nanoseconds > 999999999 || !json_u64(json_get(value, "mode"), &mode) || mode > 07777)
        return error_set(error, "'%s' has no valid mode, or no mtime [seconds, nanoseconds]", entry->path);
    entry->mode = (uint16_t)mode;
    entry->nanoseconds = (uint32_t)nanoseconds;
    return true;
}

static bool take_same(const struct files *files, const struct json *same, struct files_entry *entry,
                      struct error *error)
{
    uint64_t number;
    if (!json_u64(same, &number) || number >= files->n_entries || files->entries[number].kind != FILES_FILE ||
        files->entries[number].same != number || files->entries[number].size != entry->size)
        return error_set(error, "'%s' is a second name of no file of the list", entry->path);
    entry->same = (uint32_t)number;
    return true;
}

static bool take_file(const struct files *files, const struct json *value, struct files_entry *entry,
                      struct error *error)
{
    const struct json *same = json_get(value, "same");
    if (!json_u64(json_get(value, "size"), &entry->size) || entry->size > FILES_LARGEST ||
        !digest_parse(json_string(json_get(value, "sha256"), NULL), &entry->digest))
        return error_set(error, "'%s' has no valid size or SHA-256", entry->path);
    return same == NULL || take_same(files, same, entry, error);
}

static bool take_entry(struct reading *reading, const struct json *value, struct error *error)
{
    struct files *files = reading->files;
    struct files_entry entry = {.same = (uint32_t)files->n_entries, .path = take_text(reading, value, "path", error)};
    const struct json *kind = json_get(value, "kind");
    if (!end_file(reading, error) || entry.path == NULL || !check_place(files, &entry, error) ||
        !take_time(value, &entry, error))
        return false;
    if (files->n_entries == UINT32_MAX)
        return error_set(error, "more than %" PRIu32 " entries", UINT32_MAX);
    while (entry.kind < sizeof kind_names / sizeof *kind_names && !json_string_is(kind, kind_names[entry.kind]))
        entry.kind++;
    if (entry.kind > FILES_LINK)
        return error_set(error, "'%s' is neither a folder nor a file nor a link", entry.path);
    if (entry.kind == FILES_FILE && !take_file(files, value, &entry, error))
        return false;
    if (entry.kind == FILES_LINK && (entry.target = take_text(reading, value, "target", error)) == NULL)
        return false;
    if (entry.target != NULL && *entry.target == '\0')
        return error_set(error, "link '%s' has no target", entry.path);
    files_add(files, &entry);
    if (entry.same != files->n_entries - 1) {
        files->entries[files->n_entries - 1].first_segment = files->entries[entry.same].first_segment;
        files->entries[files->n_entries - 1].n_segments = files->entries[entry.same].n_segments;
    }
    files->n_bytes += entry.size;
    reading->filled = 0;
    return true;
}

/* Takes [zeros], or [pack, tensor, offset, length]. */
static bool take_segment(struct reading *reading, const struct json *value, struct error *error)
{
    struct files *files = reading->files;
    const struct files_entry *file = files->n_entries > 0 ? &files->entries[files->n_entries - 1] : NULL;
    uint64_t numbers[4] = {0};
    size_t count = 0;
    for (const struct json *at = json_first(value); at != NULL; at = json_next(at), count++)
        if (count == 4 || !json_u64(at, &numbers[count]))
            return error_set(error, "no segment: [length of zeros] or [pack, tensor, offset, length]");
    if (file == NULL || file->kind != FILES_FILE || file->same != files->n_entries - 1)
        return error_set(error, "a segment of no file");
    uint64_t length = count == 1 ? numbers[0] : numbers[3];
    if ((count != 1 && count != 4) || length == 0 || length > file->size - reading->filled)
        return error_set(error, "a segment of %" PRIu64 " bytes, and '%s' lacks %" PRIu64, length, file->path,
                         file->size - reading->filled);
    if (count == 4 && (numbers[0] >= reading->n_packs || numbers[1] >= UINT32_MAX || numbers[2] > FILES_LARGEST))
        return error_set(error, "a segment of pack %" PRIu64 " of %" PRIu32, numbers[0], reading->n_packs);
    files_add_segment(files, files->n_entries - 1,
                      &(struct files_segment){
                          .start = reading->filled,
                          .offset = count == 1 ? 0 : numbers[2],
                          .pack = count == 1 ? FILES_ZEROS : (uint32_t)numbers[0],
                          .tensor = count == 1 ? 0 : (uint32_t)numbers[1],
                      });
    reading->filled += length;
    return true;
}

static bool take_line_of_files(void *context, const struct json *value, uint64_t line, struct error *error)
{
    struct reading *reading = context;
    const struct files *files = reading->files;
    uint64_t kept = arena_bytes(files->arena) + files->n_entries * sizeof *files->entries +
                    files->n_segments * sizeof *files->segments;
    if (kept > reading->budget)
        return error_set(error, "its %zu entries and %zu segments are more than a list of its size may have",
                         files->n_entries, files->n_segments);
    bool good = json_is(value, JSON_ARRAY) ? take_segment(reading, value, error) : take_entry(reading, value, error);
    if (arena_bytes(reading->scratch) > LINES_LONGEST) {
        arena_free(reading->scratch);
        reading->scratch = arena_new();
    }
    return good;
}

struct files *files_read(const struct source *blob, const struct digest *digest, uint32_t n_packs, struct error *error)
{
    uint64_t length = source_size(blob);
    struct reading reading = {files_new(), arena_new(), lines_budget(length), 0, n_packs};
    bool good = lines_read(blob, 0, length, digest, take_line_of_files, &reading, error);
    if (good && !end_file(&reading, error))
        good = error_prefix(error, "%s", source_name(blob));
    if (good && reading.files->n_entries == 0)
        good = error_set(error, "%s: an empty list", source_name(blob));
    arena_free(reading.scratch);
    if (good)
        return reading.files;
    files_free(reading.files);
    return NULL;
}

/* Writing. */

static void put_text(struct json_writer *writer, const char *key, const char *text, struct arena *arena)
{
    size_t length = strlen(text);
    if (text_valid_prefix(text, length) == length)
        json_put_text(writer, key, text);
    else
        json_put_text(writer, arena_printf(arena, "%s64", key), base64_encode(arena, text, length));
}

static void put_entry(const struct files *files, size_t index, struct buffer *out)
{
    const struct files_entry *entry = &files->entries[index];
    struct json_writer writer = {.out = out, .letters = JSON_UTF8, .compact = true};
    struct arena *arena = arena_new();
    char hex[SHA256_HEX + 1];
    json_begin_object(&writer, NULL);
    put_text(&writer, "path", entry->path, arena);
    json_put_text(&writer, "kind", kind_names[entry->kind]);
    json_put_number(&writer, "mode", entry->mode);
    json_begin_array(&writer, "mtime");
    json_put_i64(&writer, NULL, entry->seconds);
    json_put_number(&writer, NULL, entry->nanoseconds);
    json_end(&writer);
    if (entry->kind == FILES_LINK)
        put_text(&writer, "target", entry->target, arena);
    if (entry->kind == FILES_FILE) {
        digest_hex(&entry->digest, hex);
        json_put_number(&writer, "size", entry->size);
        json_put_text(&writer, "sha256", hex);
        if (entry->same != index)
            json_put_number(&writer, "same", entry->same);
    }
    json_end(&writer);
    buffer_append_text(out, "\n");
    arena_free(arena);
}

static void put_segments(const struct files *files, const struct files_entry *entry, struct buffer *out)
{
    for (size_t i = 0; i < entry->n_segments; i++) {
        const struct files_segment *segment = &files->segments[entry->first_segment + i];
        uint64_t end = i + 1 < entry->n_segments ? segment[1].start : entry->size;
        if (segment->pack == FILES_ZEROS)
            buffer_printf(out, "[%" PRIu64 "]\n", end - segment->start);
        else
            buffer_printf(out, "[%" PRIu32 ",%" PRIu32 ",%" PRIu64 ",%" PRIu64 "]\n", segment->pack, segment->tensor,
                          segment->offset, end - segment->start);
    }
}

void files_append_frame(const struct files *files, struct buffer *out)
{
    struct buffer text = {0};
    for (size_t i = 0; i < files->n_entries; i++) {
        put_entry(files, i, &text);
        if (files->entries[i].same == i)
            put_segments(files, &files->entries[i], &text);
    }
    lines_append_frame(&text, out);
    buffer_free(&text);
}
