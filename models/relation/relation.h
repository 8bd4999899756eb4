/* Relations: tables of rows that turn one tensor set into another, in both directions.
 *
 * A row gives the names of tensors here and there, the rearrangement of their elements, and its conditions:
 *
 *     {"model.layers.{}.self_attn.q_proj", "blk.{}.attn_q", "(head half pair) ... -> (head pair half) ..."}
 *     {"model.layers.{}.mlp.experts.{expert}.up_proj", "blk.{}.ffn_up_exps"}
 *     {"...input_linear", "...ffn_gate_exps, ...ffn_up_exps", "... (gate + up) c -> ... gate c, ... up c"}
 *
 * Names here are Hugging Face's; names there are GGUF's, or another engine's. FORWARD goes there, BACKWARD comes back;
 * one engine does both. Several names are joined by commas, in the order of the tensors of the rearrangement. A number
 * {expert} of a name that the other side does not have is an axis of the tensor there, the first one where the row has
 * no rearrangement: such tensors are gathered until all are there, or one is cut into all.
 *
 * Names go without suffix: .weight and .bias are carried over; a name may also be whole. Backwards, a '^' at the
 * beginning of a name here stands for the prefix of the relation, unless the flag "bare" is set.
 *
 * Tables go from the particular to the general, and the first row whose name fits and whose conditions hold is the one
 * that counts: a table takes the place of what a later one says of the same name. In one table, rows that lead to one
 * name exclude each other by their conditions, or go forward only. */
#pragma once

#include "formats/tensor_set.h"
#include "models/relation/elementwise.h"
#include "models/relation/facts.h"
#include "models/relation/pattern.h"

struct relation_row {
    const char *here;
    const char *there; /* NULL: left out; `here` may then end with '*' for any rest */
    const char *axes;  /* a rearrangement from here to there; NULL: as it is */

    /* The axes that the ranks of tensor parallelism divide among them, each for itself: names of the rearrangement, or
     * "row" or "column" of the matrix here. With "kv_head/query" the ranks that have the same key heads divide their
     * queries among them. NULL: each rank has all. */
    const char *parallel;
    const struct elementwise *map;

    /* Conditions, which must all hold: "name" for a dimension that is known and not 0, "!name" for the opposite.
     * "extra_layer": the layer is not one of those that are counted. "has:blk.{}.attn_norm_2" and "!has:...": on the
     * way back only, whether the set has that tensor, whole or with one of the suffixes; forward, and without a set,
     * both hold. */
    const char *when;
    bool forward_only;  /* another name of what another row writes */
    bool backward_only; /* what older versions wrote in its place */
    bool first_counts;  /* of the tensors that lead to one name by such rows, the first one counts */
};

/* A row after parsing. */
struct relation_entry {
    const struct relation_row *row;
    unsigned table;
    const char *names[2][AXES_MAX_TENSORS]; /* of the side that a direction reads from */
    unsigned n_names[2];
    const char *member[2];               /* the axis that is a number in the names of that side alone; NULL: none */
    const struct rearrangement *axes[2]; /* by direction; NULL: as it is */
    unsigned group[2];                   /* entries whose tensors are complete together; 0: none */
};

struct relation {
    const char *name, *prefix;
    struct relation_entry *entries; /* in the order of the tables */
    unsigned n_entries, n_groups;
    struct relation_name *known[2]; /* what finds them, by the side that a direction reads from */
    size_t n_known[2];
};

/* Reads the tables, up to a NULL; each ends with a row without `here`. `name` and `prefix` (which may be NULL) are not
 * copied. An error in a row names it; too many rows are an error, too. */
const struct relation *relation_new(struct arena *arena, const char *name, const char *prefix,
                                    const struct relation_row *const *tables, struct error *error);

/* The match of a relation with a name on the side that `direction` reads from. */
struct relation_match {
    const struct relation_entry *entry;
    unsigned which; /* of the entry's names */
    uint64_t numbers[PATTERN_NUMBERS];
    const char *suffix;
};

/* Returns false if no row fits. `set`, which may be NULL, is the one that has: conditions search. Rows that leave
 * tensors out fit forward only. */
bool relation_find(const struct relation *relation, enum direction direction, const struct dimensions *dimensions,
                   const struct tensor_set *set, const char *name, struct relation_match *ret_match);

/* Returns a name of an entry without the mark of a prefix. */
const char *relation_bare_name(const char *pattern);

struct relation_job {
    const struct relation *relation;
    enum direction direction;
    const struct dimensions *dimensions;
    const struct tensor_set *set; /* the input; sealed if rows have has: */
    const char *dimensions_name;  /* the dimensions' origin, for messages: "config.json" */
    const char *const *shown;     /* the name of each tensor in messages; NULL: its own */
    struct arena *arena;          /* for the resulting views and names */
    void *context;

    /* Not NULL: all tensors of a gathered row may be missing from the set, which sets *is_partial. */
    bool *is_partial;

    /* Returns the values of a tensor that is not left out; NULL, with an error, on failure. */
    const struct view *(*read)(void *context, const struct tensor *tensor, const char *shown, struct error *error);

    /* Receives one tensor of the result. Tensors come in the order of the set; gathered ones come at the place of their
     * last member, in the order of the rows. */
    void (*write)(void *context, const char *name, const struct view *view);
};

/* Returns the name, in the job's arena, of the first tensor that a match leads to, and sets *ret_member to the tensor's
 * number among its gathered members; UINT64_MAX: it is not gathered. */
const char *relation_target(const struct relation_job *job, const struct relation_match *match, uint64_t *ret_member);

/* Turns a set into one of the other side. Fails if a tensor has no row or does not fit its row, or if tensors that
 * belong together are missing. Takes O(n log n) for n tensors. */
bool relation_apply(const struct relation_job *job, struct error *error);
