/* config.json of a model that is a GGUF: the rows of its family's keys read backwards, and those of its class
 * (models/family/config_form.h).
 *
 * Facts: what AutoConfig needs, which conventions stand for what is lost. Numbers are written as Python writes them: an
 * F32 as the shortest decimal that gives it back. */
#pragma once

#include "base/buffer.h"
#include "models/family/config_form.h"

struct family;

/* Returns the family of a GGUF, or NULL. Several may have one architecture: their `tokenizer_model` and `told_by` tell
 * them apart. `tensors` are those of the GGUF, sealed. */
const struct family *family_of_keys(const struct gguf_kvs *kvs, const struct tensor_set *tensors);

/* The class that a GGUF is written as; NULL where none is known. `tensors` are those of the GGUF, sealed. */
const struct config_form *config_form_of_keys(const struct family *family, const struct gguf_kvs *kvs,
                                              const struct tensor_set *tensors);

/* Appends the text of config.json: two blanks a level, keys sorted, as save_pretrained writes it. `dtype` is what
 * torch_dtype says: "bfloat16". */
bool config_of_keys(const struct family *family, const struct gguf_kvs *kvs, const struct tensor_set *tensors,
                    const char *dtype, struct buffer *out, struct error *error);
