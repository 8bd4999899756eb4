/* Images of OCI registries: /v2/ORG/NAME, with a tag for each directory and GGUF file that is offered of the model:
 * "hf", "Q4_K_M", "mlx-4bit", "FP8_DYNAMIC"; "latest" is "hf". The files are below /models, as KServe, and image
 * volumes of Kubernetes have them.
 *
 * A layer is a tar that is not compressed (fs/tree/tar.h), computed when it is read. A file of a MiB or more is a
 * layer of its own, so that tags share equal files; the small ones are one layer. Sizes are known at once. A digest
 * takes one pass over its layer when the manifest is first asked for (fs/tree/digests.h); HEAD requests compute none,
 * and leave out a digest that is not known. Names have letters of either case. One image serves amd64 and arm64, as an
 * index if the client accepts one.
 *
 * ORG/NAME-GGUF is the registry's (registry.c).
 *
 * Source: the OCI distribution and image specifications 1.1. */
#include "fs/http/protocols.h"

#include "base/text.h"
#include "fs/http/answer.h"
#include "fs/http/file_answer.h"
#include "fs/http/image_layers.h"
#include "fs/http/query.h"
#include "text/json_write.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

const char *image_model(const struct repositories *repositories, const char *name)
{
    const char *found = NULL;
    bool is_one = true;
    for (size_t i = 0; i < repositories->count; i++) {
        const char *model = repositories->items[i].base;
        if (strcmp(model, name) == 0)
            return model;
        if (strcasecmp(model, name) != 0)
            continue;
        is_one &= found == NULL || strcmp(model, found) == 0;
        found = model;
    }
    return is_one ? found : NULL;
}

static bool is_digest(const char *text)
{
    const char *hex = text + strlen(DIGEST_PREFIX);
    return text_starts_with(text, DIGEST_PREFIX) && strlen(hex) == SHA256_HEX &&
           hex[strspn(hex, "0123456789abcdef")] == '\0';
}

/* Records where the blobs of an image are. */
static void record(const struct served *served, const struct image *image)
{
    const char *model = image->repository->base;
    for (size_t i = 0; i < image->n_layers; i++)
        blob_place_add(served->places, model, image->layers[i].digest, image->tag);
    for (size_t i = 0; i < N_PLATFORMS; i++) {
        blob_place_add(served->places, model, image->configs[i].digest, image->tag);
        blob_place_add(served->places, model, image->manifests[i].digest, image->tag);
    }
    blob_place_add(served->places, model, image->index.digest, image->tag);
}

static void answer_text(const struct image_text *text, const char *media_type, bool is_known, struct answer *answer)
{
    answer_header(answer, "Content-Type", "%s", media_type);
    if (is_known) {
        answer_header(answer, "Docker-Content-Digest", "%s", text->digest);
        answer_header(answer, "ETag", "\"%s\"", text->digest);
    }
    buffer_append(&answer->text, text->text, text->length);
}

static void answer_tag(const struct served *served, const struct http_request *request, const char *name,
                       const char *tag, struct answer *answer)
{
    struct image image;
    struct error error = {0};
    bool wants_index = request->accept != NULL && strstr(request->accept, IMAGE_INDEX) != NULL;
    if (!image_find(served->repositories, name, tag, answer->arena, &image, &error)) {
        answer_fail(answer, 404, "MANIFEST_UNKNOWN", "%s", error.message);
        return;
    }
    /* Any page could have this machine compute for minutes. */
    bool only_known = request->head || request->is_cross_site;
    bool are_known = image_digest(&image, served->digests, only_known, answer->arena, &error);
    image_write(&image, answer->arena);
    if (are_known)
        record(served, &image);
    if (!are_known && !request->head)
        answer_fail(answer, request->is_cross_site ? 404 : 500, request->is_cross_site ? "MANIFEST_UNKNOWN" : "UNKNOWN",
                    "%s", error.message);
    else
        answer_text(wants_index ? &image.index : &image.manifests[0], wants_index ? IMAGE_INDEX : IMAGE_MANIFEST,
                    are_known, answer);
}

/* Finds the image that has a digest, from what was recorded; its digests are known, unless the cache was emptied. */
static bool find_recorded(const struct served *served, const char *name, const char *digest, struct arena *arena,
                          struct image *ret_image)
{
    struct error unsaid;
    const char *tag = is_digest(digest) ? blob_place_find(served->places, name, digest, arena) : NULL;
    if (tag == NULL || !image_find(served->repositories, name, tag, arena, ret_image, &unsaid) ||
        !image_digest(ret_image, served->digests, true, arena, &unsaid))
        return false;
    image_write(ret_image, arena);
    return true;
}

static void answer_manifest_by_digest(const struct served *served, const char *name, const char *digest,
                                      struct answer *answer)
{
    struct image image;
    bool found = find_recorded(served, name, digest, answer->arena, &image);
    if (found && strcmp(image.index.digest, digest) == 0) {
        answer_text(&image.index, IMAGE_INDEX, true, answer);
        return;
    }
    for (size_t i = 0; i < N_PLATFORMS && found; i++)
        if (strcmp(image.manifests[i].digest, digest) == 0) {
            answer_text(&image.manifests[i], IMAGE_MANIFEST, true, answer);
            return;
        }
    answer_fail(answer, 404, "MANIFEST_UNKNOWN", "%s has no manifest %s: ask for its tag first", name, digest);
}

