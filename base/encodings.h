/* Bytes as text: base64, the escapes of URLs, and SHA-256 in hexadecimal digits. */
#pragma once

#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>

/* Base64 (RFC 4648, section 4), as nettle reads and writes it: white space in the text is skipped. */

/* Decodes `text` into the arena. Returns NULL if there are no bytes, or the digits are not whole groups of four. */
void *base64_decode(struct arena *arena, const char *text, size_t length, size_t *ret_length);

/* Encodes `length` bytes on one line, padded to whole groups and NUL-terminated, in the arena. */
char *base64_encode(struct arena *arena, const void *bytes, size_t length);

/* Percent-encoding (RFC 3986, section 2.1): text as a part of a URL. Results are in the caller's arena. */

/* Encodes all bytes but letters, digits and "-._~", and those in `kept`. */
const char *percent_encode(const char *text, const char *kept, struct arena *arena);

/* Decodes `length` bytes. Returns NULL for an incomplete escape and for a NUL byte. */
const char *percent_decode(const char *text, size_t length, struct arena *arena);

/* Decodes one component of a path as a file name. Returns NULL for what is no name: "", "." and "..", a '/' or a NUL
 * byte, more than NAME_MAX bytes, or an incomplete escape. */
const char *percent_decode_name(const char *text, size_t length, struct arena *arena);

/* SHA-256 of bytes in memory, as text. To hash a stream, use nettle's sha2.h. */

enum { SHA256_HEX = 64 };

/* Writes the hash of `length` bytes as 64 lower-case digits and a NUL. */
void sha256_hex(const void *bytes, size_t length, char hex[SHA256_HEX + 1]);
