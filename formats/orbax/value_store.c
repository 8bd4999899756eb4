#include "formats/orbax/zarr.h"

#include <stdlib.h>
#include <string.h>

bool value_store_add(struct value_store *store, struct checkpoint *checkpoint, const char *key, size_t length,
                     const struct stored_value *value)
{
    struct arena *arena = checkpoint->arena;
    if (!text_index_add(&store->keys, key, length, store->n_values))
        return false;
    store->names = arena_grow(arena, store->names, store->n_values, sizeof *store->names);
    store->values = arena_grow(arena, store->values, store->n_values, sizeof *store->values);
    store->names[store->n_values] = key;
    store->values[store->n_values++] = *value;
    return true;
}

const struct stored_value *value_store_find(const struct value_store *store, const char *key)
{
    size_t number;
    return text_index_find(&store->keys, key, strlen(key), &number) ? &store->values[number] : NULL;
}

struct source *value_store_open(struct value_store *store, struct checkpoint *checkpoint,
                                const struct location *location, const char *path, struct error *error)
{
    enum { MAX_FILES = 65536 };
    if (store->n_sources == MAX_FILES) {
        error_set(error, "%s: more than %d files", path, MAX_FILES);
        return NULL;
    }
    struct source *source = location_source(location, path, error);
    if (source == NULL)
        return NULL;
    checkpoint_add_source(checkpoint, source);
    store->n_sources++;
    return source;
}

void value_store_free(struct value_store *store)
{
    text_index_free(&store->keys);
}
