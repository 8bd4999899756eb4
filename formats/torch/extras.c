#include "base/checked.h"
#include "base/text.h"
#include "formats/torch/tensors.h"
#include "text/json_write.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { WRITING = 32 }; /* a mark of nodes: ancestors of the node being written */

enum { MAX_DEPTH = 32, MAX_VISITS = 1 << 16, SHOWN_BYTES = 64, MAX_DIGITS_BYTES = 64 };

struct writer {
    struct json_writer *json;
    struct arena *arena; /* the arena for torch_bytes() */
    unsigned visits;
    bool cut;
};

/* Each function below returns whether it wrote anything but tensors; if not, its caller takes back the output. */
static bool write_node(struct writer *writer, struct pickle_node *node, unsigned depth);

/* Puts a text of at most 99 bytes. */
__attribute__((format(printf, 2, 3))) static void put_printf(struct json_writer *json, const char *format, ...)
{
    char text[100];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    json_put_text(json, NULL, text);
}

static bool write_number(struct writer *writer, double value)
{
    char text[JSON_FLOAT_TEXT];
    if (isnan(value) || isinf(value)) {
        const char *infinity = value > 0 ? "inf" : "-inf";
        json_put_text(writer->json, NULL, isnan(value) ? "nan" : infinity);
        return true;
    }
    json_put_raw(writer->json, NULL, json_f64_text(value, text));
    return true;
}

/* Writes a numpy scalar (dtype, bytes): as a number if its dtype is one. */
static bool write_scalar(struct writer *writer, struct pickle_node *arguments)
{
    bool swapped = false;
    size_t length = 0;
    const struct dtype *dtype = torch_numpy_dtype(pickle_at(arguments, 0), &swapped);
    const unsigned char *bytes = torch_bytes(writer->arena, pickle_at(arguments, 1), &length);
    if (dtype == NULL || bytes == NULL || swapped || length != dtype->block_bytes || length > 8)
        return false;
    uint64_t raw = read_le(bytes, (unsigned)length);
    if (strcmp(dtype->name, "F64") == 0) {
        double value;
        memcpy(&value, &raw, sizeof value);
        return write_number(writer, value);
    }
    if (dtype->kind == DTYPE_FLOAT) {
        float value;
        dtype_kernels(dtype).decode(bytes, &value, 1);
        return write_number(writer, (double)value);
    }
    if (dtype->kind != DTYPE_INTEGER)
        return false;
    if (strcmp(dtype->name, "BOOL") == 0)
        json_put_bool(writer->json, NULL, raw != 0);
    else if (dtype->name[0] == 'U')
        json_put_number(writer->json, NULL, raw);
    else
        json_put_i64(writer->json, NULL, (int64_t)(raw << (64 - 8 * length)) >> (64 - 8 * length));
    return true;
}

static bool write_bytes(struct writer *writer, const unsigned char *bytes, size_t length)
{
    char shown[2 * SHOWN_BYTES + 1] = "";
    for (size_t i = 0; i < length && i < SHOWN_BYTES; i++)
        snprintf(shown + 2 * i, 3, "%02x", bytes[i]);
    json_begin_object(writer->json, NULL);
    json_put_text(writer->json, "bytes", shown);
    json_put_number(writer->json, "length", length);
    json_end(writer->json);
    return true;
}

/* Writes the digits of little-endian two's complement, dividing repeatedly by ten. */
static void write_digits(struct writer *writer, const unsigned char *bytes, size_t length)
{
    unsigned char number[MAX_DIGITS_BYTES];
    char digits[3 * MAX_DIGITS_BYTES + 2], *at = digits + sizeof digits;
    bool negative = bytes[length - 1] & 0x80, more = true;
    unsigned carry = negative;
    for (size_t i = 0; i < length; i++) {
        carry += negative ? (unsigned char)~bytes[i] : bytes[i];
        number[i] = (unsigned char)carry;
        carry >>= 8;
    }
    while (more) {
        unsigned rest = 0;
        more = false;
        for (size_t i = length; i-- > 0;) {
            rest = rest << 8 | number[i];
            number[i] = (unsigned char)(rest / 10);
            more |= number[i] != 0;
            rest %= 10;
        }
        *--at = (char)('0' + rest);
    }
    if (negative)
        *--at = '-';
    json_put_text_n(writer->json, NULL, at, (size_t)(digits + sizeof digits - at));
}

