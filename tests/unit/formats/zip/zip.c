/* Zip archives assembled by hand, as torch and others write them, and each with one thing wrong. */
#include "formats/zip/zip.h"

#include "base/buffer.h"
#include "base/text.h"
#include "formats/zip/deflate_index.h"
#include "sources/location.h"

#include "tests/unit/check.h"
#include "tests/unit/write_zip.h"

#include <zip.h>

/* What a member is, and what its two headers say where that differs; 0: the truth, ZERO: 0. */
struct member {
    const char *name, *content;
    const char *local_name;
    size_t name_length;
    uint16_t method, flags, local_flags, local_method;
    bool streamed; /* zeros in the local header, a descriptor after the data: torch */
    bool zip64;    /* numbers in zip64 fields */
    uint64_t size, compressed_size, local_size, offset, crc, local_crc, disk, attributes;
    uint16_t local_date;
    const char *other_name; /* Info-ZIP's field of a name in UTF-8, which wfs does not look at, and libzip does */
    uint16_t n_empty_fields, n_local_fields;
};

#define ZERO UINT64_MAX
#define MEMBER(text, ...)                                                                                              \
    {                                                                                                                  \
        .name = text, .content = "content of " text, __VA_ARGS__                                                       \
    }

struct archive {
    const char *prefix, *suffix, *comment;
    struct member members[3];
    uint64_t count, directory_offset, directory_size, disk;
    bool end64, wrong_end64, wrong_locator;
    const char *error; /* NULL: it is read */
};

static uint64_t either(uint64_t said, uint64_t truth)
{
    if (said == 0)
        return truth;
    return said == ZERO ? 0 : said;
}

struct written {
    uint64_t header, size, compressed_size;
    uint32_t crc;
};

static void append_fields(struct buffer *extra, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        buffer_append_le(extra, 0xcafe + i, 2);
        buffer_append_le(extra, 0, 2);
    }
}

static void write_member(struct buffer *file, const struct member *member, struct written *written)
{
    size_t length = strlen(member->content), n_data = length;
    unsigned char *deflated = member->method == ZIP_DEFLATED ? deflate_raw(member->content, length, 9, &n_data) : NULL;
    const char *name = member->local_name ? member->local_name : member->name;
    size_t name_length = member->name_length ? member->name_length : strlen(name);
    *written = (struct written){file->length, length, n_data,
                                (uint32_t)crc32(0, (const Bytef *)member->content, (uInt)length)};
    uint16_t flags = member->flags | (member->streamed ? 8 : 0);
    bool zeros = member->streamed;
    uint64_t size = either(member->local_size, n_data), packed = length;
    if (member->zip64)
        size = packed = UINT32_MAX;
    buffer_append_le(file, 0x04034b50, 4);
    buffer_append_le(file, 20, 2);
    buffer_append_le(file, member->local_flags ? member->local_flags : flags, 2);
    buffer_append_le(file, member->local_method ? member->local_method : member->method, 2);
    buffer_append_le(file, 0, 2);
    buffer_append_le(file, member->local_date, 2);
    buffer_append_le(file, zeros ? 0 : either(member->local_crc, written->crc), 4);
    buffer_append_le(file, zeros ? 0 : size, 4);
    buffer_append_le(file, zeros ? 0 : packed, 4);
    buffer_append_le(file, name_length, 2);
    buffer_append_le(file, (member->zip64 && !zeros ? 20U : 10U) + 4 * member->n_local_fields, 2);
    buffer_append(file, name, name_length);
    if (member->zip64 && !zeros) {
        buffer_append_le(file, 1, 2);
        buffer_append_le(file, 16, 2);
        buffer_append_le(file, length, 8);
        buffer_append_le(file, either(member->local_size, n_data), 8);
    } else { /* padding, as torch aligns data */
        buffer_append(file, "FB\6\0ZZZZZZ", 10);
    }
    append_fields(file, member->n_local_fields);
    if (deflated != NULL)
        buffer_append(file, deflated, n_data);
    else
        buffer_append(file, member->content, n_data);
    free(deflated);
    if (member->streamed) {
        buffer_append_le(file, 0x08074b50, 4);
        buffer_append_le(file, either(member->crc, written->crc), 4);
        buffer_append_le(file, either(member->compressed_size, n_data), 4);
        buffer_append_le(file, either(member->size, length), 4);
    }
}

