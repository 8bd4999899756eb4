#include "fs/lib/match.h"

#include <string.h>

static bool same_shape(const struct tensor *a, const struct tensor *b)
{
    unsigned skip_a = 0, skip_b = 0;
    while (skip_a < a->rank && a->shape[skip_a] == 1)
        skip_a++;
    while (skip_b < b->rank && b->shape[skip_b] == 1)
        skip_b++;
    return a->rank - skip_a == b->rank - skip_b &&
           memcmp(a->shape + skip_a, b->shape + skip_b, (a->rank - skip_a) * sizeof *a->shape) == 0;
}

bool match_is_same(const struct match *match)
{
    return match->pair != NULL && match->pair->difference.same_bytes;
}

static void add_match(struct matches *matches, const struct tensor *a, const struct tensor *b, struct arena *arena)
{
    struct match *match = &matches->matches[matches->n_matches++];
    *match = (struct match){.a = a, .b = b, .same_shape = a != NULL && b != NULL && same_shape(a, b)};
    if (!match->same_shape || a->refusal != NULL || b->refusal != NULL)
        return;
    match->pair = &matches->pairs[matches->n_pairs++];
    match->pair->a = tensor_view(a, arena);
    match->pair->b = tensor_view(b, arena);
}

struct matches match_tensors(const struct tensor_set *a, const struct tensor_set *b, struct arena *arena)
{
    struct matches matches = {
        .matches = arena_array(arena, a->n_tensors + b->n_tensors + 1, sizeof *matches.matches),
        .pairs = arena_array(arena, a->n_tensors + 1, sizeof *matches.pairs),
    };
    for (size_t i = 0; i < a->n_tensors; i++) {
        const struct tensor *tensor = &a->tensors[i];
        add_match(&matches, tensor, tensor_set_find(b, tensor->name, tensor->name_length), arena);
    }
    for (size_t i = 0; i < b->n_tensors; i++) {
        const struct tensor *tensor = &b->tensors[i];
        if (tensor_set_find(a, tensor->name, tensor->name_length) == NULL)
            add_match(&matches, NULL, tensor, arena);
    }
    return matches;
}

static bool same_value(const struct gguf_kv *a, const struct gguf_kv *b)
{
    struct buffer value = {0}, other = {0};
    struct error unused;
    bool same = a->type == b->type && gguf_write_value(&value, a, &unused) && gguf_write_value(&other, b, &unused) &&
                value.length == other.length &&
                (value.length == 0 || memcmp(value.bytes, other.bytes, value.length) == 0);
    buffer_free(&value);
    buffer_free(&other);
    return same;
}

struct key_matches match_keys(const struct gguf_kvs *a, const struct gguf_kvs *b, struct arena *arena)
{
    struct key_matches matches = {.matches = arena_array(arena, a->n_kvs + b->n_kvs + 1, sizeof *matches.matches)};
    for (size_t i = 0; i < a->n_kvs; i++) {
        const struct gguf_kv *other = gguf_kvs_find(b, a->kvs[i].key);
        if (other == NULL || !same_value(&a->kvs[i], other))
            matches.matches[matches.n_matches++] = (struct key_match){&a->kvs[i], other};
    }
    for (size_t i = 0; i < b->n_kvs; i++)
        if (gguf_kvs_find(a, b->kvs[i].key) == NULL)
            matches.matches[matches.n_matches++] = (struct key_match){NULL, &b->kvs[i]};
    return matches;
}
