/* The values of a merge: parameters and views for each of its tensors. */
#include "base/text.h"
#include "models/derive/recipe_merging.h"

#include "formats/shape.h"
#include "quant/views/convert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *model_text(const struct recipe_merge *merge, const struct recipe_job *job, size_t source)
{
    return merge->inputs[job->slice->sources[source].model].named->text;
}

static bool is_merged_as_float(const struct tensor *tensor)
{
    return tensor->dtype->kind == DTYPE_FLOAT || tensor->dtype->kind == DTYPE_BLOCK;
}

/* Reports whether the input can take part: decodable, and of the first input's shape. */
static bool check_tensor(const struct recipe_merge *merge, const struct recipe_job *job, size_t source)
{
    const struct tensor *tensor = job->tensors[source], *first = job->tensors[0];
    char own[SHAPE_MAX_RANK * 22], others[SHAPE_MAX_RANK * 22];
    const char *reason = tensor->refusal;
    if (reason == NULL && dtype_kernels(tensor->dtype).decode == NULL)
        reason = "its type cannot be merged";
    if (reason != NULL)
        return error_set(merge->error, "tensor '%.200s' of '%.200s' (%s): %s", tensor->name,
                         model_text(merge, job, source), tensor->dtype->name, reason);
    if (merge->vocabulary != NULL && job->has_vocabulary && tensor->rank == 2 && first->rank == 2 &&
        tensor->shape[1] == first->shape[1])
        return true;
    if (tensor->rank == first->rank && memcmp(tensor->shape, first->shape, tensor->rank * sizeof *first->shape) == 0)
        return true;
    return error_set(merge->error, "tensor '%.200s' is %s in '%.200s', but %s in '%.200s'%s", tensor->name,
                     shape_text(tensor->shape, tensor->rank, own, sizeof own), model_text(merge, job, source),
                     shape_text(first->shape, first->rank, others, sizeof others), model_text(merge, job, 0),
                     job->has_vocabulary ? "; tokenizer_source: union merges different vocabularies" : "");
}

/* Returns the dtype that the inputs are merged in: the recipe's, or the one that they have in common. */
static const struct dtype *work_dtype(const struct recipe_merge *merge, const struct recipe_job *job)
{
    const struct dtype *common = job->tensors[0]->dtype;
    if (merge->recipe->dtype != NULL)
        return merge->recipe->dtype;
    for (size_t i = 1; i < job->slice->n_sources; i++)
        if (job->tensors[i]->dtype != common)
            return &f32_dtype;
    return common == &bf16_dtype || common == &f16_dtype ? common : &f32_dtype;
}

/* Parameters. */

struct evaluation {
    const struct recipe_merge *merge;
    const struct recipe_job *job;
    bool good;
};

/* Returns the value of an input's parameter, or NAN; a missing one that is required is an error. */
static double input_value(struct evaluation *evaluation, size_t source, enum parameter_name name)
{
    const struct recipe_merge *merge = evaluation->merge;
    const struct recipe_job *job = evaluation->job;
    const struct method_parameter *parameter = method_parameter(merge->recipe->method, name);
    double value = NAN;
    if (parameter == NULL || recipe_input_value(merge->recipe, job->slice, &job->slice->sources[source], name,
                                                job->tensors[source]->name, job->at, &value))
        return value;
    if (parameter->is_required && evaluation->good)
        evaluation->good = error_set(merge->error,
                                     "'%.200s' has no %s for the tensor '%.200s'; give it one without a "
                                     "filter, or in the parameters of the recipe",
                                     model_text(merge, job, source), parameters[name].text, job->name);
    return value;
}

static double shared_value(struct evaluation *evaluation, enum parameter_name name)
{
    const struct recipe_merge *merge = evaluation->merge;
    const struct recipe_job *job = evaluation->job;
    const struct method_parameter *parameter = method_parameter(merge->recipe->method, name);
    double value = NAN;
    if (parameter == NULL || recipe_shared_value(merge->recipe, job->slice, name, job->name, job->at, &value))
        return value;
    if (parameter->is_required && evaluation->good)
        evaluation->good = error_set(merge->error, "the tensor '%.200s' has no %s; give it one without a filter",
                                     job->name, parameters[name].text);
    return value;
}