static void append_other_name(struct buffer *extra, const struct member *member)
{
    if (member->other_name == NULL)
        return;
    buffer_append_le(extra, 0x7075, 2);
    buffer_append_le(extra, 5 + strlen(member->other_name), 2);
    buffer_append_le(extra, 1, 1);
    buffer_append_le(extra, crc32(0, (const Bytef *)member->name, (uInt)strlen(member->name)), 4);
    buffer_append_text(extra, member->other_name);
}

static void write_entry(struct buffer *file, const struct member *member, const struct written *written)
{
    struct buffer fields = {0};
    append_other_name(&fields, member);
    append_fields(&fields, member->n_empty_fields);
    size_t name_length = member->name_length ? member->name_length : strlen(member->name);
    buffer_append_le(file, 0x02014b50, 4);
    buffer_append_le(file, 20, 2);
    buffer_append_le(file, 20, 2);
    buffer_append_le(file, member->flags | (member->streamed ? 8u : 0u), 2);
    buffer_append_le(file, member->method, 2);
    buffer_append_le(file, 0, 4);
    buffer_append_le(file, either(member->crc, written->crc), 4);
    buffer_append_le(file, member->zip64 ? UINT32_MAX : either(member->compressed_size, written->compressed_size), 4);
    buffer_append_le(file, member->zip64 ? UINT32_MAX : either(member->size, written->size), 4);
    buffer_append_le(file, name_length, 2);
    buffer_append_le(file, (member->zip64 ? 28 : 0) + fields.length, 2);
    buffer_append_le(file, 0, 2);
    buffer_append_le(file, member->disk, 2);
    buffer_append_le(file, 0, 2);
    buffer_append_le(file, member->attributes, 4);
    buffer_append_le(file, member->zip64 ? UINT32_MAX : either(member->offset, written->header), 4);
    buffer_append(file, member->name, name_length);
    if (member->zip64) {
        buffer_append_le(file, 1, 2);
        buffer_append_le(file, 24, 2);
        buffer_append_le(file, either(member->size, written->size), 8);
        buffer_append_le(file, either(member->compressed_size, written->compressed_size), 8);
        buffer_append_le(file, either(member->offset, written->header), 8);
    }
    buffer_append(file, fields.bytes, fields.length);
    buffer_free(&fields);
}

static void write_ends(struct buffer *file, const struct archive *archive, uint64_t count, uint64_t offset,
                       uint64_t size)
{
    if (archive->end64) {
        uint64_t position = file->length;
        buffer_append_le(file, 0x06064b50, 4);
        buffer_append_le(file, 44, 8);
        buffer_append_le(file, 0, 4);
        buffer_append_le(file, 0, 8);
        buffer_append_le(file, count + archive->wrong_end64, 8);
        buffer_append_le(file, count + archive->wrong_end64, 8);
        buffer_append_le(file, size, 8);
        buffer_append_le(file, offset, 8);
        buffer_append_le(file, 0x07064b50, 4);
        buffer_append_le(file, 0, 4);
        buffer_append_le(file, position + archive->wrong_locator, 8);
        buffer_append_le(file, 1, 4);
    }
    const char *comment = archive->comment ? archive->comment : "";
    buffer_append_le(file, 0x06054b50, 4);
    buffer_append_le(file, archive->disk, 2);
    buffer_append_le(file, 0, 2);
    buffer_append_le(file, count, 2);
    buffer_append_le(file, count, 2);
    buffer_append_le(file, size, 4);
    buffer_append_le(file, offset, 4);
    buffer_append_le(file, strlen(comment), 2);
    buffer_append_text(file, comment);
}

