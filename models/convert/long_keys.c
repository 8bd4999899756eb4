#include "models/convert/long_keys.h"

#include "sources/source_kinds.h"

enum { LONG_ARRAY = 64 << 10 /* bytes */ };

/* How the arrays that were moved are made again. */
struct moved_keys {
    const struct gguf_model *model;
    long_keys_load *load; /* NULL: they were not kept */
    const struct absent_key *absent;
};

bool is_long_key(const struct gguf_kv *kv)
{
    return kv->type == GGUF_ARRAY && kv->stored.source == NULL && !kv->is_borrowed && kv->value.length >= LONG_ARRAY;
}

bool long_keys_can_move(const struct gguf_model *model)
{
    return model->checkpoint->n_sources > 0 && !source_any_remote();
}

/* Takes the values of the long arrays, at most `most`; returns their number. */
static size_t take(struct gguf_kvs *kvs, struct buffer *parts, size_t most)
{
    size_t n = 0;
    for (size_t i = 0; i < kvs->n_kvs && n < most; i++) {
        if (!is_long_key(&kvs->kvs[i]))
            continue;
        parts[n++] = kvs->kvs[i].value;
        kvs->kvs[i].value = (struct buffer){0};
    }
    return n;
}

static bool make_again(void *context, struct buffer *parts, size_t n_parts, struct error *error)
{
    const struct moved_keys *moved = context;
    if (moved->load != NULL && moved->load(moved->model, moved->absent, n_parts, parts))
        return true;
    struct gguf_model *model = moved->model->make_again(moved->model, error);
    if (model != NULL)
        take(&model->kvs, parts, n_parts);
    gguf_model_free(model);
    return model != NULL;
}

static void close_source(void *source)
{
    source_close(source);
}

/* Makes the source of the model's long arrays, of which `parts` has the values or, without bytes, their lengths. */
static struct source *source_of_keys(const struct moved_keys *moved, struct buffer *parts, size_t n)
{
    struct arena *arena = moved->model->arena;
    struct source *source = source_remade_new(moved->model->checkpoint->sources[0], "the vocabulary", parts, n,
                                              make_again, arena_copy(arena, moved, sizeof *moved));
    arena_on_free(arena, close_source, source);
    return source;
}

/* Lets an entry have its value in a source, as one that was read from a file of version 3. Returns the value. */
static struct buffer move(struct gguf_kv *kv, uint64_t offset)
{
    struct buffer value = kv->value;
    struct gguf_stored stored = {.offset = offset, .length = value.length, .version = 3, .canonical = true};
    gguf_array_outline(kv, &stored.array_type, &stored.array_count);
    kv->value = (struct buffer){0};
    kv->stored = stored;
    return value;
}

void long_keys_move(struct gguf_model *model)
{
    struct gguf_kvs *kvs = &model->kvs;
    uint64_t offset = 0;
    size_t n = 0;
    struct buffer *parts = arena_array(model->arena, kvs->n_kvs, sizeof *parts);
    struct gguf_kv **entries = arena_array(model->arena, kvs->n_kvs, sizeof *entries);
    for (size_t i = 0; i < kvs->n_kvs; i++)
        if (is_long_key(&kvs->kvs[i]))
            entries[n++] = &kvs->kvs[i];
    if (n == 0 || !long_keys_can_move(model))
        return;
    for (size_t i = 0; i < n; offset += parts[i].length, i++)
        parts[i] = move(entries[i], offset);
    struct source *source = source_of_keys(&(struct moved_keys){.model = model}, parts, n);
    for (size_t i = 0; i < n; i++)
        entries[i]->stored.source = source;
}

void long_keys_are_absent(struct gguf_model *model, const struct absent_key *absent, size_t n_absent,
                          long_keys_load *load)
{
    uint64_t offset = 0;
    struct buffer *parts = arena_array(model->arena, n_absent, sizeof *parts);
    if (n_absent == 0)
        return;
    for (size_t i = 0; i < n_absent; i++)
        parts[i].length = absent[i].length;
    struct source *source = source_of_keys(&(struct moved_keys){model, load, absent}, parts, n_absent);
    for (size_t i = 0; i < n_absent; offset += absent[i].length, i++)
        model->kvs.kvs[absent[i].place].stored = (struct gguf_stored){
            source, offset, absent[i].length, 3, GGUF_LITTLE_ENDIAN, true, absent[i].element_type, absent[i].n_elements,
        };
}
