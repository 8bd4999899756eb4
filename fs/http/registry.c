#include "fs/http/registry.h"

#include "base/text.h"
#include "formats/json_write.h"
#include "fs/http/file_answer.h"
#include "fs/tree/gguf_architecture.h"
#include "models/shown_tensors.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define OCI_MANIFEST    "application/vnd.oci.image.manifest.v1+json"
#define DOCKER_MANIFEST "application/vnd.docker.distribution.manifest.v2+json"

static const char digest_prefix[] = "sha256:";

enum { DIGEST_TEXT = sizeof digest_prefix + SHA256_HEX };

enum role { MODEL, PROJECTOR, TEMPLATE, SYSTEM, LICENSE, PARAMS, N_ROLES };

/* The facts of a model that configurations name. */
struct facts {
    const char *name, *architecture, *type, *parameters; /* "Llama-3.2-1B", "llama", "Q4_K_M", "1.2B" */
    const char *digests;                                 /* of all layers: JSON, an array of texts */
};

/* A form of manifests. */
struct form {
    const char *accept, *manifest;
    const char *artifact; /* artifactType; NULL: none */
    const char *title;    /* the annotation with the file's name; NULL: none */
    const char *config;
    const char *layers[N_ROLES]; /* media types; NULL: has no such layer */
    void (*put_config)(struct json_writer *writer, const struct facts *facts);
};

static void put_ollama_config(struct json_writer *writer, const struct facts *facts)
{
    json_put_template(writer,
                      "'model_format': 'gguf', 'model_family': %s, 'model_families': [%s], 'model_type': %s, "
                      "'file_type': %s, 'architecture': 'amd64', 'os': 'linux', "
                      "'rootfs': {'type': 'layers', 'diff_ids': %r}",
                      facts->architecture, facts->architecture, facts->parameters, facts->type, facts->digests);
}

static void put_docker_config(struct json_writer *writer, const struct facts *facts)
{
    json_put_template(writer,
                      "'config': {'format': 'gguf', 'quantization': %s, 'parameters': %s, 'architecture': %s}, "
                      "'rootfs': {'type': 'rootfs', 'diff_ids': %r}",
                      facts->type, facts->parameters, facts->architecture, facts->digests);
}

static void put_modelpack_config(struct json_writer *writer, const struct facts *facts)
{
    json_put_template(writer,
                      "'descriptor': {'name': %s}, 'modelfs': {'type': 'layers', 'diffIds': %r}, "
                      "'config': {'architecture': %s, 'format': 'gguf', 'paramSize': %s, 'quantization': %s}",
                      facts->name, facts->digests, facts->architecture, facts->parameters, facts->type);
}

/* The first form whose `accept` is in the Accept header counts; the last is that of clients which send none of them. */
static const struct form forms[] = {
    {
        "application/vnd.cncf.model.",
        OCI_MANIFEST,
        "application/vnd.cncf.model.manifest.v1+json",
        "org.cncf.model.filepath",
        "application/vnd.cncf.model.config.v1+json",
        {[MODEL] = "application/vnd.cncf.model.weight.v1.raw",
         [PROJECTOR] = "application/vnd.cncf.model.weight.v1.raw",
         [LICENSE] = "application/vnd.cncf.model.doc.v1.raw"},
        put_modelpack_config,
    },
    {
        OCI_MANIFEST,
        OCI_MANIFEST,
        NULL,
        "org.opencontainers.image.title",
        "application/vnd.docker.ai.model.config.v0.1+json",
        {[MODEL] = "application/vnd.docker.ai.gguf.v3",
         [PROJECTOR] = "application/vnd.docker.ai.mmproj",
         [LICENSE] = "application/vnd.docker.ai.license"},
        put_docker_config,
    },
    {
        DOCKER_MANIFEST,
        DOCKER_MANIFEST,
        NULL,
        NULL,
        "application/vnd.docker.container.image.v1+json",
        {[MODEL] = "application/vnd.ollama.image.model",
         [PROJECTOR] = "application/vnd.ollama.image.projector",
         [TEMPLATE] = "application/vnd.ollama.image.template",
         [SYSTEM] = "application/vnd.ollama.image.system",
         [LICENSE] = "application/vnd.ollama.image.license",
         [PARAMS] = "application/vnd.ollama.image.params"},
        put_ollama_config,
    },
};

