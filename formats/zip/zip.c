#include "formats/zip/zip.h"

#include "base/checked.h"
#include "base/sort.h"
#include "formats/window.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    FOLDER = 0x10, /* the attribute of MS-DOS */
    END_BYTES = 22,
    END64_BYTES = 56,
    LOCATOR_BYTES = 20,
    ENTRY_BYTES = 46,
    LOCAL_BYTES = 30,
    MAX_COMMENT = 65535,
    EXTRA_ZIP64 = 0x0001,
    FLAG_DEFLATE_LEVEL = 0x0006,
    FLAG_DESCRIPTOR = 0x0008, /* CRC and sizes follow the data */
    FLAG_UTF8 = 0x0800,
    FLAGS_KNOWN = FLAG_DEFLATE_LEVEL | FLAG_DESCRIPTOR | FLAG_UTF8,
    FLAG_ENCRYPTED = 0x2041,
    DEFLATE_MAX_RATIO = 1032,
    PREFETCH_AHEAD = 256,      /* local headers to prefetch */
    PREFETCH_STEP = 16 * 1024, /* the kernel reads ahead further than this */
    KEPT_HEADER = 1024,        /* longer local headers are mostly padding */
};

static const uint32_t end_signature = 0x06054b50, end64_signature = 0x06064b50, locator_signature = 0x07064b50;
static const uint32_t entry_signature = 0x02014b50, local_signature = 0x04034b50;
static const uint32_t saturated = 0xffffffff;

/* The place of the directory according to the end records. */
struct end {
    uint64_t n_members, offset, size;
    uint64_t position; /* of the first end record */
};

static uint32_t le16(const unsigned char *bytes)
{
    return (uint32_t)read_le(bytes, 2);
}

static uint32_t le32(const unsigned char *bytes)
{
    return (uint32_t)read_le(bytes, 4);
}

/* Finds the 32-bit end record: the one whose comment ends with the file. */
static bool find_end(const struct source *source, unsigned char record[END_BYTES], uint64_t *ret_position,
                     struct error *error)
{
    uint64_t file_size = source_size(source), tail_size = END_BYTES + MAX_COMMENT;
    if (tail_size > file_size)
        tail_size = file_size;
    unsigned char *tail = memory_alloc((size_t)tail_size);
    if (!source_read(source, file_size - tail_size, (size_t)tail_size, tail, error)) {
        free(tail);
        return false;
    }
    unsigned n_found = 0;
    for (uint64_t i = 0; i + END_BYTES <= tail_size; i++) {
        if (le32(tail + i) != end_signature || i + END_BYTES + le16(tail + i + 20) != tail_size)
            continue;
        memcpy(record, tail + i, END_BYTES);
        *ret_position = file_size - tail_size + i;
        n_found++;
    }
    free(tail);
    if (n_found == 0)
        return error_set(error,
                         "%s: zip: no end record at the end of the file (truncated, or followed by other data); an "
                         "interrupted download?",
                         source_name(source));
    if (n_found > 1)
        return error_set(error, "%s: zip: %u end records at the end of the file", source_name(source), n_found);
    return true;
}

/* Reports whether a 32- or 16-bit field of the end record agrees with the zip64 one. */
static bool agrees(uint64_t narrow, uint64_t wide, uint64_t all_ones)
{
    return narrow == all_ones || narrow == wide;
}

