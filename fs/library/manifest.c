#include "fs/library/manifest.h"

#include "formats/gguf/kv.h"
#include "models/family/gguf_model.h"
#include "products/product.h"
#include "sources/source.h"

#include <stdio.h>

#define OCI_MANIFEST    "application/vnd.oci.image.manifest.v1+json"
#define DOCKER_MANIFEST "application/vnd.docker.distribution.manifest.v2+json"

/* The facts of a model that configurations name. */
struct manifest_facts {
    const char *name, *architecture, *type, *parameters; /* "Llama-3.2-1B", "llama", "Q4_K_M", "1.2B" */
    const char *digests;                                 /* of all layers: JSON, an array of texts */
    const char *draft;                                   /* the architecture of the draft; NULL: there is none */
};

static void put_ollama_config(struct json_writer *writer, const struct manifest_facts *facts)
{
    json_put_template(writer,
                      "'model_format': 'gguf', 'model_family': %s, 'model_families': [%s], 'model_type': %s, "
                      "'file_type': %s",
                      facts->architecture, facts->architecture, facts->parameters, facts->type);
    if (facts->draft != NULL)
        json_put_template(writer, "'draft': {'model_format': 'gguf', 'architecture': %s}", facts->draft);
    json_put_template(writer, "'architecture': 'amd64', 'os': 'linux', 'rootfs': {'type': 'layers', 'diff_ids': %r}",
                      facts->digests);
}

static void put_docker_config(struct json_writer *writer, const struct manifest_facts *facts)
{
    json_put_template(writer,
                      "'config': {'format': 'gguf', 'quantization': %s, 'parameters': %s, 'architecture': %s}, "
                      "'rootfs': {'type': 'rootfs', 'diff_ids': %r}",
                      facts->type, facts->parameters, facts->architecture, facts->digests);
}

static void put_modelpack_config(struct json_writer *writer, const struct manifest_facts *facts)
{
    json_put_template(writer,
                      "'descriptor': {'name': %s}, 'modelfs': {'type': 'layers', 'diffIds': %r}, "
                      "'config': {'architecture': %s, 'format': 'gguf', 'paramSize': %s, 'quantization': %s}",
                      facts->name, facts->digests, facts->architecture, facts->parameters, facts->type);
}

const struct manifest_form manifest_forms[N_MANIFEST_FORMS] = {
    {
        "application/vnd.cncf.model.",
        OCI_MANIFEST,
        "application/vnd.cncf.model.manifest.v1+json",
        "org.cncf.model.filepath",
        "application/vnd.cncf.model.config.v1+json",
        {[LAYER_MODEL] = "application/vnd.cncf.model.weight.v1.raw",
         [LAYER_PROJECTOR] = "application/vnd.cncf.model.weight.v1.raw",
         [LAYER_LICENSE] = "application/vnd.cncf.model.doc.v1.raw"},
        put_modelpack_config,
    },
    {
        OCI_MANIFEST,
        OCI_MANIFEST,
        NULL,
        "org.opencontainers.image.title",
        "application/vnd.docker.ai.model.config.v0.1+json",
        {[LAYER_MODEL] = "application/vnd.docker.ai.gguf.v3",
         [LAYER_PROJECTOR] = "application/vnd.docker.ai.mmproj",
         [LAYER_LICENSE] = "application/vnd.docker.ai.license"},
        put_docker_config,
    },
    {
        DOCKER_MANIFEST,
        DOCKER_MANIFEST,
        NULL,
        NULL,
        "application/vnd.docker.container.image.v1+json",
        {[LAYER_MODEL] = "application/vnd.ollama.image.model",
         [LAYER_PROJECTOR] = "application/vnd.ollama.image.projector",
         [LAYER_DRAFT] = "application/vnd.ollama.image.draft",
         [LAYER_TEMPLATE] = "application/vnd.ollama.image.template",
         [LAYER_SYSTEM] = "application/vnd.ollama.image.system",
         [LAYER_LICENSE] = "application/vnd.ollama.image.license",
         [LAYER_PARAMS] = "application/vnd.ollama.image.params"},
        put_ollama_config,
    },
};

/* The making of a manifest. */
struct making {
    const struct manifest_model *model;
    manifest_measure *measure;
    void *context;
    struct arena *arena;
    struct manifest *manifest;
    struct error *error;
    const char *draft; /* the architecture of the draft; NULL: there is none, or no GGUF, or no layer for it */
};

void manifest_write_digest(const char hex[SHA256_HEX + 1], char digest[DIGEST_TEXT])
{
    snprintf(digest, DIGEST_TEXT, DIGEST_PREFIX "%s", hex);
}

void manifest_digest_text(const void *text, size_t length, char digest[DIGEST_TEXT])
{
    char hex[SHA256_HEX + 1];
    sha256_hex(text, length, hex);
    manifest_write_digest(hex, digest);
}

static bool add_layer(const struct making *making, enum layer_role role, const char *name, node_id node)
{
    struct manifest *manifest = making->manifest;
    struct manifest_layer *layer = &manifest->layers[manifest->n_layers];
    if (manifest->form->layers[role] == NULL)
        return true;
    *layer = (struct manifest_layer){.media_type = manifest->form->layers[role], .name = name, .node = node};
    manifest->n_layers++;
    return making->measure(making->context, making->model->tree, layer, making->error);
}

enum { LAST_VERSION = 3, PREAMBLE_BYTES = 8 /* magic and version */ };

static const char architecture_key[] = "general.architecture";

