/* Origins: the declared inputs of a virtual file, known before any of them is read.
 *
 * Users may read a file if they may read all of its inputs; the file fails once one of them has changed. An input
 * counts whether or not it turns out to be needed, so planning or reading other files changes nothing. */
#pragma once

#include "formats/checkpoint.h"

struct origin {
    struct source *const *sources; /* the checkpoint's, or in memory that outlives the file */
    size_t n_sources;
};

/* Returns the weights files and the guides, which list them. */
struct origin origin_of_weights(const struct checkpoint *checkpoint);

/* Like origin_of_weights(), with the side files that say how weights are packed (document_says_packing()), also those
 * of the model that an adapter or a draft model belongs to. */
struct origin origin_of_packed(const struct checkpoint *checkpoint, struct arena *arena);

/* Like origin_of_packed(), with all side files that models are made from (document_is_declared()). */
struct origin origin_of_model(const struct checkpoint *checkpoint, struct arena *arena);

/* Adds the declared side files of the base model that an adapter belongs to; NULL adds none. */
struct origin origin_with_base(struct origin origin, const struct checkpoint *base, struct arena *arena);

/* Returns the side file alone, or, if the reader made it, origin_of_weights(). */
struct origin origin_of_side_file(const struct checkpoint *checkpoint, const struct side_file *side);

/* Returns 0444 without the bits that any source lacks. */
mode_t origin_permissions(const struct origin *origin);

/* Returns the group that all sources have, or NO_GROUP. */
enum { NO_GROUP = -1 };
gid_t origin_group(const struct origin *origin);

/* Report whether any source has changed: by source_changed(), and by source_verify() of every source. */
bool origin_changed(const struct origin *origin);
bool origin_verify(const struct origin *origin);
