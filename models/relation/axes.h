/* The notation of rearrangements, parsed: einops' rearrange(), extended by several tensors a side and by sections.
 *
 *     sides     tensors -> tensors           one side alone: the same on both
 *     tensors   dimensions, dimensions ...   a comma after each tensor but the last
 *     dimension name | 1 | ... | (product + product ...)
 *     product   names, 1 and groups in a row, the last one varies fastest
 *
 * `...` is any number of dimensions, the same in all tensors. Products joined by + are sections, one after the other. A
 * name may be in several sections of a group, but only once in each.
 *
 * Everything lives in the parser's arena. */
#pragma once

#include "base/arena.h"
#include "base/error.h"

#include <stdint.h>

enum { AXES_MAX = 32, AXES_MAX_TENSORS = 16, AXES_MAX_SECTIONS = 64, AXES_MAX_GROUPS = 16 };

enum factor_kind { FACTOR_AXIS, FACTOR_ONE, FACTOR_REST, FACTOR_GROUP };

/* A factor of a dimension, multiplied with its neighbours. */
struct factor {
    enum factor_kind kind;
    unsigned number; /* an axis: among the names; a group: in its tensor */
    struct section *sections;
    unsigned n_sections;
    struct factor *next, *previous;
};

struct section {
    struct factor *first, *last;
    struct section *next;
};

/* One tensor; its dimensions are factors. */
struct axes {
    const char *text; /* as written */
    struct factor *first, *last;
    unsigned n_dimensions; /* the rest counted as one */
    bool has_rest;
    uint32_t names; /* bit i: the tensor has axis i */
};

enum direction { FORWARD, BACKWARD };

struct rearrangement {
    const char *text;
    const char *names[AXES_MAX];
    unsigned n_names;
    struct axes sides[2][AXES_MAX_TENSORS]; /* by the direction that reads the side */
    unsigned n_tensors[2];
    uint32_t on_side[2]; /* the names of all tensors of a side */
    bool is_identity;    /* both sides are the same */
};

/* Returns NULL if `text` is invalid or exceeds a limit above; the error has the column. Copies `text`. */
const struct rearrangement *rearrangement_parse(struct arena *arena, const char *text, struct error *error);

/* Returns the axes of which the result takes one index, such as `rank` in `(rank row) c -> row c`: bit i is axis i.
 * Axes of a section that the result lacks do not count, such as `padding` in `(padding + row) c -> row c`. */
uint32_t rearrangement_parts(const struct rearrangement *rearrangement);

/* Returns the number of the axis with that name, or -1. */
int rearrangement_axis(const struct rearrangement *rearrangement, const char *name);
