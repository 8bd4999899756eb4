/* Joins matrices as the converter's options --fuse-qkv and --fuse-gate-up-exps do.
 *
 * fuse=qkv: attn_q, attn_k and attn_v of a layer become attn_qkv, rows in this order, at the place of the last one;
 * only for architectures with both forms, and if the checkpoint has the three as tensors of their own, and biases for
 * all or none of them. Other layers stay as they are. fuse=gate-up-exps: likewise ffn_gate_exps and ffn_up_exps become
 * ffn_gate_up_exps; the converter fails for architectures without the joined form.
 *
 * Source: prepare_qkv_fusion() and modify_tensors() in conversion/base.py of llama.cpp; MODEL_TENSORS of gguf-py. */
#pragma once

#include "models/family/model_builder.h"

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