enum { N_FORMS = sizeof forms / sizeof *forms };

static const struct form *form_of(const struct http_request *request)
{
    size_t i = 0;
    while (i < N_FORMS - 1 && (request->accept == NULL || strstr(request->accept, forms[i].accept) == NULL))
        i++;
    return &forms[i];
}

bool registry_is_llama(const struct http_request *request)
{
    const char *accept = request->accept;
    if (request->user_agent != NULL && text_starts_with(request->user_agent, "llama"))
        return true;
    return accept != NULL && strcmp(accept, "application/json") == 0;
}

struct layer {
    const char *media_type, *name;
    node_id node;
    uint64_t size;
    char digest[DIGEST_TEXT];
};

struct manifest {
    const struct form *form;
    struct layer layers[N_ROLES];
    size_t n_layers;
    struct vfile config;
    char config_digest[DIGEST_TEXT], digest[DIGEST_TEXT];
    const char *text;
    size_t length;
};

/* The making of a manifest. */
struct making {
    const struct registry *registry;
    const struct repository *repository;
    const struct repository_file *model;
    bool only_known; /* computes no digest: without the digest of a file, there is no manifest */
    struct arena *arena;
    struct error *error;
};

static void write_digest(const char hex[SHA256_HEX + 1], char digest[DIGEST_TEXT])
{
    snprintf(digest, DIGEST_TEXT, "%s%s", digest_prefix, hex);
}

static void digest_of_text(const void *text, size_t length, char digest[DIGEST_TEXT])
{
    char hex[SHA256_HEX + 1];
    sha256_hex(text, length, hex);
    write_digest(hex, digest);
}

/* Fills in the size and the digest of a layer. */
static bool measure(const struct making *making, struct layer *layer)
{
    char etag[ETAG_TEXT], hex[SHA256_HEX + 1];
    struct vfile file;
    struct tree *tree = making->repository->tree;
    if (!repository_plan(making->repository, layer->node, &layer->size, etag))
        return error_set(making->error, "%s cannot be made", layer->name);
    etag[SHA256_HEX + 1] = '\0'; /* the identity without quotation marks */
    bool known = digest_known(making->registry->digests, etag + 1, hex);
    if (!known && making->only_known)
        return false;
    if (!known && (!tree_file(tree, layer->node, making->arena, &file, making->error) ||
                   !digest_get(making->registry->digests, etag + 1, layer->name, &file, hex, making->error)))
        return false;
    write_digest(hex, layer->digest);
    return true;
}

static bool add_layer(const struct making *making, struct manifest *manifest, enum role role, const char *name,
                      node_id node)
{
    struct layer *layer = &manifest->layers[manifest->n_layers];
    if (manifest->form->layers[role] == NULL)
        return true;
    *layer = (struct layer){.media_type = manifest->form->layers[role], .name = name, .node = node};
    manifest->n_layers++;
    return measure(making, layer);
}

static bool add_layers(const struct making *making, struct manifest *manifest)
{
    static const struct {
        enum role role;
        const char *name;
    } side_files[] = {{TEMPLATE, "template"}, {SYSTEM, "system"}, {LICENSE, "LICENSE"}, {PARAMS, "params"}};
    const struct repository *repository = making->repository;
    struct node_attributes attributes;
    uint64_t size;
    char etag[ETAG_TEXT];
    const struct repository_file *projector =
        repository_file(repository, arena_printf(making->arena, "mmproj-%s-F16.gguf", repository->model));
    if (!add_layer(making, manifest, MODEL, making->model->name, making->model->node))
        return false;
    if (projector != NULL && repository_plan(repository, projector->node, &size, etag) &&
        !add_layer(making, manifest, PROJECTOR, projector->name, projector->node))
        return false;
    for (size_t i = 0; i < sizeof side_files / sizeof *side_files; i++)
        if (tree_lookup(repository->tree, TREE_ROOT, side_files[i].name, &attributes) && !attributes.directory &&
            !add_layer(making, manifest, side_files[i].role, side_files[i].name, attributes.id))
            return false;
    return true;
}