static bool read_end64(const struct source *source, const unsigned char *record, const unsigned char *locator,
                       struct end *end, struct error *error)
{
    const char *name = source_name(source);
    uint64_t locator_position = end->position - LOCATOR_BYTES, position = read_le(locator + 8, 8);
    unsigned char record64[END64_BYTES];
    if (le32(locator + 4) != 0 || le32(locator + 16) > 1)
        return error_set(error, "%s: zip: split over several disks", name);
    if (locator_position < END64_BYTES || position > locator_position - END64_BYTES)
        return error_set(error, "%s: zip: the zip64 end record is at %" PRIu64 ", after its locator", name, position);
    if (!source_read(source, position, END64_BYTES, record64, error))
        return false;
    if (le32(record64) != end64_signature || read_le(record64 + 4, 8) != locator_position - position - 12)
        return error_set(error, "%s: zip: offset %" PRIu64 ": no zip64 end record that ends at its locator", name,
                         position);
    if (le32(record64 + 16) != 0 || le32(record64 + 20) != 0 || read_le(record64 + 24, 8) != read_le(record64 + 32, 8))
        return error_set(error, "%s: zip: split over several disks", name);
    end->n_members = read_le(record64 + 32, 8);
    end->size = read_le(record64 + 40, 8);
    end->offset = read_le(record64 + 48, 8);
    end->position = position;
    if (!agrees(le16(record + 10), end->n_members, 0xffff) || !agrees(le32(record + 12), end->size, saturated) ||
        !agrees(le32(record + 16), end->offset, saturated))
        return error_set(error, "%s: zip: the two end records contradict each other", name);
    return true;
}

static bool read_end(const struct source *source, struct end *end, struct error *error)
{
    unsigned char record[END_BYTES], locator[LOCATOR_BYTES] = {0};
    const char *name = source_name(source);
    if (!find_end(source, record, &end->position, error))
        return false;
    if (end->position >= LOCATOR_BYTES &&
        !source_read(source, end->position - LOCATOR_BYTES, LOCATOR_BYTES, locator, error))
        return false;
    if (le16(record + 4) != 0 || le16(record + 6) != 0 || le16(record + 8) != le16(record + 10))
        return error_set(error, "%s: zip: split over several disks", name);
    end->n_members = le16(record + 10);
    end->size = le32(record + 12);
    end->offset = le32(record + 16);
    if (le32(locator) == locator_signature) {
        if (!read_end64(source, record, locator, end, error))
            return false;
    } else if (end->n_members == 0xffff || end->size == saturated || end->offset == saturated) {
        return error_set(error, "%s: zip: the zip64 end record is missing", name);
    }
    uint64_t directory_end;
    if (!checked_add(end->offset, end->size, &directory_end) || directory_end != end->position)
        return error_set(
            error, "%s: zip: the directory [%" PRIu64 ", +%" PRIu64 ") does not end at its end record at %" PRIu64,
            name, end->offset, end->size, end->position);
    if (end->n_members > ZIP_MAX_MEMBERS || end->size > ZIP_MAX_DIRECTORY || end->n_members * ENTRY_BYTES > end->size)
        return error_set(error,
                         "%s: zip: directory too large: %" PRIu64 " members in %" PRIu64
                         " bytes (the limit is %d members in %d bytes)",
                         name, end->n_members, end->size, ZIP_MAX_MEMBERS, ZIP_MAX_DIRECTORY);
    return true;
}

/* Reports whether an extra area holds at most ZIP_MAX_FIELDS whole fields. */
static bool has_few_fields(const unsigned char *extra, size_t length)
{
    size_t at = 0, n_fields = 0;
    for (; length - at >= 4 && le16(extra + at + 2) <= length - at - 4; n_fields++)
        at += 4 + le16(extra + at + 2);
    return n_fields <= ZIP_MAX_FIELDS;
}

/* Finds the zip64 field of an extra area, or an empty one. Returns false if the area is not made of whole fields, or
 * has two zip64 fields. */
static bool find_zip64(const unsigned char *extra, size_t length, const unsigned char **ret_field, size_t *ret_length)
{
    *ret_field = NULL;
    *ret_length = 0;
    while (length > 0) {
        size_t field = length >= 4 ? le16(extra + 2) : 0;
        if (length < 4 || field > length - 4)
            return false;
        if (le16(extra) == EXTRA_ZIP64) {
            if (*ret_field != NULL)
                return false;
            *ret_field = extra + 4;
            *ret_length = field;
        }
        extra += 4 + field;
        length -= 4 + field;
    }
    return true;
}

