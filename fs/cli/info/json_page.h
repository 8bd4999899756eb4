/* The JSON that a command prints on standard output for scripts (`--json`): one object that begins with `wfs`, the
 * version, and `schema`, the number of the contract in docs/metadata.md. */
#pragma once

#include "text/json_write.h"

/* A key changes its type or meaning, or disappears, only with a new number. */
enum { PAGE_SCHEMA = 1 };

struct json_page {
    struct buffer out;
    struct json_writer writer; /* writes members of the object until json_page_print() */
};

/* Begins the object; the page must not move until json_page_print(). */
void json_page_begin(struct json_page *page);

/* Ends the object, prints it with a newline and frees it. */
void json_page_print(struct json_page *page);

/* Prints a JSON text with a newline and frees it. */
void print_json_line(struct buffer *json);
