/* Flatbuffers, read one number at a time from a source: tables, references and vectors, each checked against the end of
 * the file.
 *
 * Nothing is copied but what a caller asks for. References are unsigned and point forward, so walks of a fixed depth
 * end. Vtables may lie anywhere; the last one is kept, because neighbours share one. Source: the internals page of the
 * FlatBuffers documentation. */
#pragma once

#include "formats/window.h"

enum { FLATBUFFER_FIELDS = 16 };

struct flatbuffer {
    struct window window; /* its source is the file */
    uint64_t vtable;      /* the place of the vtable that was read last; 0: none */
    uint16_t fields[FLATBUFFER_FIELDS];
};

struct flat_table {
    uint64_t at;
    uint16_t fields[FLATBUFFER_FIELDS]; /* the place of each field, from `at` on; 0: it has its default */
};

struct flat_vector {
    uint64_t at; /* of the first element */
    uint32_t count;
};

/* Return false with the error "FILE: offset N: <reason>" if something lies outside of the file. */

/* Reads a number of `size` bytes. */
bool flat_number(struct flatbuffer *buffer, uint64_t at, unsigned size, uint64_t *ret_value, struct error *error);

/* Reads the table that the reference at `at` points to. */
bool flat_table(struct flatbuffer *buffer, uint64_t at, struct flat_table *ret_table, struct error *error);

/* Reads a number in a field; `*ret_value` is 0 if the field is absent. */
bool flat_field(struct flatbuffer *buffer, const struct flat_table *table, unsigned field, unsigned size,
                uint64_t *ret_value, struct error *error);

/* Reads where the vector in a field lies, of elements of `size` bytes; it is empty if the field is absent. */
bool flat_vector(struct flatbuffer *buffer, const struct flat_table *table, unsigned field, unsigned size,
                 struct flat_vector *ret_vector, struct error *error);

/* Like flat_table(), for the element of a vector of tables. */
bool flat_element(struct flatbuffer *buffer, const struct flat_vector *vector, uint32_t index,
                  struct flat_table *ret_table, struct error *error);

/* Sets the error; returns false. */
bool flat_refuse(const struct flatbuffer *buffer, uint64_t at, const char *reason, struct error *error);
