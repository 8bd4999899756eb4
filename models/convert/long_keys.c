#include "models/convert/long_keys.h"

#include "formats/source_remade.h"

enum { LONG_ARRAY = 64 << 10 /* bytes */ };

struct moved {
    const struct gguf_model *model;
    long_keys_remake *remake;
    void *context;
};

static bool is_long(const struct gguf_kv *kv)
{
    return kv->type == GGUF_ARRAY && kv->stored.source == NULL && !kv->is_borrowed && kv->value.length >= LONG_ARRAY;
}

/* Takes the values of the long arrays, at most `most`; returns their number. */
static size_t take(struct gguf_kvs *kvs, struct buffer *parts, size_t most)
{
    size_t n = 0;
    for (size_t i = 0; i < kvs->n_kvs && n < most; i++) {
        if (!is_long(&kvs->kvs[i]))
            continue;
        parts[n++] = kvs->kvs[i].value;
        kvs->kvs[i].value = (struct buffer){0};
    }
    return n;
}

static bool make_again(void *context, struct buffer *parts, size_t n_parts, struct error *error)
{
    const struct moved *moved = context;
    struct gguf_model *model = moved->remake(moved->model, moved->context, error);
    if (model != NULL)
        take(&model->kvs, parts, n_parts);
    gguf_model_free(model);
    return model != NULL;
}

static void close_source(void *source)
{
    source_close(source);
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

void long_keys_move(struct gguf_model *model, long_keys_remake *remake, void *context)
{
    struct gguf_kvs *kvs = &model->kvs;
    uint64_t offset = 0;
    size_t n = 0;
    struct moved *moved = arena_alloc(model->arena, sizeof *moved);
    struct buffer *parts = arena_array(model->arena, kvs->n_kvs, sizeof *parts);
    struct gguf_kv **entries = arena_array(model->arena, kvs->n_kvs, sizeof *entries);
    for (size_t i = 0; i < kvs->n_kvs; i++)
        if (is_long(&kvs->kvs[i]))
            entries[n++] = &kvs->kvs[i];
    if (n == 0 || model->checkpoint->n_sources == 0 || source_any_remote())
        return;
    for (size_t i = 0; i < n; offset += parts[i].length, i++)
        parts[i] = move(entries[i], offset);
    *moved = (struct moved){model, remake, context};
    struct source *source =
        source_remade_new(model->checkpoint->sources[0], "the vocabulary", parts, n, make_again, moved);
    arena_on_free(model->arena, close_source, source);
    for (size_t i = 0; i < n; i++)
        entries[i]->stored.source = source;
}
