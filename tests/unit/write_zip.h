/* Zip archives for tests, as torch and numpy write them; zip.c writes those that are wrong. */
#pragma once

#include "base/buffer.h"

#include "tests/unit/files.h"

#define ZLIB_CONST /* what is read is const */
#include <zlib.h>

/* Bytes deflated at a level, without a header, in memory that the caller frees. */
static inline unsigned char *deflate_raw(const void *bytes, size_t length, int level, size_t *ret_length)
{
    z_stream stream = {.next_in = bytes, .avail_in = (uInt)length};
    deflateInit2(&stream, level, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
    stream.avail_out = (uInt)deflateBound(&stream, length);
    unsigned char *out = stream.next_out = malloc(stream.avail_out);
    files_must(deflate(&stream, Z_FINISH) == Z_STREAM_END, "deflate");
    deflateEnd(&stream);
    *ret_length = stream.total_out;
    return out;
}

struct archive_member {
    const char *name;
    const void *bytes;
    size_t length;
    bool deflated; /* else stored */
};

/* Writes an archive of `n` members. */
static inline void archive_write(const char *path, const struct archive_member *members, size_t n)
{
    struct buffer file = {0}, directory = {0};
    for (size_t i = 0; i < n; i++) {
        const struct archive_member *member = &members[i];
        struct buffer head = {0};
        size_t n_data = member->length;
        unsigned char *deflated = member->deflated ? deflate_raw(member->bytes, n_data, 9, &n_data) : NULL;
        buffer_append_le(&head, 20, 2);
        buffer_append_le(&head, 0, 2);
        buffer_append_le(&head, member->deflated ? 8 : 0, 2);
        buffer_append_le(&head, 0, 4);
        buffer_append_le(&head, crc32(0, member->bytes, (uInt)member->length), 4);
        buffer_append_le(&head, n_data, 4);
        buffer_append_le(&head, member->length, 4);
        buffer_append_le(&head, strlen(member->name), 2);
        buffer_append_le(&head, 0, 2);
        buffer_append_le(&directory, 0x02014b50, 4);
        buffer_append_le(&directory, 20, 2);
        buffer_append(&directory, head.bytes, head.length);
        buffer_append_zeros(&directory, 10);
        buffer_append_le(&directory, file.length, 4);
        buffer_append_text(&directory, member->name);
        buffer_append_le(&file, 0x04034b50, 4);
        buffer_append(&file, head.bytes, head.length);
        buffer_append_text(&file, member->name);
        buffer_append(&file, deflated != NULL ? deflated : member->bytes, n_data);
        buffer_free(&head);
        free(deflated);
    }
    uint64_t offset = file.length;
    buffer_append(&file, directory.bytes, directory.length);
    buffer_append_le(&file, 0x06054b50, 4);
    buffer_append_le(&file, 0, 4);
    buffer_append_le(&file, n, 2);
    buffer_append_le(&file, n, 2);
    buffer_append_le(&file, directory.length, 4);
    buffer_append_le(&file, offset, 4);
    buffer_append_le(&file, 0, 2);
    files_write(path, file.bytes, file.length);
    buffer_free(&file);
    buffer_free(&directory);
}
