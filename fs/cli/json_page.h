/* The JSON that a command prints on standard output for scripts (`--json`): one object, whose first members are `wfs`,
 * the version, and `schema`, the number of the contract in docs/metadata.md. */
#pragma once

#include "formats/json_write.h"

/* A key changes its type or meaning, or goes, only with a new number. */
enum { PAGE_SCHEMA = 1 };

struct json_page {
    struct buffer out;
    struct json_writer writer; /* inside the object, between begin and end */
};

/* Begins the object; the page stays where it is until json_page_print(). */
void json_page_begin(struct json_page *page);

/* Ends the object, prints it with a newline and frees it. */
void json_page_print(struct json_page *page);

/* Prints a JSON text with a newline and frees it. */
void print_json_line(struct buffer *json);
