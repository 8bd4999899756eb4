#include "models/engines/chat_template.h"

#include "formats/documents.h"

#include <string.h>

/* Returns a template, or the one named "default" of several; NULL if there is none. */
static const char *find_template(const struct json *templates, size_t *ret_length)
{
    for (const struct json *one = json_first(templates); one != NULL; one = json_next(one))
        if (json_string_is(json_get(one, "name"), "default"))
            return json_string(json_get(one, "template"), ret_length);
    return json_string(templates, ret_length);
}

bool chat_template_write(const struct checkpoint *checkpoint, struct buffer *out, struct error *error)
{
    struct document *document;
    size_t length;
    if (!document_open(checkpoint, "tokenizer_config.json", &document, error))
        return false;
    const char *text = find_template(json_get(document_root(document), "chat_template"), &length);
    if (text != NULL)
        buffer_append(out, text, length);
    document_close(document);
    return text != NULL || error_set(error, "tokenizer_config.json has no chat template");
}
