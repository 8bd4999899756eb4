/* Keys of a family from its rows. */
#include "base/text.h"
#include "models/families/family.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *draft_key(const struct draft *draft, const char *key)
{
    if (*key == '.')
        return key + 1;
    return arena_printf(draft->model->arena, "%s.%s", family_architecture(draft->family), key);
}

static const struct json *find(const struct draft *draft, const char *from)
{
    const struct hparams *hparams = draft->model->hparams;
    return text_starts_with(from, "rope.") ? hparams_rope(hparams, from + 5) : hparams_find(hparams, from);
}

static bool is_absent(const struct json *value)
{
    return value == NULL || json_type(value) == JSON_NULL;
}

static bool is_true(const struct json *value)
{
    double number;
    return json_type(value) == JSON_TRUE || (json_double(value, &number) && number != 0);
}

bool draft_number(const struct draft *draft, const char *from, double otherwise, double *ret_value, struct error *error)
{
    const struct json *value = find(draft, from);
    if (is_absent(value)) {
        *ret_value = otherwise;
        return true;
    }
    if (!json_double(value, ret_value))
        return error_set(error, "config.json: %s is not a number", from);
    return true;
}

bool draft_sum(const struct draft *draft, const char *first, const char *second, double *ret_value, struct error *error)
{
    double a, b;
    if (!draft_number(draft, first, NAN, &a, error) || !draft_number(draft, second, NAN, &b, error))
        return false;
    *ret_value = a + b;
    return !isnan(*ret_value) || error_set(error, "config.json: %s is missing", isnan(a) ? first : second);
}

static bool set_number(struct draft *draft, const struct key_row *row, double value, struct error *error)
{
    struct gguf_kvs *kvs = &draft->model->kvs;
    const char *key = draft_key(draft, row->key);
    if (row->times != 0)
        value *= row->times;
    if (row->type == GGUF_F32)
        gguf_set_f32(kvs, key, value);
    else if (row->type == GGUF_BOOL)
        gguf_set_bool(kvs, key, value != 0);
    else if (value >= 0 && value <= UINT32_MAX && value == (double)(uint32_t)value)
        gguf_set_u32(kvs, key, (uint32_t)value);
    else
        return error_set(error, "config.json: %s would be %.17g, which is not a whole number of 32 bits", key, value);
    return true;
}

/* Heads that differ from layer to layer. */
static bool set_array(struct draft *draft, const struct key_row *row, const struct json *array, struct error *error)
{
    struct buffer elements = {0};
    uint64_t count = 0;
    for (const struct json *item = json_first(array); item != NULL; item = json_next(item), count++) {
        int64_t number;
        if (!json_i64(item, &number) || number < INT32_MIN || number > INT32_MAX) {
            buffer_free(&elements);
            return error_set(error, "config.json: %s holds what is not a whole number of 32 bits", row->from);
        }
        buffer_append_le(&elements, (uint32_t)number, 4);
    }
    gguf_set_array(&draft->model->kvs, draft_key(draft, row->key), GGUF_I32, count, &elements);
    return true;
}

/* Sets a key from a value of config.json, of the row's type. */
static bool set_value(struct draft *draft, const struct key_row *row, const struct json *value, struct error *error)
{
    double number;
    size_t length;
    const char *text = json_string(value, &length);
    if (row->type == GGUF_STRING && text != NULL) {
        gguf_set_string(&draft->model->kvs, draft_key(draft, row->key), text, length);
        return true;
    }
    if (row->type == GGUF_U32 && json_type(value) == JSON_ARRAY)
        return set_array(draft, row, value, error);
    if (row->type == GGUF_BOOL && json_type(value) == JSON_FALSE)
        return set_number(draft, row, 0, error);
    if (row->type == GGUF_BOOL && json_type(value) == JSON_TRUE)
        return set_number(draft, row, 1, error);
    if (row->type == GGUF_U32 && json_type(value) == JSON_NUMBER && !json_is_integer(value))
        return error_set(error, "config.json: %s is %s, which is not a whole number", row->from,
                         json_number_text(value));
    if (row->type == GGUF_STRING || !json_double(value, &number))
        return error_set(error, "config.json: %s is of the wrong type", row->from);
    return set_number(draft, row, number, error);
}

static bool emit_row(struct draft *draft, const struct key_row *row, struct error *error)
{
    double computed;
    if (row->emit != NULL)
        return row->emit(draft, error);
    if (row->compute != NULL)
        return row->compute(draft, &computed, error) && set_number(draft, row, computed, error);
    if (row->when == ALWAYS && row->type == GGUF_STRING) {
        gguf_set_text(&draft->model->kvs, draft_key(draft, row->key), row->text);
        return true;
    }
    if (row->when == ALWAYS)
        return set_number(draft, row, row->value, error);

    const struct json *value = find(draft, row->from);
    if (!is_absent(value) && (row->when != IF_TRUE || is_true(value)))
        return set_value(draft, row, value, error);
    if (row->when == REQUIRED)
        return error_set(error, "config.json: %s is missing", row->from);
    return row->when != OR_DEFAULT || set_number(draft, row, row->value, error);
}

bool draft_emit(struct draft *draft, const struct key_row *rows, struct error *error)
{
    for (const struct key_row *row = rows; row->key != NULL || row->emit != NULL; row++)
        if (!emit_row(draft, row, error))
            return false;
    return true;
}
