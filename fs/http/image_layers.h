/* The layers of an image, and its texts: the configuration and the manifest for a platform, and the index of all
 * platforms. */
#pragma once

#include "fs/http/repository.h"
#include "fs/library/manifest.h"
#include "fs/tree/digests.h"
#include "fs/tree/tar.h"

struct image_layer {
    const char *comment; /* for people: the name of its file */
    const struct tar_member *members;
    size_t n_members;
    uint64_t size;
    char identity[SHA256_HEX + 1]; /* equal identities mean equal bytes */
    char digest[DIGEST_TEXT];
};

struct image_text {
    const char *text;
    size_t length;
    char digest[DIGEST_TEXT];
};

enum { N_PLATFORMS = 2 }; /* amd64, arm64 */

struct image {
    const struct repository *repository;
    const char *tag;
    struct image_layer *layers;
    size_t n_layers;
    struct image_text configs[N_PLATFORMS], manifests[N_PLATFORMS], index;
};

/* Finds the layers of a tag, in letters of either case, of the model `base`, "ORG/NAME", and plans their files; false
 * if there is no such tag, or no file of it. */
bool image_find(const struct repositories *repositories, const char *base, const char *tag, struct arena *arena,
                struct image *ret_image, struct error *error);

/* Fills in the digests of the layers, and computes those that are not known, unless `only_known`. Returns false, with
 * the reason, if one is missing: it has the length of a digest then. */
bool image_digest(struct image *image, struct digests *digests, bool only_known, struct arena *arena,
                  struct error *error);

/* Writes the texts of an image whose layers have digests. */
void image_write(struct image *image, struct arena *arena);

/* Makes the file of a layer. */
bool image_layer_make(const struct image *image, const struct image_layer *layer, struct arena *arena,
                      struct vfile *ret_file, struct error *error);

#define IMAGE_MANIFEST "application/vnd.oci.image.manifest.v1+json"
#define IMAGE_INDEX    "application/vnd.oci.image.index.v1+json"
