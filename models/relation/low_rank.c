#include "models/relation/rearrangement.h"

#include "quant/views/product.h"

#include <stdlib.h>
#include <string.h>

static bool same_factor(const struct factor *a, const struct factor *b)
{
    return a->kind == b->kind && (a->kind == FACTOR_REST || (a->kind == FACTOR_AXIS && a->number == b->number));
}

/* Reports whether each result has the dimensions of the product, the last one its columns, and the first of three its
 * first. */
static bool keeps_columns(const struct rearrangement *rearrangement, enum direction direction, unsigned rank)
{
    enum direction other = direction == FORWARD ? BACKWARD : FORWARD;
    const struct axes *from = &rearrangement->sides[direction][0];
    if (rank > 3 || from->n_dimensions > rank + from->has_rest || (rank == 3 && from->n_dimensions != 3) ||
        (from->last->kind == FACTOR_REST && from->n_dimensions > rank))
        return false;
    for (unsigned i = 0; i < rearrangement->n_tensors[other]; i++) {
        const struct axes *to = &rearrangement->sides[other][i];
        if (to->n_dimensions != from->n_dimensions || !same_factor(from->last, to->last) ||
            (rank == 3 && !same_factor(from->first, to->first)))
            return false;
    }
    return true;
}

/* Reports whether two dimensions have the same axes in the same order. */
static bool same_dimension(const struct factor *a, const struct factor *b)
{
    if (a->kind != FACTOR_GROUP || b->kind != FACTOR_GROUP)
        return a->kind == FACTOR_AXIS && same_factor(a, b);
    if (a->n_sections != 1 || b->n_sections != 1)
        return false;
    for (a = a->sections->first, b = b->sections->first; a != NULL && b != NULL; a = a->next, b = b->next)
        if (a->kind != FACTOR_AXIS || !same_factor(a, b))
            return false;
    return a == NULL && b == NULL;
}

bool low_rank_is_transpose(const struct rearrangement *rearrangement, enum direction direction)
{
    enum direction other = direction == FORWARD ? BACKWARD : FORWARD;
    const struct axes *from = &rearrangement->sides[direction][0], *to = &rearrangement->sides[other][0];
    return rearrangement->n_tensors[direction] == 1 && rearrangement->n_tensors[other] == 1 &&
           from->n_dimensions == 2 && to->n_dimensions == 2 && same_dimension(from->first, to->last) &&
           same_dimension(from->last, to->first);
}

/* Reports whether the one result has the rows of a matrix, in their order. */
static bool keeps_rows(const struct rearrangement *rearrangement, enum direction direction)
{
    enum direction other = direction == FORWARD ? BACKWARD : FORWARD;
    const struct axes *from = &rearrangement->sides[direction][0], *to = &rearrangement->sides[other][0];
    return rearrangement->n_tensors[other] == 1 && from->n_dimensions == 2 && to->n_dimensions == 2 &&
           from->first->kind == FACTOR_AXIS && same_factor(from->first, to->first);
}

/* Rearranges one factor of a product, which has as many rows or columns as the product has terms, in place of the axis
 * `kept`. */
static bool move(struct arena *arena, const struct rearrangement *rearrangement, enum direction direction,
                 const struct axis_sizes *sizes, const struct factor *kept, const struct view *factor,
                 const struct view **to)
{
    struct error unused;
    const char *terms = kept->kind == FACTOR_AXIS ? rearrangement->names[kept->number] : "";
    struct axis_size *of_others = memory_alloc((sizes->n_sizes + 1) * sizeof *of_others);
    struct axis_sizes known = {of_others, 0};
    for (size_t i = 0; i < sizes->n_sizes; i++)
        if (strcmp(sizes->sizes[i].name, terms) != 0)
            of_others[known.n_sizes++] = sizes->sizes[i];
    bool moved = rearrangement_apply(arena, rearrangement, direction, &known, &factor, to, &unused);
    free(of_others);
    return moved;
}

bool low_rank_rearrange(struct arena *arena, const struct rearrangement *rearrangement, enum direction direction,
                        const struct axis_sizes *sizes, const struct view *product, const struct view **to)
{
    enum direction other = direction == FORWARD ? BACKWARD : FORWARD;
    const struct view *left, *right;
    if (rearrangement->n_tensors[direction] != 1 || !view_factors(product, &left, &right))
        return false;
    if (product->rank == 2 && low_rank_is_transpose(rearrangement, direction)) {
        to[0] = view_product(arena, view_transpose(arena, right), view_transpose(arena, left));
        return true;
    }
    const struct axes *from = &rearrangement->sides[direction][0];
    if (!keeps_columns(rearrangement, direction, product->rank)) {
        if (product->rank != 2 || !keeps_rows(rearrangement, direction) ||
            !move(arena, rearrangement, direction, sizes, from->first, right, to))
            return false;
        to[0] = view_product(arena, left, to[0]);
        return true;
    }
    if (!move(arena, rearrangement, direction, sizes, from->last, left, to))
        return false;
    for (unsigned i = 0; i < rearrangement->n_tensors[other]; i++)
        to[i] = view_product(arena, to[i], right);
    return true;
}

static bool same_kind(const struct view *a, const struct view *b)
{
    return a->dtype == b->dtype && a->rank == b->rank && memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0;
}

const struct view *low_rank_stack(struct arena *arena, const struct view *const *products, size_t n_products)
{
    const struct view **factors[2], *stacked = NULL;
    bool fits = true;
    for (size_t side = 0; side < 2; side++)
        factors[side] = memory_alloc(n_products * sizeof **factors);
    for (size_t i = 0; i < n_products && fits; i++)
        fits = view_factors(products[i], &factors[0][i], &factors[1][i]) && same_kind(factors[0][i], factors[0][0]) &&
               same_kind(factors[1][i], factors[1][0]);
    if (fits)
        stacked =
            view_product(arena, view_stack(arena, factors[0], n_products), view_stack(arena, factors[1], n_products));
    free(factors[0]);
    free(factors[1]);
    return stacked;
}
