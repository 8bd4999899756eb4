/* Percent-encoding (RFC 3986, section 2.1): text as a part of a URL. Results are in the caller's arena. */
#pragma once

#include "base/arena.h"

/* Encodes all bytes but letters, digits and "-._~", and those in `kept`. */
const char *percent_encode(const char *text, const char *kept, struct arena *arena);

/* Decodes `length` bytes. Returns NULL for an incomplete escape and for a NUL byte. */
const char *percent_decode(const char *text, size_t length, struct arena *arena);

/* Decodes one component of a path as a file name. Returns NULL for what is no name: "", "." and "..", a '/' or a NUL
 * byte, more than NAME_MAX bytes, or an incomplete escape. */
const char *percent_decode_name(const char *text, size_t length, struct arena *arena);
