/* The parts of a model's name: "Mistral-7B-Instruct-v0.3" is a basename, a size, a finetune and a version.
 *
 * The heuristics are those of gguf-py metadata.py (get_model_id_components, id_to_title) and utility.py (size_label) of
 * llama.cpp, with Python's meaning of letters, digits and cases for all of Unicode; of title case only the
 * one-to-one mappings, and sharp s. Bytes that are not UTF-8 become U+FFFD. All texts are made in the arena that is
 * given. */
#pragma once

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>

/* NULL where the name says nothing; an empty text is something. */
struct name_parts {
    const char *full_name, *organization, *basename, *finetune, *version, *size_label;
};

/* Takes "ORG/NAME" or "NAME" apart. A size that is far from `n_parameters` is taken for a context length, which belongs
 * to the finetune; 0: unknown, every size is believed. Of an adapter it is the number of parameters that are adapted,
 * negated: the model has that many or more, and the word "lora" says nothing then. */
struct name_parts name_parts_read(struct arena *arena, const char *id, int64_t n_parameters);

/* "bge-small-en" as "Bge Small En": words in lower case get a capital, versions and what begins with a digit do not. */
const char *name_title(struct arena *arena, const char *name);

/* The counts for the size label, over the tensors of a GGUF. */
struct parameter_count {
    uint64_t total;          /* elements of all tensors */
    uint64_t shared;         /* elements outside expert tensors */
    uint64_t expert;         /* elements of one expert, over all expert tensors */
    uint64_t expert_sum;     /* sum of the number of experts over expert tensors */
    uint64_t expert_tensors; /* number of expert tensors */
    bool is_adapter;         /* the total is of the weights that it adapts */
};

/* "6.7B", "8x7B". */
const char *size_label(struct arena *arena, const struct parameter_count *count);