/* Replaces a saturated number by the next number of the zip64 field. */
static bool widen(uint64_t *number, const unsigned char **field, size_t *length)
{
    if (*number != saturated)
        return true;
    if (*length < 8)
        return false;
    *number = read_le(*field, 8);
    *field += 8;
    *length -= 8;
    return true;
}

static bool check_member(const struct zip_member *member, const char **ret_reason)
{
    if (member->name_length == 0 || strlen(member->name) != member->name_length)
        *ret_reason = "its name is empty or contains a NUL";
    else if (member->flags & FLAG_ENCRYPTED)
        *ret_reason = "it is encrypted";
    else if (member->flags & ~(uint32_t)FLAGS_KNOWN)
        *ret_reason = "it has unsupported flags";
    else if (member->method != ZIP_STORED && member->method != ZIP_DEFLATED)
        *ret_reason = "its compression method is neither stored nor deflated";
    else if (member->method == ZIP_STORED && member->size != member->compressed_size)
        *ret_reason = "it is stored, but its two sizes differ";
    else if (member->method == ZIP_DEFLATED && member->size / DEFLATE_MAX_RATIO > member->compressed_size)
        *ret_reason = "its inflated size is larger than deflate allows";
    else if (member->method == ZIP_DEFLATED &&
             member->size > zip_inflated_constant + member->compressed_size * ZIP_INFLATED_RATIO)
        *ret_reason = "it inflates to more than 256 MiB and 64 times its stored size";
    else
        return true;
    return false;
}

/* Reads the directory entry at `entry`, of at most `left` bytes; *ret_length is its size. */
static bool read_entry(struct zip_member *member, const unsigned char *entry, uint64_t left, uint64_t *ret_length,
                       struct arena *arena, const char **ret_reason)
{
    *ret_reason = "the directory ends within an entry";
    if (left < ENTRY_BYTES || le32(entry) != entry_signature)
        return false;
    uint32_t name_length = le16(entry + 28), extra_length = le16(entry + 30), comment_length = le16(entry + 32);
    *ret_length = (uint64_t)ENTRY_BYTES + name_length + extra_length + comment_length;
    if (*ret_length > left)
        return false;
    const unsigned char *extra = entry + ENTRY_BYTES + name_length, *field;
    size_t field_length;
    *member = (struct zip_member){
        .name = arena_strndup(arena, (const char *)entry + ENTRY_BYTES, name_length),
        .name_length = name_length,
        .method = (uint16_t)le16(entry + 10),
        .flags = (uint16_t)le16(entry + 8),
        .crc = le32(entry + 16),
        .compressed_size = le32(entry + 20),
        .size = le32(entry + 24),
        .header = le32(entry + 42),
    };
    *ret_reason = "the extra area of its directory entry has more fields than the limit of 64";
    if (!has_few_fields(extra, extra_length))
        return false;
    *ret_reason = "the zip64 field of its directory entry is damaged";
    if (!find_zip64(extra, extra_length, &field, &field_length) || !widen(&member->size, &field, &field_length) ||
        !widen(&member->compressed_size, &field, &field_length) || !widen(&member->header, &field, &field_length))
        return false;
    *ret_reason = "it is marked as a folder, which torch reads as zeros, but has bytes";
    if ((le32(entry + 38) & FOLDER) != 0 && member->size > 0)
        return false;
    *ret_reason = "it is on another disk";
    return le16(entry + 34) == 0 && check_member(member, ret_reason);
}