static void write_archive(struct buffer *file, const struct archive *archive)
{
    struct written written[3];
    uint64_t n = 0;
    if (archive->prefix != NULL)
        buffer_append_text(file, archive->prefix);
    for (; n < 3 && archive->members[n].name != NULL; n++)
        write_member(file, &archive->members[n], &written[n]);
    uint64_t offset = file->length;
    for (uint64_t i = 0; i < n; i++)
        write_entry(file, &archive->members[i], &written[i]);
    write_ends(file, archive, archive->count ? archive->count : n,
               archive->directory_offset ? archive->directory_offset : offset,
               archive->directory_size ? archive->directory_size : file->length - offset);
    if (archive->suffix != NULL)
        buffer_append_text(file, archive->suffix);
}

static const struct archive archives[] = {
    {.members = {MEMBER("a/x", .method = ZIP_STORED), MEMBER("a/y", .method = ZIP_STORED)}},
    {.members = {MEMBER("a/x", .streamed = true), MEMBER("a/y", .streamed = true)}, .end64 = true},
    {.members = {MEMBER("a/x", .zip64 = true), MEMBER("a/y", .zip64 = true)}, .end64 = true},
    {.members = {MEMBER("a/x", .method = ZIP_DEFLATED), MEMBER("a/y", .flags = 0x0802)}},
    {.members = {MEMBER("a/x", .method = ZIP_STORED)}, .comment = "a comment"},
    {.members = {{0}}},

    {.members = {MEMBER("a/x", .local_name = "b/x")}, .error = "member 'a/x': its local header has another name"},
    {.members = {MEMBER("a/x", .local_name = "a/xx")}, .error = "member 'a/x': its local header has another name"},
    {.members = {MEMBER("a/x", .local_size = 5)}, .error = "member 'a/x': its local header has other sizes"},
    {.members = {MEMBER("a/x", .zip64 = true, .local_size = 5)},
     .error = "member 'a/x': its local header has other sizes"},
    {.members = {MEMBER("a/x", .local_crc = 5)}, .error = "member 'a/x': its local header has another CRC"},
    {.members = {MEMBER("a/x", .crc = 5)}, .error = "member 'a/x': its local header has another CRC"},
    {.members = {MEMBER("a/x", .local_flags = 0x0002)},
     .error = "member 'a/x': its local header has other flags or another method"},
    {.members = {MEMBER("a/x", .local_flags = 0x0001)},
     .error = "member 'a/x': its local header has other flags or another method"},
    {.members = {MEMBER("a/x", .local_method = 8)},
     .error = "member 'a/x': its local header has other flags or another method"},
    {.members = {MEMBER("a/x", .flags = 1)}, .error = "directory entry 0 ('a/x'): it is encrypted"},
    {.members = {MEMBER("a/x", .flags = 0x0040)}, .error = "directory entry 0 ('a/x'): it is encrypted"},
    {.members = {MEMBER("a/x", .flags = 0x2000)}, .error = "directory entry 0 ('a/x'): it is encrypted"},
    {.members = {MEMBER("a/x", .flags = 0x0020)}, .error = "directory entry 0 ('a/x'): it has unsupported flags"},
    {.members = {MEMBER("a/x", .attributes = 0x10)}, .error = "directory entry 0 ('a/x'): it is marked as a folder"},
    {.members = {MEMBER("a/x", .attributes = 0x20)}},
    {.members = {MEMBER("a/x", .method = 9)}, .error = "directory entry 0 ('a/x'): its compression method is neither"},
    {.members = {MEMBER("a/x", .method = 12)}, .error = "directory entry 0 ('a/x'): its compression method is neither"},
    {.members = {MEMBER("a/x", .method = 14)}, .error = "directory entry 0 ('a/x'): its compression method is neither"},
    {.members = {MEMBER("a/x", .method = 93)}, .error = "directory entry 0 ('a/x'): its compression method is neither"},
    {.members = {MEMBER("a/x", .method = 95)}, .error = "directory entry 0 ('a/x'): its compression method is neither"},
    {.members = {MEMBER("a/x", .method = 99)}, .error = "directory entry 0 ('a/x'): its compression method is neither"},
    {.members = {MEMBER("a/x", .size = 5)},
     .error = "directory entry 0 ('a/x'): it is stored, but its two sizes differ"},
    {.members = {MEMBER("a/x", .method = ZIP_DEFLATED, .size = 1000000)},
     .error = "directory entry 0 ('a/x'): its inflated size is larger than deflate allows"},
    {.members = {MEMBER("a/x", .method = ZIP_DEFLATED, .size = 300000000, .compressed_size = 300000)},
     .error = "directory entry 0 ('a/x'): it inflates to more than 256 MiB and 64 times its stored size"},
    {.members = {MEMBER("a/x", .method = ZIP_DEFLATED, .zip64 = true, .size = UINT64_C(1) << 40)},
     .error = "directory entry 0 ('a/x'): its inflated size is larger than deflate allows"},
    {.members = {MEMBER("a/x", .disk = 1)}, .error = "directory entry 0 ('a/x'): it is on another disk"},
    {.members = {MEMBER("a/x", .method = ZIP_STORED), MEMBER("", .method = ZIP_STORED)},
     .error = "directory entry 1 (''): its name is empty or contains a NUL"},
    {.members = {MEMBER("a\0x", .name_length = 3)},
     .error = "directory entry 0 ('a'): its name is empty or contains a NUL"},
    {.members = {MEMBER("a/x", .method = ZIP_STORED), MEMBER("a/x", .method = ZIP_STORED)},
     .error = "two members are named 'a/x' and 'a/x'"},
    {.members = {MEMBER("a/data.pkl", .method = ZIP_STORED), MEMBER("a/DATA.PKL", .method = ZIP_STORED)},
     .error = "two members are named 'a/"},
    {.members = {MEMBER("a/x", .method = ZIP_STORED), MEMBER("a/y", .offset = ZERO)}, .error = "overlap data at 0"},
    {.members = {MEMBER("a/x", .size = 80, .compressed_size = 80, .streamed = true),
                 MEMBER("a/y", .method = ZIP_STORED)},
     .error = "member 'a/x': its data [43, +80) overlap data at"},
    {.members = {MEMBER("a/x", .size = 80, .compressed_size = 80, .streamed = true)},
     .error = "member 'a/x': its data [43, +80) overlap"},
    {.members = {MEMBER("a/x", .zip64 = true, .size = UINT64_MAX - 1, .compressed_size = UINT64_MAX - 1,
                        .streamed = true)},
     .end64 = true,
     .error = "member 'a/x': its data [43, +18446744073709551614) overlap"},
    {.members = {MEMBER("a/x", .offset = 3)}, .error = "member 'a/x': its directory entry points to no local header"},
    {.members = {MEMBER("a/x", .offset = 1000000)}, .error = "member 'a/x': its local header is outside the file"},
    {.members = {MEMBER("a/x", .zip64 = true, .offset = UINT64_MAX - 1)},
     .end64 = true,
     .error = "member 'a/x': its local header is outside the file"},
    {.members = {MEMBER("a/x", .method = ZIP_STORED)},
     .prefix = "#!",
     .error = "2 extra bytes before the first member"},
    {.members = {MEMBER("a/x", .method = ZIP_STORED)},
     .suffix = "junk",
     .error = "no end record at the end of the file"},
    {.members = {MEMBER("a/x", .method = ZIP_STORED)},
     .count = 2,
     .error = "directory too large: 2 members in 49 bytes"},
    {.members = {MEMBER("a/x", .method = ZIP_STORED), MEMBER("a/y", .method = ZIP_STORED)},
     .count = 1,
     .error = "the directory has more than its 1 entries"},
    {.members = {MEMBER("a/x", .method = ZIP_STORED)},
     .count = 9,
     .error = "directory too large: 9 members in 49 bytes"},
    {.members = {MEMBER("a/x", .method = ZIP_STORED)},
     .directory_offset = 4,
     .error = "does not end at its end record"},
    {.members = {MEMBER("a/x", .method = ZIP_STORED)}, .directory_size = 48, .error = "does not end at its end record"},
    {.members = {MEMBER("a/x", .method = ZIP_STORED)}, .count = 0xffff, .error = "the zip64 end record is missing"},
    {.members = {MEMBER("a/x", .method = ZIP_STORED)},
     .directory_size = 0xffffffff,
     .error = "the zip64 end record is missing"},
    {.members = {MEMBER("a/x", .method = ZIP_STORED)}, .disk = 1, .error = "split over several disks"},
    {.members = {MEMBER("a/x", .method = ZIP_STORED)},
     .end64 = true,
     .wrong_end64 = true,
     .error = "the two end records contradict each other"},
    {.members = {MEMBER("a/x", .method = ZIP_STORED)},
     .end64 = true,
     .wrong_locator = true,
     .error = "after its locator"},

    /* Only libzip objects. */
    {.members = {MEMBER("a/x", .other_name = "a/y")}, .error = "member 'a/x' is called 'a/y' by libzip"},
    {.members = {MEMBER("a/w", .method = ZIP_STORED), MEMBER("a/x", .other_name = "b/data.pkl")},
     .error = "member 'a/x' is called 'b/data.pkl' by libzip"},
    {.members = {MEMBER("a/x", .local_date = 0x5821)}, .error = "libzip refuses it, although its headers agree"},
    {.members = {MEMBER("a/\xff", .flags = 0x0800)}, .error = "libzip refuses it, although its headers agree"},

    /* What libzip would spend much time on. */
    {.members = {MEMBER("a/x", .n_empty_fields = 64, .n_local_fields = 63)}},
    {.members = {MEMBER("a/x", .n_empty_fields = 65)}, .error = "directory entry 0 ('a/x'): the extra area"},
    {.members = {MEMBER("a/x", .n_local_fields = 64)}, .error = "member 'a/x': the extra area of its local header"},
};

