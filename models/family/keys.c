/* Sets the keys of a family's rows. */
#include "base/text.h"
#include "models/family/model_builder.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

const char *builder_key(const struct model_builder *builder, const char *key)
{
    if (*key == '.')
        return key + 1;
    return arena_printf(builder->model->arena, "%s.%s", family_architecture(builder->family), key);
}

static const struct json *find(const struct model_builder *builder, const char *from)
{
    const struct hparams *hparams = builder->model->hparams;
    return text_starts_with(from, "rope.") ? hparams_rope(hparams, from + 5) : hparams_find(hparams, from);
}

static bool is_absent(const struct json *value)
{
    return value == NULL || json_type(value) == JSON_NULL;
}

bool builder_number(const struct model_builder *builder, const char *from, double otherwise, double *ret_value,
                    struct error *error)
{
    const struct json *value = find(builder, from);
    if (is_absent(value)) {
        *ret_value = otherwise;
        return true;
    }
    if (!hparams_number(value, ret_value))
        return error_set(error, "config.json: %s is not a number", from);
    return true;
}

static bool set_number(struct model_builder *builder, const struct key_row *row, double value, struct error *error)
{
    struct gguf_kvs *kvs = &builder->model->kvs;
    const char *key = builder_key(builder, row->key);
    if (row->times != 0)
        value *= row->times;
    if (row->type == GGUF_F32)
        gguf_set_f32(kvs, key, value);
    else if (row->type == GGUF_BOOL)
        gguf_set_bool(kvs, key, value != 0);
    else if (value >= 0 && value <= UINT32_MAX && value == (double)(uint32_t)value)
        gguf_set_u32(kvs, key, (uint32_t)value);
    else
        return error_set(error, "config.json: %s would be %.17g, which is not a whole 32-bit number", key, value);
    return true;
}

/* Reports whether all elements are spelled as floats, which then stay floats, as in gguf-py. */
static bool has_floats(const struct json *array)
{
    for (const struct json *item = json_first(array); item != NULL; item = json_next(item))
        if (!json_is(item, JSON_NUMBER) || json_is_integer(item))
            return false;
    return true;
}

static void set_floats(struct model_builder *builder, const struct key_row *row, const struct json *array)
{
    struct buffer elements = {0};
    double value;
    for (const struct json *item = json_first(array); json_double(item, &value); item = json_next(item)) {
        float rounded = (float)value;
        uint32_t bits;
        memcpy(&bits, &rounded, sizeof bits);
        buffer_append_le(&elements, bits, 4);
    }
    gguf_set_array(&builder->model->kvs, builder_key(builder, row->key), GGUF_F32, json_count(array), &elements);
}

/* Sets a key with a value for each layer, such as heads. */
static bool set_array(struct model_builder *builder, const struct key_row *row, const struct json *array,
                      struct error *error)
{
    struct buffer elements = {0};
    uint64_t count = 0;
    for (const struct json *item = json_first(array); item != NULL; item = json_next(item), count++) {
        int64_t number;
        if (!json_i64(item, &number) || number < INT32_MIN || number > INT32_MAX) {
            buffer_free(&elements);
            return error_set(error, "config.json: %s has an element that is not a whole 32-bit number", row->from);
        }
        buffer_append_le(&elements, (uint32_t)number, 4);
    }
    gguf_set_array(&builder->model->kvs, builder_key(builder, row->key), GGUF_I32, count, &elements);
    return true;
}

/* Accepts a whole number spelled as a float, with a note. */
static bool take_whole(const struct model_builder *builder, const struct key_row *row, const struct json *value,
                       struct error *error)
{
    int64_t number;
    if (!json_i64(value, &number))
        return error_set(error, "config.json: %s is %s, which is not a whole number", row->from,
                         json_number_text(value));
    checkpoint_note(builder->model->checkpoint, builder->family->tower != NULL ? SUBJECT_PROJECTOR : SUBJECT_GGUF,
                    "config.json spells %s as %s; the converter refuses a float there, wfs reads %" PRId64, row->from,
                    json_number_text(value), number);
    return true;
}

/* Sets a key of the row's type from a value of config.json. */
static bool set_value(struct model_builder *builder, const struct key_row *row, const struct json *value,
                      struct error *error)
{
    double number;
    size_t length;
    const char *text = json_string(value, &length);
    if (row->type == GGUF_STRING && text != NULL) {
        gguf_set_string(&builder->model->kvs, builder_key(builder, row->key), text, length);
        return true;
    }
    if (row->type == GGUF_U32 && json_type(value) == JSON_ARRAY && has_floats(value)) {
        set_floats(builder, row, value);
        return true;
    }
    if (row->type == GGUF_U32 && json_type(value) == JSON_ARRAY)
        return set_array(builder, row, value, error);
    if (row->type == GGUF_U32 && json_type(value) == JSON_NUMBER && !json_is_integer(value) &&
        !take_whole(builder, row, value, error))
        return false;
    if (row->type == GGUF_STRING || !hparams_number(value, &number))
        return error_set(error, "config.json: %s has the wrong type", row->from);
    return set_number(builder, row, number, error);
}

/* Sets a key from two numbers of config.json. */
static bool emit_combined(struct model_builder *builder, const struct key_row *row, struct error *error)
{
    const char *second = row->by != NULL ? row->by : row->plus;
    double a, b;
    if (!builder_number(builder, row->from, row->when == OR_DEFAULT ? row->value : (double)NAN, &a, error) ||
        !builder_number(builder, second, row->otherwise != 0 ? row->otherwise : (double)NAN, &b, error))
        return false;
    if (isnan(a) || isnan(b))
        return error_set(error, "config.json: %s is missing", isnan(a) ? row->from : second);
    return set_number(builder, row, row->by != NULL ? a * b : a + b, error);
}

static bool emit_row(struct model_builder *builder, const struct key_row *row, struct error *error)
{
    double computed;
    if (row->emit != NULL)
        return row->emit(builder, error);
    if (row->compute != NULL)
        return row->compute(builder, &computed, error) && set_number(builder, row, computed, error);
    if (row->by != NULL || row->plus != NULL)
        return emit_combined(builder, row, error);
    if (row->when == ALWAYS && row->type == GGUF_STRING) {
        gguf_set_text(&builder->model->kvs, builder_key(builder, row->key), row->text);
        return true;
    }
    if (row->when == ALWAYS)
        return set_number(builder, row, row->value, error);

    const struct json *value = find(builder, row->from);
    if (!is_absent(value) && (row->when != IF_TRUE || hparams_truth(value)))
        return set_value(builder, row, value, error);
    if (row->when == REQUIRED && row->type == GGUF_BOOL && value != NULL) /* null, which Python takes for false */
        return set_number(builder, row, 0, error);
    if (row->when == REQUIRED)
        return error_set(error, "config.json: %s is missing", row->from);
    return row->when != OR_DEFAULT || set_number(builder, row, row->value, error);
}

bool builder_emit(struct model_builder *builder, const struct key_row *rows, struct error *error)
{
    const struct references *references = &builder->model->references;
    for (const struct key_row *row = rows; row->key != NULL || row->emit != NULL; row++) {
        bool is_past = row->until != CHANGE_NONE && follows(references, row->until);
        if (follows(references, row->since) && !is_past && !emit_row(builder, row, error))
            return false;
    }
    return true;
}