static bool read_entries(struct zip_directory *directory, const struct end *end, const unsigned char *bytes,
                         struct arena *arena, struct error *error)
{
    const char *name = source_name(directory->source), *reason;
    uint64_t at = 0, inflated = 0, length = 0;
    for (size_t i = 0; i < directory->n_members; i++, at += length) {
        struct zip_member *member = &directory->members[i];
        if (!read_entry(member, bytes + at, end->size - at, &length, arena, &reason))
            return error_set(error, "%s: zip: directory entry %zu ('%s'): %s", name, i,
                             member->name ? member->name : "?", reason);
        member->inflated = inflated;
        inflated += member->method == ZIP_DEFLATED ? member->size : 0;
    }
    if (at != end->size)
        return error_set(error, "%s: zip: the directory has more than its %zu entries", name, directory->n_members);
    return true;
}

static unsigned char fold(unsigned char c)
{
    return c >= 'A' && c <= 'Z' ? (unsigned char)(c + ('a' - 'A')) : c;
}

static int compare_folded(const char *a, size_t a_length, const char *b, size_t b_length)
{
    for (size_t i = 0; i < a_length && i < b_length; i++) {
        int order = fold((unsigned char)a[i]) - fold((unsigned char)b[i]);
        if (order != 0)
            return order;
    }
    return (a_length > b_length) - (a_length < b_length);
}

static int compare_by_name(const void *a, const void *b)
{
    const struct zip_member *x = *(const struct zip_member *const *)a, *y = *(const struct zip_member *const *)b;
    return compare_folded(x->name, x->name_length, y->name, y->name_length);
}

static int compare_by_header(const void *a, const void *b)
{
    const struct zip_member *x = *(const struct zip_member *const *)a, *y = *(const struct zip_member *const *)b;
    return (x->header > y->header) - (x->header < y->header);
}

static bool sort_by_name(struct zip_directory *directory, struct arena *arena, struct error *error)
{
    directory->by_name = arena_array(arena, directory->n_members, sizeof *directory->by_name);
    for (size_t i = 0; i < directory->n_members; i++)
        directory->by_name[i] = &directory->members[i];
    qsort(directory->by_name, directory->n_members, sizeof *directory->by_name, compare_by_name);
    for (size_t i = 1; i < directory->n_members; i++)
        if (compare_by_name(&directory->by_name[i - 1], &directory->by_name[i]) == 0)
            return error_set(error, "%s: zip: two members are named '%s' and '%s'", source_name(directory->source),
                             directory->by_name[i - 1]->name, directory->by_name[i]->name);
    return true;
}

/* Reports whether a size of the local header fits the directory's: equal, or left to the data descriptor, or to the
 * zip64 field. */
static bool local_size_agrees(uint64_t local, uint64_t size, uint32_t flags, const unsigned char **field,
                              size_t *length)
{
    bool left_open = flags & FLAG_DESCRIPTOR;
    if (local == saturated && *length >= 8)
        widen(&local, field, length);
    return local == size || (left_open && local == 0) || (local == saturated && size > saturated && left_open);
}

/* Compares the local header with the directory's entry and finds where the data starts. */
static bool read_local(struct window *window, struct zip_member *member, unsigned char *header, struct error *error,
                       const char **ret_reason)
{
    uint64_t file_size = source_size(window->source);
    unsigned char *extra = header + LOCAL_BYTES + member->name_length;
    size_t name_length = member->name_length, field_length;
    const unsigned char *field;
    *ret_reason = "its local header is outside the file";
    if (member->header > file_size || LOCAL_BYTES + name_length > file_size - member->header)
        return false;
    *ret_reason = NULL;
    if (!window_read(window, member->header, LOCAL_BYTES + name_length, header, error))
        return false;
    *ret_reason = "its directory entry points to no local header";
    if (le32(header) != local_signature)
        return false;
    *ret_reason = "its local header has another name";
    if (le16(header + 26) != name_length || memcmp(header + LOCAL_BYTES, member->name, name_length) != 0)
        return false;
    *ret_reason = "its local header has other flags or another method";
    if (le16(header + 6) != member->flags || le16(header + 8) != member->method)
        return false;
    size_t extra_length = le16(header + 28);
    member->offset = member->header + LOCAL_BYTES + name_length + extra_length;
    *ret_reason = "its local header has another CRC";
    if (le32(header + 14) != member->crc && !((member->flags & FLAG_DESCRIPTOR) && le32(header + 14) == 0))
        return false;
    *ret_reason = NULL;
    if (!window_read(window, member->header + LOCAL_BYTES + name_length, extra_length, extra, error))
        return false;
    *ret_reason = "the extra area of its local header has more fields than the limit of 64";
    if (!has_few_fields(extra, extra_length))
        return false;
    uint32_t compressed_size = le32(header + 18), size = le32(header + 22);
    bool left_open = (member->flags & FLAG_DESCRIPTOR) && compressed_size == 0 && size == 0;
    if (left_open || (compressed_size == member->compressed_size && size == member->size))
        return true;
    *ret_reason = "its local header has other sizes";
    return find_zip64(extra, extra_length, &field, &field_length) &&
           local_size_agrees(size, member->size, member->flags, &field, &field_length) &&
           local_size_agrees(compressed_size, member->compressed_size, member->flags, &field, &field_length);
}

