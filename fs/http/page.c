#include "fs/http/page.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

static void put_escaped(struct buffer *out, const char *text)
{
    for (const char *c = text; *c != '\0'; c++)
        if (*c == '&' || *c == '<' || *c == '>' || *c == '"')
            buffer_printf(out, "&#%d;", *c);
        else
            buffer_append(out, c, 1);
}

/* Puts a path of a URL; its slashes stay. */
static void put_path(struct buffer *out, const char *path)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
    for (const char *c = path; *c != '\0'; c++)
        if (strchr(plain, *c) != NULL)
            buffer_append(out, c, 1);
        else
            buffer_printf(out, "%%%02X", (unsigned char)*c);
}

static void put_size(struct buffer *out, uint64_t size)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    double value = (double)size;
    size_t unit = 0;
    for (; value >= 1000 && unit + 1 < sizeof units / sizeof *units; unit++)
        value /= 1000;
    buffer_printf(out, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
}

/* Returns the tag of the file that programs run by default, such as "Q4_K_M"; NULL if there is none. */
static const char *default_tag(const struct repository *repository, struct arena *arena)
{
    const struct repository_file *file = repository_file_of_tag(repository, "latest", false, arena);
    if (file == NULL)
        return NULL;
    const char *type = file->name + strlen(repository->model) + 1;
    return arena_strndup(arena, type, strlen(type) - strlen(".gguf"));
}

static void put_commands(struct buffer *out, const struct repository *repository, const char *origin,
                         struct arena *arena)
{
    const char *tag = repository->gguf ? default_tag(repository, arena) : NULL;
    buffer_append_text(out, "<pre>HF_ENDPOINT=");
    put_escaped(out, origin);
    buffer_append_text(out, tag != NULL ? " llama-server -hf " : " hf download ");
    put_escaped(out, repository->id);
    if (tag != NULL) {
        buffer_append_text(out, ":");
        put_escaped(out, tag);
        buffer_append_text(out, text_starts_with(origin, "https:") ? "\nollama pull " : "\nollama pull --insecure ");
        put_escaped(out, strstr(origin, "://") + strlen("://"));
        buffer_append_text(out, "/");
        put_escaped(out, repository->id);
        buffer_append_text(out, ":");
        put_escaped(out, tag);
    }
    buffer_append_text(out, "</pre>\n");
}

static void put_file(struct buffer *out, const struct repository *repository, const struct repository_file *file)
{
    uint64_t size;
    if (!repository_peek(repository, file->node, &size))
        return;
    buffer_append_text(out, "<tr><td><a href=\"/");
    put_path(out, repository->id);
    buffer_append_text(out, "/resolve/main/");
    put_path(out, file->name);
    buffer_append_text(out, "\">");
    put_escaped(out, file->name);
    buffer_append_text(out, "</a></td><td align=\"right\">");
    if (size != 0) /* an empty file has no size here either */
        put_size(out, size);
    buffer_append_text(out, "</td></tr>\n");
}

void page_answer(const struct repositories *repositories, const char *origin, struct answer *answer)
{
    struct buffer *out = &answer->text;
    answer_header(answer, "Content-Type", "text/html; charset=utf-8");
    answer_header(answer, "Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'");
    buffer_append_text(out,
                       "<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>wfs: models</title>\n"
                       "<style>body { font-family: sans-serif; margin: 2em auto; max-width: 50em }</style></head>\n"
                       "<body>\n<h1>Models</h1>\n<p>Files are computed when they are read. A size is shown once "
                       "somebody has asked for it.</p>\n");
    for (size_t i = 0; i < repositories->count; i++) {
        const struct repository *repository = &repositories->items[i];
        if (repository_is_empty(repository))
            continue;
        buffer_append_text(out, "<h2>");
        put_escaped(out, repository->id);
        buffer_append_text(out, "</h2>\n");
        put_commands(out, repository, origin, answer->arena);
        buffer_append_text(out, "<table>\n");
        for (size_t j = 0; j < repository->n_files; j++)
            put_file(out, repository, &repository->files[j]);
        buffer_append_text(out, "</table>\n");
    }
    buffer_append_text(out, "</body>\n</html>\n");
}
