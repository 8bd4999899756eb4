/* Origins: the sources that a virtual file is computed from.
 *
 * A file may be read by whoever may read all of its sources, and lives as long as none of them has changed. */
#pragma once

#include "formats/checkpoint.h"

struct origin {
    struct source *const *sources; /* the checkpoint's, or in memory that lives as long as the file does */
    size_t n_sources;
};

/* All files of weights, and the guides by which they belong together. */
struct origin origin_of_weights(const struct checkpoint *checkpoint);

/* The file that holds a tensor; as origin_of_weights() where it is computed. */
struct origin origin_of_tensor(const struct checkpoint *checkpoint, const struct tensor *tensor);

/* As origin_of_weights(), and the side files that something has been made of until now, also those of what a draft
 * model drafts for. */
struct origin origin_of_model(const struct checkpoint *checkpoint, struct arena *arena);

/* A side file alone; as origin_of_weights() for one that the reader has made. */
struct origin origin_of_side_file(const struct checkpoint *checkpoint, const struct side_file *side);

/* 0444 without the bits that one of the sources lacks. */
mode_t origin_permissions(const struct origin *origin);

/* The group that all sources have, or NO_GROUP. */
enum { NO_GROUP = -1 };
gid_t origin_group(const struct origin *origin);

/* Whether a source has changed, as source_changed() and source_verify() tell. */
bool origin_changed(const struct origin *origin);
bool origin_verify(const struct origin *origin);
