/* Which tensors a merge has, and which tensors of its models each is made from. */
#include "models/derive/recipe_merging.h"

#include "base/text.h"
#include "base/text_index.h"

#include <stdlib.h>
#include <string.h>

/* Templates for a class without a table: the names of one model's tensors. */

/* Finds the number of a layer in a name: the first part between dots that is a number. Returns its digits, or NULL. */
static const char *find_number(const char *name, size_t *ret_length)
{
    for (const char *part = name; part != NULL; part = strchr(part, '.')) {
        part += part != name;
        *ret_length = strspn(part, "0123456789");
        if (*ret_length > 0 && *ret_length < 8 && part[*ret_length] == '.' && part != name)
            return part;
    }
    return NULL;
}

/* Returns the beginning of the names of layers: that of which there are as many as the model has layers; NULL: there is
 * none. */
static const char *find_stack(const struct recipe_input *input, struct arena *arena)
{
    const struct tensor_set *set = input->model->tensors;
    const char *found = NULL;
    for (size_t i = 0; i < set->n_tensors && found == NULL; i++) {
        size_t length;
        const char *name = set->tensors[i].name, *number = find_number(name, &length);
        if (number != NULL && strtoull(number, NULL, 10) == input->n_layers - 1)
            found = arena_strndup(arena, name, (size_t)(number - name));
    }
    return found;
}

/* Returns the template of a tensor's name. */
static struct weight_template template_of(const char *name, const char *stack, struct arena *arena)
{
    size_t length = stack != NULL ? strlen(stack) : 0, digits;
    if (stack == NULL || strncmp(name, stack, length) != 0)
        return weight_outside_layers(name);
    digits = strspn(name + length, "0123456789");
    if (digits == 0 || name[length + digits] != '.')
        return weight_outside_layers(name);
    return (struct weight_template){.before = stack, .after = arena_strdup(arena, name + length + digits + 1)};
}

static void infer_templates(const struct recipe_input *input, struct arena *arena, struct weight_templates *ret_weights)
{
    const struct tensor_set *set = input->model->tensors;
    const char *stack = find_stack(input, arena);
    struct text_index seen = {0};
    struct weight_template *items = arena_array(arena, set->n_tensors, sizeof *items);
    size_t count = 0;
    for (size_t i = 0; i < set->n_tensors; i++) {
        items[count] = template_of(set->tensors[i].name, stack, arena);
        const char *after = items[count].after;
        count += after == NULL || text_index_add(&seen, after, strlen(after), count);
    }
    text_index_free(&seen);
    *ret_weights = (struct weight_templates){items, count};
}

/* Jobs. */

struct search {
    const struct recipe_merge *merge;
    struct recipe_jobs *jobs;
    const struct weight_template *template;
    bool is_inferred; /* weights that a model lacks are left out */
};

static const struct tensor *find_in(const struct search *search, const struct recipe_slice *slice, size_t source,
                                    const char *name)
{
    return tensor_set_find_text(search->merge->inputs[slice->sources[source].model].model->tensors, name);
}

/* Fills in the job's tensors: returns false with *ret_missing, the place of a source without the tensor, or with -1 for
 * a tensor that is left out because no source has it. */
static bool find_tensors(const struct search *search, struct recipe_job *job, const char *const *names,
                         int *ret_missing)
{
    const struct recipe_slice *slice = job->slice;
    bool any = false;
    *ret_missing = -1;
    for (size_t i = 0; i < slice->n_sources; i++) {
        job->tensors[i] = find_in(search, slice, i, names[i]);
        any |= job->tensors[i] != NULL;
    }
    for (size_t i = 0; i < slice->n_sources && (any || !search->template->is_optional); i++) {
        if (job->tensors[i] == NULL && search->template->tied != NULL)
            job->tensors[i] = find_in(search, slice, i, search->template->tied);
        if (job->tensors[i] == NULL)
            *ret_missing = (int)i;
        else if (job->label == NULL || strcmp(job->tensors[i]->name, job->label) > 0)
            job->label = job->tensors[i]->name;
    }
    return any && *ret_missing < 0;
}