/* Prefetches the local headers [from, to) in the order of the file, except those that come with the previous one. */
static void prefetch_locals(const struct source *source, struct zip_member *const *by_header, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        if (i == 0 || by_header[i]->header - by_header[i - 1]->header > PREFETCH_STEP)
            source_want(source, by_header[i]->header, LOCAL_BYTES + by_header[i]->name_length, false);
}

/* The state of reading local headers. */
struct local_reader {
    struct zip_directory *directory;
    struct zip_member **by_header; /* in the order of the file */
    struct window window;
    struct arena *arena;      /* of the pieces */
    struct zip_piece *pieces; /* room for one more than there are members */
    struct zip_headers headers;
    unsigned char scratch[LOCAL_BYTES + 2 * 65535];
};

static void keep_header(struct local_reader *reader, uint64_t offset, const unsigned char *bytes, size_t length)
{
    reader->headers.n_bytes += length;
    if (length > KEPT_HEADER)
        return;
    const void *copy = arena_copy(reader->arena, bytes, length);
    reader->pieces[reader->headers.n_pieces++] = (struct zip_piece){offset, length, copy};
}

/* Reads all local headers in the order of the file; each member must end before the next starts, and the last before
 * the directory. */
static bool read_locals(struct local_reader *reader, uint64_t directory_offset, struct error *error)
{
    const struct source *source = reader->directory->source;
    struct zip_member **by_header = reader->by_header;
    size_t n_members = reader->directory->n_members, asked = 0;
    for (size_t i = 0; i < n_members; i++) {
        struct zip_member *member = by_header[i];
        uint64_t limit = i + 1 < n_members ? by_header[i + 1]->header : directory_offset;
        const char *reason;
        if (i % PREFETCH_AHEAD == 0) {
            size_t to = n_members - i < 2 * PREFETCH_AHEAD ? n_members : i + 2 * PREFETCH_AHEAD;
            prefetch_locals(source, by_header, asked, to);
            asked = to;
        }
        if (!read_local(&reader->window, member, reader->scratch, error, &reason)) {
            if (reason != NULL)
                error_set(error, "%s: zip: member '%s': %s", source_name(source), member->name, reason);
            return false;
        }
        if (member->offset > limit || member->compressed_size > limit - member->offset)
            return error_set(error,
                             "%s: zip: member '%s': its data [%" PRIu64 ", +%" PRIu64 ") overlap data at %" PRIu64,
                             source_name(source), member->name, member->offset, member->compressed_size, limit);
        keep_header(reader, member->header, reader->scratch, (size_t)(member->offset - member->header));
    }
    if (n_members > 0 && by_header[0]->header != 0)
        return error_set(error, "%s: zip: %" PRIu64 " extra bytes before the first member", source_name(source),
                         by_header[0]->header);
    return true;
}

