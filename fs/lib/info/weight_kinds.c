#include "fs/lib/info/quantization.h"

#include "base/text.h"
#include "quant/views/convert.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUN_ELEMENTS = 2048, MOST_RUNS = 32 };

bool tensor_kind(const char *name, char kind[KIND_NAME], uint64_t *ret_layer)
{
    static const char weight[] = ".weight";
    size_t length = strlen(name);
    if (text_ends_with(name, weight))
        length -= strlen(weight);
    for (const char *dot = strchr(name, '.'); dot != NULL && dot < name + length; dot = strchr(dot + 1, '.')) {
        if (!isdigit((unsigned char)dot[1]))
            continue;
        char *end;
        *ret_layer = strtoull(dot + 1, &end, 10);
        if (*end != '.' || end >= name + length)
            continue;
        bool is_block = dot - name == 3 && text_starts_with(name, "blk");
        snprintf(kind, KIND_NAME, "%.*s%.*s", is_block ? 0 : (int)(dot - name + 1), name,
                 (int)(name + length - end - 1), end + 1);
        return true;
    }
    snprintf(kind, KIND_NAME, "%.*s", (int)length, name);
    return false;
}

static struct weight_kind *find_kind(struct weight_kind *kinds, size_t *n_kinds, const char *name)
{
    for (size_t i = 0; i < *n_kinds; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    if (*n_kinds == WEIGHT_MOST_KINDS)
        return NULL;
    struct weight_kind *kind = &kinds[(*n_kinds)++];
    *kind = (struct weight_kind){.least_deviation = INFINITY};
    snprintf(kind->name, sizeof kind->name, "%s", name);
    return kind;
}

/* Reads a sample of a tensor in runs that are spread evenly over it, and gets the number of values. */
static bool read_sample(const struct view *view, float *values, size_t *ret_count, struct error *error)
{
    uint64_t n_runs = (view->n_elements + RUN_ELEMENTS - 1) / RUN_ELEMENTS;
    uint64_t n_sampled = n_runs < MOST_RUNS ? n_runs : MOST_RUNS;
    size_t count = 0;
    for (uint64_t i = 0; i < n_sampled; i++) {
        uint64_t first = i * n_runs / n_sampled * RUN_ELEMENTS, left = view->n_elements - first;
        size_t n = left < RUN_ELEMENTS ? (size_t)left : RUN_ELEMENTS;
        if (!convert_values(view, first, n, values + count, error))
            return false;
        count += n;
    }
    *ret_count = count;
    return true;
}

static void count_values(struct weight_kind *kind, const float *values, size_t count)
{
    double squares = 0;
    size_t n_finite = 0;
    for (size_t i = 0; i < count; i++) {
        squares += isfinite(values[i]) ? (double)values[i] * (double)values[i] : 0;
        n_finite += isfinite(values[i]);
    }
    double deviation = n_finite > 0 ? sqrt(squares / (double)n_finite) : 0;
    if (!(deviation > 0))
        return;
    kind->n_tensors++;
    kind->least_deviation = fmin(kind->least_deviation, deviation);
    kind->largest_deviation = fmax(kind->largest_deviation, deviation);
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(values[i]))
            continue;
        const double middle = (double)(WEIGHT_BINS / 2);
        double at = (double)values[i] / deviation;
        kind->largest = fmax(kind->largest, fabs(at));
        double bin = fmin(fmax(round(at * WEIGHT_BINS_PER_DEVIATION), -middle), middle) + middle;
        kind->shares[(size_t)bin] += 1;
    }
}

static void scale_shares(struct weight_kind *kind)
{
    double total = 0;
    for (size_t i = 0; i < WEIGHT_BINS; i++)
        total += kind->shares[i];
    for (size_t i = 0; i < WEIGHT_BINS; i++)
        kind->shares[i] /= total;
}

bool weights_measure(const struct gguf_model *model, struct weight_kind **ret_kinds, size_t *ret_n_kinds,
                     struct error *error)
{
    const struct tensor_set *set = model->tensors;
    struct weight_kind *kinds = memory_alloc(WEIGHT_MOST_KINDS * sizeof *kinds);
    float *values = memory_alloc((size_t)MOST_RUNS * RUN_ELEMENTS * sizeof *values);
    size_t n_kinds = 0;
    bool measured = true;
    for (size_t i = 0; i < set->n_tensors && measured; i++) {
        const struct tensor *tensor = &set->tensors[i];
        char name[KIND_NAME];
        uint64_t layer;
        size_t count = 0;
        tensor_kind(tensor->name, name, &layer);
        struct weight_kind *kind = tensor->rank < 2 ? NULL : find_kind(kinds, &n_kinds, name);
        if (kind == NULL)
            continue;
        measured = read_sample(tensor->view, values, &count, error) || error_prefix(error, "%s", tensor->name);
        if (measured)
            count_values(kind, values, count);
    }
    free(values);
    size_t n_counted = 0; /* a kind whose weights are all zeros has no shape */
    for (size_t i = 0; i < n_kinds; i++)
        if (kinds[i].n_tensors > 0) {
            scale_shares(&kinds[i]);
            kinds[n_counted++] = kinds[i];
        }
    *ret_kinds = kinds;
    *ret_n_kinds = n_counted;
    if (!measured)
        free(kinds);
    return measured;
}
