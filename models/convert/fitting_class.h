/* Known classes that a checkpoint of an unknown class fits exactly: a Llama, say, that was saved under a new name.
 *
 * A checkpoint fits a class if
 * - each of its tensors is one of the class, with the shape that config.json gives it, and each tensor that the class
 *   needs is present, in each layer and of each expert;
 * - config.json has each key that the class needs, and no other key that could change what a model computes: any key
 *   that is neither the class's nor harmless must be null, false or empty.
 * So a tensor or key too many, or one missing, leads to no suggestion, rather than to a wrong one. Classes that need
 * the same tensors and keys, as Llama and Mistral do, cannot be told apart.
 *
 * Source: modeling and configuration files of transformers. */
#pragma once

#include "formats/checkpoint.h"

#include <stdbool.h>

/* Returns "; its tensors and keys are those of LlamaForCausalLM or MistralForCausalLM: -o
 * architecture=LlamaForCausalLM", the most common class first, in the arena; "" if no class fits. Tensors are compared
 * by names and shapes; no weight is read, except where a packing stores shapes in tensors. */
const char *fitting_class_hint(const struct checkpoint *checkpoint, struct arena *arena);

/* Classes of transformers by the tensors and keys that they need, for fitting_class.c: those under whose architecture
 * models are published by other names. A class has a row; classes share tables of tensors. */

enum { KNOWN_CLASS_MAX_TABLES = 5 };

/* Tensors of a class, {} and {expert} standing for each layer and expert. */
struct class_tensor {
    const char *name;
    const char *shape; /* dimensions and their sums, as in "q+2k,e": the letters of `letters` and of find_sizes() */
    const char *when;  /* a key that must be true, or not be true after a '!'; NULL: always. No other tensor of that
                          name is allowed, unless `spare` is set: then it is needed only if config.json has the key */
    enum { ALL_LAYERS, DENSE_LAYERS, SPARSE_LAYERS } layers; /* by first_k_dense_replace */
    bool spare;
};

/* A class. Lists are words separated by blanks. */
struct known_class {
    const char *name;
    const char *needs; /* keys that must be present and not null */
    const char *knows; /* further keys that it may have */
    const char *fixed; /* keys that, if present, must have one of these values: "hidden_act=silu|swish" */
    const struct class_tensor *tensors[KNOWN_CLASS_MAX_TABLES + 1];
};

/* The most common class first, up to one without a name; of classes with the same tensors, the one with fewer keys. */
extern const struct known_class known_classes[];

/* Keys that all of the classes have, or that change nothing that a model computes, and ends of such keys, up to a NULL.
 * Keys that begin with '_' are harmless, too. */
extern const char harmless_keys[];
extern const char *const harmless_key_ends[];
