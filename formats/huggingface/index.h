/* The index of a sharded checkpoint (model.safetensors.index.json): which file holds which tensor.
 *
 * An index is not trusted: a shard is a file in the directory of the index or below (inner_path()). Its `metadata` is
 * ignored: total_size is not the size of the files. Otherwise it is the authority: of a tensor that several shards
 * have, the copy in the shard that it names counts. */
#pragma once

#include "formats/checkpoint_builder.h"
#include "sources/location.h"
#include "text/json.h"

enum { INDEX_MAX_SHARDS = 4096 };

/* The weights files of a checkpoint, sorted by name, and where their tensors begin in it. */
struct shards {
    const char *const *names; /* in the checkpoint's arena, like the array */
    size_t n_names;
    size_t *first_tensors; /* one more than names; filled in while reading */
};

/* An index in use; index_free() releases it, zeroed or read. */
struct shard_index {
    const char *name; /* of the file */
    struct json_document *document;
    const struct json *weight_map; /* from tensor names to shard names */
};

/* Reads the index for a checkpoint, of which it becomes a guide. Fails if there are more than INDEX_MAX_SHARDS
 * shards. */
bool index_read(struct shard_index *index, const struct location *location, const char *name,
                struct checkpoint *checkpoint, struct shards *ret_shards, struct error *error);
void index_free(struct shard_index *index);

/* Checks that each listed tensor is in its shard, leaves out other copies of it, and notes tensors that are not listed,
 * or listed but in no shard: the checkpoint is incomplete then, unless models do without them. Seals the checkpoint's
 * tensors. */
bool index_check(const struct shard_index *index, struct checkpoint *checkpoint, const struct shards *shards,
                 const struct open_options *options, struct error *error);
