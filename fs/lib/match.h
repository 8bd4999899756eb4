/* Tensors and keys of two models, matched by name. */
#pragma once

#include "formats/gguf/kv.h"
#include "formats/tensor_set.h"
#include "fs/lib/compare.h"

struct match {
    const struct tensor *a, *b; /* NULL: that model has no tensor of the name */
    bool same_shape;            /* apart from leading dimensions of 1, which GGUF leaves out */
    struct pair *pair;          /* NULL: the tensors cannot be compared */
};

/* Reports, after compare_pairs(), whether both have the tensor with the same dtype and stored bytes. */
bool match_is_same(const struct match *match);

/* The tensors of `a` in its order, then those that only `b` has, in its order. */
struct matches {
    struct match *matches;
    size_t n_matches;
    struct pair *pairs;
    size_t n_pairs;
};

/* Matches two sealed sets. The result and its views live in the arena; the pairs are not compared yet. */
struct matches match_tensors(const struct tensor_set *a, const struct tensor_set *b, struct arena *arena);

/* A key with different values or types; NULL: the model has no such key. In the order of struct matches. */
struct key_match {
    const struct gguf_kv *a, *b;
};

struct key_matches {
    struct key_match *matches;
    size_t n_matches;
};

struct key_matches match_keys(const struct gguf_kvs *a, const struct gguf_kvs *b, struct arena *arena);
