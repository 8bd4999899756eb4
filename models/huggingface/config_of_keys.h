/* config.json of a model that is a GGUF: the rows of its family's keys read backwards, and the rows of its class
 * (models/family/config_form.h), whose conventions supply what a GGUF lacks.
 *
 * Numbers are written as Python writes them: an F32 as the shortest decimal that gives it back. */
#pragma once

#include "base/buffer.h"
#include "models/family/config_form.h"

struct family;

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
