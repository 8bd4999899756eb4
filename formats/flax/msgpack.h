/* MessagePack, read one value at a time from a run of bytes of a source, without its strings and binary data.
 *
 * Source: the MessagePack specification. Counts and lengths are checked against the bytes that are left, and nothing
 * is allocated. */
#pragma once

#include "formats/window.h"

enum msgpack_kind {
    MSGPACK_NIL,
    MSGPACK_FALSE,
    MSGPACK_TRUE,
    MSGPACK_UNSIGNED,  /* `number` */
    MSGPACK_NEGATIVE,  /* `number` as two's complement */
    MSGPACK_FLOAT,     /* `real` */
    MSGPACK_TEXT,      /* `number` bytes at `offset`; UTF-8, or anything in old files */
    MSGPACK_BINARY,    /* likewise */
    MSGPACK_EXTENSION, /* likewise, of a type */
    MSGPACK_ARRAY,     /* `number` values follow */
    MSGPACK_MAP,       /* `number` keys and values follow in turn */
};

struct msgpack {
    struct window *window;
    const char *name; /* of the file, for messages */
    uint64_t at, end; /* the next value is at `at` of the source; the run ends at `end` */
};

struct msgpack_value {
    enum msgpack_kind kind;
    int8_t type; /* of an extension */
    uint64_t number;
    double real;
    uint64_t offset; /* of the bytes in the source */
};

/* Reads a value; of an array or a map only the beginning. Text, binary data and extensions are skipped. The error is
 * "FILE: offset N: <reason>". */
bool msgpack_next(struct msgpack *reader, struct msgpack_value *ret_value, struct error *error);

/* Sets the error "FILE: offset N: <reason>" for the value that begins at `offset`; returns false. */
bool msgpack_refuse(const struct msgpack *reader, uint64_t offset, const char *reason, struct error *error);
