/* The shards of a directory's weights, as save_pretrained() or mlx-lm spreads tensors over files.
 *
 * Source: huggingface_hub, serialization/_base.py, split_state_dict_into_shards_factory(); transformers,
 * modeling_utils.py, save_pretrained(); mlx-lm, utils.py, make_shards(). */
#pragma once

#include "base/buffer.h"
#include "formats/artifact.h"
#include "formats/tensor_set.h"
#include "models/huggingface/hf_model.h"

enum { SHARDS_MAX = 9999 };

/* The size limit of a shard by default in transformers, in bytes. */
extern const uint64_t shards_usual_size;

struct shards {
    size_t n_shards;
    uint32_t *shard_of;  /* shard_of[i] is the shard, from 0, of the planner's i-th tensor */
    uint64_t total_size; /* bytes of all tensors */
    uint64_t total_parameters;
    uint64_t last_size; /* bytes of the last shard, for shards_append() */
};

/* Parses a size as transformers spells it: 5GB or 300MB (powers of 1000), 2GiB (powers of 1024), or a number of bytes.
 */
bool shards_parse_size(const char *text, uint64_t *ret_size, struct error *error);

/* Spreads tensors over shards, in the order of state_dict(): fills in the shard of each, and returns how many there
 * are. A tensor larger than the limit is a shard of its own, numbered before the open one. */
size_t shards_spread(const uint64_t *sizes, size_t n_tensors, uint64_t max_size, uint32_t *ret_shard_of);

/* Adds a tensor of that size to the last shard, or to a new one that the tensor would make larger than the limit:
 * mlx-lm cuts shards in the order of its tensors. Returns the tensor's shard. */
uint32_t shards_append(struct shards *shards, uint64_t size, uint64_t max_size);

/* Refuses more than SHARDS_MAX, which a tiny limit would give. */
bool shards_few_enough(size_t n_shards, uint64_t max_size, struct error *error);

/* Reports whether a tensor of this name is a buffer of a module, and so not counted among the parameters. */
bool shards_is_buffer(const char *name);

/* Plans shards of a model, by tensor of its set, of at most `max_size` bytes, or of one larger tensor. Fails if there
 * are more than SHARDS_MAX. */
bool shards_plan(const struct hf_model *model, uint64_t max_size, struct arena *arena, struct shards *ret_shards,
                 struct error *error);

/* Returns the shards of the checkpoint that a GGUF was converted from; one shard if the order of tensors shows no
 * others. The converter reads shard after shard, and the tensors of each by name: a shard begins where the order of
 * names starts over. Other orders, like llama-quantize's, start over at least twice in each layer and count as one
 * shard. */
struct shards shards_of_order(const struct hf_model *model, struct arena *arena);

/* Returns "model-00001-of-00007.safetensors" for shard 0, in `name`, or the constant "model.safetensors" if the shard
 * is the only one. */
enum { SHARDS_NAME = 64 };
const char *shards_name(const struct shards *shards, size_t shard, char name[SHARDS_NAME]);

/* Makes the artifact of a shard, or, if `shards` is NULL, of the whole model. */
void shards_artifact(const struct hf_model *model, const struct shards *shards, size_t shard,
                     struct artifact *ret_artifact);

/* Appends the text of model.safetensors.index.json: of a model, or of entries sorted by name. */
void shards_write_index(const struct hf_model *model, const struct shards *shards, struct buffer *out);

struct shards_entry {
    const char *name;
    size_t name_length;
    uint32_t shard;
};

void shards_write_entries(const struct shards *shards, const struct shards_entry *entries, size_t n_entries,
                          struct buffer *out);

/* Writes the members of an index's weight_map. */
struct json_writer;
void shards_put_map(struct json_writer *writer, const struct shards *shards, const struct shards_entry *entries,
                    size_t n_entries);

/* The order of parameters in the classes of transformers: the order of state_dict(), by which save_pretrained() fills
 * shards. Source: the modeling files of transformers. */

/* Returns the indices of the set's tensors in that order, in the arena. `model_type` is config.json's, and may be NULL.
 * Unknown parameters come after their siblings, in the order of the set. */
const size_t *module_order(const struct tensor_set *set, const char *model_type, struct arena *arena);
