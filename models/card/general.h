/* The parts of a model's name: "Mistral-7B-Instruct-v0.3" is a basename, a size, a finetune and a version.
 *
 * Source: gguf-py metadata.py (get_model_id_components, id_to_title) and utility.py (size_label) of llama.cpp, with
 * Python's meaning of letters, digits and cases for all of Unicode; title case only maps one letter to one, and sharp s
 * to "Ss". Bytes that are not UTF-8 become U+FFFD. All texts are made in the given arena. */
#pragma once

#include "base/arena.h"
#include "formats/checkpoint.h"
#include "formats/gguf/kv.h"
#include "models/references/references.h"
#include "text/json.h"
#include "text/yaml.h"

#include <stdbool.h>
#include <stdint.h>

/* A part that the name lacks is NULL; an empty text is a part. */
struct name_parts {
    const char *full_name, *organization, *basename, *finetune, *version, *size_label;
};

/* Takes "ORG/NAME" or "NAME" apart. A size that is far from `n_parameters` is taken for a context length, which belongs
 * to the finetune; 0: unknown, every size is believed. For an adapter, pass the negated number of adapted parameters:
 * only a size below an eighth of it is a context length then, and the word "lora" is ignored. */
struct name_parts name_parts_read(struct arena *arena, const char *id, int64_t n_parameters);

/* Returns "bge-small-en" as "Bge Small En": capitalizes lower-case words that are no version or number. */
const char *name_title(struct arena *arena, const char *name);

/* The counts for the size label, over the tensors of a GGUF. */
struct parameter_count {
    uint64_t total;          /* elements of all tensors */
    uint64_t shared;         /* elements outside expert tensors */
    uint64_t expert;         /* elements of one expert, over all expert tensors */
    uint64_t expert_sum;     /* sum of the number of experts over expert tensors */
    uint64_t expert_tensors; /* number of expert tensors */
    bool is_adapter;         /* the total counts the weights that an adapter adapts */
};

/* Returns "6.7B", or for experts "8x7B". */
const char *size_label(struct arena *arena, const struct parameter_count *count);

/* general.*: a GGUF's keys about the model as a whole.
 *
 * They come from README.md's front matter, config.json's _name_or_path and the directory's name, in this order of
 * precedence; general.sampling.* come from generation_config.json. Source: gguf-py metadata.py of llama.cpp. Input that
 * would end that program (a number for text, bad YAML) is read as meant if that is clear, else left out and noted. */

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
