/* Manifests: which files and texts a model consists of, by media type and SHA-256, in the forms that Ollama, Docker
 * Model Runner and ModelPack read. `wfs serve` answers with them, and Ollama's store is made of them (library.h).
 *
 * If the source has files named template, system, params or LICENSE, they become layers, as on the hub.
 *
 * Source: the OCI distribution specification 1.1; the registry client of Ollama; docker/model-distribution; the
 * ModelPack specification. */
#pragma once

#include "base/encodings.h"
#include "fs/tree/tree.h"
#include "text/json_write.h"

#define DIGEST_PREFIX "sha256:"
enum { DIGEST_TEXT = sizeof DIGEST_PREFIX + SHA256_HEX };

enum layer_role {
    LAYER_MODEL,
    LAYER_PROJECTOR,
    LAYER_DRAFT,
    LAYER_TEMPLATE,
    LAYER_SYSTEM,
    LAYER_LICENSE,
    LAYER_PARAMS,
    N_LAYER_ROLES
};

struct manifest_facts;

/* A form of manifests. */
struct manifest_form {
    const char *accept, *media_type; /* what a client's Accept header has in it; the manifest's own */
    const char *artifact;            /* artifactType; NULL: none */
    const char *title;               /* the annotation with the file's name; NULL: none */
    const char *config;
    const char *layers[N_LAYER_ROLES]; /* media types; NULL: has no such layer */
    void (*put_config)(struct json_writer *writer, const struct manifest_facts *facts);
};

/* In the order in which an Accept header is searched; the last is Ollama's, for clients that send none of them. */
enum { N_MANIFEST_FORMS = 3 };
extern const struct manifest_form manifest_forms[N_MANIFEST_FORMS];

/* The model that a manifest describes. */
struct manifest_model {
    struct tree *tree;
    const char *name, *type; /* "Llama-3.2-1B", "Q4_K_M" */
    const char *file;        /* the name of its GGUF, and its number in the tree */
    node_id node;
    const char *projector_file; /* and its projector's; NULL: none */
    node_id projector;
    const char *draft_file; /* and its draft's */
    node_id draft;
};

struct manifest_layer {
    const char *media_type, *name;
    node_id node;
    uint64_t size;
    char digest[DIGEST_TEXT];
};

/* Fills in the size and the digest of a layer of the tree. */
typedef bool manifest_measure(void *context, struct tree *tree, struct manifest_layer *layer, struct error *error);

struct manifest {
    const struct manifest_form *form;
    struct manifest_layer layers[N_LAYER_ROLES];
    size_t n_layers;
    const char *config; /* its text, in the arena */
    size_t config_length;
    char config_digest[DIGEST_TEXT];
    const char *text; /* the manifest itself, in the arena */
    size_t length;
};

/* Makes a manifest in `arena`. Fails if measure() does, or the header of the GGUF cannot be read. */
bool manifest_make(const struct manifest_model *model, const struct manifest_form *form, manifest_measure *measure,
                   void *context, struct arena *arena, struct manifest *ret_manifest, struct error *error);

/* Writes a SHA-256 as manifests spell it. */
void manifest_write_digest(const char hex[SHA256_HEX + 1], char digest[DIGEST_TEXT]);
void manifest_digest_text(const void *text, size_t length, char digest[DIGEST_TEXT]);

/* Begins the object that describes a blob; `key` is NULL in an array. */
void manifest_put_descriptor(struct json_writer *writer, const char *key, const char *media_type, const char *digest,
                             uint64_t size);
