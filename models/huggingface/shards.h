/* Which tensors go into which file: how save_pretrained() spreads a model over shards.
 *
 * Source: huggingface_hub, serialization/_base.py, split_state_dict_into_shards_factory(); transformers,
 * modeling_utils.py, save_pretrained(). */
#pragma once

#include "base/buffer.h"
#include "formats/artifact.h"
#include "models/huggingface/hf_model.h"

enum { SHARDS_MAX = 9999 };

/* The size that transformers takes where it is told none. */
extern const uint64_t shards_usual_size;

struct shards {
    size_t n_shards;
    uint32_t *shard_of;  /* by the tensor's place in the model's set; from 0 */
    uint64_t total_size; /* bytes of all tensors */
    uint64_t total_parameters;
};

/* A size as transformers spells it: 5GB, 300MB, powers of 1000, or 2GiB, powers of 1024; plain bytes, too. */
bool shards_parse_size(const char *text, uint64_t *ret_size, struct error *error);

/* Fails where there would be more than SHARDS_MAX. */
bool shards_plan(const struct hf_model *model, uint64_t max_size, struct arena *arena, struct shards *ret_shards,
                 struct error *error);

/* The shards that a checkpoint was in which the converter made a GGUF of, one where nothing tells of more. It takes
 * them one after the other, the tensors of each by name: so names that begin anew begin a shard. Who writes a GGUF in
 * another order, as llama-quantize does, begins anew twice in every layer at least, which is not taken for shards. */
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
