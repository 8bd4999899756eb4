#include "formats/safetensors/safetensors.h"

#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

/* Numbers of nodes; before the first one is a node that stands for the head of the list. */
enum { HEAD = 0 };
#define NONE UINT32_MAX

struct table {
    uint64_t *hashes;   /* by node */
    uint32_t *next;     /* by node */
    uint32_t *before;   /* by bucket: the node before its first one; NONE: empty */
    uint32_t n_buckets; /* one of the sizes below */
};

/* MurmurHash64A. */
static uint64_t hash_bytes(const char *bytes, size_t length)
{
    static const uint64_t multiplier = 0xc6a4a7935bd1e995, seed = 0xc70f6907;
    enum { WORD = 8, SHIFT = 47 };
    uint64_t hash = seed ^ (length * multiplier);
    for (; length > 0; bytes += WORD, length -= WORD) {
        uint64_t word = 0;
        size_t n = length < WORD ? length : WORD;
        for (size_t i = 0; i < n; i++)
            word |= (uint64_t)(unsigned char)bytes[i] << 8 * i;
        if (n == WORD) {
            word *= multiplier;
            word = (word ^ word >> SHIFT) * multiplier;
        }
        hash = (hash ^ word) * multiplier;
        if (n < WORD)
            break;
    }
    hash = (hash ^ hash >> SHIFT) * multiplier;
    return hash ^ hash >> SHIFT;
}

static uint32_t bucket_of(const struct table *table, uint32_t node)
{
    return (uint32_t)(table->hashes[node] % table->n_buckets);
}

/* The node becomes the first of its bucket; if that was empty, the first of the list. */
static void insert(struct table *table, uint32_t node)
{
    uint32_t bucket = bucket_of(table, node), before = table->before[bucket];
    if (before == NONE) {
        before = HEAD;
        table->before[bucket] = HEAD;
        if (table->next[HEAD] != NONE)
            table->before[bucket_of(table, table->next[HEAD])] = node;
    }
    table->next[node] = table->next[before];
    table->next[before] = node;
}

/* Inserts all nodes anew, in the order of the list. */
static void grow(struct table *table, uint32_t n_buckets)
{
    uint32_t node = table->next[HEAD];
    free(table->before);
    table->n_buckets = n_buckets;
    table->before = memory_alloc(n_buckets * sizeof *table->before);
    memset(table->before, 0xff, n_buckets * sizeof *table->before);
    table->next[HEAD] = NONE;
    while (node != NONE) {
        uint32_t next = table->next[node];
        insert(table, node);
        node = next;
    }
}

void hash_order(const struct hash_name *names, size_t n, uint32_t *ret_order)
{
    static const uint32_t sizes[] = {13,     29,     59,      127,     257,     541,      1109,
                                     2357,   5087,   10273,   20753,   42043,   85229,    172933,
                                     351061, 712697, 1447153, 2938679, 5967347, 12117689, 24607243};
    struct table table = {.hashes = memory_alloc((n + 1) * sizeof *table.hashes),
                          .next = memory_alloc((n + 1) * sizeof *table.next)};
    size_t size = 0;
    table.next[HEAD] = NONE;
    grow(&table, 1);
    for (size_t i = 0; i < n; i++) {
        uint32_t node = (uint32_t)i + 1;
        table.hashes[node] = hash_bytes(names[i].name, names[i].length);
        if (i == 0 || i == table.n_buckets)
            grow(&table, sizes[size++]);
        insert(&table, node);
    }
    for (uint32_t node = table.next[HEAD]; node != NONE; node = table.next[node])
        *ret_order++ = node - 1;
    free(table.hashes);
    free(table.next);
    free(table.before);
}