static bool write_big_integer(struct writer *writer, struct pickle_node *node)
{
    size_t length = node->text.length;
    if (!node->old && length <= MAX_DIGITS_BYTES)
        write_digits(writer, (const unsigned char *)node->text.bytes, length);
    else if (node->old && length <= 3 * MAX_DIGITS_BYTES)
        json_put_text_n(writer->json, NULL, node->text.bytes, length);
    else
        put_printf(writer->json, "an integer of %zu %s", length, node->old ? "digits" : "bytes");
    return true;
}

/* Writes the state of a datetime, date or time, packed as in Lib/datetime.py; false for one with a zone, and for
 * anything else. */
static bool write_date(struct writer *writer, const struct pickle_object *object)
{
    const char *name = object->class->global.name;
    size_t length = 0;
    const unsigned char *b = NULL;
    if (pickle_count(object->arguments) == 1)
        b = torch_bytes(writer->arena, pickle_at(object->arguments, 0), &length);
    bool has_date = text_starts_with(name, "date"), has_time = strcmp(name, "date") != 0;
    if (b == NULL || length != 4u * has_date + 6u * has_time || (!has_date && strcmp(name, "time") != 0))
        return false;
    const unsigned char *t = has_date ? b + 4 : b;
    char date[32] = "", time[32] = "", fraction[32] = "";
    if (has_date)
        snprintf(date, sizeof date, "%04d-%02d-%02d", b[0] << 8 | b[1], b[2] & 0x7f, b[3]);
    if (has_time)
        snprintf(time, sizeof time, "%s%02d:%02d:%02d", has_date ? "T" : "", t[0] & 0x7f, t[1], t[2]);
    if (has_time && (t[3] | t[4] | t[5]) != 0)
        snprintf(fraction, sizeof fraction, ".%06d", t[3] << 16 | t[4] << 8 | t[5]);
    put_printf(writer->json, "%s%s%s", date, time, fraction);
    return true;
}

static void write_key(struct writer *writer, struct pickle_node *key)
{
    struct buffer text = {0};
    torch_append_key(&text, key);
    json_put_key(writer->json, (const char *)text.bytes, text.length);
    buffer_free(&text);
}

static size_t text_length(struct pickle_node *node)
{
    if (node->kind == PICKLE_GLOBAL)
        return strlen(node->global.module) + strlen(node->global.name);
    return node->kind == PICKLE_TEXT ? node->text.length : 0;
}

/* Adds members to the object; omits values that hold nothing but tensors. */
static bool write_members(struct writer *writer, const struct pickle_items *pairs, unsigned depth)
{
    bool any = false;
    for (uint32_t i = 0; i + 1 < pairs->n && !writer->cut; i += 2) {
        struct json_mark before = json_mark(writer->json);
        writer->cut |= before.length + text_length(pairs->nodes[i]) > TORCH_MAX_EXTRAS;
        if (writer->cut)
            break;
        write_key(writer, pairs->nodes[i]);
        if (write_node(writer, pairs->nodes[i + 1], depth + 1))
            any = true;
        else
            json_take_back(writer->json, before);
    }
    return any;
}

static bool write_node_or_null(struct writer *writer, struct pickle_node *node, unsigned depth)
{
    struct json_mark before = json_mark(writer->json);
    if (node != NULL && write_node(writer, node, depth))
        return true;
    json_take_back(writer->json, before);
    json_put_null(writer->json, NULL);
    return false;
}

/* Writes a list, in which null takes the place of a tensor. */
static bool write_array(struct writer *writer, const struct pickle_items *items, unsigned depth)
{
    bool any = items->n == 0;
    json_begin_array(writer->json, NULL);
    for (uint32_t i = 0; i < items->n && !writer->cut; i++)
        any |= write_node_or_null(writer, items->nodes[i], depth + 1);
    json_end(writer->json);
    return any;
}

