/* Origins: the declared inputs of a virtual file, known before any of them is read.
 *
 * Users may read a file if they may read all of its inputs, and it lives as long as none of them has changed. Which
 * files were planned or read before changes nothing: an input counts whether or not it turns out to be needed. */
#pragma once

#include "formats/checkpoint.h"

struct origin {
    struct source *const *sources; /* the checkpoint's, or in memory that lives as long as the file does */
    size_t n_sources;
};

/* All files of weights, and the guides by which they belong together. */
struct origin origin_of_weights(const struct checkpoint *checkpoint);

/* The weights, and the side files that say how they are packed. */
struct origin origin_of_packed(const struct checkpoint *checkpoint, struct arena *arena);

/* The weights, and all side files that models are made from (document_is_declared()), also those of the base of a draft
 * model. */
struct origin origin_of_model(const struct checkpoint *checkpoint, struct arena *arena);

/* The same inputs, and those of the model that an adapter belongs to. */
struct origin origin_with_base(struct origin origin, const struct checkpoint *base, struct arena *arena);

/* A side file alone; as origin_of_weights() for one that the reader has made. */
struct origin origin_of_side_file(const struct checkpoint *checkpoint, const struct side_file *side);

/* 0444 without the bits that one of the sources lacks. */
mode_t origin_permissions(const struct origin *origin);

/* The group that all sources have, or NO_GROUP. */
enum { NO_GROUP = -1 };
gid_t origin_group(const struct origin *origin);

/* Reports whether a source has changed, as source_changed() and source_verify() tell. */
bool origin_changed(const struct origin *origin);
bool origin_verify(const struct origin *origin);
