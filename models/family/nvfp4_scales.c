#include "models/family/nvfp4.h"

#include "quant/views/convert.h"

#include <math.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

enum { KINDS = 2 };

static const char *const suffixes[KINDS] = {"scale", "input_scale"};

/* The scales of one weight of the GGUF. */
struct of_weight {
    const char *name;
    uint64_t n_members; /* experts, or 1 */
    bool is_gathered;
    float *values[KINDS];
};

struct nvfp4_scales {
    struct arena *arena;
    void *tree; /* of struct of_weight, by name */
};

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct of_weight *)a)->name, ((const struct of_weight *)b)->name);
}

static struct of_weight *find_or_add(struct nvfp4_scales *factors, const char *name, uint64_t n_members,
                                     bool is_gathered)
{
    const struct of_weight key = {.name = name};
    void *const *found = tfind(&key, &factors->tree, compare);
    if (found != NULL)
        return *found;
    struct of_weight *weight = arena_alloc(factors->arena, sizeof *weight);
    *weight = (struct of_weight){.name = name, .n_members = n_members, .is_gathered = is_gathered};
    for (unsigned kind = 0; kind < KINDS; kind++) {
        weight->values[kind] = arena_array(factors->arena, n_members, sizeof *weight->values[kind]);
        for (uint64_t i = 0; i < n_members; i++)
            weight->values[kind][i] = 1;
    }
    if (tsearch(weight, &factors->tree, compare) == NULL)
        memory_exhausted(sizeof *weight);
    return weight;
}

static bool read_weight(struct nvfp4_scales *factors, const struct relation_job *job, const struct tensor *tensor,
                        const struct unpacked *unpacked, struct error *error)
{
    struct relation_match match;
    uint64_t member, n_members = 1;
    if (!relation_find(job->relation, job->direction, job->dimensions, NULL, tensor->name, &match) ||
        match.entry->row->there == NULL)
        return true; /* relating the tensors reports the cause */
    const char *name = relation_target(job, &match, &member);
    bool is_gathered = member != UINT64_MAX;
    if (is_gathered)
        n_members = dimensions_get(job->dimensions, match.entry->member[job->direction]);
    if (n_members > job->set->n_tensors || (is_gathered && member >= n_members))
        return true;
    struct of_weight *weight = find_or_add(factors, name, n_members, is_gathered);
    if (is_gathered && member >= weight->n_members)
        return true; /* another tensor has that name */
    for (unsigned kind = 0; kind < KINDS; kind++)
        if (unpacked->forms->factors[kind] != NULL &&
            !convert_values(unpacked->forms->factors[kind], 0, 1, &weight->values[kind][is_gathered ? member : 0],
                            error))
            return error_prefix(error, "tensor '%.200s'", unpacked->name);
    return true;
}

struct nvfp4_scales *nvfp4_scales_read(const struct relation_job *job, const struct unpacked *const *unpacked,
                                       struct error *error)
{
    struct nvfp4_scales *factors = memory_alloc(sizeof *factors);
    *factors = (struct nvfp4_scales){.arena = job->arena};
    for (size_t i = 0; i < job->set->n_tensors; i++)
        if (unpacked[i] != NULL && unpacked[i]->forms->blocks != NULL &&
            (unpacked[i]->forms->factors[0] != NULL || unpacked[i]->forms->factors[1] != NULL) &&
            !read_weight(factors, job, &job->set->tensors[i], unpacked[i], error)) {
            nvfp4_scales_free(factors);
            return NULL;
        }
    return factors;
}

void nvfp4_scales_free(struct nvfp4_scales *factors)
{
    if (factors == NULL)
        return;
    while (factors->tree != NULL)
        tdelete(*(void **)factors->tree, &factors->tree, compare);
    free(factors);
}

/* Reports whether all scales count as 1, in the converter's comparison: numpy's for several scales. NaN does not. */
static bool are_ones(const struct of_weight *weight, const float *values)
{
    bool all = true;
    for (uint64_t i = 0; i < weight->n_members; i++) {
        double distance = fabs((double)values[i] - 1);
        all &= weight->is_gathered ? distance <= 1e-6 + 1e-5 : distance < 1e-6;
    }
    return all;
}

void nvfp4_scales_beside(const struct nvfp4_scales *factors, const char *name,
                         void (*add)(void *context, const char *name, const struct view *view), void *context)
{
    const struct of_weight key = {.name = name};
    void *const *found = tfind(&key, (void *const *)&factors->tree, compare);
    const char *dot = strrchr(name, '.');
    for (unsigned kind = 0; found != NULL && dot != NULL && kind < KINDS; kind++) {
        const struct of_weight *weight = *found;
        if (are_ones(weight, weight->values[kind]))
            continue;
        const char *beside = arena_printf(factors->arena, "%.*s.%s", (int)(dot - name), name, suffixes[kind]);
        add(context, beside, view_numbers(factors->arena, 1, &weight->n_members, weight->values[kind]));
    }
}
