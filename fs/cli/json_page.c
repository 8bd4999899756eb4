#include "fs/cli/json_page.h"

#include "fs/cli/terminal.h"

#include <stdio.h>

void json_page_begin(struct json_page *page)
{
    *page = (struct json_page){.writer = {.letters = stdout_letters(), .compact = true}};
    page->writer.out = &page->out;
    json_begin_object(&page->writer, NULL);
    json_put_text(&page->writer, "wfs", WFS_VERSION);
    json_put_number(&page->writer, "schema", PAGE_SCHEMA);
}

void json_page_print(struct json_page *page)
{
    json_end(&page->writer);
    buffer_append_text(&page->out, "\n");
    fwrite(page->out.bytes, 1, page->out.length, stdout);
    buffer_free(&page->out);
}
