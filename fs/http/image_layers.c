#include "fs/http/image_layers.h"

#include "base/text.h"
#include "text/json_write.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { OWN_LAYER = 1 << 20 /* bytes of a file that is a layer of its own */ };

static const char directory[] = "models",
                  epoch[] = "1970-01-01T00:00:00Z", *const architectures[N_PLATFORMS] = {"amd64", "arm64"};

/* A layer while files are added to it. */
struct building {
    struct image *image;
    struct arena *arena;
    struct tar_member *small; /* members of the layer of small files */
    size_t n_small;
    struct buffer small_identity;
    struct error *error;
};

static bool measure(const struct building *building, struct image_layer *layer)
{
    struct vfile file;
    bool done = image_layer_make(building->image, layer, building->arena, &file, building->error);
    layer->size = file.size;
    return done;
}

static void append_identity(struct buffer *identity, const char *name, const char etag[ETAG_TEXT])
{
    buffer_printf(identity, "%s\n%s\n", name, etag);
}

static bool add_layer(struct building *building, const struct tar_member *members, size_t n_members,
                      const char *comment, const struct buffer *identity)
{
    struct image *image = building->image;
    struct image_layer layer = {.comment = comment, .members = members, .n_members = n_members};
    if (n_members == 0)
        return true;
    sha256_hex(identity->bytes, identity->length, layer.identity);
    manifest_write_digest(layer.identity, layer.digest); /* of the right length, until it is known */
    if (!measure(building, &layer))
        return false;
    image->layers = arena_grow(building->arena, image->layers, image->n_layers, sizeof *image->layers);
    image->layers[image->n_layers++] = layer;
    return true;
}

static void begin_identity(struct buffer *identity)
{
    buffer_append_text(identity, "tar 1\n"); /* the form of archives */
}

/* Adds a file: to the layer of small files, or as its own. A file that turns out to be absent is left out. */
static bool add_file(struct building *building, const struct repository_file *file)
{
    uint64_t size;
    char etag[ETAG_TEXT];
    if (!repository_plan(building->image->repository, file->node, &size, etag))
        return true;
    const char *name = arena_printf(building->arena, "%s/%s", directory, file->name);
    const struct tar_member member = {name, file->node};
    if (size < OWN_LAYER) {
        building->small = arena_grow(building->arena, building->small, building->n_small, sizeof *building->small);
        building->small[building->n_small++] = member;
        append_identity(&building->small_identity, name, etag);
        return true;
    }
    struct buffer identity = {0};
    begin_identity(&identity);
    append_identity(&identity, name, etag);
    bool added = add_layer(building, arena_copy(building->arena, &member, sizeof member), 1, file->name, &identity);
    buffer_free(&identity);
    return added;
}

/* Adds the files of a directory; of a GGUF, that file and its projector. */
static bool add_files(struct building *building, const struct repository_file *gguf)
{
    const struct repository *repository = building->image->repository;
    struct repository_files files = repository_files(repository);
    const struct repository_file *projector = gguf != NULL ? repository_projector(repository, building->arena) : NULL;
    bool added = true;
    for (size_t i = 0; i < files.count && added; i++)
        if (gguf == NULL || &files.items[i] == gguf || &files.items[i] == projector)
            added = add_file(building, &files.items[i]);
    return added && add_layer(building, building->small, building->n_small, "small files", &building->small_identity);
}

/* Finds the repository of a tag, and the file if that is a GGUF. */
static bool find(const struct repositories *repositories, const char *base, const char *tag, struct arena *arena,
                 struct image *image, const struct repository_file **ret_gguf)
{
    *ret_gguf = NULL;
    for (size_t i = 0; i < repositories->count; i++) {
        const struct repository *repository = &repositories->items[i];
        if (strcmp(repository->base, base) != 0)
            continue;
        if (repository->gguf && strcasecmp(tag, "latest") != 0)
            *ret_gguf = repository_file_of_tag(repository, tag, true, arena);
        image->repository = repository;
        image->tag = repository->tag;
        if (*ret_gguf != NULL || (!repository->gguf && strcasecmp(repository->tag, tag) == 0))
            return true;
    }
    return false;
}

bool image_find(const struct repositories *repositories, const char *base, const char *tag, struct arena *arena,
                struct image *ret_image, struct error *error)
{
    const struct repository_file *gguf;
    const char *wanted = strcmp(tag, "latest") == 0 ? "hf" : tag;
    *ret_image = (struct image){0};
    if (!find(repositories, base, wanted, arena, ret_image, &gguf))
        return error_set(error, "%s has no tag '%s'; tags/list has all", base, tag);
    ret_image->tag = arena_strdup(arena, wanted);
    struct building building = {.image = ret_image, .arena = arena, .error = error};
    begin_identity(&building.small_identity);
    bool added = add_files(&building, gguf);
    buffer_free(&building.small_identity);
    if (added && ret_image->n_layers == 0)
        return error_set(error, "%s: %s", tag, repository_refusal(ret_image->repository, arena));
    return added;
}

