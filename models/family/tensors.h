/* The tensors of a GGUF made from a checkpoint, by the rows of its family.
 *
 * Order and names follow ModelBase.index_tensors and prepare_tensors of the converter: shard by shard, the names of a
 * shard sorted, experts stacked at the place of the last one. */
#pragma once

#include "models/family/model_builder.h"

/* Adds all tensors of the model: the checkpoint's in the converter's order, dequantized, as the family relates them,
 * without those of other parts of a multimodal model. Sets model->auto_type and model->packed_file_type, too, and notes
 * packings that the converter refuses. Fails if a tensor has no row, does not fit its row, or has no values. */
bool tensors_add(struct model_builder *builder, struct error *error);

/* Like tensors_add(), for a set with the checkpoint's names, and without tensors_add()'s side effects. */
bool tensors_relate(struct model_builder *builder, const struct tensor_set *set, struct error *error);

/* Joins matrices as the converter's options --fuse-qkv and --fuse-gate-up-exps do.
 *
 * fuse=qkv: attn_q, attn_k and attn_v of a layer become attn_qkv, rows in this order, at the place of the last one;
 * only for architectures with both forms, and if the checkpoint has the three as tensors of their own, and biases for
 * all or none of them. Other layers stay as they are. fuse=gate-up-exps: likewise ffn_gate_exps and ffn_up_exps become
 * ffn_gate_up_exps; the converter fails for architectures without the joined form.
 *
 * Source: prepare_qkv_fusion() and modify_tensors() in conversion/base.py of llama.cpp; MODEL_TENSORS of gguf-py. */

/* Marks, by layer, the q, k and v that the checkpoint has as tensors of their own; `n_layers` elements. */
struct fusible {
    uint8_t *marks;
    size_t n_layers;
};

/* Finds these tensors in the job's set, whose tensors the relation has not been applied to yet, in the job's arena.
 * NULL marks: nothing is to be fused. */
struct fusible fusion_find(const struct model_builder *builder, const struct relation_job *job);

/* Joins the tensors of the model as its request asks. */
bool fusion_apply(struct model_builder *builder, const struct fusible *fusible, struct error *error);

/* Parts of a model with layers of multi-token prediction (MTP), which predict further tokens: the converter writes them
 * alone (--mtp), with the tensors that they share with the model, or leaves them out (--no-mtp).
 *
 * The layers come after the others, under the names that the family's rows use; the dimension "nextn" is their number.
 * In the part of these layers alone, the dimension "only_mtp" is 1. */

/* Returns the number of the layer in a tensor's name, "model.layers.{i}.attn"; UINT64_MAX: none. */
uint64_t part_layer_of(const char *name);

/* Reports whether the model's part has the tensor with that name, as family_tensor_name() returns it. */
bool part_has(const struct model_builder *builder, const char *name);

/* Reports whether the converter of these builds writes parts of the class. */
bool part_is_offered(const struct family *family, const struct family_name *hf, const struct references *references);