static void check_archives(void)
{
    for (size_t i = 0; i < sizeof archives / sizeof *archives; i++) {
        char name[200];
        struct buffer file = {0};
        struct error error = {"read"};
        struct zip_directory directory;
        struct arena *arena = arena_new();
        write_archive(&file, &archives[i]);
        files_write("x.pt", file.bytes, file.length);
        struct source *source = location_open_file("x.pt", &error);
        bool good = zip_directory_read(&directory, source, arena, &error);
        snprintf(name, sizeof name, "%zu: %s", i, archives[i].error ? archives[i].error : "read");
        bool named = text_starts_with(error.message, "x.pt: ");
        if (!CHECK_NAMED(archives[i].error == NULL ? good
                                                   : !good && named && strstr(error.message, archives[i].error) != NULL,
                         name))
            fprintf(stderr, "  actual: %s\n", good ? "read" : error.message);
        source_close(source);
        arena_free(arena);
        buffer_free(&file);
    }
}

/* A file cut off at any byte is refused. */
static void check_truncation(void)
{
    struct buffer file = {0};
    unsigned n_read = 0;
    write_archive(&file, &archives[1]);
    for (size_t length = 1; length < file.length; length++) {
        struct error error;
        struct zip_directory directory;
        struct arena *arena = arena_new();
        files_write("x.pt", file.bytes, length);
        struct source *source = location_open_file("x.pt", &error);
        n_read += zip_directory_read(&directory, source, arena, &error);
        source_close(source);
        arena_free(arena);
    }
    CHECK_NAMED(n_read == 0, "cut off anywhere");
    buffer_free(&file);
}

