#include "fs/http/protocols.h"

#include "base/lock.h"
#include "remote/store.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void answer_registry(const struct served *served, const struct http_request *request, const struct route *route,
                            struct answer *answer)
{
    const struct repository *exact = repository_find_any_case(served->repositories, route->repository);
    bool is_image = (exact == NULL || !exact->gguf) && image_model(served->repositories, route->repository) != NULL;
    if (is_image || (exact != NULL && route->kind == ROUTE_REFERRERS))
        image_answer(served, request, route, answer);
    else
        registry_answer(served, request, route, answer);
}

static void answer_manifest(const struct served *served, const struct http_request *request, const struct route *route,
                            struct answer *answer)
{
    if (registry_is_llama(request))
        hub_answer(served, request, route, answer);
    else
        answer_registry(served, request, route, answer);
}

static protocol_answer *const answers[] = {
    [ROUTE_PAGE] = page_answer,          [ROUTE_OWNER] = page_answer,
    [ROUTE_PATH] = page_answer,          [ROUTE_VIEW] = viewer_answer,
    [ROUTE_MODELS] = hub_answer,         [ROUTE_MODEL] = hub_answer,
    [ROUTE_REFS] = hub_answer,           [ROUTE_TREE] = hub_answer,
    [ROUTE_FILE] = hub_answer_file,      [ROUTE_REGISTRY] = answer_registry,
    [ROUTE_MANIFEST] = answer_manifest,  [ROUTE_BLOB] = answer_registry,
    [ROUTE_TAGS] = answer_registry,      [ROUTE_S3] = s3_answer,
    [ROUTE_REFERRERS] = answer_registry, [ROUTE_DAV] = dav_answer,
};

void protocols_answer(const struct served *served, const struct http_request *request, const struct route *route,
                      struct answer *answer)
{
    answers[route->kind](served, request, route, answer);
}

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
