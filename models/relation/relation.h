/* Relations: tables of rows that turn one tensor set into another, in both directions.
 *
 * A row gives the names of tensors here and there, the rearrangement of their elements, and its conditions:
 *
 *     {"model.layers.{}.self_attn.q_proj", "blk.{}.attn_q", "(head half pair) ... -> (head pair half) ..."}
 *     {"model.layers.{}.mlp.experts.{expert}.up_proj", "blk.{}.ffn_up_exps"}
 *     {"...input_linear", "...ffn_gate_exps, ...ffn_up_exps", "... (gate + up) c -> ... gate c, ... up c"}
 *
 * Names here are Hugging Face's; names there are GGUF's, or another engine's. FORWARD goes there, BACKWARD comes back;
 * one engine does both. Commas join several names, in the order of the rearrangement's tensors. A number {expert} that
 * only one side's names have is an axis of the other side's tensor, the first one without a rearrangement: such tensors
 * are gathered until all are present, or one tensor is cut into all of them.
 *
 * Names have no suffix: .weight and .bias carry over; a name may also be whole. Backwards, a '^' at the beginning of a
 * name here stands for the prefix of the relation, unless the flag "bare" is set.
 *
 * Tables go from the particular to the general, and the first row whose name fits and whose conditions hold counts: a
 * table overrides later ones for the same name. In one table, rows with the same result exclude each other by their
 * conditions, or go forward only. */
#pragma once

#include "formats/tensor_set.h"
#include "models/relation/dimensions.h"
#include "models/relation/elementwise.h"
#include "models/relation/pattern.h"

struct relation_row {
    const char *here;
    const char *there; /* NULL: leaves the tensor out; `here` may then end with '*' for any ending */
    const char *axes;  /* a rearrangement from here to there; NULL: unchanged */

    /* The axes that the ranks of tensor parallelism divide, each axis separately: names of the rearrangement, or "row"
     * or "column" of the matrix here. With "kv_head/query" the ranks with the same key heads divide their queries.
     * NULL: each rank has all. */
    const char *parallel;
    const struct elementwise *map;

    /* Conditions, which must all hold: "name" for a dimension that is known and not 0, "!name" for the opposite.
     * "extra_layer": the layer is beyond the counted ones. "has:blk.{}.attn_norm_2" and "!has:...": on the way back
     * only, whether the set has that tensor, whole or with a suffix; forward, and without a set, both hold. */
    const char *when;
    bool forward_only;  /* another name for the tensor of another row */
    bool backward_only; /* written by older versions only */
    bool first_counts;  /* of the tensors with the same result by such rows, the first counts */
};

/* A row after parsing. */
struct relation_entry {
    const struct relation_row *row;
    unsigned table;
    const char *names[2][AXES_MAX_TENSORS]; /* by the direction that reads them */
    unsigned n_names[2];
    const char *member[2];               /* the axis that is a number in the names of that side only; NULL: none */
    const struct rearrangement *axes[2]; /* by direction; NULL: unchanged */
    unsigned group[2];                   /* entries whose tensors are complete together; 0: none */
};

struct relation {
    const char *name, *prefix;
    struct relation_entry *entries; /* in the order of the tables */
    unsigned n_entries, n_groups;
    struct relation_name *known[2]; /* index of names, by the direction that reads them */
    size_t n_known[2];
};

/* Reads the tables, up to a NULL; each ends with a row without `here`. Does not copy `name` and `prefix` (which may be
 * NULL). Fails for an invalid row, which the error names, or too many rows. */
const struct relation *relation_new(struct arena *arena, const char *name, const char *prefix,
                                    const struct relation_row *const *tables, struct error *error);

/* The match of a relation with a name on the side that a direction reads. */
struct relation_match {
    const struct relation_entry *entry;
    unsigned which; /* of the entry's names */
    uint64_t numbers[PATTERN_NUMBERS];
    const char *suffix;
};

/* Finds the row for a name; returns false if no row fits. `set`, may be NULL: searched by conditions with has:. Rows
 * that leave tensors out match forward only. */
bool relation_find(const struct relation *relation, enum direction direction, const struct dimensions *dimensions,
                   const struct tensor_set *set, const char *name, struct relation_match *ret_match);

/* Returns a name of an entry without its '^'. */
const char *relation_bare_name(const char *pattern);

struct relation_job {
    const struct relation *relation;
    enum direction direction;
    const struct dimensions *dimensions;
    const struct tensor_set *set; /* the input; sealed if rows have has: */
    const char *dimensions_name;  /* origin of the dimensions, for messages: "config.json" */
    const char *const *shown;     /* the name of each tensor in messages; NULL: its own */
    struct arena *arena;          /* for the resulting views and names */
    void *context;

    /* Not NULL: the set may lack all tensors of a gathered row, which sets *is_partial. */
    bool *is_partial;

    /* Returns the values of a tensor that is not left out; NULL, with an error, on failure. */
    const struct view *(*read)(void *context, const struct tensor *tensor, const char *shown, struct error *error);

    /* Receives one tensor of the result, in the order of the set; gathered tensors come at the place of their last
     * member, in the order of the rows. */
    void (*write)(void *context, const char *name, const struct view *view);
};

/* Returns the name, in the job's arena, of the first resulting tensor of a match; *ret_member is the tensor's number
 * among its gathered members, UINT64_MAX: not gathered. */
const char *relation_target(const struct relation_job *job, const struct relation_match *match, uint64_t *ret_member);

/* Turns a set into a set of the other side. Fails if a tensor has no row or does not fit its row, or if tensors that
 * belong together are missing. Takes O(n log n) for n tensors. */
bool relation_apply(const struct relation_job *job, struct error *error);