/* Writes the attributes of an object: its state, a dict or a pair of dicts, and its own members. */
static bool write_attributes(struct writer *writer, const struct pickle_object *object, unsigned depth)
{
    struct pickle_node *state = object->state;
    json_begin_object(writer->json, NULL);
    bool any = write_members(writer, &object->pairs, depth);
    if (pickle_is(state, PICKLE_DICT))
        any |= write_members(writer, &state->items, depth);
    for (uint32_t i = 0; i < pickle_count(state) && i < 2; i++)
        if (pickle_is(pickle_at(state, i), PICKLE_DICT))
            any |= write_members(writer, &pickle_at(state, i)->items, depth);
    json_end(writer->json);
    return any;
}

/* Writes "MODULE.NAME", as a key or a value. */
static void write_global(struct writer *writer, const struct pickle_node *node, bool is_key)
{
    struct buffer text = {0};
    buffer_append_text(&text, node->global.module);
    buffer_append_text(&text, ".");
    buffer_append_text(&text, node->global.name);
    if (is_key)
        json_put_key(writer->json, (const char *)text.bytes, text.length);
    else
        json_put_text_n(writer->json, NULL, (const char *)text.bytes, text.length);
    buffer_free(&text);
}

/* Writes an object of which only the class or function is known. */
static void write_named(struct writer *writer, const struct pickle_object *object, unsigned depth)
{
    static const struct pickle_items none = {0};
    struct pickle_node *arguments = object->arguments;
    json_begin_object(writer->json, NULL);
    write_global(writer, object->class, true);
    write_array(writer, pickle_is(arguments, PICKLE_TUPLE) ? &arguments->items : &none, depth);
    struct json_mark before = json_mark(writer->json);
    json_put_key(writer->json, "state", strlen("state"));
    if (object->state == NULL || !write_node(writer, object->state, depth + 1))
        json_take_back(writer->json, before);
    json_end(writer->json);
}

static bool write_array_of_objects(struct writer *writer, struct pickle_node *node, unsigned depth)
{
    struct pickle_node *dtype, *shape;
    torch_array_of_objects(node, &shape, &dtype);
    json_begin_object(writer->json, NULL);
    json_begin_array(writer->json, "numpy.ndarray");
    write_node_or_null(writer, dtype, depth + 1);
    write_node_or_null(writer, shape, depth + 1);
    json_end(writer->json);
    json_end(writer->json);
    return true;
}

static bool write_dict(struct writer *writer, const struct pickle_items *pairs, unsigned depth)
{
    json_begin_object(writer->json, NULL);
    bool any = write_members(writer, pairs, depth);
    json_end(writer->json);
    return any || pairs->n == 0;
}

/* Writes the object's members, or the arguments that made it. */
static bool write_contents(struct writer *writer, struct pickle_node *node, unsigned depth)
{
    const struct pickle_object *object = node->object;
    size_t length;
    switch (node->meaning) {
    case GLOBAL_DICT:
        return write_dict(writer, &object->pairs, depth);
    case GLOBAL_LIST:
        if (object->items.n > 0)
            return write_array(writer, &object->items, depth);
        /* fall through */
    case GLOBAL_SET:
    case GLOBAL_TUPLE:
    case GLOBAL_FIRST:
        return pickle_at(object->arguments, 0) != NULL &&
               write_node(writer, pickle_at(object->arguments, 0), depth + 1);
    case GLOBAL_NUMPY_SCALAR:
        return write_scalar(writer, object->arguments);
    case GLOBAL_ENCODE: {
        const unsigned char *bytes = torch_bytes(writer->arena, node, &length);
        return bytes != NULL && write_bytes(writer, bytes, length);
    }
    case GLOBAL_CLASS:
    case GLOBAL_FOREIGN:
        if (object->called)
            return false;
        if (object->state != NULL || object->pairs.n > 0)
            return write_attributes(writer, object, depth);
        if (strcmp(object->class->global.module, "datetime") == 0)
            return write_date(writer, object);
        return pickle_count(object->arguments) > 0 && pickle_is(object->arguments, PICKLE_TUPLE) &&
               write_array(writer, &object->arguments->items, depth);
    default:
        return false;
    }
}

