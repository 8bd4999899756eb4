/* Tables and hooks that several families share.
 *
 * A family is a `const struct family x_family` (models/family/family.h) that a file in this folder exports, alone or
 * with closely related ones, and a row in families.c. Code is in hooks, in the family's own file or below. Adding a
 * family changes no other family's file; what two of them need moves here. */
#pragma once

#include "models/family/config_form.h"
#include "models/family/model_builder.h"
#include "models/tokenizers/vocab.h"

/* For forms whose class is not in transformers. */
#define OWN_CLASS_NOTE "its class is in Python files published with the model, which are not in the GGUF"

/* For forms of a multimodal model's language model. */
#define HALF_NOTE "only the language model, whose weights are all that the GGUF has"

/* For those of which transformers has a class with the output head only beside a vision encoder. */
#define HEADLESS_HALF_NOTE                                                                                             \
    HALF_NOTE "; transformers has no class for it with its output head: AutoModel opens it without lm_head.weight, "   \
              "while the class in config.json needs the vision encoder"

extern const struct relation_row sparse_moe_tensors[]; /* Mixtral's experts */
extern const struct relation_row qk_norm_tensors[];    /* norms of queries and keys */
extern const struct relation_row plus_one_tensors[];   /* norms stored minus one */

/* Names below mlp.: the experts, gathered as down, gate, up, or as gate, up, down; the router, its correction and the
 * shared experts. */
extern const struct relation_row expert_tensors[], expert_gate_first_tensors[], router_tensors[];

/* Names of GPT-2 and most models before Llama. */
extern const struct relation_row gpt_tensors[];

/* the converter's common emitter, general.file_type at its end */
extern const struct key_row base_keys[];
extern const struct key_row moe_keys[]; /* expert_feed_forward_length and the shared expert's */

/* Lines of config.json that many classes have: the activation silu, whether attention and feed-forward projections have
 * biases, no sliding window, and the number of experts as num_experts. */
extern const struct config_row silu_rows[], attention_bias_rows[], mlp_bias_rows[], no_window_rows[];
extern const struct config_row num_experts_rows[];

/* "query", "key" and "value" are 1, which separates the parts of a fused matrix. */
extern const struct dimension_row qkv_dimensions[];

/* Fused matrices. */
#define GATE_UP "... (gate + up) c -> ... gate c, ... up c"

/* general.file_type; the output sets its value. */
#define FILE_TYPE_KEY                                                                                                  \
    {                                                                                                                  \
        .key = ".general.file_type", .type = GGUF_U32, .when = ALWAYS                                                  \
    }

/* Sets pooling_type, from modules.json and the configuration it names. */
bool emit_pooling_type(struct model_builder *builder, struct error *error);

/* Compute rope.dimension_count, in the ways of different families. */
bool compute_hidden_per_head(const struct model_builder *builder, double *ret_value, struct error *error);
bool compute_head_dim(const struct model_builder *builder, double *ret_value, struct error *error);
bool compute_rotary_of_hidden(const struct model_builder *builder, double *ret_value, struct error *error);
bool compute_rotary_of_head(const struct model_builder *builder, double *ret_value, struct error *error);
bool compute_rotary_of_half(const struct model_builder *builder, double *ret_value, struct error *error);

/* Gets the rotary part of a head's dimensions, by partial_rotary_factor or else `otherwise`; NAN: fails without it. */
bool rotary_of_head_dim(const struct model_builder *builder, double otherwise, double *ret_value, struct error *error);

/* On the way back, returns config.json's name of expert_gating_func, in quotation marks; NULL if the key is absent. */
const char *config_gating_function(const struct config_material *material);

/* For families whose rope the converter does not write, a row after the other keys: notes a rope_theta of config.json
 * that llama.cpp would need. */
bool note_lost_rope(struct model_builder *builder, struct error *error);

/* Adds rope_freqs.weight if the rope is scaled as in Llama 3. */
bool add_rope_freqs(struct model_builder *builder, struct error *error);

/* For families whose models get a chat template from the converter, which wfs lacks: add_extras keeps its place among
 * the keys for the files' template; without one, after_vocab notes that, and leaves the place to the user's. */
bool hold_chat_template(struct model_builder *builder, struct error *error);
bool release_chat_template(struct model_builder *builder, const struct vocab_input *input, struct error *error);

/* The factors by which Llama 3 slows its rotary frequencies. */

struct rope_freqs {
    double theta, factor, low_factor, high_factor, old_context; /* as in rope_scaling of config.json */
};

/* Returns the factor for the frequency of dimension 2 i, whose exponent is 2 i / dimensions. */
float rope_freq_factor(const struct rope_freqs *scaling, float exponent);

/* Reports whether the rope is scaled the Llama 3 way. */
bool rope_is_llama3(const struct model_builder *builder);

/* Adds rope_freqs.weight for such a rope, which turns `turned` of `head_dim` dimensions; the others get factors of 1.
 * `factor` is the default for a rope without a factor. Like the converter's classes, computes in F32 or, `in_doubles`,
 * in doubles. */
bool rope_freqs_add(struct model_builder *builder, double factor, double turned, double head_dim, bool in_doubles,
                    struct error *error);
