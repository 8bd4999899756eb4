/* A dictionary from texts to numbers, for texts that a file gives: a hash table whose seed is random, so that no choice
 * of texts makes it slow. Adding or finding a text takes time linear in its length; n > 3 texts take at most 80 n
 * bytes, and at most 2^31 texts fit. The texts are not copied and must outlive the index. A zeroed index is empty.
 * text_index_find() is safe from any thread while no text is added. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text_index {
    struct numbered *entries; /* in the order added */
    uint32_t *slots;          /* places in entries, plus 1; at least twice as many */
    size_t n_entries, n_slots;
};

void text_index_free(struct text_index *index);

/* Copies an index. Both use the same texts. */
struct text_index text_index_copy(const struct text_index *index);

/* Adds a text with its number. Returns false, and keeps the old number, if the text is present. */
bool text_index_add(struct text_index *index, const char *text, size_t length, size_t number);

/* Like text_index_add(), but replaces an earlier number. */
void text_index_set(struct text_index *index, const char *text, size_t length, size_t number);

bool text_index_find(const struct text_index *index, const char *text, size_t length, size_t *ret_number);

/* Returns the hash that the index uses: keyed with random bytes that differ in each process. */
uint64_t text_hash(const char *text, size_t length);