static bool write_object(struct writer *writer, struct pickle_node *node, unsigned depth)
{
    struct json_mark before = json_mark(writer->json);
    if (torch_array_of_objects(node, NULL, NULL))
        return write_array_of_objects(writer, node, depth);
    if (write_contents(writer, node, depth))
        return true;
    bool only_tensors = (node->mark & TORCH_HOLDS_TENSORS) && !node->object->called;
    if (writer->cut || only_tensors)
        return false;
    json_take_back(writer->json, before);
    write_named(writer, node->object, depth);
    return true;
}

/* Writes a storage that is not part of a tensor, or a class of the legacy container. */
static bool write_persistent(struct writer *writer, struct pickle_node *node, unsigned depth)
{
    struct pickle_node *id = node->persistent.id, *class = pickle_at(id, 1);
    if (!pickle_is(class, PICKLE_GLOBAL))
        return false;
    if (class->meaning != GLOBAL_STORAGE) {
        write_global(writer, class, false);
        return true;
    }
    struct pickle_node *parts[] = {pickle_at(id, 2), pickle_at(id, 3), pickle_at(id, 4)};
    const struct pickle_items items = {.nodes = parts, .n = parts[2] != NULL ? 3 : 0};
    json_begin_object(writer->json, NULL);
    write_global(writer, class, true);
    write_array(writer, &items, depth);
    json_end(writer->json);
    return true;
}

static bool write_leaf(struct writer *writer, struct pickle_node *node)
{
    struct json_writer *json = writer->json;
    switch (node->kind) {
    case PICKLE_NONE:
        json_put_null(json, NULL);
        return true;
    case PICKLE_TRUE:
    case PICKLE_FALSE:
        json_put_bool(json, NULL, node->kind == PICKLE_TRUE);
        return true;
    case PICKLE_INTEGER:
        json_put_i64(json, NULL, node->integer);
        return true;
    case PICKLE_FLOAT:
        return write_number(writer, node->number);
    case PICKLE_TEXT:
        json_put_text_n(json, NULL, node->text.bytes, node->text.length);
        return true;
    case PICKLE_BIG_INTEGER:
        return write_big_integer(writer, node);
    case PICKLE_BYTES:
        return write_bytes(writer, (const unsigned char *)node->text.bytes, node->text.length);
    case PICKLE_GLOBAL:
        write_global(writer, node, false);
        return true;
    default:
        return false;
    }
}

static bool write_container(struct writer *writer, struct pickle_node *node, unsigned depth)
{
    switch (node->kind) {
    case PICKLE_DICT:
        return write_dict(writer, &node->items, depth);
    case PICKLE_OBJECT:
        return write_object(writer, node, depth);
    case PICKLE_PERSISTENT:
        return write_persistent(writer, node, depth);
    default:
        return write_array(writer, &node->items, depth);
    }
}

static bool write_node(struct writer *writer, struct pickle_node *node, unsigned depth)
{
    if (torch_is_tensor(node) || (node->mark & WRITING))
        return false;
    if (depth > MAX_DEPTH || ++writer->visits > MAX_VISITS ||
        writer->json->out->length + text_length(node) > TORCH_MAX_EXTRAS) {
        writer->cut = true;
        return false;
    }
    bool container = node->kind == PICKLE_DICT || node->kind == PICKLE_LIST || node->kind == PICKLE_TUPLE ||
                     node->kind == PICKLE_SET || node->kind == PICKLE_OBJECT || node->kind == PICKLE_PERSISTENT;
    if (!container)
        return write_leaf(writer, node);
    node->mark |= WRITING;
    bool any = write_container(writer, node, depth);
    node->mark &= (uint8_t)~WRITING;
    return any;
}

const char *torch_extras(struct arena *arena, struct pickle_node *root, bool *ret_cut)
{
    struct buffer text = {0};
    struct json_writer json = {.out = &text, .letters = JSON_UTF8, .compact = true};
    struct writer writer = {.json = &json, .arena = arena};
    bool any = write_node(&writer, root, 0) && text.length > 2; /* more than {} */
    const char *extras = any ? arena_strndup(arena, (const char *)text.bytes, text.length) : NULL;
    *ret_cut = writer.cut;
    buffer_free(&text);
    return extras;
}
