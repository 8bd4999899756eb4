/* Lists in an archive: a zstd frame of JSON texts, one a line, which is read without holding the text.
 *
 * A list comes from strangers: a line has at most LINES_LONGEST bytes, and what a reader keeps of a list is bounded by
 * the size of the frame (lines_budget()), however much text the frame expands to. */
#pragma once

#include "base/buffer.h"
#include "sources/archive/digest.h"
#include "sources/source.h"
#include "text/json.h"

enum { LINES_LONGEST = 64 * 1024, LINES_FRAME = 256 << 20 /* bytes of the largest list, compressed */ };

/* Takes the value of a line, counted from 1, which lives during the call. */
typedef bool take_line(void *context, const struct json *value, uint64_t line, struct error *error);

/* Reads the list in the bytes [offset, offset + length) of a blob. If `digest` is not NULL, these bytes must have it.
 * The error begins with the source's name. */
bool lines_read(const struct source *blob, uint64_t offset, uint64_t length, const struct digest *digest,
                take_line *take, void *context, struct error *error);

/* Returns how many bytes a reader may keep of a list whose frame has `length` bytes. */
uint64_t lines_budget(uint64_t length);

/* Appends the frame of a text. */
void lines_append_frame(const struct buffer *text, struct buffer *out);
