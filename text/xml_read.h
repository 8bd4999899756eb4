/* XML from servers and clients, which is not trusted: a document type is refused, so there are no entities, and so are
 * elements nested deeper than XML_MOST_DEPTH. */
#pragma once

#include <stddef.h>

enum { XML_MOST_DEPTH = 16 };

/* What takes a document. Handlers return NULL, or why the document is refused: a static text. */
struct xml_reader {
    const char *encoding; /* "UTF-8", whatever the document declares; NULL: the declared one */
    char separator;       /* names are a namespace, this byte and a local name; 0: names are as they are written */
    const char *(*begin)(void *context, const char *name);
    const char *(*end)(void *context, const char *name);
    const char *(*text)(void *context, const char *text, size_t length); /* part of an element's text; may be NULL */
};

/* Returns NULL, or why the document cannot be read: a static text. If memory runs out in a handler, it does here, after
 * the parser is freed. */
const char *xml_read(const char *text, size_t length, const struct xml_reader *reader, void *context);
