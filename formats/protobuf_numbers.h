/* Repeated numbers in a protocol buffer: packed in one field of bytes, one field each, or both in turn. */
#pragma once

#include "formats/protobuf.h"

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
