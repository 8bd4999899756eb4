#include "sources/location_ollama.h"

#include "base/encodings.h"
#include "base/text.h"
#include "sources/location_scheme.h"
#include "sources/paths.h"
#include "text/json.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Ollama's manifests are some kilobytes; those with a blob for each tensor have one layer a tensor. */
enum { MANIFEST_LIMIT = 16 << 20, MAX_LAYERS = 1 << 16, MAX_PART = 350, MAX_SIDE_FILES = 4096 };

static const char prefix[] = "ollama://", manifests[] = "/manifests/", latest[] = "latest";
static const char default_host[] = "registry.ollama.ai", default_namespace[] = "library";

/* What a layer holds, by the end of its media type. A name "" is the layer's own. */
static const struct kind {
    const char *type, *stem, *ending;
} kinds[] = {
    {"model", "model", ".gguf"},
    {"projector", "mmproj", ".gguf"},
    {"adapter", "adapter", ".gguf"},
    {"draft", "draft", ".gguf"},
    {"template", "template", ""},
    {"system", "system", ""},
    {"params", "params", ""},
    {"messages", "messages", ""},
    {"license", "LICENSE", ""},
    {"json", "", ""},
    {"tensor", "model", ".safetensors"},
};

enum { N_KINDS = sizeof kinds / sizeof *kinds };

static const char media_types[] = "application/vnd.ollama.image.";

struct blob {
    const char *name, *path; /* as the location shows it; in the store */
    uint64_t size;
};

struct model {
    struct arena *arena;
    struct location *store;
    const char *shown, *name; /* the text for messages; the model's name */
    struct blob *blobs;
    size_t n_blobs;
};

/* Names. */

static const char *from_environment(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && *value != '\0' ? value : NULL;
}

const char *ollama_store(struct arena *arena)
{
    static const char of_service[] = "/usr/share/ollama/.ollama/models";
    const char *named = from_environment("OLLAMA_MODELS"), *home = from_environment("HOME");
    if (named != NULL) { /* a server has another working directory */
        const char *real = *named != '/' ? local_real_path(named, arena) : NULL;
        return real != NULL ? real : arena_strdup(arena, named);
    }
    const char *own = home != NULL ? arena_printf(arena, "%s/.ollama/models", home) : of_service;
    return local_kind(own) == LOCATION_NOTHING && local_kind(of_service) == LOCATION_FOLDER ? of_service : own;
}

static bool is_part(const char *part)
{
    size_t length = strlen(part);
    if (length == 0 || length > MAX_PART || *part == '.')
        return false;
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)part[i]) && strchr("._-:", part[i]) == NULL)
            return false;
    return true;
}

/* Returns the path of a manifest below manifests/: HOST/NAMESPACE/NAME/TAG; NULL if the text is no name. *ret_name is
 * the model's name: NAME, or NAME-TAG if the tag is not latest. */
static const char *find_path(struct arena *arena, const char *text, const char **ret_name)
{
    const char *parts[3] = {default_host, default_namespace, NULL}, *tag = latest, *last = strrchr(text, '/');
    const char *colon = strchr(last != NULL ? last : text, ':');
    char *names = colon != NULL ? arena_strndup(arena, text, (size_t)(colon - text)) : arena_strdup(arena, text);
    size_t n_parts = 1;
    if (colon != NULL)
        tag = colon + 1;
    for (const char *at = names; (at = strchr(at, '/')) != NULL; at++)
        n_parts++;
    if (n_parts > 3)
        return NULL;
    for (size_t i = 3 - n_parts; i < 3; i++) {
        size_t length = strcspn(names, "/");
        parts[i] = arena_strndup(arena, names, length);
        names += length + (names[length] == '/');
    }
    for (size_t i = 0; i < 3; i++)
        if (!is_part(parts[i]))
            return NULL;
    *ret_name = strcmp(tag, latest) == 0 ? parts[2] : arena_printf(arena, "%s-%s", parts[2], tag);
    return is_part(tag) ? arena_printf(arena, "%s/%s/%s/%s", parts[0], parts[1], parts[2], tag) : NULL;
}

