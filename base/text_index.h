/* A dictionary from texts to numbers, for texts that a file gives: a balanced tree (tsearch of the C library), so that
 * no choice of texts makes it slow, as it could a hash table. n texts of N bytes together cost O(N log n) time and 64 n
 * bytes; the texts are not copied and must live as long. Zero-initialized it is empty. Finding is safe from any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct arena;

struct text_index {
    void *root;
    struct arena *arena;
};

void text_index_free(struct text_index *index);

/* Gives a text its number; false where it has one already, which stays. */
bool text_index_add(struct text_index *index, const char *text, size_t length, size_t number);

/* The same, but the number takes the place of an earlier one. */
void text_index_set(struct text_index *index, const char *text, size_t length, size_t number);

bool text_index_find(const struct text_index *index, const char *text, size_t length, size_t *ret_number);
