/* Tensors and keys of two models, matched by name. */
#pragma once

#include "formats/gguf/kv.h"
#include "formats/tensor_set.h"
#include "quant/views/view.h"

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

/* Values side by side: for `wfs diff` and `wfs verify`.
 *
 * All cores compare two views with equal numbers of elements: first the stored bytes if both have one dtype, then, if
 * these differ, the values as F32. Equal numbers do not differ, nor do two NaNs; if only one value is a NaN or
 * infinite, the difference is infinite. */

struct difference {
    bool same_bytes;     /* and the same dtype */
    bool has_values;     /* both can be read as F32; else the fields after n_elements are 0 */
    uint64_t n_elements; /* of each view */
    uint64_t n_different;
    double largest;      /* of |b - a| */
    double squares;      /* sum of (b - a)^2 */
    double base_squares; /* sum of a^2 */
};

struct pair {
    const struct view *a, *b;
    struct difference difference; /* filled in by compare_pairs() */
};

/* Return the root mean square of the differences, and its ratio to `a`'s: infinite if `a` is 0; 0 if none differs. */
double difference_rms(const struct difference *difference);
double difference_relative(const struct difference *difference);

/* Returns the most bytes of F32 values that compare_pairs() adds to a stage for these pairs. */
uint64_t compare_bytes(const struct pair *pairs, size_t n_pairs);

/* Compares each pair; fails if one cannot be read. A stage must have begun (fs/lib/stage.h). */
bool compare_pairs(struct pair *pairs, size_t n_pairs, struct error *error);