static struct source *open_written(const struct buffer *file, struct zip_directory *directory, struct arena *arena)
{
    struct error error;
    files_write("x.pt", file->bytes, file->length);
    struct source *source = location_open_file("x.pt", &error);
    files_must(zip_directory_read(directory, source, arena, &error), error.message);
    return source;
}

static void check_contents(void)
{
    static const struct archive archive = {.members = {MEMBER("a/x", .method = ZIP_DEFLATED, .streamed = true),
                                                       MEMBER("a/y", .method = ZIP_STORED),
                                                       MEMBER("a/Z", .method = ZIP_DEFLATED)}};
    char bytes[64] = "";
    struct error error = {""};
    struct buffer file = {0};
    struct zip_directory directory;
    struct arena *arena = arena_new();
    write_archive(&file, &archive);
    struct source *source = open_written(&file, &directory, arena);
    const struct zip_member *x = zip_directory_find(&directory, "a/x", 3),
                            *y = zip_directory_find(&directory, "a/y", 3);
    const struct zip_member *z = zip_directory_find(&directory, "a/Z", 3);
    CHECK(x != NULL && y != NULL && z != NULL && zip_directory_find(&directory, "a/z", 3) == NULL);
    CHECK(zip_directory_find(&directory, "a", 1) == NULL && zip_directory_find(&directory, "a/xx", 4) == NULL);
    CHECK(source_read(source, y->offset, (size_t)y->size, bytes, &error) && strcmp(bytes, "content of a/y") == 0);
    struct source *inflated = inflated_source_new(&directory);
    CHECK(inflated != NULL && source_size(inflated) == x->size + z->size);
    memset(bytes, 0, sizeof bytes);
    CHECK(source_read(inflated, x->inflated, (size_t)x->size, bytes, &error) && strcmp(bytes, "content of a/x") == 0);
    memset(bytes, 0, sizeof bytes);
    CHECK(source_read(inflated, z->inflated + 2, (size_t)z->size - 2, bytes, &error) &&
          strcmp(bytes, "ntent of a/Z") == 0);
    memset(bytes, 0, sizeof bytes); /* across both */
    CHECK(source_read(inflated, x->size - 3, 6, bytes, &error) && strcmp(bytes, "a/xcon") == 0);
    source_close(inflated);
    source_close(source);
    arena_free(arena);
    buffer_free(&file);
}