/* The key is among the first in every file that wfs makes: the others are not read. */
static bool read_key(struct gguf_cursor *cursor, struct gguf_kvs *kvs, struct error *error)
{
    uint64_t n_tensors, n_kvs;
    if (!gguf_take_count(cursor, &n_tensors, error) || !gguf_take_count(cursor, &n_kvs, error))
        return false;
    for (; n_kvs > 0 && gguf_kvs_find(kvs, architecture_key) == NULL; n_kvs--)
        if (!gguf_kvs_read(kvs, cursor, error))
            return false;
    return true;
}

/* Returns general.architecture of a virtual GGUF, in `arena`: "llama". NULL, with an error, if the file has none or
 * cannot be read. */
static const char *gguf_architecture(const struct vfile *file, struct arena *arena, struct error *error)
{
    size_t length;
    struct gguf_kvs kvs = {0};
    struct source *source = source_of_vfile(file, "GGUF");
    struct gguf_cursor cursor = gguf_cursor_at(source, PREAMBLE_BYTES, LAST_VERSION, GGUF_LITTLE_ENDIAN);
    const char *architecture =
        read_key(&cursor, &kvs, error) ? gguf_get_string(&kvs, architecture_key, arena, &length, error) : NULL;
    gguf_cursor_free(&cursor);
    gguf_kvs_free(&kvs);
    source_close(source);
    return architecture;
}

/* Returns the architecture of a GGUF of the tree, in the arena; NULL if its header cannot be read. */
static const char *architecture_of(const struct making *making, node_id node)
{
    struct vfile file;
    bool is_there = tree_file(making->model->tree, node, making->arena, &file, making->error);
    return is_there ? gguf_architecture(&file, making->arena, making->error) : NULL;
}

static bool add_layers(const struct making *making)
{
    static const struct {
        enum layer_role role;
        const char *name;
    } side_files[] = {
        {LAYER_TEMPLATE, "template"}, {LAYER_SYSTEM, "system"}, {LAYER_LICENSE, "LICENSE"}, {LAYER_PARAMS, "params"}};
    const struct manifest_model *model = making->model;
    struct node_attributes attributes;
    if (!add_layer(making, LAYER_MODEL, model->file, model->node))
        return false;
    if (model->projector_file != NULL && !add_layer(making, LAYER_PROJECTOR, model->projector_file, model->projector))
        return false;
    if (making->draft != NULL && !add_layer(making, LAYER_DRAFT, model->draft_file, model->draft))
        return false;
    for (size_t i = 0; i < sizeof side_files / sizeof *side_files; i++)
        if (tree_lookup(model->tree, TREE_ROOT, side_files[i].name, &attributes) && !attributes.directory &&
            !add_layer(making, side_files[i].role, side_files[i].name, attributes.id))
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
static bool add_config(const struct making *making)
{
    struct arena *arena = making->arena;
    const struct manifest_model *model = making->model;
    struct manifest *manifest = making->manifest;
    struct manifest_facts facts = {
        .name = model->name,
        .type = model->type,
        .parameters = human_number(shown_tensors_parameters(tree_checkpoint(model->tree)), arena),
        .digests = layer_digests(manifest, arena),
        .draft = making->draft,
    };
    const struct gguf_edition *edition = tree_object(model->tree, &gguf_product, OBJECT_FOR_SIZES);
    if (edition != NULL)
        facts.architecture = gguf_get_text(&edition->model->kvs, architecture_key, arena);
    if (facts.architecture == NULL && (facts.architecture = architecture_of(making, model->node)) == NULL)
        return false;
    struct buffer text = {0};
    struct json_writer writer = {.out = &text, .letters = JSON_UTF8, .compact = true};
    json_begin_object(&writer, NULL);
    manifest->form->put_config(&writer, &facts);
    json_end(&writer);
    manifest_digest_text(text.bytes, text.length, manifest->config_digest);
    manifest->config = arena_copy(arena, text.bytes, text.length);
    manifest->config_length = text.length;
    buffer_free(&text);
    return true;
}

void manifest_put_descriptor(struct json_writer *writer, const char *key, const char *media_type, const char *digest,
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
        const struct manifest_layer *layer = &manifest->layers[i];
        manifest_put_descriptor(writer, NULL, layer->media_type, layer->digest, layer->size);
        if (manifest->form->title != NULL) {
            json_begin_object(writer, "annotations");
            json_put_text(writer, manifest->form->title, layer->name);
            json_end(writer);
        }
        json_end(writer);
    }
    json_end(writer);
}

bool manifest_make(const struct manifest_model *model, const struct manifest_form *form, manifest_measure *measure,
                   void *context, struct arena *arena, struct manifest *ret_manifest, struct error *error)
{
    struct buffer text = {0};
    struct json_writer writer = {.out = &text, .letters = JSON_UTF8, .compact = true};
    struct making making = {model, measure, context, arena, ret_manifest, error, NULL};
    *ret_manifest = (struct manifest){.form = form};
    if (model->draft_file != NULL && form->layers[LAYER_DRAFT] != NULL)
        making.draft = architecture_of(&making, model->draft);
    if (!add_layers(&making) || !add_config(&making))
        return false;
    json_begin_object(&writer, NULL);
    json_put_number(&writer, "schemaVersion", 2);
    json_put_text(&writer, "mediaType", form->media_type);
    if (form->artifact != NULL)
        json_put_text(&writer, "artifactType", form->artifact);
    manifest_put_descriptor(&writer, "config", form->config, ret_manifest->config_digest, ret_manifest->config_length);
    json_end(&writer);
    put_layers(&writer, ret_manifest);
    json_end(&writer);
    ret_manifest->text = arena_copy(arena, text.bytes, text.length);
    ret_manifest->length = text.length;
    buffer_free(&text);
    return true;
}
