#include "fs/http/file_answer.h"

#include "base/text.h"

#include <inttypes.h>
#include <string.h>

const char *file_content_type(const char *name)
{
    static const struct {
        const char *ending, *type;
    } types[] = {{".json", "application/json"}, {".md", "text/markdown; charset=utf-8"}, {".txt", "text/plain"}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (text_ends_with(name, types[i].ending))
            return types[i].type;
    return "application/octet-stream";
}

const char *file_etag(const char etag[ETAG_TEXT], const char *ending, struct arena *arena)
{
    return arena_printf(arena, "\"%.*s%s\"", SHA256_HEX, etag + 1, ending);
}

/* Reports whether the client has the file already. A date is asked only where no tag is: tags tell more files apart. */
static bool client_has(const struct http_request *request, const char *etag, const time_t *modified)
{
    if (request->if_none_match != NULL)
        return etag_is_listed(request->if_none_match, etag, true);
    return request->if_modified_since != NULL && modified != NULL &&
           unmodified_since(request->if_modified_since, *modified);
}

void file_answer_part(const struct http_request *request, const char *etag, const time_t *modified,
                      struct answer *answer)
{
    uint64_t size = answer->file.size;
    answer->length = size;
    if (request->if_match != NULL && !etag_is_listed(request->if_match, etag, false)) {
        answer_fail(answer, 412, NULL, "the file is not the one that If-Match names: its ETag is %s", etag);
        return;
    }
    if (client_has(request, etag, modified)) {
        answer->status = 304;
        answer->is_file = false;
        return;
    }
    if (request->head) /* a range of a HEAD request means nothing (RFC 9110, 14.2) */
        return;
    if (request->if_range != NULL && strcmp(request->if_range, etag) != 0)
        return;
    switch (range_parse(request->range, size, &answer->first, &answer->length)) {
    case RANGE_WHOLE:
        break;
    case RANGE_PART:
        answer->status = 206;
        answer_header(answer, "Content-Range", "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, answer->first,
                      answer->first + answer->length - 1, size);
        break;
    case RANGE_UNSATISFIABLE:
        answer_fail(answer, 416, NULL, "the range begins after the end of the file, which has %" PRIu64 " bytes", size);
        answer_header(answer, "Content-Range", "bytes */%" PRIu64, size);
    }
}

bool file_answer(const struct repository *repository, node_id node, const char *name, const char *tag_ending,
                 const struct http_request *request, struct answer *answer)
{
    uint64_t size;
    char identity[ETAG_TEXT];
    struct error error;
    struct node_attributes attributes;
    if (!repository_plan(repository, node, &size, identity) || !tree_attributes(repository->tree, node, &attributes))
        return false;
    if (!tree_file(repository->tree, node, answer->arena, &answer->file, &error)) {
        answer_fail(answer, 500, NULL, "%s: %s", name, error.message);
        return true;
    }
    if (origin_verify(&answer->file.origin)) { /* the ETag tells caches that nothing has */
        answer_fail(answer, 500, NULL, "%s: a source has changed since it was opened; restart wfs serve", name);
        return true;
    }
    const char *etag = file_etag(identity, tag_ending, answer->arena);
    answer->is_file = true;
    answer->file_key = (uintptr_t)repository->tree ^ node;
    answer_header(answer, "Content-Type", "%s", file_content_type(name));
    answer_header(answer, "ETag", "%s", etag);
    answer_header(answer, "X-Repo-Commit", "%s", repository->commit);
    answer_header(answer, "X-Linked-Size", "%" PRIu64, size);
    answer_header(answer, "X-Linked-Etag", "%s", etag);
    answer_header(answer, "Accept-Ranges", "bytes");
    answer_date(answer, "Last-Modified", attributes.mtime.tv_sec);
    file_answer_part(request, etag, &attributes.mtime.tv_sec, answer);
    return true;
}
