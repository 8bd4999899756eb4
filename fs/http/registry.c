/* A read-only registry of GGUF files, in the protocol of OCI registries: manifests name files and texts by SHA-256.
 *
 * Names and tags have letters of either case, since references to OCI registries are in lower case. A tag of
 * ORG/NAME-GGUF is a quantization: Q4_K_M. "latest" is the first of the usual choices. The manifest has the
 * form that the Accept header asks for (fs/library/manifest.h). Making one takes a pass over the files it names
 * (fs/tree/digests.h), unless their digests are known.
 *
 * Source: the OCI distribution specification 1.1. */
#include "fs/http/protocols.h"

#include "base/text.h"
#include "fs/http/file_answer.h"
#include "fs/library/manifest.h"
#include "text/json_write.h"

#include <string.h>
#include <strings.h>

/* Returns the first form whose `accept` is in the Accept header; else the last. */
static const struct manifest_form *form_of(const struct http_request *request)
{
    size_t i = 0;
    while (i < N_MANIFEST_FORMS - 1 &&
           (request->accept == NULL || strstr(request->accept, manifest_forms[i].accept) == NULL))
        i++;
    return &manifest_forms[i];
}

bool registry_is_llama(const struct http_request *request)
{
    const char *accept = request->accept;
    if (request->user_agent != NULL && text_starts_with(request->user_agent, "llama"))
        return true;
    return accept != NULL && strcmp(accept, "application/json") == 0;
}

/* The making of a manifest. */
struct making {
    const struct served *served;
    const struct repository *repository;
    const struct repository_file *model;
    bool only_known; /* computes no digest: without the digest of a file, there is no manifest */
    struct arena *arena;
    struct error *error;
};

static bool measure(void *context, struct tree *tree, struct manifest_layer *layer, struct error *error)
{
    const struct making *making = context;
    char etag[ETAG_TEXT], hex[SHA256_HEX + 1];
    struct vfile file;
    if (!repository_plan(making->repository, layer->node, &layer->size, etag))
        return error_set(error, "%s cannot be made", layer->name);
    etag[SHA256_HEX + 1] = '\0'; /* the identity without quotation marks */
    bool known = digest_known(making->served->digests, etag + 1, hex);
    if (!known && making->only_known)
        return error_set(error, "the digest of %s is not known yet; ask for it with a program of this machine",
                         layer->name);
    if (!known && (!tree_file(tree, layer->node, making->arena, &file, error) ||
                   !digest_get(making->served->digests, etag + 1, layer->name, &file, hex, error)))
        return false;
    manifest_write_digest(hex, layer->digest);
    return true;
}

static bool make_manifest(struct making *making, const struct manifest_form *form, struct manifest *ret_manifest)
{
    uint64_t size;
    char etag[ETAG_TEXT];
    const struct repository *repository = making->repository;
    const struct repository_file *projector = repository_projector(repository, making->arena);
    const struct repository_file *draft = repository_draft(repository, making->arena);
    struct manifest_model model = {
        .tree = repository->tree,
        .name = repository->model,
        .type = repository_tag_of(repository, making->model, making->arena),
        .file = making->model->name,
        .node = making->model->node,
    };
    if (projector != NULL && repository_plan(repository, projector->node, &size, etag)) {
        model.projector_file = projector->name;
        model.projector = projector->node;
    }
    if (draft != NULL && repository_plan(repository, draft->node, &size, etag)) {
        model.draft_file = draft->name;
        model.draft = draft->node;
    }
    return manifest_make(&model, form, measure, making, making->arena, ret_manifest, making->error);
}

static const char *digest_of(const struct manifest *manifest, char digest[DIGEST_TEXT])
{
    manifest_digest_text(manifest->text, manifest->length, digest);
    return digest;
}

static void answer_manifest(const struct manifest *manifest, struct answer *answer)
{
    char digest[DIGEST_TEXT];
    answer_header(answer, "Content-Type", "%s", manifest->form->media_type);
    answer_header(answer, "Docker-Content-Digest", "%s", digest_of(manifest, digest));
    buffer_append(&answer->text, manifest->text, manifest->length);
}

/* Makes, one after the other, all manifests whose files have known digests; returns true at the first that fits. */
typedef bool fits_function(const struct manifest *manifest, const char *digest);
static bool find_manifest(struct making *making, fits_function *fits, const char *digest, struct manifest *ret_manifest)
{
    const struct repository *repository = making->repository;
    struct repository_files files = repository_files(repository);
    making->only_known = true;
    for (size_t i = 0; i < files.count; i++) {
        making->model = &files.items[i];
        bool is_model = repository_tag_of(repository, making->model, making->arena) != NULL;
        for (size_t j = 0; j < N_MANIFEST_FORMS && is_model; j++)
            if (make_manifest(making, &manifest_forms[j], ret_manifest) && fits(ret_manifest, digest))
                return true;
    }
    return false;
}

static bool has_digest(const struct manifest *manifest, const char *digest)
{
    char own[DIGEST_TEXT];
    return strcmp(digest_of(manifest, own), digest) == 0;
}

static bool names_digest(const struct manifest *manifest, const char *digest)
{
    bool names = strcmp(manifest->config_digest, digest) == 0;
    for (size_t i = 0; i < manifest->n_layers; i++)
        names |= strcmp(manifest->layers[i].digest, digest) == 0;
    return names;
}