/* The store and the manifest that a text names. */
struct place {
    const char *store, *path, *name;
};

static bool find_place(struct arena *arena, const char *text, struct place *ret_place, struct error *error)
{
    const char *rest = text + strlen(prefix), *path = NULL;
    for (const char *at = rest; *rest == '/' && (at = strstr(at, manifests)) != NULL; at++)
        path = at;
    if (path == NULL && *rest != '/') {
        ret_place->store = ollama_store(arena);
        ret_place->path = find_path(arena, rest, &ret_place->name);
    } else if (path != NULL) {
        const char *slash = strrchr(path, '/');
        const char *inner = path + strlen(manifests);
        ret_place->store = arena_strndup(arena, rest, (size_t)(path - rest));
        ret_place->path = slash > inner
                              ? find_path(arena, arena_printf(arena, "%.*s:%s", (int)(slash - inner), inner, slash + 1),
                                          &ret_place->name)
                              : NULL;
    } else {
        ret_place->path = NULL;
    }
    return ret_place->path != NULL ||
           error_set(error, "%s: not ollama://NAME[:TAG], ollama://NAMESPACE/NAME or ollama://HOST/NAMESPACE/NAME",
                     text);
}

const char *ollama_store_of(const char *text, struct arena *arena)
{
    struct error unused;
    struct place place;
    return text_starts_with(text, prefix) && find_place(arena, text, &place, &unused) ? place.store : NULL;
}

/* Manifests. */

static bool is_digest(const char *digest)
{
    static const char algorithm[] = "sha256:";
    return text_starts_with(digest, algorithm) && strlen(digest) == strlen(algorithm) + SHA256_HEX &&
           strspn(digest + strlen(algorithm), "0123456789abcdef") == SHA256_HEX;
}

static const struct kind *kind_of(const char *media_type)
{
    for (size_t i = 0; media_type != NULL && text_starts_with(media_type, media_types) && i < N_KINDS; i++)
        if (strcmp(kinds[i].type, media_type + strlen(media_types)) == 0)
            return &kinds[i];
    return NULL;
}

/* Checks that a blob is there, whole. */
static bool check_blob(const struct model *model, const struct blob *blob, struct error *error)
{
    struct source_identity identity;
    bool inside;
    if (location_kind(model->store, blob->path) == LOCATION_NOTHING) {
        const char *partial = arena_printf(model->arena, "%s-partial", blob->path);
        if (location_kind(model->store, partial) != LOCATION_NOTHING)
            return error_set(error, "%s: Ollama has not pulled all of it: %s is unfinished; run ollama pull",
                             model->shown, blob->path);
        return error_set(error, "%s: the store lacks %s; run ollama pull", model->shown, blob->path);
    }
    if (!location_identify(model->store, blob->path, &identity, &inside) || !inside)
        return error_set(error, "%s: %s is not a file of the store", model->shown, blob->path);
    return identity.size == blob->size ||
           error_set(error, "%s: %s has %" PRIu64 " bytes, but the manifest says %" PRIu64, model->shown, blob->path,
                     identity.size, blob->size);
}

/* Reports whether a text is the name of a side file, which may lie in folders. */
static bool is_inner_name(const char *name)
{
    for (const char *at = name;; at++) {
        if (*at == '\0' || *at == '/' || *at == '.')
            return false;
        at += strcspn(at, "/");
        if (*at == '\0')
            return strlen(name) <= MAX_PART;
    }
}

/* Returns the name of the next blob of a kind, of which there are `n_all`, or NULL for one that is not shown: a side
 * file whose name is no path, or one of too many. */
