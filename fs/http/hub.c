/* The protocol of the model hub: what its clients ask for, and its errors.
 *
 * Every model has one revision: "main", and the commit that stands for it. Errors carry X-Error-Code as the hub's do,
 * from which clients tell a missing repository from a missing file.
 *
 * Source: the Hub API's OpenAPI description; huggingface_hub 0.36 (hf_api.py, file_download.py), llama.cpp
 * (common/hf-cache.cpp, and before it common/download.cpp). */
#include "fs/http/protocols.h"

#include "base/text.h"
#include "fs/http/file_answer.h"
#include "text/json_write.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { MAX_PAGE = 1000 }; /* entries of a page of a tree */

static struct json_writer begin_json(struct answer *answer)
{
    answer_header(answer, "Content-Type", "application/json");
    return (struct json_writer){.out = &answer->text, .letters = JSON_UTF8, .compact = true};
}

static void put_time(struct json_writer *writer, const char *key, time_t time)
{
    char text[40];
    struct tm utc = {0};
    gmtime_r(&time, &utc);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S.000Z", &utc);
    json_put_text(writer, key, text);
}

/* Finds the repository and checks the revision that a route names. */
static const struct repository *find(const struct repositories *repositories, const struct route *route,
                                     struct answer *answer)
{
    const struct repository *repository = repository_find(repositories, route->repository);
    if (repository == NULL)
        answer_fail(answer, 404, "RepoNotFound", "there is no model '%s' here", route->repository);
    else if (!repository_has_revision(repository, route->revision)) {
        answer_fail(answer, 404, "RevisionNotFound", "%s has no revision '%s': it has main, which is %s",
                    repository->id, route->revision, repository->commit);
        repository = NULL;
    }
    return repository;
}

/* Puts the identity as the id of a blob: without quotation marks. */
static void put_blob_id(struct json_writer *writer, const char *key, const char etag[ETAG_TEXT])
{
    json_put_text_n(writer, key, etag + 1, SHA256_HEX);
}

static void put_sibling(struct json_writer *writer, const struct repository *repository,
                        const struct repository_file *file)
{
    uint64_t size;
    char etag[ETAG_TEXT];
    if (!repository_plan(repository, file->node, &size, etag))
        return;
    json_begin_object(writer, NULL);
    json_put_text(writer, "rfilename", file->name);
    json_put_number(writer, "size", size);
    put_blob_id(writer, "blobId", etag);
    json_end(writer);
}

/* Answers, if no file could be made, that there is no such model, and why. */
static bool fail_if_empty(const struct repository *repository, struct answer *answer)
{
    if (!repository_is_empty(repository))
        return false;
    answer_fail(answer, 404, "RepoNotFound", "%s has no files: %s", repository->id,
                repository_refusal(repository, answer->arena));
    return true;
}

static void put_model(struct json_writer *writer, const struct repository *repository)
{
    json_begin_object(writer, NULL);
    json_put_text(writer, "_id", repository->commit);
    json_put_text(writer, "id", repository->id);
    json_put_text(writer, "modelId", repository->id);
    json_put_text_n(writer, "author", repository->id, strcspn(repository->id, "/"));
    json_put_text(writer, "sha", repository->commit);
    put_time(writer, "createdAt", repository->modified.tv_sec);
    put_time(writer, "lastModified", repository->modified.tv_sec);
    json_put_bool(writer, "private", false);
    json_put_bool(writer, "gated", false);
    json_put_bool(writer, "disabled", false);
    json_put_number(writer, "downloads", 0);
    json_put_number(writer, "likes", 0);
    json_begin_array(writer, "tags");
    json_put_text(writer, NULL, repository->gguf ? "gguf" : "safetensors");
    json_end(writer);
}

