/* Pages for people, which are indices for programs, too: a page has a relative link to each of its directories and
 * files, as the indices of web servers do, so that rclone, wget and fsspec list what is here.
 *
 * The pages of all models plan nothing, which would take half a minute for hundreds of them. The page of a model plans
 * its files, so that each of its links leads to a file, and programs may ask for all of them without waiting. The form
 * that opens the viewer (viewer.h) is no link. */
#include "fs/http/protocols.h"

#include "base/text.h"
#include "fs/http/html.h"
#include "fs/http/index.h"

#include <stdio.h>
#include <string.h>

/* Returns the tag of the file that programs run by default, such as "Q4_K_M"; NULL if there is none. */
static const char *default_tag(const struct repository *repository, struct arena *arena)
{
    const struct repository_file *file = repository_file_of_tag(repository, "latest", false, arena);
    return file != NULL ? repository_tag_of(repository, file, arena) : NULL;
}

static void put_command(struct buffer *out, const char *origin, const char *command, const char *id)
{
    buffer_append_text(out, "<pre>HF_ENDPOINT=");
    html_put_text(out, origin);
    buffer_printf(out, " %s ", command);
    html_put_text(out, id);
}

void page_put_commands(struct buffer *out, const struct repository *repository, const char *origin, struct arena *arena)
{
    const char *tag = repository->is_tagged ? default_tag(repository, arena) : NULL;
    put_command(out, origin, repository->command != NULL ? repository->command : "hf download", repository->id);
    if (tag != NULL) {
        buffer_append_text(out, ":");
        html_put_text(out, tag);
        buffer_append_text(out, text_starts_with(origin, "https:") ? "\nollama pull " : "\nollama pull --insecure ");
        html_put_text(out, strstr(origin, "://") + strlen("://"));
        buffer_append_text(out, "/");
        html_put_text(out, repository->id);
        buffer_append_text(out, ":");
        html_put_text(out, tag);
    }
    buffer_append_text(out, "</pre>\n");
}

/* Puts the beginning of a row of a table, with a relative link. */
static void put_link(struct buffer *out, const char *name, const char *slash)
{
    buffer_append_text(out, "<tr><td><a href=\"");
    html_put_path(out, name);
    buffer_printf(out, "%s\">", slash);
    html_put_text(out, name);
    buffer_printf(out, "%s</a></td><td class=\"n\">", slash);
}

static void put_file(struct buffer *out, const struct index_entry *entry)
{
    uint64_t size;
    char etag[ETAG_TEXT];
    if (!repository_plan(entry->repository, entry->file->node, &size, etag))
        return;
    put_link(out, entry->name, "");
    html_put_size(out, size);
    buffer_append_text(out, "</td></tr>\n");
}

static void put_entry(void *context, const struct index_entry *entry)
{
    if (entry->file != NULL) {
        put_file(context, entry);
        return;
    }
    put_link(context, entry->name, "/");
    buffer_append_text(context, "</td></tr>\n");
}

static void answer_all(const struct repositories *repositories, const char *origin, struct answer *answer)
{
    struct buffer *out = html_begin(answer, "Models");
    buffer_append_text(out, "<p>Files are computed when they are read.</p>\n<table>\n");
    index_list(repositories, "", "", put_entry, out);
    buffer_append_text(out, "</table>\n");
    for (size_t i = 0; i < repositories->count; i++) {
        const struct repository *repository = &repositories->items[i];
        if (!index_has(repository) || repository->is_of_engine)
            continue;
        buffer_append_text(out, "<h2><a href=\"");
        html_put_path(out, repository->id);
        buffer_append_text(out, "/\">");
        html_put_text(out, repository->id);
        buffer_append_text(out, "</a></h2>\n");
        page_put_commands(out, repository, origin, answer->arena);
        if (!repository->gguf)
            html_put_viewer_form(out, "", repository->base);
    }
    html_end(out);
}

static void answer_owner(const struct repositories *repositories, const char *owner, struct answer *answer)
{
    struct buffer *out = html_begin(answer, owner);
    buffer_append_text(out, "<p><a href=\"../\">../</a></p>\n<table>\n");
    size_t n_found = index_list(repositories, owner, "", put_entry, out);
    buffer_append_text(out, "</table>\n");
    html_end(out);
    if (n_found == 0)
        answer_fail(answer, 404, "EntryNotFound", "there is no owner '%s' here; the index at / lists all models",
                    owner);
}

static void answer_directory(const struct repositories *repositories, const struct repository *repository,
                             const struct http_request *request, const char *path, struct answer *answer)
{
    const char *slash = *path != '\0' ? "/" : "";
    struct buffer *out = html_begin(answer, arena_printf(answer->arena, "%s%s%s", repository->id, slash, path));
    if (*path == '\0') {
        page_put_commands(out, repository, request->origin, answer->arena);
        html_put_viewer_form(out, "../../", repository->base);
    }
    buffer_append_text(out, "<p><a href=\"../\">../</a></p>\n<table>\n");
    size_t n_found = index_list(repositories, repository->id, path, put_entry, out);
    buffer_append_text(out, "</table>\n");
    html_end(out);
    if (n_found == 0 && *path != '\0')
        answer_fail(answer, 404, "EntryNotFound", "%s has no file or directory '%s'", repository->id, path);
    else if (n_found == 0)
        answer_fail(answer, 404, "RepoNotFound", "%s has no files: %s", repository->id,
                    repository_refusal(repository, answer->arena));
}

/* Sends clients to the address with a slash, which relative links start from. */
static void add_slash(const struct route *route, struct answer *answer)
{
    struct buffer path = {0};
    html_put_path(&path, route->repository);
    if (*route->path != '\0') {
        buffer_append_text(&path, "/");
        html_put_path(&path, route->path);
    }
    buffer_append(&path, "", 1);
    answer->n_headers = 0;
    buffer_free(&answer->text);
    answer->text = (struct buffer){0};
    answer->status = 301;
    answer_header(answer, "Location", "/%s/", (const char *)path.bytes);
    buffer_free(&path);
}

static void answer_path(const struct served *served, const struct http_request *request, const struct route *route,
                        struct answer *answer)
{
    const struct repository *repository = repository_find(served->repositories, route->repository);
    if (repository == NULL || (!route->is_directory && repository_file(repository, route->path) != NULL))
        hub_answer_file(served, request, route, answer); /* or says that there is no such model */
    else
        answer_directory(served->repositories, repository, request, route->path, answer);
}

void page_answer(const struct served *served, const struct http_request *request, const struct route *route,
                 struct answer *answer)
{
    if (route->kind == ROUTE_PAGE)
        answer_all(served->repositories, request->origin, answer);
    else if (route->kind == ROUTE_OWNER)
        answer_owner(served->repositories, route->repository, answer);
    else
        answer_path(served, request, route, answer);
    if (answer->status == 200 && !answer->is_file && !route->is_directory)
        add_slash(route, answer);
}
