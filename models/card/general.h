/* general.*: what a GGUF says about the model as a whole.
 *
 * From README.md's front matter, config.json's _name_or_path, the directory's name and generation_config.json, in this
 * order of precedence, by the heuristics of gguf-py metadata.py of llama.cpp. What would end that program (a
 * number for a text, front matter that is not YAML) is read as its author meant it where that is plain, left out where
 * it is not, and noted in the checkpoint. */
#pragma once

#include "formats/checkpoint.h"
#include "formats/gguf/kv.h"
#include "formats/json.h"
#include "models/card/name_parts.h"

/* Sets general.sampling.* and general.name ... general.languages. `raw_config` is config.json or NULL. Fails where a
 * file is there and cannot be read. */
bool general_add(struct gguf_kvs *kvs, const struct checkpoint *checkpoint, const struct json *raw_config,
                 const struct parameter_count *count, struct error *error);

/* The front matter of a README.md that gives general.* back: a model card with names, license, base models, tags ... */
void general_write_card(const struct gguf_kvs *kvs, struct buffer *out);
