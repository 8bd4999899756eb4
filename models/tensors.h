/* The tensors of a synthesized GGUF, from the checkpoint's by the family's rows.
 *
 * Order and names follow ModelBase.index_tensors and prepare_tensors of the converter: shard by shard, the names of a shard
 * sorted, experts stacked where the last of them is met. */
#pragma once

#include "models/families/family.h"

/* The checkpoint's tensors under the names that the family's rows are about. */
struct renamed_tensors {
    struct tensor_set *set;    /* not sealed: several may have one name */
    const char **stored_names; /* of each, as the user knows it */
};

/* The checkpoint's tensors in the converter's order, without those that belong to other parts of a multimodal model. The set
 * lives in `arena`, names in the model's. */
struct renamed_tensors tensors_in_order(const struct synthesis *synthesis, struct arena *arena);

/* Adds all tensors of the model. Fails where one has no row, or does not fit. */
bool tensors_add(struct synthesis *synthesis, const struct renamed_tensors *tensors, struct error *error);

/* Whether `name` is made by `pattern`, and with which numbers; numbers[i] is UINT64_MAX where the pattern has fewer {}. The
 * pattern's trailing '*' stands for any rest. */
bool pattern_match(const char *pattern, const char *name, size_t name_length, uint64_t numbers[2]);

/* `pattern` with its {} replaced. */
char *pattern_fill(struct arena *arena, const char *pattern, const uint64_t numbers[2], const char *suffix);