static void answer_reference(struct making *making, const struct http_request *request, const char *reference,
                             struct answer *answer)
{
    struct manifest manifest;
    bool is_digest = text_starts_with(reference, DIGEST_PREFIX);
    making->only_known |= request->is_cross_site; /* any page could have this machine compute for minutes */
    making->model = is_digest ? NULL : repository_file_of_tag(making->repository, reference, true, answer->arena);
    if (is_digest ? !find_manifest(making, has_digest, reference, &manifest) : making->model == NULL)
        answer_fail(answer, 404, "MANIFEST_UNKNOWN", "%s has no manifest '%s'; a tag is a type, as in Q4_K_M",
                    making->repository->id, reference);
    else if (!is_digest && !make_manifest(making, form_of(request), &manifest))
        answer_fail(answer, 500, "UNKNOWN", "%s: %s", making->model->name, making->error->message);
    else
        answer_manifest(&manifest, answer);
}

/* Answers with a file whose digest is known. */
static bool answer_known_file(struct making *making, const struct http_request *request, const char *digest,
                              struct answer *answer)
{
    const struct repository *repository = making->repository;
    struct repository_files files = repository_files(repository);
    for (size_t i = 0; i < files.count; i++) {
        struct manifest_layer layer = {.name = files.items[i].name, .node = files.items[i].node};
        if (measure(making, repository->tree, &layer, making->error) && strcmp(layer.digest, digest) == 0)
            return file_answer(repository, layer.node, layer.name, "", request, answer);
    }
    return false;
}

/* Answers with a text that a manifest names: its configuration, or a side file. */
static bool answer_text(struct making *making, const struct http_request *request, const char *digest,
                        struct answer *answer)
{
    struct manifest manifest;
    if (!find_manifest(making, names_digest, digest, &manifest))
        return false;
    for (size_t i = 0; i < manifest.n_layers; i++)
        if (strcmp(manifest.layers[i].digest, digest) == 0)
            return file_answer(making->repository, manifest.layers[i].node, manifest.layers[i].name, "", request,
                               answer);
    const char *etag = arena_printf(answer->arena, "\"%s\"", digest);
    answer->is_file = true;
    answer->file = vfile_of_text(manifest.config, manifest.config_length, (struct origin){0}, answer->arena);
    answer_header(answer, "Content-Type", "application/octet-stream");
    answer_header(answer, "ETag", "%s", etag);
    file_answer_part(request, etag, NULL, answer);
    return true;
}

static void answer_blob(struct making *making, const struct http_request *request, const char *digest,
                        struct answer *answer)
{
    making->only_known = true;
    if (!answer_known_file(making, request, digest, answer) && !answer_text(making, request, digest, answer))
        answer_fail(answer, 404, "BLOB_UNKNOWN", "%s has no blob %s: ask for the manifest of its tag first",
                    making->repository->id, digest);
    else if (answer->is_file) {
        answer_header(answer, "Docker-Content-Digest", "%s", digest);
        /* Ollama takes ranges from there and fails without it, whether or not it is elsewhere. "./", since a reference
         * must not begin with a name and a colon (RFC 3986, 4.2). */
        answer_header(answer, "Location", "./%s", digest);
    }
}

static void answer_tags(const struct repository *repository, struct answer *answer)
{
    struct json_writer writer = {.out = &answer->text, .letters = JSON_UTF8, .compact = true};
    answer_header(answer, "Content-Type", "application/json");
    json_begin_object(&writer, NULL);
    json_put_text(&writer, "name", repository->id);
    json_begin_array(&writer, "tags");
    struct repository_files files = repository_files(repository);
    for (size_t i = 0; i < files.count; i++) {
        uint64_t unused;
        char etag[ETAG_TEXT];
        const char *tag = repository_tag_of(repository, &files.items[i], answer->arena);
        if (tag != NULL && repository_plan(repository, files.items[i].node, &unused, etag))
            json_put_text(&writer, NULL, tag);
    }
    json_end(&writer);
    json_end(&writer);
}

void registry_answer(const struct served *served, const struct http_request *request, const struct route *route,
                     struct answer *answer)
{
    struct error error = {0};
    struct making making = {.served = served, .arena = answer->arena, .error = &error};
    if (route->kind == ROUTE_REGISTRY) {
        answer_header(answer, "Content-Type", "application/json");
        answer_header(answer, "Docker-Distribution-API-Version", "registry/2.0");
        buffer_append_text(&answer->text, "{}");
        return;
    }
    making.repository = repository_find_any_case(served->repositories, route->repository);
    if (making.repository == NULL || !making.repository->gguf)
        answer_fail(answer, 404, "NAME_UNKNOWN",
                    "there is no repository '%s' here: ORG/NAME has images, with tags such as mlx-4bit, and "
                    "ORG/NAME-GGUF GGUF files",
                    route->repository);
    else if (route->kind == ROUTE_TAGS)
        answer_tags(making.repository, answer);

    else if (route->kind == ROUTE_BLOB)
        answer_blob(&making, request, route->revision, answer);
    else
        answer_reference(&making, request, route->revision, answer);
}