static const char *human_number(uint64_t number, struct arena *arena)
{
    static const struct {
        double unit;
        char letter;
    } units[] = {{1e12, 'T'}, {1e9, 'B'}, {1e6, 'M'}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if ((double)number >= units[i].unit)
            return arena_printf(arena, "%.1f%c", (double)number / units[i].unit, units[i].letter);
    return arena_printf(arena, "%.1fK", (double)number / 1e3);
}

/* Returns the digests of all layers as a JSON array. */
static const char *layer_digests(const struct manifest *manifest, struct arena *arena)
{
    const char *text = "[";
    for (size_t i = 0; i < manifest->n_layers; i++)
        text = arena_printf(arena, "%s%s\"%s\"", text, i == 0 ? "" : ",", manifest->layers[i].digest);
    return arena_printf(arena, "%s]", text);
}

/* Makes the configuration; fails if the model's header cannot be read. */
static bool add_config(const struct making *making, struct manifest *manifest)
{
    struct vfile file;
    struct arena *arena = making->arena;
    const struct repository *repository = making->repository;
    const char *type = making->model->name + strlen(repository->model) + 1;
    struct facts facts = {
        .name = repository->model,
        .type = arena_strndup(arena, type, strlen(type) - strlen(".gguf")),
        .parameters = human_number(shown_tensors_parameters(tree_checkpoint(repository->tree)), arena),
        .digests = layer_digests(manifest, arena),
    };
    if (!tree_file(repository->tree, making->model->node, arena, &file, making->error) ||
        (facts.architecture = gguf_architecture(&file, arena, making->error)) == NULL)
        return false;
    struct buffer text = {0};
    struct json_writer writer = {.out = &text, .letters = JSON_UTF8, .compact = true};
    json_begin_object(&writer, NULL);
    manifest->form->put_config(&writer, &facts);
    json_end(&writer);
    digest_of_text(text.bytes, text.length, manifest->config_digest);
    manifest->config = vfile_of_text(text.bytes, text.length, (struct origin){0}, arena);
    buffer_free(&text);
    return true;
}

static void put_descriptor(struct json_writer *writer, const char *key, const char *media_type, const char *digest,
                           uint64_t size)
{
    json_begin_object(writer, key);
    json_put_text(writer, "mediaType", media_type);
    json_put_text(writer, "digest", digest);
    json_put_number(writer, "size", size);
}

static void put_layers(struct json_writer *writer, const struct manifest *manifest)
{
    json_begin_array(writer, "layers");
    for (size_t i = 0; i < manifest->n_layers; i++) {
        const struct layer *layer = &manifest->layers[i];
        put_descriptor(writer, NULL, layer->media_type, layer->digest, layer->size);
        if (manifest->form->title != NULL) {
            json_begin_object(writer, "annotations");
            json_put_text(writer, manifest->form->title, layer->name);
            json_end(writer);
        }
        json_end(writer);
    }
    json_end(writer);
}

static bool make_manifest(const struct making *making, const struct form *form, struct manifest *ret_manifest)
{
    struct buffer text = {0};
    struct json_writer writer = {.out = &text, .letters = JSON_UTF8, .compact = true};
    *ret_manifest = (struct manifest){.form = form};
    if (!add_layers(making, ret_manifest) || !add_config(making, ret_manifest))
        return false;
    json_begin_object(&writer, NULL);
    json_put_number(&writer, "schemaVersion", 2);
    json_put_text(&writer, "mediaType", form->manifest);
    if (form->artifact != NULL)
        json_put_text(&writer, "artifactType", form->artifact);
    put_descriptor(&writer, "config", form->config, ret_manifest->config_digest, ret_manifest->config.size);
    json_end(&writer);
    put_layers(&writer, ret_manifest);
    json_end(&writer);
    digest_of_text(text.bytes, text.length, ret_manifest->digest);
    ret_manifest->text = arena_copy(making->arena, text.bytes, text.length);
    ret_manifest->length = text.length;
    buffer_free(&text);
    return true;
}

static void answer_manifest(const struct manifest *manifest, struct answer *answer)
{
    answer_header(answer, "Content-Type", "%s", manifest->form->manifest);
    answer_header(answer, "Docker-Content-Digest", "%s", manifest->digest);
    buffer_append(&answer->text, manifest->text, manifest->length);
}

/* Makes, one after the other, all manifests whose files have known digests; returns true at the first that fits. */
typedef bool fits_function(const struct manifest *manifest, const char *digest);
static bool find_manifest(struct making *making, fits_function *fits, const char *digest, struct manifest *ret_manifest)
{
    const struct repository *repository = making->repository;
    making->only_known = true;
    for (size_t i = 0; i < repository->n_files; i++) {
        making->model = &repository->files[i];
        for (size_t j = 0; j < N_FORMS && !text_starts_with(making->model->name, "mmproj-"); j++)
            if (make_manifest(making, &forms[j], ret_manifest) && fits(ret_manifest, digest))
                return true;
    }
    return false;
}

static bool has_digest(const struct manifest *manifest, const char *digest)
{
    return strcmp(manifest->digest, digest) == 0;
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
    bool is_digest = text_starts_with(reference, digest_prefix);
    making->model = is_digest ? NULL : repository_file_of_tag(making->repository, reference, answer->arena);
    if (is_digest ? !find_manifest(making, has_digest, reference, &manifest) : making->model == NULL)
        answer_fail(answer, 404, "MANIFEST_UNKNOWN", "%s has no manifest '%s'; a tag is a type, as in Q4_K_M",
                    making->repository->id, reference);
    else if (!is_digest && !make_manifest(making, form_of(request), &manifest))
        answer_fail(answer, 500, "UNKNOWN", "%s: %s", making->model->name, making->error->message);
    else
        answer_manifest(&manifest, answer);
}

/* Answers with a file whose digest is known. */
static bool answer_known_file(const struct making *making, const struct http_request *request, const char *digest,
                              struct answer *answer)
{
    const struct repository *repository = making->repository;
    for (size_t i = 0; i < repository->n_files; i++) {
        struct layer layer = {.name = repository->files[i].name, .node = repository->files[i].node};
        if (measure(making, &layer) && strcmp(layer.digest, digest) == 0)
            return file_answer(repository, layer.node, layer.name, request, answer);
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
            return file_answer(making->repository, manifest.layers[i].node, manifest.layers[i].name, request, answer);
    const char *etag = arena_printf(answer->arena, "\"%s\"", digest);
    answer->is_file = true;
    answer->file = manifest.config;
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
    else if (answer->is_file)
        answer_header(answer, "Docker-Content-Digest", "%s", digest);
}

static void answer_tags(const struct repository *repository, struct answer *answer)
{
    struct json_writer writer = {.out = &answer->text, .letters = JSON_UTF8, .compact = true};
    answer_header(answer, "Content-Type", "application/json");
    json_begin_object(&writer, NULL);
    json_put_text(&writer, "name", repository->id);
    json_begin_array(&writer, "tags");
    size_t skipped = strlen(repository->model) + 1;
    for (size_t i = 0; i < repository->n_files; i++) {
        const char *name = repository->files[i].name;
        if (!text_starts_with(name, "mmproj-"))
            json_put_text_n(&writer, NULL, name + skipped, strlen(name) - skipped - strlen(".gguf"));
    }
    json_end(&writer);
    json_end(&writer);
}

/* Finds a repository with letters of either case: references to OCI registries have lower-case names. */
static const struct repository *find_repository(const struct repositories *repositories, const char *id)
{
    const struct repository *exact = repository_find(repositories, id);
    for (size_t i = 0; i < repositories->count && exact == NULL; i++)
        if (strcasecmp(repositories->items[i].id, id) == 0)
            exact = &repositories->items[i];
    return exact != NULL && exact->gguf ? exact : NULL;
}

void registry_answer(const struct registry *registry, const struct http_request *request, const struct route *route,
                     struct answer *answer)
{
    struct error error = {0};
    struct making making = {.registry = registry, .arena = answer->arena, .error = &error};
    if (route->kind == ROUTE_REGISTRY) {
        answer_header(answer, "Content-Type", "application/json");
        answer_header(answer, "Docker-Distribution-API-Version", "registry/2.0");
        buffer_append_text(&answer->text, "{}");
        return;
    }
    making.repository = find_repository(registry->repositories, route->repository);
    if (making.repository == NULL)
        answer_fail(answer, 404, "NAME_UNKNOWN", "there is no model '%s' here with GGUF files", route->repository);
    else if (route->kind == ROUTE_TAGS)
        answer_tags(making.repository, answer);
    else if (route->kind == ROUTE_BLOB)
        answer_blob(&making, request, route->revision, answer);
    else
        answer_reference(&making, request, route->revision, answer);
}