static void answer_model(const struct repository *repository, struct answer *answer)
{
    struct json_writer writer = begin_json(answer);
    put_model(&writer, repository);
    json_begin_array(&writer, "siblings");
    struct repository_files files = repository_files(repository);
    for (size_t i = 0; i < files.count; i++)
        put_sibling(&writer, repository, &files.items[i]);
    json_end(&writer);
    json_end(&writer);
    fail_if_empty(repository, answer);
}

static void answer_models(const struct repositories *repositories, struct answer *answer)
{
    struct json_writer writer = begin_json(answer);
    json_begin_array(&writer, NULL);
    for (size_t i = 0; i < repositories->count; i++) {
        if (!repositories->items[i].is_listed || repository_is_empty(&repositories->items[i]))
            continue;
        put_model(&writer, &repositories->items[i]);
        json_end(&writer);
    }
    json_end(&writer);
}

static void answer_refs(const struct repository *repository, struct answer *answer)
{
    struct json_writer writer = begin_json(answer);
    json_begin_object(&writer, NULL);
    json_begin_array(&writer, "branches");
    json_begin_object(&writer, NULL);
    json_put_text(&writer, "name", "main");
    json_put_text(&writer, "ref", "refs/heads/main");
    json_put_text(&writer, "targetCommit", repository->commit);
    json_end(&writer);
    json_end(&writer);
    json_begin_array(&writer, "converts");
    json_end(&writer);
    json_begin_array(&writer, "tags");
    json_end(&writer);
    json_end(&writer);
}

/* A listing of a directory while it is written. */
struct listing {
    const struct repository *repository;
    const struct http_request *request;
    struct answer *answer;
    struct json_writer writer;
    const char *directory; /* "" or with a slash at its end */
    const char *last;      /* directory that was put last; NULL: none */
    size_t limit, n_put;
    size_t n_entries; /* also those that are on other pages, and files that turn out to be absent */
    size_t next;      /* the first entry after this page; 0: none */
};

/* Counts an entry; reports whether it belongs on this page if it exists. */
static bool takes(struct listing *listing)
{
    size_t index = listing->n_entries++;
    if (index >= listing->request->cursor && listing->n_put == listing->limit && listing->next == 0)
        listing->next = index;
    return index >= listing->request->cursor && listing->next == 0;
}

static void put_directory(struct listing *listing, const char *path)
{
    if (listing->last != NULL && strcmp(listing->last, path) == 0)
        return;
    listing->last = path;
    if (!takes(listing))
        return;
    listing->n_put++;
    json_begin_object(&listing->writer, NULL);
    json_put_text(&listing->writer, "type", "directory");
    json_put_text(&listing->writer, "oid", listing->repository->commit);
    json_put_number(&listing->writer, "size", 0);
    json_put_text(&listing->writer, "path", path);
    json_end(&listing->writer);
}

static void put_file(struct listing *listing, const struct repository_file *file)
{
    uint64_t size;
    char etag[ETAG_TEXT];
    if (!takes(listing) || !repository_plan(listing->repository, file->node, &size, etag))
        return;
    listing->n_put++;
    json_begin_object(&listing->writer, NULL);
    json_put_text(&listing->writer, "type", "file");
    put_blob_id(&listing->writer, "oid", etag);
    json_put_number(&listing->writer, "size", size);
    json_put_text(&listing->writer, "path", file->name);
    json_end(&listing->writer);
}

/* Puts the directories between the listed one and the file, then the file if it is in a listed one. */
static void put_entry(struct listing *listing, const struct repository_file *file)
{
    const char *rest = file->name + strlen(listing->directory), *slash = strchr(rest, '/');
    for (; slash != NULL; slash = listing->request->recursive ? strchr(slash + 1, '/') : NULL)
        put_directory(listing, arena_strndup(listing->answer->arena, file->name, (size_t)(slash - file->name)));
    if (listing->request->recursive || strchr(rest, '/') == NULL)
        put_file(listing, file);
}

