#include "base/buffer.h"
#include "base/text.h"
#include "formats/torch/tensors.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WRITING = 32 }; /* a mark of nodes: on the way to the one that is written */

enum { MAX_DEPTH = 32, MAX_VISITS = 1 << 16, SHOWN_BYTES = 64, MAX_DIGITS_BYTES = 64 };

struct writer {
    struct buffer json;
    struct arena *arena; /* that of torch_bytes() */
    unsigned visits;
    bool cut;
};

/* Each function below returns whether it wrote something that is not a tensor; where not, what it wrote is taken back
 * by its caller.
 */
static bool write_node(struct writer *writer, const struct pickle_node *node, unsigned depth);

static bool write_number(struct writer *writer, double value)
{
    char text[40];
    if (isnan(value) || isinf(value)) {
        buffer_append_text(&writer->json, isnan(value) ? "\"nan\"" : value > 0 ? "\"inf\"" : "\"-inf\"");
        return true;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    buffer_append_text(&writer->json, text);
    if (strpbrk(text, ".e") == NULL)
        buffer_append_text(&writer->json, ".0");
    return true;
}

/* A numpy scalar (dtype, bytes): a number where its dtype has one. */
static bool write_scalar(struct writer *writer, const struct pickle_node *arguments)
{
    bool swapped = false;
    size_t length = 0;
    const struct dtype *dtype = torch_numpy_dtype(pickle_at(arguments, 0), &swapped);
    const unsigned char *bytes = torch_bytes(writer->arena, pickle_at(arguments, 1), &length);
    if (dtype == NULL || bytes == NULL || swapped || length != dtype->block_bytes || length > 8)
        return false;
    uint64_t raw = 0;
    memcpy(&raw, bytes, length);
    if (strcmp(dtype->name, "F64") == 0) {
        double value;
        memcpy(&value, bytes, sizeof value);
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
        buffer_append_text(&writer->json, raw ? "true" : "false");
    else if (dtype->name[0] == 'U')
        buffer_printf(&writer->json, "%" PRIu64, raw);
    else
        buffer_printf(&writer->json, "%" PRId64, (int64_t)(raw << (64 - 8 * length)) >> (64 - 8 * length));
    return true;
}

static bool write_bytes(struct writer *writer, const unsigned char *bytes, size_t length)
{
    buffer_append_text(&writer->json, "{\"bytes\":\"");
    for (size_t i = 0; i < length && i < SHOWN_BYTES; i++)
        buffer_printf(&writer->json, "%02x", bytes[i]);
    buffer_printf(&writer->json, "\",\"length\":%zu}", length);
    return true;
}

/* The digits of little-endian two's complement, divided by ten again and again. */
static void write_digits(struct writer *writer, const unsigned char *bytes, size_t length)
{
    unsigned char number[MAX_DIGITS_BYTES];
    char digits[3 * MAX_DIGITS_BYTES + 1], *at = digits + sizeof digits;
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
    buffer_printf(&writer->json, "\"%s%.*s\"", negative ? "-" : "", (int)(digits + sizeof digits - at), at);
}

static bool write_big_integer(struct writer *writer, const struct pickle_node *node)
{
    size_t length = node->text.length;
    if (!node->old && length <= MAX_DIGITS_BYTES)
        write_digits(writer, (const unsigned char *)node->text.bytes, length);
    else if (node->old && length <= 3 * MAX_DIGITS_BYTES)
        buffer_append_json_text(&writer->json, node->text.bytes, length, JSON_UTF8);
    else
        buffer_printf(&writer->json, "\"an integer of %zu %s\"", length, node->old ? "digits" : "bytes");
    return true;
}

/* The state of a datetime, date or time as Lib/datetime.py packs it. False for one with a zone, and for anything else.
 */
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
    buffer_append_text(&writer->json, "\"");
    if (has_date)
        buffer_printf(&writer->json, "%04d-%02d-%02d", b[0] << 8 | b[1], b[2] & 0x7f, b[3]);
    if (has_time)
        buffer_printf(&writer->json, "%s%02d:%02d:%02d", has_date ? "T" : "", t[0] & 0x7f, t[1], t[2]);
    if (has_time && (t[3] | t[4] | t[5]) != 0)
        buffer_printf(&writer->json, ".%06d", t[3] << 16 | t[4] << 8 | t[5]);
    buffer_append_text(&writer->json, "\"");
    return true;
}

static void write_key(struct writer *writer, const struct pickle_node *key)
{
    struct buffer text = {0};
    if (key->kind == PICKLE_TEXT || key->kind == PICKLE_BYTES)
        buffer_append(&text, key->text.bytes, key->text.length);
    else if (key->kind == PICKLE_INTEGER)
        buffer_printf(&text, "%" PRId64, key->integer);
    else
        buffer_append_text(&text, key->kind == PICKLE_TRUE    ? "True"
                                  : key->kind == PICKLE_FALSE ? "False"
                                  : key->kind == PICKLE_NONE  ? "None"
                                                              : "?");
    buffer_append_json_text(&writer->json, (const char *)text.bytes, text.length, JSON_UTF8);
    buffer_free(&text);
}

static size_t text_length(const struct pickle_node *node)
{
    if (node->kind == PICKLE_GLOBAL)
        return strlen(node->global.module) + strlen(node->global.name);
    return node->kind == PICKLE_TEXT ? node->text.length : 0;
}

/* The members of an object, after those that are there; what holds nothing but tensors is left out. */
static bool write_members(struct writer *writer, const struct pickle_items *pairs, unsigned depth, bool *first)
{
    bool any = false;
    for (uint32_t i = 0; i + 1 < pairs->n && !writer->cut; i += 2) {
        size_t before = writer->json.length;
        writer->cut |= before + text_length(pairs->nodes[i]) > TORCH_MAX_EXTRAS;
        if (writer->cut)
            break;
        if (!*first)
            buffer_append_text(&writer->json, ",");
        write_key(writer, pairs->nodes[i]);
        buffer_append_text(&writer->json, ":");
        if (write_node(writer, pairs->nodes[i + 1], depth + 1)) {
            any = true;
            *first = false;
        } else {
            writer->json.length = before;
        }
    }
    return any;
}

/* Tensors keep their places in lists, as null. */
static bool write_array(struct writer *writer, const struct pickle_items *items, unsigned depth)
{
    bool any = items->n == 0;
    buffer_append_text(&writer->json, "[");
    for (uint32_t i = 0; i < items->n && !writer->cut; i++) {
        if (i > 0)
            buffer_append_text(&writer->json, ",");
        size_t before = writer->json.length;
        if (write_node(writer, items->nodes[i], depth + 1)) {
            any = true;
        } else {
            writer->json.length = before;
            buffer_append_text(&writer->json, "null");
        }
    }
    buffer_append_text(&writer->json, "]");
    return any;
}

/* The attributes of an object: of its state, a dict or a pair of them, and its own members. */
static bool write_attributes(struct writer *writer, const struct pickle_object *object, unsigned depth)
{
    const struct pickle_node *state = object->state;
    bool first = true, any;
    buffer_append_text(&writer->json, "{");
    any = write_members(writer, &object->pairs, depth, &first);
    if (pickle_is(state, PICKLE_DICT))
        any |= write_members(writer, &state->items, depth, &first);
    for (uint32_t i = 0; i < pickle_count(state) && i < 2; i++)
        if (pickle_is(pickle_at(state, i), PICKLE_DICT))
            any |= write_members(writer, &pickle_at(state, i)->items, depth, &first);
    buffer_append_text(&writer->json, "}");
    return any;
}

/* "MODULE.NAME" */
static void write_global(struct writer *writer, const struct pickle_node *node)
{
    struct buffer text = {0};
    buffer_append_text(&text, node->global.module);
    buffer_append_text(&text, ".");
    buffer_append_text(&text, node->global.name);
    buffer_append_json_text(&writer->json, (const char *)text.bytes, text.length, JSON_UTF8);
    buffer_free(&text);
}

/* What is known of an object by its class or function alone. */
static void write_named(struct writer *writer, const struct pickle_object *object, unsigned depth)
{
    static const struct pickle_items none = {0};
    const struct pickle_node *arguments = object->arguments;
    buffer_append_text(&writer->json, "{");
    write_global(writer, object->class);
    buffer_append_text(&writer->json, ":");
    write_array(writer, pickle_is(arguments, PICKLE_TUPLE) ? &arguments->items : &none, depth);
    size_t before = writer->json.length;
    buffer_append_text(&writer->json, ",\"state\":");
    if (object->state == NULL || !write_node(writer, object->state, depth + 1))
        writer->json.length = before;
    buffer_append_text(&writer->json, "}");
}

static bool write_array_of_objects(struct writer *writer, const struct pickle_node *node, unsigned depth)
{
    const struct pickle_node *dtype, *shape;
    torch_array_of_objects(node, &shape, &dtype);
    buffer_append_text(&writer->json, "{\"numpy.ndarray\":[");
    write_node(writer, dtype, depth + 1);
    buffer_append_text(&writer->json, ",");
    size_t before = writer->json.length;
    if (shape == NULL || !write_node(writer, shape, depth + 1)) {
        writer->json.length = before;
        buffer_append_text(&writer->json, "null");
    }
    buffer_append_text(&writer->json, "]}");
    return true;
}

/* What the object says of itself: its members, or what it was made of. */
static bool write_contents(struct writer *writer, const struct pickle_node *node, unsigned depth)
{
    const struct pickle_object *object = node->object;
    size_t length;
    switch (node->meaning) {
    case GLOBAL_DICT: {
        bool first = true;
        buffer_append_text(&writer->json, "{");
        bool any = write_members(writer, &object->pairs, depth, &first);
        buffer_append_text(&writer->json, "}");
        return any || object->pairs.n == 0;
    }
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

static bool write_object(struct writer *writer, const struct pickle_node *node, unsigned depth)
{
    size_t before = writer->json.length;
    if (torch_array_of_objects(node, NULL, NULL))
        return write_array_of_objects(writer, node, depth);
    if (write_contents(writer, node, depth))
        return true;
    bool only_tensors = (node->mark & TORCH_HOLDS_TENSORS) && !node->object->called;
    if (writer->cut || only_tensors)
        return false;
    writer->json.length = before;
    write_named(writer, node->object, depth);
    return true;
}

/* A storage that no tensor shows, or a class of the legacy container. */
static bool write_persistent(struct writer *writer, const struct pickle_node *node, unsigned depth)
{
    const struct pickle_node *id = node->persistent.id, *class = pickle_at(id, 1);
    if (!pickle_is(class, PICKLE_GLOBAL))
        return false;
    if (class->meaning != GLOBAL_STORAGE) {
        write_global(writer, class);
        return true;
    }
    struct pickle_node *parts[] = {(struct pickle_node *)pickle_at(id, 2), (struct pickle_node *)pickle_at(id, 3),
                                   (struct pickle_node *)pickle_at(id, 4)};
    const struct pickle_items items = {.nodes = parts, .n = parts[2] != NULL ? 3 : 0};
    buffer_append_text(&writer->json, "{");
    write_global(writer, class);
    buffer_append_text(&writer->json, ":");
    write_array(writer, &items, depth);
    buffer_append_text(&writer->json, "}");
    return true;
}

static bool write_dict(struct writer *writer, const struct pickle_node *node, unsigned depth)
{
    bool first = true;
    buffer_append_text(&writer->json, "{");
    bool any = write_members(writer, &node->items, depth, &first);
    buffer_append_text(&writer->json, "}");
    return any || node->items.n == 0;
}

static bool write_leaf(struct writer *writer, const struct pickle_node *node)
{
    struct buffer *json = &writer->json;
    switch (node->kind) {
    case PICKLE_NONE:
        buffer_append_text(json, "null");
        return true;
    case PICKLE_TRUE:
    case PICKLE_FALSE:
        buffer_append_text(json, node->kind == PICKLE_TRUE ? "true" : "false");
        return true;
    case PICKLE_INTEGER:
        buffer_printf(json, "%" PRId64, node->integer);
        return true;
    case PICKLE_FLOAT:
        return write_number(writer, node->number);
    case PICKLE_TEXT:
        buffer_append_json_text(json, node->text.bytes, node->text.length, JSON_UTF8);
        return true;
    case PICKLE_BIG_INTEGER:
        return write_big_integer(writer, node);
    case PICKLE_BYTES:
        return write_bytes(writer, (const unsigned char *)node->text.bytes, node->text.length);
    case PICKLE_GLOBAL:
        write_global(writer, node);
        return true;
    default:
        return false;
    }
}

static bool write_container(struct writer *writer, const struct pickle_node *node, unsigned depth)
{
    switch (node->kind) {
    case PICKLE_DICT:
        return write_dict(writer, node, depth);
    case PICKLE_OBJECT:
        return write_object(writer, node, depth);
    case PICKLE_PERSISTENT:
        return write_persistent(writer, node, depth);
    default:
        return write_array(writer, &node->items, depth);
    }
}

static bool write_node(struct writer *writer, const struct pickle_node *node, unsigned depth)
{
    if (torch_is_tensor(node) || (node->mark & WRITING))
        return false;
    if (depth > MAX_DEPTH || ++writer->visits > MAX_VISITS ||
        writer->json.length + text_length(node) > TORCH_MAX_EXTRAS) {
        writer->cut = true;
        return false;
    }
    bool container = node->kind == PICKLE_DICT || node->kind == PICKLE_LIST || node->kind == PICKLE_TUPLE ||
                     node->kind == PICKLE_SET || node->kind == PICKLE_OBJECT || node->kind == PICKLE_PERSISTENT;
    if (!container)
        return write_leaf(writer, node);
    struct pickle_node *marked = (struct pickle_node *)node;
    marked->mark |= WRITING;
    bool any = write_container(writer, node, depth);
    marked->mark &= (uint8_t)~WRITING;
    return any;
}

const char *torch_extras(struct arena *arena, const struct pickle_node *root, bool *ret_cut)
{
    struct writer writer = {.arena = arena};
    bool any = write_node(&writer, root, 0) && writer.json.length > 2; /* more than {} */
    const char *json = any ? arena_strndup(arena, (const char *)writer.json.bytes, writer.json.length) : NULL;
    *ret_cut = writer.cut;
    buffer_free(&writer.json);
    return json;
}