/* A directory that says otherwise than libzip. */
static void check_disagreement(void)
{
    static const struct archive archive = {.members = {MEMBER("a/x", .method = ZIP_DEFLATED)}};
    static const char *const errors[] = {
        "x.pt: zip: it has 0 members for wfs and 1 for libzip",
        "x.pt: zip: member 'a/y' is called 'a/x' by libzip",
        "x.pt: zip: member 'a/x': its compression method is 0 for wfs and 8 for libzip",
        "x.pt: zip: member 'a/x': its size is 15 for wfs and 14 for libzip",
        "x.pt: zip: member 'a/x': its compressed size is 17 for wfs and 16 for libzip",
        "x.pt: zip: member 'a/x': its CRC is 1 for wfs and ",
    };
    enum { N_ERRORS = sizeof errors / sizeof *errors };
    struct buffer file = {0};
    struct zip_directory directory;
    struct arena *arena = arena_new();
    write_archive(&file, &archive);
    struct source *source = open_written(&file, &directory, arena);
    struct zip_member truth = directory.members[0];
    for (size_t i = 0; i < N_ERRORS; i++) {
        struct error error = {"read"};
        struct zip_headers headers = {.n_bytes = 100};
        struct zip_member *said = &directory.members[0];
        *said = truth;
        directory.n_members = i == 0 ? 0 : 1;
        said->name = i == 1 ? "a/y" : truth.name;
        said->method = i == 2 ? ZIP_STORED : truth.method;
        said->size += i == 3;
        said->compressed_size += i == 4;
        said->crc = i == 5 ? 1 : truth.crc;
        struct libzip *libzip = libzip_open(&directory, &headers, &error);
        if (!CHECK_NAMED(libzip == NULL && text_starts_with(error.message, errors[i]), errors[i]))
            fprintf(stderr, "  actual: %s\n", error.message);
    }
    source_close(source);
    arena_free(arena);
    buffer_free(&file);
}

/* Members without content, called a/ and then, for each bit of their number, "Ez" or "FY", which djb2 does not tell
 * apart. */
