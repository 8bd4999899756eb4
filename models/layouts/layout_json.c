#include "models/layouts/layout_json.h"

#include "formats/documents.h"
#include "quant/convert.h"

#include <inttypes.h>
#include <string.h>

struct writing {
    struct scope *scope; /* NULL: no text is an expression */
    struct buffer *out;
    struct error *error;
};

static void put_text(struct buffer *out, const char *text, size_t length)
{
    buffer_append_json_text(out, text, length, JSON_ASCII);
}

static void put_line(struct buffer *out, unsigned depth)
{
    buffer_printf(out, "\n%*s", (int)depth * 4, "");
}

static bool put_json(const struct writing *writing, const struct json *value, unsigned depth);

static bool put_expression(const struct writing *writing, const char *expression, unsigned depth)
{
    const struct writing plain = {.out = writing->out, .error = writing->error};
    struct value value;
    if (!scope_value(writing->scope, expression, &value, writing->error))
        return false;
    switch (value.kind) {
    case VALUE_NULL:
        buffer_append_text(writing->out, "null");
        return true;
    case VALUE_BOOLEAN:
        buffer_append_text(writing->out, value.number ? "true" : "false");
        return true;
    case VALUE_NUMBER:
        buffer_printf(writing->out, "%" PRId64, value.number);
        return true;
    case VALUE_TEXT:
        put_text(writing->out, value.text, strlen(value.text));
        return true;
    case VALUE_JSON:
        return put_json(&plain, value.json, depth);
    }
    return true;
}

/* As deep as the document, which has a limit (JSON_MAX_DEPTH). */
static bool put_container(const struct writing *writing, const struct json *container, unsigned depth)
{
    bool is_object = json_is(container, JSON_OBJECT);
    const struct json *first = json_first(container);
    buffer_append_text(writing->out, is_object ? "{" : "[");
    for (const struct json *value = first; value != NULL; value = json_next(value)) {
        size_t length;
        buffer_append_text(writing->out, value != first ? "," : "");
        put_line(writing->out, depth + 1);
        if (is_object) {
            const char *key = json_key(value, &length);
            put_text(writing->out, key, length);
            buffer_append_text(writing->out, ": ");
        }
        if (!put_json(writing, value, depth + 1))
            return false;
    }
    if (first != NULL)
        put_line(writing->out, depth);
    buffer_append_text(writing->out, is_object ? "}" : "]");
    return true;
}

static bool put_json(const struct writing *writing, const struct json *value, unsigned depth)
{
    static const char *const words[] = {[JSON_NULL] = "null", [JSON_FALSE] = "false", [JSON_TRUE] = "true"};
    size_t length;
    const char *text = json_string(value, &length);
    if (text != NULL && *text == '=' && writing->scope != NULL)
        return put_expression(writing, text + 1, depth);
    if (text != NULL)
        put_text(writing->out, text, length);
    else if (json_is(value, JSON_NUMBER))
        buffer_append_text(writing->out, json_number_text(value));
    else if (json_is(value, JSON_OBJECT) || json_is(value, JSON_ARRAY))
        return put_container(writing, value, depth);
    else
        buffer_append_text(writing->out, words[json_type(value)]);
    return true;
}

/* Sections of a document: objects whose members follow each other. */
struct sections {
    const struct json *objects[64];
    unsigned n_objects;
    bool first_is_plain; /* of a side file, whose texts are what they are */
};

static bool is_set_later(const struct sections *sections, unsigned section, const char *key, size_t length)
{
    for (unsigned i = section + 1; i < sections->n_objects; i++)
        if (json_get_n(sections->objects[i], key, length) != NULL)
            return true;
    return false;
}

static bool put_sections(const struct writing *writing, const struct sections *sections)
{
    const struct writing plain = {.out = writing->out, .error = writing->error};
    bool is_first = true;
    buffer_append_text(writing->out, "{");
    for (unsigned i = 0; i < sections->n_objects; i++)
        for (const struct json *member = json_first(sections->objects[i]); member != NULL; member = json_next(member)) {
            size_t length;
            const char *key = json_key(member, &length);
            if (is_set_later(sections, i, key, length))
                continue;
            buffer_append_text(writing->out, is_first ? "" : ",");
            is_first = false;
            put_line(writing->out, 1);
            put_text(writing->out, key, length);
            buffer_append_text(writing->out, ": ");
            if (!put_json(i == 0 && sections->first_is_plain ? &plain : writing, member, 1))
                return error_prefix(writing->error, "%.100s", key);
        }
    buffer_append_text(writing->out, "\n}\n");
    return true;
}

bool layout_json_document(const struct layout_document *document, struct scope *scope,
                          const struct checkpoint *checkpoint, struct buffer *out, struct error *error)
{
    struct sections sections = {.first_is_plain = document->of != NULL};
    struct document *side_file = NULL;
    const struct writing writing = {scope, out, error};
    if (document->of != NULL) {
        if (!document_open(checkpoint, document->of, &side_file, error))
            return false;
        sections.objects[sections.n_objects++] = document_root(side_file);
    }
    bool is_good = true;
    for (const struct json *part = json_first(document->members); is_good && part != NULL; part = json_next(part)) {
        bool holds;
        is_good = scope_holds(scope, json_string(json_get(part, "when"), NULL), &holds, error);
        if (is_good && holds && sections.n_objects == sizeof sections.objects / sizeof *sections.objects)
            is_good = error_set(error, "more than 63 sections");
        if (is_good && holds)
            sections.objects[sections.n_objects++] = json_get(part, "set");
    }
    is_good = is_good && put_sections(&writing, &sections);
    document_close(side_file);
    return is_good;
}

void layout_json_manifest(const struct layout_product *product, struct buffer *out)
{
    buffer_append_text(out, "{\n    \"tensors\": [");
    for (size_t i = 0; i < product->n_outputs; i++) {
        const struct layout_tensor *tensor = &product->outputs[i].tensors[0];
        buffer_append_text(out, i > 0 ? ",\n        {\"name\": " : "\n        {\"name\": ");
        put_text(out, tensor->name, strlen(tensor->name));
        buffer_append_text(out, ", \"file\": ");
        put_text(out, product->outputs[i].name, strlen(product->outputs[i].name));
        buffer_printf(out, ", \"dtype\": \"%s\", \"shape\": [", tensor->encoding.dtype->name);
        for (unsigned j = 0; j < tensor->view->rank; j++)
            buffer_printf(out, "%s%" PRIu64, j > 0 ? ", " : "", tensor->view->shape[j]);
        buffer_printf(out, "], \"bytes\": %" PRIu64 "}", convert_bytes(tensor->view, tensor->encoding.dtype));
    }
    buffer_append_text(out, "\n    ]\n}\n");
}
