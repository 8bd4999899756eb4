/* Protocol buffers, read one field at a time from a run of bytes of a source.
 *
 * Fields of bytes are skipped, not read: a message of gigabytes costs as much as its headers. Lengths are checked
 * against the bytes that are left. Groups, which no format of models uses, are refused. Source: the encoding section of
 * the Protocol Buffers documentation. */
#pragma once

#include "formats/window.h"

struct protobuf {
    struct window *window;
    const char *name; /* of the file, for messages */
    uint64_t at, end; /* the next field is at `at` of the source; the message ends at `end` */
};

enum protobuf_wire { PROTOBUF_VARINT = 0, PROTOBUF_FIXED64 = 1, PROTOBUF_BYTES = 2, PROTOBUF_FIXED32 = 5 };

struct protobuf_field {
    uint32_t number;
    enum protobuf_wire wire;
    uint64_t value;          /* of a varint or fixed number */
    uint64_t offset, length; /* of the bytes, or of the encoded number, in the source */
};

/* Reads the next field; *ret_more is false, without an error, at the end of the message, and true after an error, so
 * that `while (protobuf_next(...) && more)` has read all fields if `more` is false then. The error is "FILE: offset N:
 * <reason>". */
bool protobuf_next(struct protobuf *message, struct protobuf_field *ret_field, bool *ret_more, struct error *error);

/* Finds the last field of bytes with that number; its number is 0 if there is none. */
bool protobuf_find(struct protobuf message, uint32_t number, struct protobuf_field *ret_field, struct error *error);

/* Returns the message in a field of bytes. */
struct protobuf protobuf_inner(const struct protobuf *message, const struct protobuf_field *field);

/* Reads a varint of a packed field, at message->at. */
bool protobuf_varint(struct protobuf *message, uint64_t *ret_value, struct error *error);

/* Returns a field of bytes with a NUL at its end, in memory that the caller frees; NULL above `limit` bytes. */
char *protobuf_text(const struct protobuf *message, const struct protobuf_field *field, size_t limit,
                    struct error *error);

/* Sets the error "FILE: offset N: <reason>"; returns false. */
bool protobuf_refuse(const struct protobuf *message, uint64_t offset, const char *reason, struct error *error);

/* Repeated numbers: packed in one field of bytes, one field each, or both in turn. */

struct protobuf_numbers {
    uint64_t count;
    bool in_place;   /* they lie one after the other in the source, little-endian */
    uint64_t offset; /* there */
};

/* Counts the numbers of a field, encoded as a varint or fixed. */
bool protobuf_count_numbers(struct protobuf message, uint32_t number, enum protobuf_wire encoding,
                            struct protobuf_numbers *ret_numbers, struct error *error);

/* Writes the numbers of that field, counted before, into `out`: the low `width` bytes of each, little-endian. */
bool protobuf_read_numbers(struct protobuf message, uint32_t number, enum protobuf_wire encoding, unsigned width,
                           unsigned char *out, struct error *error);