static void sort_by_header(struct local_reader *reader)
{
    size_t n_members = reader->directory->n_members;
    reader->by_header = arena_array(reader->arena, n_members, sizeof *reader->by_header);
    for (size_t i = 0; i < n_members; i++)
        reader->by_header[i] = &reader->directory->members[i];
    qsort(reader->by_header, n_members, sizeof *reader->by_header, compare_by_header);
}

/* Reads the local headers, then lets libzip read the archive. */
static bool read_again(struct zip_directory *directory, const struct end *end, const unsigned char *bytes,
                       struct error *error)
{
    struct arena *arena = arena_new();
    struct local_reader *reader = arena_alloc(arena, sizeof *reader);
    *reader = (struct local_reader){.directory = directory, .window = {.source = directory->source}, .arena = arena};
    reader->pieces = arena_array(arena, directory->n_members + 1, sizeof *reader->pieces);
    sort_by_header(reader);
    bool good = read_locals(reader, end->offset, error);
    if (good) {
        struct zip_headers *headers = &reader->headers;
        headers->pieces = reader->pieces;
        reader->pieces[headers->n_pieces++] = (struct zip_piece){end->offset, (size_t)end->size, bytes};
        headers->n_bytes += end->size;
        directory->second = libzip_open(directory, headers, error);
        good = directory->second != NULL;
    }
    arena_free(arena);
    return good;
}

bool zip_directory_read(struct zip_directory *directory, const struct source *source, struct arena *arena,
                        struct error *error)
{
    struct end end = {0};
    if (!read_end(source, &end, error))
        return false;
    directory->source = source;
    directory->n_members = (size_t)end.n_members;
    directory->members = arena_array(arena, directory->n_members, sizeof *directory->members);
    unsigned char *bytes = memory_alloc((size_t)end.size);
    bool good = source_read(source, end.offset, (size_t)end.size, bytes, error) &&
                read_entries(directory, &end, bytes, arena, error) && sort_by_name(directory, arena, error) &&
                read_again(directory, &end, bytes, error);
    free(bytes);
    if (good)
        arena_on_free(arena, libzip_close, directory->second);
    return good;
}

static size_t index_of(const struct zip_directory *directory, const struct zip_member *member)
{
    return (size_t)(member - directory->members);
}

char *zip_member_read(const struct zip_directory *directory, const struct zip_member *member, size_t limit,
                      struct error *error)
{
    if (member->size > limit) {
        error_set(error, "%s: %s: too large: %" PRIu64 " bytes, the limit is %zu", source_name(directory->source),
                  member->name, member->size, limit);
        return NULL;
    }
    char *bytes = memory_alloc((size_t)member->size + 1);
    bytes[member->size] = '\0';
    if (libzip_read(directory->second, index_of(directory, member), bytes, NULL, NULL, error))
        return bytes;
    free(bytes);
    return NULL;
}

bool zip_member_has_crc(const struct zip_member *member)
{
    return member->crc != 0 || member->size == 0;
}

bool zip_member_check(const struct zip_directory *directory, const struct zip_member *member, zip_progress *progress,
                      void *context, struct error *error)
{
    return libzip_read(directory->second, index_of(directory, member), NULL, progress, context, error);
}

struct wanted_member {
    const struct zip_directory *directory;
    const char *name;
    size_t length;
};

static bool member_comes_before(const void *context, size_t index)
{
    const struct wanted_member *wanted = context;
    const struct zip_member *member = wanted->directory->by_name[index];
    return compare_folded(member->name, member->name_length, wanted->name, wanted->length) < 0;
}

const struct zip_member *zip_directory_find(const struct zip_directory *directory, const char *name, size_t length)
{
    const struct wanted_member wanted = {directory, name, length};
    size_t found = search_first(directory->n_members, member_comes_before, &wanted);
    if (found == directory->n_members)
        return NULL;
    const struct zip_member *member = directory->by_name[found];
    return member->name_length == length && memcmp(name, member->name, length) == 0 ? member : NULL;
}