/* Gets the file of a blob: a layer or a configuration. */
static bool make_blob(const struct image *image, const char *digest, struct answer *answer, struct error *error)
{
    for (size_t i = 0; i < image->n_layers; i++)
        if (strcmp(image->layers[i].digest, digest) == 0)
            return image_layer_make(image, &image->layers[i], answer->arena, &answer->file, error);
    for (size_t i = 0; i < N_PLATFORMS; i++)
        if (strcmp(image->configs[i].digest, digest) == 0) {
            answer->file =
                vfile_of_text(image->configs[i].text, image->configs[i].length, (struct origin){0}, answer->arena);
            return true;
        }
    return error_set(error, "there is no blob %s: ask for the manifest of its tag first", digest);
}

static void answer_blob(const struct served *served, const struct http_request *request, const char *name,
                        const char *digest, struct answer *answer)
{
    struct image image;
    struct error error = {0};
    error_set(&error, "there is no blob %s: ask for the manifest of its tag first", digest);
    if (!find_recorded(served, name, digest, answer->arena, &image) || !make_blob(&image, digest, answer, &error)) {
        answer_fail(answer, 404, "BLOB_UNKNOWN", "%s: %s", name, error.message);
        return;
    }
    if (origin_verify(&answer->file.origin)) { /* the digest tells clients that nothing has */
        answer_fail(answer, 500, "UNKNOWN", "a source of %s has changed since it was opened; restart wfs serve", name);
        return;
    }
    const char *etag = arena_printf(answer->arena, "\"%s\"", digest);
    answer->is_file = true;
    answer->file_key = strtoull(digest + strlen(DIGEST_PREFIX) + SHA256_HEX - 16, NULL, 16);
    answer_header(answer, "Content-Type", "application/octet-stream");
    answer_header(answer, "Docker-Content-Digest", "%s", digest);
    answer_header(answer, "ETag", "%s", etag);
    answer_header(answer, "Accept-Ranges", "bytes");
    file_answer_part(request, etag, NULL, answer);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

struct tags {
    struct arena *arena;
    const char **items;
    size_t count;
};

static void add_tag(struct tags *tags, const char *tag)
{
    tags->items = arena_grow(tags->arena, tags->items, tags->count, sizeof *tags->items);
    tags->items[tags->count++] = tag;
}

/* Adds a tag for each GGUF that can be made. */
static void add_ggufs(struct tags *tags, const struct repository *repository)
{
    struct repository_files files = repository_files(repository);
    for (size_t i = 0; i < files.count; i++) {
        uint64_t unused;
        char etag[ETAG_TEXT];
        const char *tag = repository_tag_of(repository, &files.items[i], tags->arena);
        if (tag != NULL && repository_plan(repository, files.items[i].node, &unused, etag))
            add_tag(tags, tag);
    }
}

static struct tags find_tags(const struct repositories *repositories, const char *name, struct arena *arena)
{
    struct tags tags = {.arena = arena};
    for (size_t i = 0; i < repositories->count; i++) {
        const struct repository *repository = &repositories->items[i];
        if (strcmp(repository->base, name) != 0 || !repository->is_listed || repository_is_empty(repository))
            continue;
        if (repository->gguf)
            add_ggufs(&tags, repository);
        else
            add_tag(&tags, repository->tag);
    }
    if (tags.count != 0)
        qsort(tags.items, tags.count, sizeof *tags.items, by_text);
    return tags;
}

/* Answers with the tags after ?last=TAG, as many as ?n=N has. */
static void answer_tags(const struct served *served, const struct http_request *request, const char *name,
                        struct answer *answer)
{
    struct tags tags = find_tags(served->repositories, name, answer->arena);
    struct query query = query_parse(request->query, answer->arena);
    const char *last = query_value(&query, "last"), *count = query_value(&query, "n");
    size_t i = 0, n_put = 0,
           most = count != NULL && *count >= '0' && *count <= '9' ? (size_t)strtoul(count, NULL, 10) : SIZE_MAX;
    struct json_writer writer = {.out = &answer->text, .letters = JSON_UTF8, .compact = true};
    answer_header(answer, "Content-Type", "application/json");
    json_begin_object(&writer, NULL);
    json_put_text(&writer, "name", name);
    json_begin_array(&writer, "tags");
    while (last != NULL && i < tags.count && strcmp(tags.items[i], last) <= 0)
        i++;
    for (; i < tags.count && n_put < most; i++, n_put++)
        json_put_text(&writer, NULL, tags.items[i]);
    json_end(&writer);
    json_end(&writer);
    if (i < tags.count && n_put > 0)
        answer_header(answer, "Link", "</v2/%s/tags/list?n=%zu&last=%s>; rel=\"next\"", name, most, tags.items[i - 1]);
}

static void answer_referrers(const char *digest, struct answer *answer)
{
    if (!is_digest(digest)) {
        answer_fail(answer, 400, "DIGEST_INVALID", "'%s' is no digest: sha256 and 64 digits", digest);
        return;
    }
    answer_header(answer, "Content-Type", IMAGE_INDEX);
    buffer_append_text(&answer->text, "{\"schemaVersion\":2,\"mediaType\":\"" IMAGE_INDEX "\",\"manifests\":[]}");
}

void image_answer(const struct served *served, const struct http_request *request, const struct route *route,
                  struct answer *answer)
{
    const char *name = image_model(served->repositories, route->repository);
    if (route->kind == ROUTE_TAGS)
        answer_tags(served, request, name, answer);
    else if (route->kind == ROUTE_REFERRERS)
        answer_referrers(route->revision, answer);
    else if (route->kind == ROUTE_BLOB)
        answer_blob(served, request, name, route->revision, answer);
    else if (text_starts_with(route->revision, DIGEST_PREFIX))
        answer_manifest_by_digest(served, name, route->revision, answer);
    else
        answer_tag(served, request, name, route->revision, answer);
}