bool image_layer_make(const struct image *image, const struct image_layer *layer, struct arena *arena,
                      struct vfile *ret_file, struct error *error)
{
    *ret_file = (struct vfile){0};
    return tar_make(image->repository->tree, layer->members, layer->n_members, arena, ret_file, error);
}

bool image_digest(struct image *image, struct digests *digests, bool only_known, struct arena *arena,
                  struct error *error)
{
    bool are_known = true;
    for (size_t i = 0; i < image->n_layers; i++) {
        struct image_layer *layer = &image->layers[i];
        char hex[SHA256_HEX + 1];
        struct vfile file;
        bool known = digest_known(digests, layer->identity, hex) ||
                     (!only_known && image_layer_make(image, layer, arena, &file, error) &&
                      digest_get(digests, layer->identity, layer->comment, &file, hex, error));
        if (known)
            manifest_write_digest(hex, layer->digest);
        else if (!only_known)
            return false;
        are_known &= known;
    }
    return are_known || error_set(error,
                                  "the digests of %s are not known yet; ask for its tag with a program of this "
                                  "machine",
                                  image->tag);
}

static struct image_text seal(struct buffer *text, struct arena *arena)
{
    struct image_text sealed = {.text = arena_copy(arena, text->bytes, text->length), .length = text->length};
    manifest_digest_text(text->bytes, text->length, sealed.digest);
    buffer_free(text);
    return sealed;
}

static struct image_text write_config(const struct image *image, const char *architecture, struct arena *arena)
{
    struct buffer text = {0};
    struct json_writer writer = {.out = &text, .letters = JSON_UTF8, .compact = true};
    json_begin_object(&writer, NULL);
    json_put_text(&writer, "created", epoch);
    json_put_text(&writer, "architecture", architecture);
    json_put_text(&writer, "os", "linux");
    json_begin_object(&writer, "config");
    json_end(&writer);
    json_begin_object(&writer, "rootfs");
    json_put_text(&writer, "type", "layers");
    json_begin_array(&writer, "diff_ids");
    for (size_t i = 0; i < image->n_layers; i++)
        json_put_text(&writer, NULL, image->layers[i].digest);
    json_end(&writer);
    json_end(&writer);
    json_begin_array(&writer, "history");
    for (size_t i = 0; i < image->n_layers; i++) {
        json_begin_object(&writer, NULL);
        json_put_text(&writer, "created", epoch);
        json_put_text(&writer, "created_by", "wfs serve");
        json_put_text(&writer, "comment", image->layers[i].comment);
        json_end(&writer);
    }
    json_end(&writer);
    json_end(&writer);
    return seal(&text, arena);
}

static struct image_text write_manifest(const struct image *image, const struct image_text *config, struct arena *arena)
{
    struct buffer text = {0};
    struct json_writer writer = {.out = &text, .letters = JSON_UTF8, .compact = true};
    json_begin_object(&writer, NULL);
    json_put_number(&writer, "schemaVersion", 2);
    json_put_text(&writer, "mediaType", IMAGE_MANIFEST);
    manifest_put_descriptor(&writer, "config", "application/vnd.oci.image.config.v1+json", config->digest,
                            config->length);
    json_end(&writer);
    json_begin_array(&writer, "layers");
    for (size_t i = 0; i < image->n_layers; i++) {
        manifest_put_descriptor(&writer, NULL, "application/vnd.oci.image.layer.v1.tar", image->layers[i].digest,
                                image->layers[i].size);
        json_end(&writer);
    }
    json_end(&writer);
    json_end(&writer);
    return seal(&text, arena);
}

static struct image_text write_index(const struct image *image, struct arena *arena)
{
    struct buffer text = {0};
    struct json_writer writer = {.out = &text, .letters = JSON_UTF8, .compact = true};
    json_begin_object(&writer, NULL);
    json_put_number(&writer, "schemaVersion", 2);
    json_put_text(&writer, "mediaType", IMAGE_INDEX);
    json_begin_array(&writer, "manifests");
    for (size_t i = 0; i < N_PLATFORMS; i++) {
        manifest_put_descriptor(&writer, NULL, IMAGE_MANIFEST, image->manifests[i].digest, image->manifests[i].length);
        json_begin_object(&writer, "platform");
        json_put_text(&writer, "architecture", architectures[i]);
        json_put_text(&writer, "os", "linux");
        json_end(&writer);
        json_end(&writer);
    }
    json_end(&writer);
    json_end(&writer);
    return seal(&text, arena);
}

void image_write(struct image *image, struct arena *arena)
{
    for (size_t i = 0; i < N_PLATFORMS; i++) {
        image->configs[i] = write_config(image, architectures[i], arena);
        image->manifests[i] = write_manifest(image, &image->configs[i], arena);
    }
    image->index = write_index(image, arena);
}