static const char *name_of(const struct model *model, const struct kind *kind, const struct json *layer, size_t number,
                           size_t n_all)
{
    bool is_shard = strcmp(kind->type, "tensor") == 0 || (strcmp(kind->type, "model") == 0 && n_all > 1);
    const char *own = json_string(json_get(layer, "name"), NULL);
    if (*kind->stem == '\0')
        return own != NULL && number <= MAX_SIDE_FILES && is_inner_name(own) ? arena_strdup(model->arena, own) : NULL;
    if (is_shard)
        return arena_printf(model->arena, "%s-%05zu-of-%05zu%s", kind->stem, number, n_all, kind->ending);
    return number == 1 ? arena_printf(model->arena, "%s%s", kind->stem, kind->ending)
                       : arena_printf(model->arena, "%s-%zu%s", kind->stem, number, kind->ending);
}

static size_t count_layers(const struct json *layers, const struct kind *kind)
{
    size_t n = 0;
    for (const struct json *layer = json_first(layers); layer != NULL; layer = json_next(layer))
        n += kind_of(json_string(json_get(layer, "mediaType"), NULL)) == kind;
    return n;
}

static const struct blob *find_blob(const struct model *model, const char *name)
{
    for (size_t i = 0; i < model->n_blobs; i++)
        if (strcmp(model->blobs[i].name, name) == 0)
            return &model->blobs[i];
    return NULL;
}

static bool add_layer(struct model *model, const struct json *layer, size_t counts[N_KINDS][2], struct error *error)
{
    const struct kind *kind = kind_of(json_string(json_get(layer, "mediaType"), NULL));
    const char *digest = json_string(json_get(layer, "digest"), NULL);
    struct blob blob;
    if (kind == NULL)
        return true;
    if (digest == NULL || !is_digest(digest) || !json_u64(json_get(layer, "size"), &blob.size))
        return error_set(error, "%s: the manifest has a layer without a SHA-256 or a size", model->shown);
    size_t *count = counts[kind - kinds];
    blob.name = name_of(model, kind, layer, ++count[0], count[1]);
    blob.path = arena_printf(model->arena, "blobs/sha256-%s", strchr(digest, ':') + 1);
    if (!check_blob(model, &blob, error))
        return false;
    /* names of tensors' shards are unique; the others are few */
    if (blob.name != NULL && (strcmp(kind->type, "tensor") == 0 || find_blob(model, blob.name) == NULL))
        model->blobs[model->n_blobs++] = blob;
    return true;
}

static bool add_layers(struct model *model, const struct json *manifest, struct error *error)
{
    const struct json *layers = json_get(manifest, "layers");
    size_t counts[N_KINDS][2] = {{0}}; /* by kind: those added, and all */
    if (!json_is(layers, JSON_ARRAY) || json_count(layers) > MAX_LAYERS)
        return error_set(error, "%s: the manifest has no layers, or more than %d", model->shown, MAX_LAYERS);
    for (size_t i = 0; i < N_KINDS; i++)
        counts[i][1] = count_layers(layers, &kinds[i]);
    if (counts[0][1] == 0 && counts[N_KINDS - 1][1] == 0)
        return error_set(error, "%s: the manifest names no weights", model->shown);
    model->blobs = arena_array(model->arena, json_count(layers), sizeof *model->blobs);
    for (const struct json *layer = json_first(layers); layer != NULL; layer = json_next(layer))
        if (!add_layer(model, layer, counts, error))
            return false;
    return true;
}

static bool read_manifest(struct model *model, const struct place *place, struct error *error)
{
    const char *path = arena_printf(model->arena, "manifests/%s", place->path);
    size_t length;
    if (location_kind(model->store, path) == LOCATION_NOTHING)
        return error_set(error, "%s: %s has no such model; run ollama pull", model->shown, place->store);
    struct source *file = location_source_as(model->store, path, model->shown, error);
    char *text = file != NULL ? source_read_text(file, MANIFEST_LIMIT, &length, error) : NULL;
    source_close(file);
    if (text == NULL)
        return false;
    struct json_document *document = json_parse(text, length, error);
    free(text);
    if (document == NULL)
        return error_prefix(error, "%s: the manifest", model->shown);
    bool added = add_layers(model, json_root(document), error);
    json_free(document);
    return added;
}

/* The location. */

static void close_model(void *context)
{
    struct model *model = context;
    location_close(model->store);
    arena_free(model->arena);
}

