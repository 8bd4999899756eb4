#include "fs/cli/info/json_page.h"

#include "fs/cli/terminal.h"

#include <stdio.h>

void json_page_begin(struct json_page *page)
{
    *page = (struct json_page){.writer = {.letters = stdout_letters(), .compact = true}};
    page->writer.out = &page->out;
    json_put_template(&page->writer, "{'wfs': %s, 'schema': %u", WFS_VERSION, (uint64_t)PAGE_SCHEMA);
}

void print_json_line(struct buffer *json)
{
    buffer_append_text(json, "\n");
    fwrite(json->bytes, 1, json->length, stdout);
    buffer_free(json);
}

void json_page_print(struct json_page *page)
{
    json_end(&page->writer);
    print_json_line(&page->out);
}