/* The fields of the operands that parameters fill in. */
struct field {
    enum parameter_name name;
    size_t offset;
};

static const struct field model_numbers[] = {
    {PARAMETER_WEIGHT, offsetof(struct merge_model, weight)},   {PARAMETER_SCALE, offsetof(struct merge_model, scale)},
    {PARAMETER_DENSITY, offsetof(struct merge_model, density)}, {PARAMETER_GAMMA, offsetof(struct merge_model, gamma)},
    {PARAMETER_EPSILON, offsetof(struct merge_model, epsilon)},
};

static const struct field shared_numbers[] = {
    {PARAMETER_T, offsetof(struct merge_operands, t)},
    {PARAMETER_LAMBDA, offsetof(struct merge_operands, lambda)},
    {PARAMETER_EPS, offsetof(struct merge_operands, eps)},
    {PARAMETER_TOL, offsetof(struct merge_operands, tol)},
    {PARAMETER_SELECT_TOPK, offsetof(struct merge_operands, select_topk)},
};

static const struct field shared_truths[] = {
    {PARAMETER_NORMALIZE, offsetof(struct merge_operands, normalize)},
    {PARAMETER_RESCALE, offsetof(struct merge_operands, rescale)},
    {PARAMETER_NORMALIZE_WEIGHTS, offsetof(struct merge_operands, normalize)},
    {PARAMETER_FILTER_WISE, offsetof(struct merge_operands, filter_wise)},
    {PARAMETER_NUSLERP_FLATTEN, offsetof(struct merge_operands, flatten)},
    {PARAMETER_NUSLERP_ROW_WISE, offsetof(struct merge_operands, row_wise)},
};

/* Reports whether a model's density can be a probability. */
static bool check_density(const struct evaluation *evaluation, size_t source, const struct merge_model *model)
{
    const struct recipe_merge *merge = evaluation->merge;
    const struct recipe_job *job = evaluation->job;
    const struct method *method = merge->recipe->method;
    bool is_della = method->sparsifier == MERGE_DELLA && model->density > 0 && model->density < 1;
    if (method->sparsifier == MERGE_RANDOM && model->density < 0)
        return error_set(merge->error, "'%.200s' has density %g for the tensor '%.200s', which is negative",
                         model_text(merge, job, source), model->density, job->name);
    if (is_della && job->tensors[source]->rank > 2)
        return error_set(merge->error, "tensor '%.200s': %s does not merge tensors of more than 2 dimensions",
                         job->name, method->name);
    return !is_della || (model->density - model->epsilon > 0 && model->density + model->epsilon < 1) ||
           error_set(merge->error,
                     "'%.200s' has density %g and epsilon %g for the tensor '%.200s'; density - epsilon and density + "
                     "epsilon must be between 0 and 1",
                     model_text(merge, job, source), model->density, model->epsilon, job->name);
}

static bool read_model(struct evaluation *evaluation, size_t source, const struct view *view,
                       struct merge_model *ret_model)
{
    *ret_model = (struct merge_model){.view = view};
    for (size_t i = 0; i < sizeof model_numbers / sizeof *model_numbers; i++)
        *(double *)((char *)ret_model + model_numbers[i].offset) =
            input_value(evaluation, source, model_numbers[i].name);
    return evaluation->good && check_density(evaluation, source, ret_model);
}

static bool read_shared(struct evaluation *evaluation, struct merge_operands *operands)
{
    operands->sparsifier = evaluation->merge->recipe->method->sparsifier;
    operands->signs = evaluation->merge->recipe->method->uses_signs;
    for (size_t i = 0; i < sizeof shared_numbers / sizeof *shared_numbers; i++)
        *(double *)((char *)operands + shared_numbers[i].offset) = shared_value(evaluation, shared_numbers[i].name);
    double max_iter = shared_value(evaluation, PARAMETER_MAX_ITER);
    operands->max_iter = max_iter > 0 ? (unsigned)max_iter : 0;
    for (size_t i = 0; i < sizeof shared_truths / sizeof *shared_truths; i++)
        *(bool *)((char *)operands + shared_truths[i].offset) |= shared_value(evaluation, shared_truths[i].name) > 0;
    return evaluation->good;
}