static struct location *open_folder(const void *context, const char *folder, const char *name, struct error *error)
{
    error_set(error, "%s: no such directory", name);
    return NULL;
}

/* Returns what follows the folder in a blob's name; NULL if the blob is not in it. */
static const char *below(const struct blob *blob, const char *folder)
{
    size_t length = strlen(folder);
    if (length == 0)
        return blob->name;
    return strncmp(blob->name, folder, length) == 0 && blob->name[length] == '/' ? blob->name + length + 1 : NULL;
}

/* Reports whether a blob before the i-th has the same first `length` bytes below the folder: a folder listed before. */
static bool is_listed(const struct model *model, size_t i, const char *folder, const char *name, size_t length)
{
    for (size_t j = 0; j < i; j++) {
        const char *other = below(&model->blobs[j], folder);
        if (other != NULL && strncmp(other, name, length) == 0 && other[length] == '/')
            return true;
    }
    return false;
}

static bool list(const void *context, const char *folder, struct location_listing *listing, struct error *error)
{
    const struct model *model = context;
    bool found = *folder == '\0';
    for (size_t i = 0; i < model->n_blobs; i++) {
        const char *name = below(&model->blobs[i], folder);
        size_t length = name != NULL ? strcspn(name, "/") : 0;
        found |= name != NULL;
        if (name != NULL && name[length] == '\0') {
            location_add(listing, name, LOCATION_FILE);
        } else if (name != NULL && !is_listed(model, i, folder, name, length)) {
            char *inner = memory_strndup(name, length);
            location_add(listing, inner, LOCATION_FOLDER);
            free(inner);
        }
    }
    return found || error_set(error, "no such directory");
}

static enum location_kind find_kind(const void *context, const char *path)
{
    const struct model *model = context;
    const struct blob *blob = find_blob(model, path);
    if (blob != NULL)
        return location_kind(model->store, blob->path);
    for (size_t i = 0; i < model->n_blobs; i++)
        if (below(&model->blobs[i], path) != NULL)
            return LOCATION_FOLDER;
    return LOCATION_NOTHING;
}

static bool identify(const void *context, const char *path, struct source_identity *ret_identity, bool *ret_inside)
{
    const struct blob *blob = find_blob(context, path);
    return blob != NULL &&
           location_identify(((const struct model *)context)->store, blob->path, ret_identity, ret_inside);
}

static struct source *open_blob(const void *context, const char *path, const char *name, struct error *error)
{
    const struct blob *blob = find_blob(context, path);
    if (blob != NULL)
        return location_source_as(((const struct model *)context)->store, blob->path, name, error);
    error_set(error, "%s: no such file", name);
    return NULL;
}

static const char *model_name(const void *context, bool *ret_is_repository)
{
    *ret_is_repository = true;
    return ((const struct model *)context)->name;
}

static const struct location_ops ops = {
    .close = close_model,
    .folder = open_folder,
    .list = list,
    .kind = find_kind,
    .identify = identify,
    .name = model_name,
    .open = open_blob,
};

static struct location *open_model(const char *text, enum location_links links, const char **ret_file,
                                   struct error *error)
{
    struct arena *arena = arena_new();
    struct model *model = arena_alloc(arena, sizeof *model);
    struct place place;
    *model = (struct model){.arena = arena, .shown = arena_strdup(arena, text)};
    bool opened = find_place(arena, text, &place, error);
    if (opened) {
        model->name = place.name;
        model->store = location_open(place.store, links, NULL, error);
        opened = model->store != NULL && read_manifest(model, &place, error);
        if (model->store == NULL && error->code == ENOENT)
            error_set(error, "%s: Ollama has no models in %s; name their directory in OLLAMA_MODELS", text,
                      place.store);
    }
    if (ret_file != NULL)
        *ret_file = NULL;
    if (opened)
        return location_new(&ops, model);
    close_model(model);
    return NULL;
}

const struct location_scheme ollama_scheme = {.prefix = prefix, .open = open_model};
