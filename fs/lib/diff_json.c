/* What `wfs diff --json` prints of two sources, and wfs_diff() returns. */
#include "fs/lib/diff.h"

#include <string.h>

enum { DIGITS = 6, SHOWN_ELEMENTS = 16 };

/* Writes the dtype and shape of a tensor; null if that source has none of the name. */
static void put_tensor(struct json_writer *writer, const char *key, const struct tensor *tensor)
{
    if (tensor == NULL) {
        json_put_null(writer, key);
        return;
    }
    json_put_key(writer, key, strlen(key));
    json_put_template(writer, "{'dtype': %s, 'shape': [", tensor->dtype->name);
    for (unsigned i = 0; i < tensor->rank; i++)
        json_put_number(writer, NULL, tensor->shape[i]);
    json_put_template(writer, "], 'refused': %s}", tensor->refusal);
}

static void put_match(struct json_writer *writer, const struct match *match)
{
    const struct tensor *named = match->a != NULL ? match->a : match->b;
    json_put_template(writer, "\n{'name': %t", named->name, (size_t)named->name_length);
    put_tensor(writer, "a", match->a);
    put_tensor(writer, "b", match->b);
    if (match->pair != NULL && match->pair->difference.has_values) {
        const struct difference *difference = &match->pair->difference;
        json_put_template(writer, "'elements': %u, 'different': %u", difference->n_elements, difference->n_different);
        json_put_f64(writer, "largest", difference->largest, DIGITS);
        json_put_f64(writer, "rms", difference_rms(difference), DIGITS);
        json_put_f64(writer, "relative", difference_relative(difference), DIGITS);
    }
    json_end(writer);
}

static void put_value(struct json_writer *writer, const char *side, const struct gguf_kv *kv)
{
    if (kv == NULL) {
        json_put_null(writer, side);
        return;
    }
    json_begin_object(writer, side);
    json_put_text(writer, "type", gguf_type_name(kv->type));
    gguf_put_json(writer, "value", kv, SHOWN_ELEMENTS);
    json_end(writer);
}

static void put_key(struct json_writer *writer, const struct key_match *match)
{
    json_put_template(writer, "\n{'key': %s", match->a != NULL ? match->a->key : match->b->key);
    put_value(writer, "a", match->a);
    put_value(writer, "b", match->b);
    json_end(writer);
}

void diff_put(struct json_writer *writer, const struct diff *diff)
{
    json_put_template(writer, "\n'a': {'path': %s, 'format': %s}, \n'b': {'path': %s, 'format': %s}", diff->a->path,
                      diff->a->format, diff->b->path, diff->b->format);
    json_put_template(writer,
                      "'names': %s, \n'counts': {'tensors': %u, 'tensors_differ': %u, 'values_differ': %u,"
                      " 'keys_differ': %u}, \n'tensors': [",
                      diff->names, (uint64_t)diff->tensors.n_matches, (uint64_t)diff->n_tensors,
                      (uint64_t)diff->n_values, (uint64_t)diff->n_keys);
    for (size_t i = 0; i < diff->tensors.n_matches; i++)
        if (!match_is_same(&diff->tensors.matches[i]))
            put_match(writer, &diff->tensors.matches[i]);
    json_put_template(writer, "], \n'keys': [");
    for (size_t i = 0; i < diff->keys.n_matches; i++)
        put_key(writer, &diff->keys.matches[i]);
    json_end(writer);
}
