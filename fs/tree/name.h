/* Tensor names as file names.
 *
 * Any bytes can be the name of a tensor; a file name has no '/' and no NUL, is not "." or "..", and is at most 255
 * bytes long. The escaping is reversible and leaves ordinary names as they are:
 *   - control bytes, DEL, '/', '%' and bytes that are not well-formed UTF-8 become %XX (upper-case hex);
 *   - "." becomes "%2E", ".." becomes "%2E%2E", the empty name becomes "%";
 *   - where the result is longer than 255 bytes: its longest prefix of whole characters and escapes that leaves room
 * for "%~" and the first 16 hex digits of the SHA-256 of the raw name. The raw name is in metadata.json and in
 * user.wfs.name. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { NAME_MAX_BYTES = 255 };

/* Returns false where the name had to be cut (the result is complete all the same). */
bool name_escape(const char *raw, size_t length, char escaped[NAME_MAX_BYTES + 1]);

/* The raw bytes of an escaped name, at most as long as it; false where it is nothing name_escape() gives, or was cut.
 */
bool name_unescape(const char *escaped, char raw[NAME_MAX_BYTES + 1], size_t *ret_length);
