#include "fs/http/page.h"

#include <stdio.h>

static void put_escaped(struct buffer *out, const char *text)
{
    for (const char *c = text; *c != '\0'; c++)
        if (*c == '&' || *c == '<' || *c == '>' || *c == '"')
            buffer_printf(out, "&#%d;", *c);
        else
            buffer_append(out, c, 1);
}

static void put_command(struct buffer *out, const struct repository *repository, const char *origin)
{
    buffer_append_text(out, "<pre>HF_ENDPOINT=");
    put_escaped(out, origin);
    if (repository->gguf)
        buffer_append_text(out, " llama-server -hf ");
    else
        buffer_append_text(out, " hf download ");
    put_escaped(out, repository->id);
    buffer_append_text(out, repository->gguf ? ":Q4_K_M</pre>\n" : "</pre>\n");
}

static void put_file(struct buffer *out, const struct repository *repository, const struct repository_file *file)
{
    struct node_attributes attributes;
    if (!tree_attributes(repository->tree, file->node, &attributes))
        return;
    buffer_append_text(out, "<tr><td><a href=\"/");
    put_escaped(out, repository->id);
    buffer_append_text(out, "/resolve/main/");
    put_escaped(out, file->name);
    buffer_append_text(out, "\">");
    put_escaped(out, file->name);
    buffer_printf(out, "</a></td><td align=\"right\">%.1f MB</td></tr>\n", (double)attributes.size / 1e6);
}

void page_answer(const struct repositories *repositories, const char *origin, struct answer *answer)
{
    struct buffer *out = &answer->text;
    answer_header(answer, "Content-Type", "text/html; charset=utf-8");
    answer_header(answer, "Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'");
    buffer_append_text(out,
                       "<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>wfs: models</title>\n"
                       "<style>body { font-family: sans-serif; margin: 2em auto; max-width: 50em }</style></head>\n"
                       "<body>\n<h1>Models</h1>\n<p>Files are computed when they are read.</p>\n");
    for (size_t i = 0; i < repositories->count; i++) {
        const struct repository *repository = &repositories->items[i];
        buffer_append_text(out, "<h2>");
        put_escaped(out, repository->id);
        buffer_append_text(out, "</h2>\n");
        put_command(out, repository, origin);
        buffer_append_text(out, "<table>\n");
        for (size_t j = 0; j < repository->n_files; j++)
            put_file(out, repository, &repository->files[j]);
        buffer_append_text(out, "</table>\n");
    }
    buffer_append_text(out, "</body>\n</html>\n");
}
