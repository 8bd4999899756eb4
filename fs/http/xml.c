#include "fs/http/xml.h"

#include "base/text.h"

#include <string.h>

void xml_put_declaration(struct buffer *out)
{
    buffer_append_text(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
}

void xml_put_text(struct buffer *out, const char *text, size_t length)
{
    struct buffer valid = {0};
    text_append_valid(text, length, &valid);
    for (size_t i = 0; i < valid.length; i++) {
        const char *c = (const char *)valid.bytes + i;
        if ((unsigned char)*c < ' ' || strchr("&<>\"'", *c) != NULL)
            buffer_printf(out, "&#%d;", *c);
        else
            buffer_append(out, c, 1);
    }
    buffer_free(&valid);
}
