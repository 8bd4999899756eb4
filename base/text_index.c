#include "base/text_index.h"

#include "base/arena.h"

#include <search.h>
#include <string.h>

struct numbered {
    const char *text;
    size_t length, number;
};

/* Shorter texts come first: any order will do, and this one seldom looks at the texts. */
static int compare(const void *a, const void *b)
{
    const struct numbered *x = a, *y = b;
    if (x->length != y->length)
        return x->length < y->length ? -1 : 1;
    return memcmp(x->text, y->text, x->length);
}

static void keep(void *entry)
{
    (void)entry; /* it is the arena's */
}

void text_index_free(struct text_index *index)
{
    tdestroy(index->root, keep);
    arena_free(index->arena);
    *index = (struct text_index){0};
}

static struct numbered *find(const struct text_index *index, const char *text, size_t length)
{
    struct numbered wanted = {text, length, 0};
    struct numbered *const *found = tfind(&wanted, (void *const *)&index->root, compare);
    return found != NULL ? *found : NULL;
}

static void insert(struct text_index *index, const char *text, size_t length, size_t number)
{
    if (index->arena == NULL)
        index->arena = arena_new();
    struct numbered *entry = arena_alloc(index->arena, sizeof *entry);
    *entry = (struct numbered){text, length, number};
    if (tsearch(entry, &index->root, compare) == NULL)
        memory_exhausted(sizeof *entry);
}

bool text_index_add(struct text_index *index, const char *text, size_t length, size_t number)
{
    if (find(index, text, length) != NULL)
        return false;
    insert(index, text, length, number);
    return true;
}

void text_index_set(struct text_index *index, const char *text, size_t length, size_t number)
{
    struct numbered *entry = find(index, text, length);
    if (entry != NULL)
        entry->number = number;
    else
        insert(index, text, length, number);
}

bool text_index_find(const struct text_index *index, const char *text, size_t length, size_t *ret_number)
{
    const struct numbered *entry = find(index, text, length);
    if (entry != NULL)
        *ret_number = entry->number;
    return entry != NULL;
}