/* Views. */

/* The tensors of a merge while they are made. */
struct making {
    struct recipe_merge *merge;
    struct merge_model *models; /* room for those of any slice */
    struct mersenne *random;    /* NULL: the method draws no numbers */
    uint64_t n_words;           /* that earlier tensors draw */
};

/* Returns an input, with the rows of the result's vocabulary if it has one; NULL: an error. */
static const struct view *input_view(const struct recipe_merge *merge, const struct recipe_job *job, size_t source,
                                     const struct dtype *dtype)
{
    if (merge->vocabulary != NULL && job->has_vocabulary && job->tensors[source]->rank == 2)
        return recipe_vocabulary_view(merge, job, source, dtype);
    return tensor_view(job->tensors[source], merge->merged->arena);
}

/* Fills in the operands' base and models. */
static bool read_inputs(const struct making *making, const struct recipe_job *job, struct merge_operands *operands)
{
    const struct recipe_merge *merge = making->merge;
    struct evaluation evaluation = {merge, job, true};
    size_t n_models = 0;
    for (size_t i = 0; i < job->slice->n_sources; i++) {
        const struct view *view = input_view(merge, job, i, operands->dtype);
        if (view == NULL)
            return false;
        bool is_base = merge->recipe->method->base != BASE_IGNORED && job->slice->sources[i].model == job->slice->base;
        if (is_base)
            operands->base = view;
        else if (!read_model(&evaluation, i, view, &making->models[n_models++]))
            return false;
    }
    operands->models = making->models;
    operands->n_models = n_models;
    return read_shared(&evaluation, operands);
}

/* Returns the merged view in the work dtype. */
static const struct view *merged_view(struct making *making, const struct recipe_job *job,
                                      struct merge_operands *operands)
{
    struct arena *arena = making->merge->merged->arena;
    const struct merge_model *only = making->models;
    if (operands->n_models == 0)
        return view_convert(arena, operands->base, operands->dtype);
    if (making->merge->recipe->method->make == merge_scaled && isnan(only->scale))
        return view_convert(arena, only->view, operands->dtype);
    if (making->random != NULL) {
        operands->random = making->random;
        operands->first_word = making->n_words;
        making->n_words += merge_words(operands);
    }
    return making->merge->recipe->method->make(arena, operands);
}

/* Returns the name of a tensor of the merge: that of an input, if it is the same, since all names of three models of
 * 70B are long. */
static const char *merged_name(const struct recipe_merge *merge, const struct recipe_job *job)
{
    for (size_t i = 0; i < job->slice->n_sources; i++)
        if (strcmp(job->tensors[i]->name, job->name) == 0)
            return job->tensors[i]->name;
    return arena_strdup(merge->merged->arena, job->name);
}

/* Makes a tensor that is a stored one of a model, under its new name. */
static bool take_stored(const struct making *making, const struct recipe_job *job, const struct view *view,
                        struct tensor *ret_tensor)
{
    const struct recipe_merge *merge = making->merge;
    const struct tensor *only = job->tensors[0];
    bool is_mapped = merge->vocabulary != NULL && job->has_vocabulary;
    if (view != making->models[0].view || merge->recipe->method->make != merge_scaled || is_mapped)
        return false;
    *ret_tensor = *only;
    ret_tensor->name = merged_name(merge, job);
    ret_tensor->name_length = (uint32_t)strlen(job->name);
    return true;
}

