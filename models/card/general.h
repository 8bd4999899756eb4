/* general.*: a GGUF's keys about the model as a whole.
 *
 * They come from README.md's front matter, config.json's _name_or_path and the directory's name, in this order of
 * precedence; general.sampling.* come from generation_config.json. Source: gguf-py metadata.py of llama.cpp. Input that
 * would end that program (a number for text, bad YAML) is read as meant if that is clear, else left out and noted. */
#pragma once

#include "formats/checkpoint.h"
#include "formats/gguf/kv.h"
#include "models/card/name_parts.h"
#include "models/references/references.h"
#include "text/json.h"
#include "text/yaml.h"

/* Sets general.sampling.* and general.name ... general.languages. `raw_config` is config.json or NULL; `references` may
 * be NULL, for the newest builds. Fails if one of the files exists but cannot be read. */
bool general_add(struct gguf_kvs *kvs, const struct checkpoint *checkpoint, const struct json *raw_config,
                 const struct parameter_count *count, const struct references *references, struct error *error);

/* Appends the front matter of a README.md from which general_add() sets the same keys again: a model card with names,
 * license, base models, datasets, tags and languages. Lists of more than 10,000 entries are left out. */
void general_write_card(const struct gguf_kvs *kvs, struct buffer *out);

/* The YAML between "---" lines at the top of a model's README.md (text/yaml.h). */

/* Sets *ret_card to the mapping, or to NULL if `readme` has no front matter or it is not a mapping. Fails if the front
 * matter is not YAML, or exceeds the limits. */
bool front_matter_read(struct arena *arena, const char *readme, size_t length, const struct yaml_value **ret_card,
                       struct error *error);
