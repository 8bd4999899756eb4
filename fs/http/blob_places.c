#include "fs/http/protocols.h"

#include "base/lock.h"
#include "remote/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TAG = 128, NAME_BYTES = SHA256_HEX + 16 };

struct place {
    struct place *next;
    char key[SHA256_HEX + 1], tag[MOST_TAG + 1];
};

struct blob_places {
    struct lock lock;
    struct place *first;
};

struct blob_places *blob_places_new(void)
{
    struct blob_places *places = memory_alloc(sizeof *places);
    *places = (struct blob_places){0};
    lock_init(&places->lock);
    return places;
}

void blob_places_free(struct blob_places *places)
{
    for (struct place *place = places->first, *next; place != NULL; place = next) {
        next = place->next;
        free(place);
    }
    lock_destroy(&places->lock);
    free(places);
}

static void write_key(const char *model, const char *digest, char key[SHA256_HEX + 1])
{
    struct arena *arena = arena_new();
    const char *text = arena_printf(arena, "%s\n%s", model, digest);
    sha256_hex(text, strlen(text), key);
    arena_free(arena);
}

static const char *kept_name(const char *key, char name[NAME_BYTES])
{
    snprintf(name, NAME_BYTES, "blob-%s", key);
    return name;
}

/* The caller has the lock. */
static struct place *find(const struct blob_places *places, const char *key)
{
    struct place *place = places->first;
    while (place != NULL && strcmp(place->key, key) != 0)
        place = place->next;
    return place;
}

void blob_place_add(struct blob_places *places, const char *model, const char *digest, const char *tag)
{
    char key[SHA256_HEX + 1], name[NAME_BYTES];
    struct place *added = memory_alloc(sizeof *added);
    write_key(model, digest, key);
    *added = (struct place){0};
    memcpy(added->key, key, sizeof key);
    snprintf(added->tag, sizeof added->tag, "%s", tag);
    lock_take(&places->lock);
    bool is_new = find(places, key) == NULL;
    if (is_new) {
        added->next = places->first;
        places->first = added;
    }
    lock_drop(&places->lock);
    if (is_new)
        store_save(kept_name(key, name), tag, strlen(tag));
    else
        free(added);
}

const char *blob_place_find(struct blob_places *places, const char *model, const char *digest, struct arena *arena)
{
    char key[SHA256_HEX + 1], name[NAME_BYTES];
    write_key(model, digest, key);
    lock_take(&places->lock);
    const struct place *place = find(places, key);
    lock_drop(&places->lock); /* places are never changed or removed */
    if (place != NULL)
        return arena_strdup(arena, place->tag);
    size_t length;
    const char *kept = store_load(kept_name(key, name), MOST_TAG, arena, &length);
    return kept != NULL ? arena_strndup(arena, kept, length) : NULL;
}
