/* The shards of a model: how save_pretrained() spreads tensors over files.
 *
 * Source: huggingface_hub, serialization/_base.py, split_state_dict_into_shards_factory(); transformers,
 * modeling_utils.py, save_pretrained(). */
#pragma once

#include "base/buffer.h"
#include "formats/artifact.h"
#include "models/huggingface/hf_model.h"

enum { SHARDS_MAX = 9999 };

/* The largest shard by default in transformers. */
extern const uint64_t shards_usual_size;

struct shards {
    size_t n_shards;
    uint32_t *shard_of;  /* by the tensor's place in the model's set; from 0 */
    uint64_t total_size; /* bytes of all tensors */
    uint64_t total_parameters;
};

/* A size as transformers spells it: 5GB, 300MB, powers of 1000, or 2GiB, powers of 1024; plain bytes, too. */
bool shards_parse_size(const char *text, uint64_t *ret_size, struct error *error);

/* Plans shards of at most `max_size` bytes; fails if there are more than SHARDS_MAX. */
bool shards_plan(const struct hf_model *model, uint64_t max_size, struct arena *arena, struct shards *ret_shards,
                 struct error *error);

/* Returns the shards of the checkpoint that a GGUF was converted from; one shard if the order of tensors tells no more.
 * The converter reads shards one by one, and the tensors of each by name: where names begin anew, a shard begins. Other
 * orders, like llama-quantize's, begin anew at least twice in each layer and count as one shard. */
struct shards shards_of_order(const struct hf_model *model, struct arena *arena);

/* "model-00001-of-00007.safetensors" of shard 0, or "model.safetensors" where there is no other: in `name`, or
 * constant. */
enum { SHARDS_NAME = 64 };
const char *shards_name(const struct shards *shards, size_t shard, char name[SHARDS_NAME]);

/* Makes the artifact of a shard; without `shards`, that of the whole model. */
void shards_artifact(const struct hf_model *model, const struct shards *shards, size_t shard,
                     struct artifact *ret_artifact);

/* The text of model.safetensors.index.json. */
void shards_write_index(const struct hf_model *model, const struct shards *shards, struct buffer *out);
