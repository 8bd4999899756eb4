/* Layers with linear attention that several families have: the gated delta rule, Kimi's delta attention (KDA), and
 * Mamba 2. */
#pragma once

#include "models/families/drafts/nextn.h"
#include "models/families/shared.h"

/* The gated delta net, a linear attention that Qwen3-Next and Qwen 3.5 mix with full attention, and other parts that
 * the two share: norms stored minus one, experts, and a layer that predicts one more token. conversion/qwen.py.
 *
 * Each key head has `share` value heads: Qwen 3.5 stores them key head by key head; llama.cpp expects the first of
 * every key head, then the second ... Dimensions: group (key heads), share, key_dim, value_dim, gate_dim. */

extern const struct relation_row gated_delta_tensors[];         /* for both */
extern const struct relation_row gated_delta_grouped_tensors[]; /* for Qwen 3.5: reorders the value heads */
extern const struct key_row gated_delta_keys[];                 /* after moe_keys */

void gated_delta_add_dimensions(struct dimensions *dimensions, const struct hparams *hparams);

/* family.adjust: sets the number of layers that predict, from config.json, or from the tensors' names, as the converter
 * does. */
bool gated_delta_count_predicting(struct model_builder *builder, struct error *error);

/* Sets the sections of the rope to those of the released models, if config.json has none. */
bool gated_delta_emit_sections(struct model_builder *builder, struct error *error);

/* Kimi delta attention (KDA), as in most layers of models with latent attention. */

/* Tensors of KDA below model.layers.{}.self_attn or .attention, except A_log, the gates and the output. They need the
 * flag "flat_convolution", for convolutions stored as matrices. */
extern const struct relation_row kda_self_attention_tensors[], kda_attention_tensors[];

/* Sets that flag by the checkpoint's tensors: for family.adjust. */
void kda_look(struct model_builder *builder);

/* Gives a config.json that a class of transformers 5 made the keys of the checkpoints that it reads: the object
 * linear_attn_config and the number of dense layers. `more` begins with a comma: further members, as in
 * hparams_default(). For family.adjust. */
bool kda_undo_saving(struct model_builder *builder, const char *more, struct error *error);

/* The mixer of Mamba 2, as in some layers of hybrid models.
 *
 * Its rows need the dimensions "state_group", the number of groups that share a state and that divide ssm_norm, "state"
 * and "mamba_head". */

extern const struct relation_row mamba2_layer_tensors[];    /* below model.layers.{}.mamba */
extern const struct relation_row mamba2_backbone_tensors[]; /* below backbone.layers.{}.mixer */

/* Makes vocab_size a multiple: the embedding has been padded. */
bool mamba2_pad_vocabulary(struct model_builder *builder, uint64_t multiple, struct error *error);

enum { MAMBA2_CONTEXT = 1 << 20 }; /* context_length of models that have none */
