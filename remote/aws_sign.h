/* Signs requests with the credentials that AWS's own tools would use (aws_settings.h), for http.h.
 *
 * Temporary credentials are read again each minute: the tool that made them replaces them before they end. Safe from
 * any thread. */
#pragma once

#include "base/buffer.h"
#include "remote/uri.h"

/* Appends the headers of a signature for a GET request now, a line each; nothing where there are no credentials. */
void aws_sign(const char *region, const struct uri *uri, struct buffer *headers);
