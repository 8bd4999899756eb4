#include "models/family/nvfp4.h"

#include "base/text.h"
#include "models/relation/pattern.h"

#include <stdlib.h>
#include <string.h>

static const char *const kinds[] = {"blk.{}.ffn_down_exps.weight", "blk.{}.ffn_gate_exps.weight",
                                    "blk.{}.ffn_up_exps.weight"};

enum { N_KINDS = sizeof kinds / sizeof *kinds };

/* A weight and the scales after it. */
struct group {
    size_t at, n_tensors;
    uint64_t layer; /* of experts; UINT64_MAX: no experts */
    size_t turn;    /* the turn of the layer's first experts */
    size_t kind;
};

static int compare_groups(const void *a, const void *b)
{
    const struct group *x = a, *y = b;
    if (x->turn != y->turn)
        return x->turn < y->turn ? -1 : 1;
    return (x->kind > y->kind) - (x->kind < y->kind);
}

static struct group group_of(const struct tensor *tensor, size_t at)
{
    struct group group = {.at = at, .n_tensors = 1, .layer = UINT64_MAX};
    uint64_t numbers[PATTERN_NUMBERS];
    for (size_t kind = 0; kind < N_KINDS; kind++)
        if (pattern_match(kinds[kind], tensor->name, tensor->name_length, numbers)) {
            group.layer = numbers[0];
            group.kind = kind;
        }
    return group;
}

static size_t find_groups(const struct tensor_set *set, size_t first, size_t end, bool experts_are_last,
                          struct group *groups)
{
    size_t n_groups = 0;
    for (size_t i = first; i < end; i++) {
        const struct tensor *tensor = &set->tensors[i];
        if (n_groups > 0 && !text_ends_with(tensor->name, ".weight")) {
            groups[n_groups - 1].n_tensors++;
            continue;
        }
        struct group group = group_of(tensor, i);
        bool is_of_experts = group.layer != UINT64_MAX;
        if (n_groups > 0 && is_of_experts && groups[n_groups - 1].layer == group.layer)
            group.turn = groups[n_groups - 1].turn;
        else
            group.turn = n_groups + (is_of_experts && experts_are_last ? end : 0);
        groups[n_groups++] = group;
    }
    return n_groups;
}

void nvfp4_order(struct tensor_set *set, size_t first, size_t end, bool experts_are_last)
{
    struct tensor *moved = memory_alloc((end - first + 1) * sizeof *moved);
    struct group *groups = memory_alloc((end - first + 1) * sizeof *groups);
    size_t n_groups = find_groups(set, first, end, experts_are_last, groups), n_moved = 0;
    qsort(groups, n_groups, sizeof *groups, compare_groups);
    for (size_t i = 0; i < n_groups; i++) {
        memcpy(moved + n_moved, set->tensors + groups[i].at, groups[i].n_tensors * sizeof *moved);
        n_moved += groups[i].n_tensors;
    }
    memcpy(tensor_set_edit(set) + first, moved, n_moved * sizeof *moved);
    free(groups);
    free(moved);
}
