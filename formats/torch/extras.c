#include "base/buffer.h"
#include "formats/torch/tensors.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 32, MAX_VISITS = 1 << 16 };

struct writer {
    struct buffer json;
    struct arena *scratch;
    unsigned visits;
    bool cut;
};

/* Each function below returns whether it wrote something that is no tensor; where not, what it wrote is taken back by its caller.
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
    const unsigned char *bytes = torch_bytes(writer->scratch, pickle_at(arguments, 1), &length);
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
    buffer_append_json_string(&writer->json, (const char *)text.bytes, text.length);
    buffer_free(&text);
}

static size_t text_length(const struct pickle_node *node)
{
    if (node->kind == PICKLE_GLOBAL)
        return strlen(node->global.module) + strlen(node->global.name);
    return node->kind == PICKLE_TEXT ? node->text.length : 0;
}

/* The members of an object, behind those that are there; what holds nothing but tensors is left out. */
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

static bool write_object(struct writer *writer, const struct pickle_node *node, unsigned depth)
{
    const struct pickle_object *object = node->object;
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
        return pickle_at(object->arguments, 0) != NULL && write_node(writer, pickle_at(object->arguments, 0), depth + 1);
    case GLOBAL_NUMPY_SCALAR:
        return write_scalar(writer, object->arguments);
    case GLOBAL_CLASS:
    case GLOBAL_FOREIGN: {
        if (object->state != NULL || object->pairs.n > 0)
            return write_attributes(writer, object, depth);
        return pickle_is(object->arguments, PICKLE_TUPLE) && object->arguments->items.n > 0 &&
               write_array(writer, &object->arguments->items, depth);
    }
    default:
        return false;
    }
}

static bool write_dict(struct writer *writer, const struct pickle_node *node, unsigned depth)
{
    bool first = true;
    buffer_append_text(&writer->json, "{");
    bool any = write_members(writer, &node->items, depth, &first);
    buffer_append_text(&writer->json, "}");
    return any || node->items.n == 0;
}

static bool write_global(struct writer *writer, const struct pickle_node *node)
{
    struct buffer text = {0};
    buffer_append_text(&text, node->global.module);
    buffer_append_text(&text, ".");
    buffer_append_text(&text, node->global.name);
    buffer_append_json_string(&writer->json, (const char *)text.bytes, text.length);
    buffer_free(&text);
    return true;
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
        buffer_append_json_string(json, node->text.bytes, node->text.length);
        return true;
    case PICKLE_GLOBAL:
        return write_global(writer, node);
    default:
        return false;
    }
}

static bool write_node(struct writer *writer, const struct pickle_node *node, unsigned depth)
{
    if (torch_is_tensor(node))
        return false;
    if (depth > MAX_DEPTH || ++writer->visits > MAX_VISITS || writer->json.length + text_length(node) > TORCH_MAX_EXTRAS) {
        writer->cut = true;
        return false;
    }
    switch (node->kind) {
    case PICKLE_DICT:
        return write_dict(writer, node, depth);
    case PICKLE_LIST:
    case PICKLE_TUPLE:
    case PICKLE_SET:
        return write_array(writer, &node->items, depth);
    case PICKLE_OBJECT:
        return write_object(writer, node, depth);
    default:
        return write_leaf(writer, node);
    }
}

const char *torch_extras(struct arena *arena, const struct pickle_node *root, bool *ret_cut)
{
    struct writer writer = {.scratch = arena_new()};
    bool any = write_node(&writer, root, 0) && writer.json.length > 2; /* more than {} */
    const char *json = any ? arena_strndup(arena, (const char *)writer.json.bytes, writer.json.length) : NULL;
    *ret_cut = writer.cut;
    arena_free(writer.scratch);
    buffer_free(&writer.json);
    return json;
}
