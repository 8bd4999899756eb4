/* Where the blobs of images are: the tag that names a digest. Recorded when a tag's manifest is made, in memory and in
 * the cache directory (remote/store.h), so that a later server finds them, too. Safe from any thread. */
#pragma once

#include "base/arena.h"
#include "base/sha256.h"

struct blob_places;

struct blob_places *blob_places_new(void);
void blob_places_free(struct blob_places *places);

/* Records a digest, "sha256:...", of a model, "ORG/NAME". */
void blob_place_add(struct blob_places *places, const char *model, const char *digest, const char *tag);

/* Returns the tag that has a digest, in the arena; NULL if it is not known. The caller checks that the tag has it. */
const char *blob_place_find(struct blob_places *places, const char *model, const char *digest, struct arena *arena);
