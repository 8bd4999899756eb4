/* The index of a sharded checkpoint (model.safetensors.index.json): which file holds which tensor.
 *
 * An index is not trusted: a shard is the name of a file in the directory of the index, never a path. `metadata` is not
 * read: its total_size counts other things than the files do. */
#pragma once

#include "formats/checkpoint_builder.h"
#include "formats/json.h"
#include "formats/location.h"

enum { INDEX_MAX_SHARDS = 4096 };

/* The files of a checkpoint's weights, sorted by name, and where their tensors are in it. */
struct shards {
    const char *const *names; /* in the checkpoint's arena, as the array is */
    size_t n_names;
    size_t *first_tensors; /* of each, and after the last one; filled in as they are read */
};

/* An index while it is used; index_free() releases it, zeroed or read. */
struct shard_index {
    const char *name; /* of the file */
    struct json_document *document;
    const struct json *weight_map; /* name of a tensor: name of its shard */
};

/* Reads the index for a checkpoint, whose guide it becomes. */
bool index_read(struct shard_index *index, const struct location *location, const char *name,
                struct checkpoint *checkpoint, struct shards *ret_shards, struct error *error);
void index_free(struct shard_index *index);

/* Reports whether each tensor that is listed is in its shard. Tensors that are not listed are noted. Seals the
 * checkpoint's tensors. */
bool index_check(const struct shard_index *index, struct checkpoint *checkpoint, const struct shards *shards,
                 struct error *error);
