/* The Hugging Face model of a GGUF, and its small files: the relations and keys of its family read backwards, and the
 * rows of its class (models/family/config_form.h), whose conventions supply what a GGUF lacks.
 *
 * Numbers are written as Python writes them: an F32 as the shortest decimal that gives it back. */
#pragma once

#include "base/buffer.h"
#include "formats/gguf/kv.h"
#include "formats/tensor_set.h"
#include "models/family/config_form.h"
#include "models/huggingface/hf_model.h"

struct family;

/* Returns the default type of matrices, and the reason, like hf_type(). */
const struct dtype *hf_gguf_type(const struct checkpoint *checkpoint, const char **ret_reason);

/* Fills in tensors, configuration, model type, and the type of dequantized matrices: model->type, or else BF16, with a
 * note. If the family is unknown, or its rows do not fit, tensors keep their names, there is no configuration, and a
 * note gives the reason. */
bool hf_take_gguf(struct hf_model *model, struct error *error);

/* Returns the family of a GGUF, or NULL. Families with the same architecture are told apart by their `tokenizer_model`
 * and `told_by`. `tensors` is the GGUF's set, sealed. */
const struct family *family_of_keys(const struct gguf_kvs *kvs, const struct tensor_set *tensors);

/* Returns the class that a GGUF is written as; NULL: none is known. `tensors` is the GGUF's set, sealed. */
const struct config_form *config_form_of_keys(const struct family *family, const struct gguf_kvs *kvs,
                                              const struct tensor_set *tensors);

/* Appends the text of config.json as save_pretrained() writes it: two blanks a level, keys sorted. `dtype` becomes
 * torch_dtype: "bfloat16". May read small tensors (rope_of_tensors()). Fails if no class is known, or a key that
 * determines the shapes of tensors is missing. */
bool config_of_keys(const struct family *family, const struct gguf_kvs *kvs, const struct tensor_set *tensors,
                    const char *dtype, struct buffer *out, struct error *error);

/* Returns the text of rope_scaling of config.json, indented as a member of the top level, in the arena, from the
 * tensors that stand for it in a GGUF: rope_freqs.weight of Llama 3, and rope_factors_long and _short of Phi 3; NULL:
 * there are no such tensors, or they cannot be read. `theta` is the base of the rope. These small tensors are read
 * while outputs are planned, as are a few others of packings and families.
 *
 * A table of Llama 3's kind determines its factor, and the other three numbers up to a common multiple: they are
 * computed from the table, taken as the smallest whole numbers, and accepted if they give the table back to 1e-6. Any
 * other table is written as longrope's, which gives the same frequencies. */
const char *rope_of_tensors(const struct tensor_set *tensors, double theta, struct arena *arena);

/* Appends generation_config.json: special tokens, and general.sampling.*. */
void generation_config_of_keys(const struct gguf_kvs *kvs, struct buffer *out);

/* Reports whether ARCHITECTURE.pooling_type is a kind of pooling that sentence-transformers' files can express. */
bool pooling_is_known(const struct gguf_kvs *kvs);

/* Append these files, which say how tokens become one embedding: modules.json, and the 1_Pooling/config.json that it
 * names; only if pooling_is_known(). */
void pooling_write_modules(const struct gguf_kvs *kvs, struct buffer *out);
void pooling_write_config(const struct gguf_kvs *kvs, struct buffer *out);
