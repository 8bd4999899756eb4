/* XML that answers are written in. */
#pragma once

#include "base/buffer.h"

/* Appends the first line of a document. */
void xml_put_declaration(struct buffer *out);

/* Appends text, escaped. Control characters become references, as S3 writes them, and bytes that are not UTF-8
 * U+FFFD. */
void xml_put_text(struct buffer *out, const char *text, size_t length);
