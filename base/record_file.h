/* Records that a process keeps for later ones: a few hundred bytes that take long to find out, such as a size, under a
 * key, in one file.
 *
 * A key is a SHA-256 of all that its record follows from. The file has RECORD_SETS sets of RECORD_WAYS places. A key
 * belongs to one set, and a new record takes a free place there or that of another record. So the file never grows
 * beyond RECORDS_SIZE, and nothing locks it. A record has the beginning of a SHA-256 of itself: one that is damaged, or
 * half written, is none. Numbers are this machine's.
 *
 * A process that parses what strangers wrote may only read the file; its opener (opener.h) writes. The writer hashes
 * each key with a scope that it was given before, and readers do the same. So a parser that was taken over can change
 * no record of another scope. It can drop any, by using up places.
 *
 * Safe from any number of threads and processes. Nothing fails visibly: what is not kept is found out again. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RECORD_KEY = 32, RECORD_BYTES = 468, RECORD_WAYS = 8, RECORD_SETS = 256, RECORDS_SIZE = 1 << 20 /* bytes */ };

/* A record, with zeros after its bytes. */
struct record {
    uint8_t key[RECORD_KEY]; /* in the file hashed with the scope */
    uint8_t check[8];        /* of all other fields */
    uint32_t length;         /* of the bytes; 0: there is no record */
    uint8_t bytes[RECORD_BYTES];
};

struct record_file {
    int descriptor; /* -1: there is none */
    uint8_t scope[RECORD_KEY];
};

/* Gets the record of record->key; false: there is none. */
bool record_read(const struct record_file *file, struct record *record);

/* Returns the place in its set that a new record of the key takes. */
unsigned record_way(const struct record_file *file, const uint8_t key[RECORD_KEY]);

/* Writes a record of at most RECORD_BYTES to a place of its set; others are refused. */
bool record_write(const struct record_file *file, const struct record *record, unsigned way);

/* The records of this process. */

/* Uses a file from now on, which may be written to, if `is_writable`, by this process, else by its opener alone. Call
 * it before there are threads. */
void records_use(const struct record_file *file, bool is_writable);

/* Reports whether this process has a file of records. */
bool records_are_kept(void);

/* Gets the record of record->key; keeps one. */
bool record_find(struct record *record);
void record_keep(const struct record *record);
