#include "base/text_index.h"

#include "base/arena.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

struct numbered {
    const char *text;
    size_t length, number;
    uint64_t hash;
};

enum { LEAST_SLOTS = 16, EMPTY = 0 };

static uint64_t seed[2];

/* A kernel without random numbers leaves the time and the place of the stack, which are hard to guess from outside. */
static void choose_seed(void)
{
    struct timespec now;
    if (getentropy(seed, sizeof seed) == 0)
        return;
    clock_gettime(CLOCK_REALTIME, &now);
    seed[0] = (uint64_t)now.tv_nsec << 32 ^ (uint64_t)now.tv_sec;
    seed[1] = (uint64_t)(uintptr_t)&now;
}

static uint64_t rotate(uint64_t x, int bits)
{
    return x << bits | x >> (64 - bits);
}

static void mix(uint64_t v[4])
{
    v[0] += v[1], v[2] += v[3];
    v[1] = rotate(v[1], 13) ^ v[0], v[3] = rotate(v[3], 16) ^ v[2];
    v[0] = rotate(v[0], 32);
    v[2] += v[1], v[0] += v[3];
    v[1] = rotate(v[1], 17) ^ v[2], v[3] = rotate(v[3], 21) ^ v[0];
    v[2] = rotate(v[2], 32);
}

/* Hashes with SipHash-1-3 (Aumasson and Bernstein, 2012) and a random seed for each process. */
uint64_t text_hash(const char *text, size_t length)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, choose_seed);
    uint64_t v[4] = {seed[0] ^ 0x736f6d6570736575, seed[1] ^ 0x646f72616e646f6d, seed[0] ^ 0x6c7967656e657261,
                     seed[1] ^ 0x7465646279746573};
    uint64_t word, last = (uint64_t)length << 56;
    size_t i = 0;
    for (; i + 8 <= length; i += 8) {
        memcpy(&word, text + i, 8);
        v[3] ^= word;
        mix(v);
        v[0] ^= word;
    }
    for (size_t j = 0; i + j < length; j++)
        last |= (uint64_t)(unsigned char)text[i + j] << (8 * j);
    v[3] ^= last;
    mix(v);
    v[0] ^= last;
    v[2] ^= 0xff;
    for (int round = 0; round < 3; round++)
        mix(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

void text_index_free(struct text_index *index)
{
    free(index->entries);
    free(index->slots);
    *index = (struct text_index){0};
}

struct text_index text_index_copy(const struct text_index *index)
{
    struct text_index copy = *index;
    if (index->n_slots == 0)
        return copy;
    copy.entries = memory_alloc(index->n_slots / 2 * sizeof *copy.entries);
    memcpy(copy.entries, index->entries, index->n_entries * sizeof *copy.entries);
    copy.slots = memory_alloc(index->n_slots * sizeof *copy.slots);
    memcpy(copy.slots, index->slots, index->n_slots * sizeof *copy.slots);
    return copy;
}

static bool is_text(const struct numbered *entry, const char *text, size_t length, uint64_t hash)
{
    return entry->hash == hash && entry->length == length && memcmp(entry->text, text, length) == 0;
}

/* Returns the slot of a text, or the empty slot where it belongs. */
static uint32_t *find_slot(const struct text_index *index, const char *text, size_t length, uint64_t hash)
{
    for (size_t at = hash & (index->n_slots - 1);; at = (at + 1) & (index->n_slots - 1)) {
        uint32_t slot = index->slots[at];
        if (slot == EMPTY || is_text(&index->entries[slot - 1], text, length, hash))
            return &index->slots[at];
    }
}

static void grow(struct text_index *index)
{
    size_t n_slots = index->n_slots == 0 ? LEAST_SLOTS : 2 * index->n_slots;
    index->entries = memory_resize(index->entries, n_slots / 2 * sizeof *index->entries);
    uint32_t *slots = memory_alloc(n_slots * sizeof *slots);
    memset(slots, EMPTY, n_slots * sizeof *slots);
    for (size_t i = 0; i < index->n_entries; i++) {
        size_t at = index->entries[i].hash & (n_slots - 1);
        while (slots[at] != EMPTY)
            at = (at + 1) & (n_slots - 1);
        slots[at] = (uint32_t)i + 1;
    }
    free(index->slots);
    index->slots = slots;
    index->n_slots = n_slots;
}

/* Returns the entry of a text, added if it is missing. */
static struct numbered *entry_of(struct text_index *index, const char *text, size_t length, size_t number)
{
    if (2 * index->n_entries == index->n_slots)
        grow(index);
    uint64_t hash = text_hash(text, length);
    uint32_t *slot = find_slot(index, text, length, hash);
    if (*slot == EMPTY) {
        index->entries[index->n_entries++] = (struct numbered){text, length, number, hash};
        *slot = (uint32_t)index->n_entries;
    }
    return &index->entries[*slot - 1];
}

bool text_index_add(struct text_index *index, const char *text, size_t length, size_t number)
{
    size_t n_before = index->n_entries;
    entry_of(index, text, length, number);
    return index->n_entries > n_before;
}

void text_index_set(struct text_index *index, const char *text, size_t length, size_t number)
{
    entry_of(index, text, length, number)->number = number;
}

bool text_index_find(const struct text_index *index, const char *text, size_t length, size_t *ret_number)
{
    if (index->n_entries == 0)
        return false;
    uint32_t slot = *find_slot(index, text, length, text_hash(text, length));
    if (slot != EMPTY)
        *ret_number = index->entries[slot - 1].number;
    return slot != EMPTY;
}
