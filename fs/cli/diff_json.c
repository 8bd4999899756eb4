#include "fs/cli/diff_json.h"

#include "fs/cli/json_page.h"

enum { DIGITS = 6, SHOWN_ELEMENTS = 16 };

static void put_side(struct json_writer *writer, const char *key, const struct checkpoint *checkpoint)
{
    json_break_line(writer);
    json_begin_object(writer, key);
    json_put_text(writer, "path", checkpoint->path);
    json_put_text(writer, "format", checkpoint->format);
    json_end(writer);
}

/* dtype and shape of a tensor; null where the side has none of that name. */
static void put_tensor(struct json_writer *writer, const char *key, const struct tensor *tensor)
{
    if (tensor == NULL) {
        json_put_null(writer, key);
        return;
    }
    json_begin_object(writer, key);
    json_put_text(writer, "dtype", tensor->dtype->name);
    json_begin_array(writer, "shape");
    for (unsigned i = 0; i < tensor->rank; i++)
        json_put_number(writer, NULL, tensor->shape[i]);
    json_end(writer);
    json_put_text(writer, "refused", tensor->refusal);
    json_end(writer);
}

static void put_match(struct json_writer *writer, const struct match *match)
{
    const struct tensor *named = match->a != NULL ? match->a : match->b;
    json_break_line(writer);
    json_begin_object(writer, NULL);
    json_put_text_n(writer, "name", named->name, named->name_length);
    put_tensor(writer, "a", match->a);
    put_tensor(writer, "b", match->b);
    if (match->pair != NULL && match->pair->difference.has_values) {
        const struct difference *difference = &match->pair->difference;
        json_put_number(writer, "elements", difference->n_elements);
        json_put_number(writer, "different", difference->n_different);
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
    json_break_line(writer);
    json_begin_object(writer, NULL);
    json_put_text(writer, "key", match->a != NULL ? match->a->key : match->b->key);
    put_value(writer, "a", match->a);
    put_value(writer, "b", match->b);
    json_end(writer);
}

static void put_counts(struct json_writer *writer, const struct comparison *comparison)
{
    json_break_line(writer);
    json_begin_object(writer, "counts");
    json_put_number(writer, "tensors", comparison->tensors.n_matches);
    json_put_number(writer, "tensors_differ", comparison->n_tensors);
    json_put_number(writer, "values_differ", comparison->n_values);
    json_put_number(writer, "keys_differ", comparison->n_keys);
    json_end(writer);
}

void print_diff_json(const struct comparison *comparison)
{
    struct json_page page;
    struct json_writer *writer = &page.writer;
    json_page_begin(&page);
    put_side(writer, "a", comparison->a);
    put_side(writer, "b", comparison->b);
    json_put_text(writer, "names", comparison->names);
    put_counts(writer, comparison);
    json_break_line(writer);
    json_begin_array(writer, "tensors");
    for (size_t i = 0; i < comparison->tensors.n_matches; i++)
        if (!match_is_same(&comparison->tensors.matches[i]))
            put_match(writer, &comparison->tensors.matches[i]);
    json_end(writer);
    json_break_line(writer);
    json_begin_array(writer, "keys");
    for (size_t i = 0; i < comparison->keys.n_matches; i++)
        put_key(writer, &comparison->keys.matches[i]);
    json_end(writer);
    json_page_print(&page);
}