static void answer_tree(const struct repository *repository, const struct http_request *request,
                        const struct route *route, struct answer *answer)
{
    struct listing listing = {.repository = repository, .request = request, .answer = answer};
    size_t n_found = 0;
    listing.directory = *route->path != '\0' ? arena_printf(answer->arena, "%s/", route->path) : "";
    listing.limit = request->limit != 0 && request->limit < MAX_PAGE ? request->limit : MAX_PAGE;
    listing.writer = begin_json(answer);
    json_begin_array(&listing.writer, NULL);
    struct repository_files files = repository_files(repository);
    for (size_t i = 0; i < files.count; i++)
        if (text_starts_with(files.items[i].name, listing.directory)) {
            n_found++;
            put_entry(&listing, &files.items[i]);
        }
    json_end(&listing.writer);
    if (fail_if_empty(repository, answer))
        return;
    if (n_found == 0 && *route->path != '\0')
        answer_fail(answer, 404, "EntryNotFound", "%s has no directory '%s'", repository->id, route->path);
    else if (listing.next != 0)
        answer_header(answer, "Link", "<%s/api/models/%s/tree/%s%s%s?recursive=%s&limit=%zu&cursor=%zu>; rel=\"next\"",
                      request->origin, repository->id, repository->commit, *route->path != '\0' ? "/" : "", route->path,
                      request->recursive ? "true" : "false", listing.limit, listing.next);
}

static bool put_gguf(struct json_writer *writer, const char *key, const struct repository *repository,
                     const struct repository_file *file)
{
    uint64_t size;
    char etag[ETAG_TEXT];
    if (file == NULL || !repository_plan(repository, file->node, &size, etag))
        return false;
    json_begin_object(writer, key);
    json_put_text(writer, "rfilename", file->name);
    put_blob_id(writer, "blobId", etag);
    json_put_number(writer, "size", size);
    json_end(writer);
    return true;
}

static void answer_manifest(const struct repository *repository, const struct route *route, struct answer *answer)
{
    const struct repository_file *file = repository_file_of_tag(repository, route->revision, true, answer->arena),
                                 *projector = repository_projector(repository, answer->arena);
    struct json_writer writer = begin_json(answer);
    json_begin_object(&writer, NULL);
    bool found = put_gguf(&writer, "ggufFile", repository, file);
    put_gguf(&writer, "mmprojFile", repository, projector);
    json_end(&writer);
    if (!found && !fail_if_empty(repository, answer))
        answer_fail(answer, 404, "EntryNotFound", "%s has no file for the tag '%s'", repository->id, route->revision);
}

void hub_answer(const struct served *served, const struct http_request *request, const struct route *route,
                struct answer *answer)
{
    if (route->kind == ROUTE_MODELS) {
        answer_models(served->repositories, answer);
        return;
    }
    struct route at_main = *route;
    if (route->kind == ROUTE_MANIFEST)
        at_main.revision = "main"; /* the route has a tag instead */
    const struct repository *repository = find(served->repositories, &at_main, answer);
    if (repository == NULL)
        return;
    if (route->kind == ROUTE_MODEL)
        answer_model(repository, answer);
    else if (route->kind == ROUTE_REFS)
        answer_refs(repository, answer);
    else if (route->kind == ROUTE_TREE)
        answer_tree(repository, request, route, answer);
    else
        answer_manifest(repository, route, answer);
}

void hub_answer_file(const struct served *served, const struct http_request *request, const struct route *route,
                     struct answer *answer)
{
    const struct repository *repository = find(served->repositories, route, answer);
    if (repository == NULL)
        return;
    const struct repository_file *file = repository_file(repository, route->path);
    const char *tag_ending = route->kind == ROUTE_PATH ? S3_TAG_ENDING : "";
    if (file == NULL)
        answer_fail(answer, 404, "EntryNotFound", "%s has no file '%s'", repository->id, route->path);
    else if (!file_answer(repository, file->node, file->name, tag_ending, request, answer))
        answer_fail(answer, 404, "EntryNotFound", "%s has no file '%s': %s", repository->id, route->path,
                    repository_refusal_of(repository, file, answer->arena));
}
