#include "formats/nemo/tar.h"

#include "base/arena.h"
#include "base/checked.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Fields of a header. */
enum {
    BLOCK = 512,
    NAME_BYTES = 100,
    SIZE = 124,
    SIZE_BYTES = 12,
    CHECKSUM = 148,
    CHECKSUM_BYTES = 8,
    TYPE = 156,
    MAGIC = 257,
    PREFIX = 345,
    PREFIX_BYTES = 155,
};

enum { LONG_NAME = 'L', LONG_LINK = 'K', PAX = 'x', PAX_GLOBAL = 'g' };

/* What a header before a member's own says of it. */
struct extra {
    bool has_name, has_size;
    uint64_t size;
};

static bool refuse(const struct tar *tar, const char *reason, struct error *error)
{
    return error_set(error, "%s: offset %" PRIu64 ": %s", source_name(tar->source), tar->at, reason);
}

/* Reads a number in octal digits, or, if its first bit is set, in base 256. */
static bool read_number(const unsigned char *field, size_t length, uint64_t *ret_number)
{
    size_t i = 0;
    uint64_t number = 0;
    if (field[0] == 0x80) {
        *ret_number = read_be(field + length - 8, 8);
        for (i = 1; i < length - 8; i++)
            if (field[i] != 0)
                return false;
        return true;
    }
    while (i < length && field[i] == ' ')
        i++;
    size_t first = i;
    for (; i < length && field[i] >= '0' && field[i] <= '7'; i++)
        number = number << 3 | (uint64_t)(field[i] - '0');
    bool ends = i == length || field[i] == '\0' || field[i] == ' ';
    *ret_number = number;
    return i > first && ends;
}

static bool checksum_matches(const unsigned char *header)
{
    uint64_t sum = 0, stored;
    for (size_t i = 0; i < BLOCK; i++)
        sum += i >= CHECKSUM && i < CHECKSUM + CHECKSUM_BYTES ? ' ' : header[i];
    return read_number(header + CHECKSUM, CHECKSUM_BYTES, &stored) && stored == sum;
}

static bool is_zero(const unsigned char *block)
{
    for (size_t i = 0; i < BLOCK; i++)
        if (block[i] != 0)
            return false;
    return true;
}

/* Joins prefix and name. */
static void set_name(const unsigned char *header, struct tar_member *member)
{
    bool has_prefix = memcmp(header + MAGIC, "ustar", 6) == 0 && header[PREFIX] != '\0';
    snprintf(member->name, sizeof member->name, "%.*s%s%.*s", has_prefix ? PREFIX_BYTES : 0,
             (const char *)header + PREFIX, has_prefix ? "/" : "", NAME_BYTES, (const char *)header);
}

/* Takes a record "LENGTH KEY=VALUE\n" of pax; returns its length, or 0 if it is damaged. */
static size_t take_record(const char *text, size_t length, struct extra *extra, struct tar_member *member)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);
    if (*end != ' ' || n > length || n < (size_t)(end - text) + 2 || text[n - 1] != '\n')
        return 0;
    const char *key = end + 1, *equals = memchr(key, '=', (size_t)(text + n - key));
    if (equals == NULL)
        return 0;
    const char *value = equals + 1;
    size_t value_length = (size_t)(text + n - 1 - value);
    if (equals - key == 4 && memcmp(key, "path", 4) == 0) {
        if (value_length > TAR_MAX_NAME)
            return 0;
        memcpy(member->name, value, value_length);
        member->name[value_length] = '\0';
        extra->has_name = true;
    }
    if (equals - key == 4 && memcmp(key, "size", 4) == 0) {
        extra->size = strtoull(value, &end, 10);
        extra->has_size = *value >= '0' && *value <= '9' && *end == '\n';
        return extra->has_size ? n : 0;
    }
    return n;
}

static bool take_pax(const struct tar *tar, char *text, size_t length, struct extra *extra, struct tar_member *member,
                     struct error *error)
{
    for (size_t at = 0, n; at < length; at += n) {
        n = take_record(text + at, length - at, extra, member);
        if (n == 0)
            return refuse(tar, "a damaged record of pax", error);
    }
    return true;
}

/* Takes the content of a header that describes the next member. */
static bool take_extra(const struct tar *tar, char type, uint64_t size, struct extra *extra, struct tar_member *member,
                       struct error *error)
{
    if (type == LONG_LINK || type == PAX_GLOBAL)
        return true;
    if (size > (type == PAX ? TAR_MAX_PAX : TAR_MAX_NAME))
        return refuse(tar, "the name of a member is too long", error);
    char *text = memory_alloc((size_t)size + 1);
    bool good = source_read(tar->source, tar->at + BLOCK, (size_t)size, text, error);
    text[size] = '\0';
    if (good && type == PAX)
        good = take_pax(tar, text, (size_t)size, extra, member, error);
    else if (good)
        extra->has_name = snprintf(member->name, sizeof member->name, "%s", text) >= 0;
    free(text);
    return good;
}

/* Reads a header, and checks that its member is in the file. */
static bool read_header(const struct tar *tar, unsigned char header[BLOCK], const struct extra *extra,
                        uint64_t *ret_size, struct error *error)
{
    uint64_t file_size = source_size(tar->source);
    if (file_size - tar->at < BLOCK)
        return refuse(tar, "truncated: a header is cut off", error);
    if (!source_read(tar->source, tar->at, BLOCK, header, error))
        return false;
    if (is_zero(header))
        return true;
    if (!checksum_matches(header))
        return refuse(tar, "not a tar archive, or damaged: the checksum of a header does not match", error);
    if (extra->has_size)
        *ret_size = extra->size;
    else if (!read_number(header + SIZE, SIZE_BYTES, ret_size))
        return refuse(tar, "a member whose size is not a number >= 0", error);
    if (*ret_size > file_size - tar->at - BLOCK)
        return refuse(tar, "truncated: a member is longer than the rest of the file", error);
    return true;
}

bool tar_next(struct tar *tar, struct tar_member *ret_member, bool *ret_more, struct error *error)
{
    unsigned char header[BLOCK];
    struct extra extra = {false};
    uint64_t size = 0, next;
    for (;;) {
        *ret_more = tar->at < source_size(tar->source);
        if (!*ret_more)
            return true;
        if (!read_header(tar, header, &extra, &size, error))
            return false;
        *ret_more = !is_zero(header);
        if (!*ret_more)
            return true;
        char type = (char)header[TYPE];
        bool is_extra = type == LONG_NAME || type == LONG_LINK || type == PAX || type == PAX_GLOBAL;
        if (is_extra && !take_extra(tar, type, size, &extra, ret_member, error))
            return false;
        if (!is_extra && !extra.has_name)
            set_name(header, ret_member);
        ret_member->is_file = type == '0' || type == '\0';
        ret_member->offset = tar->at + BLOCK;
        ret_member->size = size;
        if (!checked_align(ret_member->offset + size, BLOCK, &next))
            return refuse(tar, "a member whose size overflows", error);
        tar->at = next < source_size(tar->source) ? next : source_size(tar->source);
        if (!is_extra)
            return true;
    }
}