/* Adds the job of a tensor; `names` are those that the sources of the slice give it. */
static bool add_job(const struct search *search, struct recipe_job job, const char *const *names)
{
    const struct recipe_merge *merge = search->merge;
    struct recipe_jobs *jobs = search->jobs;
    int missing;
    job.has_vocabulary = search->template->has_vocabulary;
    job.tensors = arena_array(jobs->arena, job.slice->n_sources, sizeof *job.tensors);
    if (find_tensors(search, &job, names, &missing)) {
        if (jobs->count == TENSOR_SET_MAX)
            return error_set(merge->error, "more than %d tensors", TENSOR_SET_MAX);
        jobs->items = arena_grow(jobs->arena, jobs->items, jobs->count, sizeof job);
        jobs->items[jobs->count++] = job;
        return true;
    }
    if (missing >= 0 && !search->is_inferred)
        return error_set(merge->error, "tensor '%.200s' is missing in the model '%.200s'", names[missing],
                         merge->inputs[job.slice->sources[missing].model].named->text);
    if (missing >= 0 && job.label != NULL && jobs->n_left_out++ == 0)
        jobs->left_out = job.name;
    return true;
}

static bool add_outside_layers(const struct search *search)
{
    const struct recipe *recipe = search->merge->recipe;
    const struct recipe_slice *slice = search->template->is_last ? &recipe->after_layers : &recipe->slices[0];
    const char **names = arena_array(search->jobs->arena, slice->n_sources, sizeof *names);
    for (size_t i = 0; i < slice->n_sources; i++)
        names[i] = search->template->before;
    return add_job(search, (struct recipe_job){.name = search->template->before, .slice = slice}, names);
}

static const char *layer_name(const struct search *search, struct arena *arena, uint64_t layer)
{
    return arena_printf(arena, "%s%llu.%s", search->template->before, (unsigned long long)layer,
                        search->template->after);
}

/* Adds the job of each weight of a layer, which becomes layer `number` of the result. */
static bool add_layer(struct search *search, const struct weight_templates *weights, const struct recipe_slice *slice,
                      const uint64_t *layers, uint64_t number, double at)
{
    const char **names = arena_array(search->jobs->arena, slice->n_sources, sizeof *names);
    for (size_t i = 0; i < weights->count; i++) {
        search->template = &weights->items[i];
        if (search->template->after == NULL)
            continue;
        for (size_t j = 0; j < slice->n_sources; j++)
            names[j] = layer_name(search, search->jobs->arena, layers[j]);
        const struct recipe_job job = {
            .name = layer_name(search, search->jobs->arena, number), .slice = slice, .at = at, .is_of_layer = true};
        if (!add_job(search, job, names))
            return false;
    }
    return true;
}

/* Adds the jobs of a slice, whose layers become those of the result from `first` on. */
static bool add_slice(struct search *search, const struct weight_templates *weights, const struct recipe_slice *slice,
                      uint64_t first, uint64_t *ret_count)
{
    uint64_t *layers = arena_array(search->jobs->arena, slice->n_sources, sizeof *layers), count = 0;
    for (size_t i = slice->n_sources; i-- > 0;)
        if (!recipe_layers(search->merge, slice, &slice->sources[i], &layers[i], &count))
            return false;
    for (uint64_t layer = 0; layer < count; layer++) {
        double at = count > 1 ? (double)layer / (double)(count - 1) : 1;
        if (!add_layer(search, weights, slice, layers, first + layer, at))
            return false;
        for (size_t i = 0; i < slice->n_sources; i++)
            layers[i]++;
    }
    *ret_count = count;
    return true;
}

static bool add_layers(struct search *search, const struct weight_templates *weights)
{
    const struct recipe *recipe = search->merge->recipe;
    uint64_t first = 0, count = 0;
    for (size_t i = 0; i < recipe->n_slices; i++, first += count)
        if (first > RECIPE_MAX_LAYERS || !add_slice(search, weights, &recipe->slices[i], first, &count))
            return first <= RECIPE_MAX_LAYERS
                       ? false
                       : error_set(search->merge->error, "more than %d layers", RECIPE_MAX_LAYERS);
    return true;
}

/* Adds the jobs of the weights before the layers, or after them. */
static bool add_others(struct search *search, const struct weight_templates *weights, bool is_last)
{
    for (size_t i = 0; i < weights->count; i++) {
        search->template = &weights->items[i];
        if (search->template->after == NULL && search->template->is_last == is_last && !add_outside_layers(search))
            return false;
    }
    return true;
}

bool recipe_find_jobs(const struct recipe_merge *merge, struct recipe_jobs *jobs)
{
    struct weight_templates weights;
    bool has_table = weights_of_class(merge->donor->class_name, jobs->arena, &weights);
    if (!has_table)
        infer_templates(&merge->inputs[merge->recipe->slices[0].sources[0].model], jobs->arena, &weights);
    struct search search = {merge, jobs, NULL, !has_table};
    if (!add_others(&search, &weights, false) || !add_layers(&search, &weights) || !add_others(&search, &weights, true))
        return false;
    recipe_sort_jobs(merge, jobs);
    return jobs->count > 0 || error_set(merge->error, "the models have no tensors in common");
}