static void write_many(struct buffer *file, size_t n_members, bool collide, uint16_t local_date)
{
    enum { BITS = 14 };
    char name[2 + 2 * BITS + 1] = "a/";
    struct written *written = malloc(n_members * sizeof *written);
    struct buffer directory = {0};
    for (size_t i = 0; i < n_members; i++) {
        for (size_t bit = 0; bit < BITS; bit++)
            memcpy(name + 2 + 2 * bit, i >> bit & 1 ? "Ez" : collide ? "FY" : "ab", 2);
        const struct member member = {.name = name, .content = "", .local_date = local_date};
        write_member(file, &member, &written[i]);
        write_entry(&directory, &member, &written[i]);
    }
    uint64_t offset = file->length;
    buffer_append(file, directory.bytes, directory.length);
    write_ends(file, &(struct archive){0}, n_members, offset, directory.length);
    buffer_free(&directory);
    free(written);
}

static void check_collisions(void)
{
    enum { N_MEMBERS = 5000 };
    for (int collide = 0; collide < 2; collide++) {
        struct error error = {"read"};
        struct buffer file = {0};
        struct zip_directory directory;
        struct arena *arena = arena_new();
        write_many(&file, N_MEMBERS, collide, 0);
        files_write("x.pt", file.bytes, file.length);
        struct source *source = location_open_file("x.pt", &error);
        bool good = zip_directory_read(&directory, source, arena, &error);
        if (!CHECK(collide ? !good && strstr(error.message, "x.pt: zip: the names of its 5000 members collide") != NULL
                           : good))
            fprintf(stderr, "  actual: %s\n", error.message);
        source_close(source);
        arena_free(arena);
        buffer_free(&file);
    }
}

/* Without ZIP_CHECKCONS, which refuses the archive for its date, libzip 1.7 reads a directory for each end record that
 * a comment holds: here 2000 of them, each with the same 300 kB. Later versions read the last. */
static void check_forged_ends(void)
{
    enum { N_MEMBERS = 4000, N_ENDS = 2000, END_BYTES = 22 };
    bool old = text_starts_with(zip_libzip_version(), "1.7.");
    const char *expected = old ? "libzip reads its headers again and again" : "libzip refuses it";
    struct error error = {"read"};
    struct buffer file = {0};
    struct zip_directory directory;
    struct arena *arena = arena_new();
    write_many(&file, N_MEMBERS, false, 0x5821);
    unsigned char end[END_BYTES];
    memcpy(end, file.bytes + file.length - END_BYTES, END_BYTES);
    file.bytes[file.length - 2] = (N_ENDS * END_BYTES) & 0xff;
    file.bytes[file.length - 1] = (N_ENDS * END_BYTES) >> 8;
    for (size_t i = 0; i < N_ENDS; i++)
        buffer_append(&file, end, END_BYTES);
    file.bytes[file.length - 2] = 1; /* it does not end with the file */
    files_write("x.pt", file.bytes, file.length);
    struct source *source = location_open_file("x.pt", &error);
    bool good = zip_directory_read(&directory, source, arena, &error);
    if (!CHECK(!good && strstr(error.message, expected) != NULL))
        fprintf(stderr, "  actual: %s\n", error.message);
    source_close(source);
    arena_free(arena);
    buffer_free(&file);
}

static void count_bytes(void *context, uint64_t n_bytes)
{
    *(uint64_t *)context += n_bytes;
}

