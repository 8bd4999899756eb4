/* Tensor names as file names.
 *
 * Any bytes can be the name of a tensor; a file name has no '/' and no NUL, is not "." or "..", and is at most 255
 * bytes long. The escaping is reversible, unless it cuts, and leaves ordinary names as they are:
 *   - control bytes, DEL, '/', '%' and bytes that are not well-formed UTF-8 become %XX (upper-case hex);
 *   - "." becomes "%2E", ".." becomes "%2E%2E", the empty name becomes "%";
 *   - a result longer than 255 bytes is cut to its longest prefix of whole characters and escapes that leaves room for
 * "%~" and the first 16 hex digits of the SHA-256 of the raw name. Such a name cannot be reversed; metadata.json and
 * user.wfs.name have the raw name. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { NAME_MAX_BYTES = 255 };

/* Escapes a name; returns false if it was cut (`escaped` is a valid file name even then). */
bool name_escape(const char *raw, size_t length, char escaped[NAME_MAX_BYTES + 1]);

/* Gets the raw bytes of an escaped name, which are no longer than it; returns false if name_escape() never gives this
 * name, or gives it only by cutting. */
bool name_unescape(const char *escaped, char raw[NAME_MAX_BYTES + 1], size_t *ret_length);
