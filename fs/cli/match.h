/* Tensors and keys of two models, by name: what both have, and what just one has. */
#pragma once

#include "formats/gguf/kv.h"
#include "formats/tensor_set.h"
#include "fs/cli/compare.h"

struct match {
    const struct tensor *a, *b; /* NULL: the other has none of that name */
    bool same_shape;            /* but for dimensions of 1 before all others, which GGUF leaves out */
    struct pair *pair;          /* NULL where there is nothing to compare */
};

/* Reports whether both have the tensor, with the same dtype and stored bytes. */
bool match_is_same(const struct match *match);

/* In the order of `a`, then what only `b` has, in its order. */
struct matches {
    struct match *matches;
    size_t n_matches;
    struct pair *pairs;
    size_t n_pairs;
};

/* Lives in the arena, as do the views. Both sets are sealed. */
struct matches match_tensors(const struct tensor_set *a, const struct tensor_set *b, struct arena *arena);

/* Keys whose values, or types, differ; in the same order. */
struct key_match {
    const struct gguf_kv *a, *b;
};

struct key_matches {
    struct key_match *matches;
    size_t n_matches;
};

struct key_matches match_keys(const struct gguf_kvs *a, const struct gguf_kvs *b, struct arena *arena);