static void check_members(void)
{
    static const struct archive archive = {.members = {MEMBER("a/x", .method = ZIP_DEFLATED),
                                                       MEMBER("a/y", .method = ZIP_STORED, .streamed = true),
                                                       MEMBER("a/z", .method = ZIP_STORED)}};
    struct error error = {""};
    struct buffer file = {0};
    struct zip_directory directory;
    struct arena *arena = arena_new();
    write_archive(&file, &archive);
    file.bytes[file.length - 22 - 3 * 49 - 1] ^= 1; /* the last byte of a/z */
    struct source *source = open_written(&file, &directory, arena);
    for (size_t i = 0; i < 2; i++) {
        uint64_t n_bytes = 0;
        char *text = zip_member_read(&directory, &directory.members[i], 14, &error);
        CHECK(text != NULL && strcmp(text, archive.members[i].content) == 0);
        free(text);
        CHECK(zip_member_check(&directory, &directory.members[i], count_bytes, &n_bytes, &error) && n_bytes == 14);
    }
    CHECK(zip_member_read(&directory, &directory.members[0], 13, &error) == NULL);
    CHECK(strcmp(error.message, "x.pt: a/x: too large: 14 bytes, the limit is 13") == 0);
    CHECK(zip_member_read(&directory, &directory.members[2], 14, &error) == NULL);
    CHECK(strcmp(error.message, "x.pt: a/z: damaged: CRC error; download or write the file again") == 0);
    CHECK(!zip_member_check(&directory, &directory.members[2], NULL, NULL, &error));
    CHECK(zip_member_check(&directory, &directory.members[1], NULL, NULL, &error));
    source_close(source);
    arena_free(arena);
    buffer_free(&file);
}

/* Members whose CRC nobody computed are read, to their full size. */
static void check_without_crc(void)
{
    static const struct archive archive = {
        .members = {
            MEMBER("a/x", .method = ZIP_DEFLATED, .crc = ZERO, .local_crc = ZERO),
            MEMBER("a/y", .method = ZIP_STORED, .crc = ZERO, .local_crc = ZERO),
            MEMBER("a/z", .method = ZIP_DEFLATED, .crc = ZERO, .local_crc = ZERO, .size = 20, .streamed = true)}};
    char bytes[15] = {0};
    struct error error = {""};
    struct buffer file = {0};
    struct zip_directory directory;
    struct arena *arena = arena_new();
    write_archive(&file, &archive);
    struct source *source = open_written(&file, &directory, arena);
    struct source *inflated = inflated_source_new(&directory);
    for (size_t i = 0; i < 2; i++) {
        uint64_t n_bytes = 0;
        char *text = zip_member_read(&directory, &directory.members[i], 14, &error);
        CHECK(text != NULL && strcmp(text, archive.members[i].content) == 0);
        free(text);
        CHECK(zip_member_check(&directory, &directory.members[i], count_bytes, &n_bytes, &error) && n_bytes == 14);
        CHECK(!zip_member_has_crc(&directory.members[i]));
    }
    CHECK(source_read(inflated, 0, 14, bytes, &error) && strcmp(bytes, "content of a/x") == 0);
    CHECK(zip_member_read(&directory, &directory.members[2], 20, &error) == NULL);
    source_close(inflated);
    source_close(source);
    arena_free(arena);
    buffer_free(&file);
}

static void check_damaged_content(void)
{
    static const struct archive damaged[] = {
        {.members = {MEMBER("a/x", .method = ZIP_DEFLATED, .crc = 5, .local_crc = 5)}, .error = "a/x': CRC error"},
        {.members = {MEMBER("a/x", .method = ZIP_DEFLATED, .size = 20, .streamed = true)},
         .error = "member 'a/x' inflates to less"},
    };
    for (size_t i = 0; i < 2; i++) {
        char bytes[64];
        struct error error = {""};
        struct buffer file = {0};
        struct zip_directory directory;
        struct arena *arena = arena_new();
        write_archive(&file, &damaged[i]);
        struct source *source = open_written(&file, &directory, arena);
        struct source *inflated = inflated_source_new(&directory);
        bool good = inflated != NULL && source_read(inflated, 0, 4, bytes, &error);
        if (!CHECK_NAMED(!good && strstr(error.message, damaged[i].error) != NULL, damaged[i].error))
            fprintf(stderr, "  actual: %s\n", good ? "read" : error.message);
        source_close(inflated);
        source_close(source);
        arena_free(arena);
        buffer_free(&file);
    }
}

int main(void)
{
    files_begin();
    check_archives();
    check_truncation();
    check_contents();
    check_damaged_content();
    check_without_crc();
    check_disagreement();
    check_collisions();
    check_forged_ends();
    check_members();
    files_remove();
    return check_done();
}
