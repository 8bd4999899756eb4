/* HTML pages: their beginning and end, and texts from files in them.
 *
 * A page is one answer that needs no other: its style and script are in it, and its Content-Security-Policy allows
 * these two by their hashes, and nothing else. Without the script, which sorts and filters tables, everything is there.
 * Texts from files are escaped, and bytes that are no printable characters become \xNN. */
#pragma once

#include "fs/http/answer.h"

/* Begin a page with a title, which is its heading, too. Return the text to append to. */
struct buffer *html_begin(struct answer *answer, const char *title);
struct buffer *html_begin_n(struct answer *answer, const char *title, size_t length); /* any bytes */
void html_end(struct buffer *out);

/* Appends a text of `length` bytes, any bytes. */
void html_put_text_n(struct buffer *out, const char *text, size_t length);
void html_put_text(struct buffer *out, const char *text);

/* Appends a text of several lines as it is written. */
void html_put_lines(struct buffer *out, const char *text, size_t length);

/* Appends a path of a URL, percent-encoded except for its slashes; also fit for the value of a parameter. */
void html_put_path(struct buffer *out, const char *path);

/* Appends a number of bytes for people: "3.7 MB". */
void html_put_size(struct buffer *out, uint64_t size);

/* Appends the form that opens the viewer (viewer.h) of a model, "ORG/NAME". `root` leads from the page to the server's
 * root: "../../". A form and no link, as programs that list an index take its links for files. */
void html_put_viewer_form(struct buffer *out, const char *root, const char *id);

/* Returns the step of a plot's axis between ticks, 1, 2 or 5 times a power of ten, that gives at most `most` of them in
 * the range from 0 to `span`, which is above 0 and finite. Ticks are at the multiples of the step. */
double plot_step(double span, int most);