/* Makes a tensor whose values are no weights, which is the same in all models. */
static bool copy_integers(const struct recipe_merge *merge, const struct recipe_job *job, struct tensor *ret_tensor)
{
    checkpoint_note(merge->merged, SUBJECT_SOURCE,
                    "tensor '%.200s' has no floating-point values: it is that of '%.200s'", job->name,
                    model_text(merge, job, 0));
    *ret_tensor = *job->tensors[0];
    ret_tensor->name = merged_name(merge, job);
    ret_tensor->name_length = (uint32_t)strlen(job->name);
    return true;
}

static bool make_tensor(struct making *making, const struct recipe_job *job, struct tensor *ret_tensor)
{
    struct recipe_merge *merge = making->merge;
    struct merge_operands operands = {.dtype = work_dtype(merge, job), .findings = merge->merged->findings};
    if (!is_merged_as_float(job->tensors[0]))
        return copy_integers(merge, job, ret_tensor);
    for (size_t i = 0; i < job->slice->n_sources; i++)
        if (!check_tensor(merge, job, i))
            return false;
    if (!read_inputs(making, job, &operands))
        return false;
    const struct method *method = merge->recipe->method;
    if (method->f32_refusal != NULL && operands.dtype == &f32_dtype)
        return error_set(merge->error, "tensor '%.200s': %s in float32 cannot be computed: %s; use dtype: bfloat16",
                         job->name, method->name, method->f32_refusal);
    const struct view *view = merged_view(making, job, &operands);
    if (merge->recipe->out_dtype != NULL)
        view = view_convert(merge->merged->arena, view, merge->recipe->out_dtype);
    if (!take_stored(making, job, view, ret_tensor))
        *ret_tensor = tensor_of_view(merged_name(merge, job), view);
    return true;
}

/* The order of the tensors: that of mergekit's files. */

enum { SHARD_BYTES = 5000000 };
static const uint64_t shard_bytes = (uint64_t)1000 * SHARD_BYTES; /* mergekit's default */

struct placed {
    struct tensor tensor;
    size_t shard;
};

/* Orders tensors as safetensors does within a file: larger elements first, then by name. */
static int compare_placed(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    unsigned x_bytes = x->tensor.dtype->block_bytes, y_bytes = y->tensor.dtype->block_bytes;
    if (x->shard != y->shard)
        return x->shard < y->shard ? -1 : 1;
    if (x_bytes != y_bytes)
        return x_bytes > y_bytes ? -1 : 1;
    return strcmp(x->tensor.name, y->tensor.name);
}

/* Fills shards in the order of execution; a tensor that does not fit begins the next one. */
static void place(struct placed *items, size_t count)
{
    uint64_t filled = 0;
    size_t shard = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t n_bytes = dtype_bytes(items[i].tensor.dtype, tensor_elements(&items[i].tensor));
        if (filled > 0 && filled + n_bytes > shard_bytes) {
            shard++;
            filled = 0;
        }
        filled += n_bytes;
        items[i].shard = shard;
    }
    qsort(items, count, sizeof *items, compare_placed);
}

static bool make_all(struct making *making, const struct recipe_jobs *jobs, struct placed *items)
{
    for (size_t i = 0; i < jobs->count; i++)
        if (!make_tensor(making, &jobs->items[i], &items[i].tensor))
            return false;
    return true;
}

bool recipe_make_tensors(struct recipe_merge *merge, const struct recipe_jobs *jobs)
{
    struct tensor_set *set = tensor_set_new(merge->merged->arena);
    struct making making = {.merge = merge};
    struct placed *items = memory_alloc(jobs->count * sizeof *items);
    if (merge->recipe->method->cost == COST_RANDOM)
        making.random = mersenne_new(merge->merged->arena, merge->options->recipe.seed);
    making.models = memory_alloc(RECIPE_MAX_SOURCES * sizeof *making.models);
    bool made = make_all(&making, jobs, items);
    if (made)
        place(items, jobs->count);
    for (size_t i = 0; made && i < jobs->count; i++)
        tensor_set_add(set, &items[i].tensor);
    free(making.models);
    free(items);
    merge->merged->tensors = set;
    return made && tensor_set_seal(set, merge->error);
}
