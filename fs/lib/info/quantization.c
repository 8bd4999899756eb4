#include "fs/lib/info/quantization.h"

#include "base/lock.h"
#include "base/pool.h"
#include "fs/lib/stage.h"
#include "fs/tree/content_options.h"
#include "models/diffusion/state_dict.h"
#include "models/facts.h"
#include "quant/blocks/dtype.h"
#include "quant/views/convert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    RUN_ELEMENTS = 2048, /* a whole number of blocks of every dtype */
    SAMPLED_RUNS = 32,   /* of each tensor, at least if it has more */
    RUNS_PER_TASK = 64,
};

/* Runs of one tensor that one task measures. */
struct task {
    const struct artifact_tensor *tensor;
    uint64_t first_run, n_runs, stride; /* every stride-th run of the tensor */
};

struct measurement {
    struct lock lock;
    const struct task *tasks;
    size_t n_tasks, n_done;
    double squares;          /* sum over tensors of mean square error times elements */
    struct loss *of_tensors; /* the sums for each tensor of the artifact */
    const struct artifact_tensor *tensors;
    double largest;
    bool failed;
    struct error *error;
    uint64_t n_bytes, n_told; /* of the stage: the share of this mix, and what the stage was told of it */
};

/* Tells the stage how far this mix is. */
static void advance(struct measurement *measurement, double share)
{
    uint64_t n_bytes = (uint64_t)(share * (double)measurement->n_bytes);
    stage_add(n_bytes - measurement->n_told);
    measurement->n_told = n_bytes;
}

/* Fills in the importance of each element of a run; returns NULL if none is known. */
static const float *weights_of(const struct artifact_tensor *tensor, uint64_t first, size_t n_elements,
                               float weights[RUN_ELEMENTS])
{
    const struct view *view = tensor->tensor->view;
    const float *importance = tensor->encoding.importance;
    if (importance == NULL)
        return NULL;
    uint64_t n_columns = view_row_elements(view), rows_per_matrix = view->n_elements / n_columns / view_matrices(view);
    for (size_t i = 0; i < n_elements; i++) {
        uint64_t row = (first + i) / n_columns;
        weights[i] = importance[row / rows_per_matrix * n_columns + (first + i) % n_columns];
    }
    return weights;
}

static bool measure_run(const struct artifact_tensor *tensor, uint64_t run, struct loss *loss, struct error *error)
{
    float exact[RUN_ELEMENTS], stored[RUN_ELEMENTS], weights[RUN_ELEMENTS];
    unsigned char blocks[RUN_ELEMENTS * sizeof(float)];
    const struct view *view = tensor->tensor->view;
    uint64_t first = run * RUN_ELEMENTS, left = view->n_elements - first;
    size_t n_elements = left < RUN_ELEMENTS ? (size_t)left : RUN_ELEMENTS,
           block = tensor->encoding.dtype->block_elements;
    if (!convert_values(view, first, n_elements, exact, error) ||
        !convert_read(view, tensor->encoding, first / block, n_elements / block, blocks, error))
        return error_prefix(error, "tensor '%.200s'", tensor->tensor->name);
    dtype_kernels(tensor->encoding.dtype).decode(blocks, stored, n_elements / block);
    loss_add(loss, exact, stored, n_elements, weights_of(tensor, first, n_elements, weights));
    return true;
}

static void run_task(void *context, size_t index)
{
    struct measurement *measurement = context;
    const struct task *task = &measurement->tasks[index];
    const struct view *view = task->tensor->tensor->view;
    struct loss loss = {0};
    struct error error;
    bool measured = true;
    for (uint64_t i = 0; i < task->n_runs && measured; i++)
        measured = measure_run(task->tensor, (task->first_run + i) * task->stride, &loss, &error);

    lock_take(&measurement->lock);
    if (!measured && !measurement->failed) {
        *measurement->error = error;
        measurement->failed = true;
    }
    if (loss.weights > 0) {
        uint64_t n_runs = (view->n_elements + RUN_ELEMENTS - 1) / RUN_ELEMENTS, n_measured = n_runs / task->stride;
        double share = (double)task->n_runs / (double)(n_measured ? n_measured : 1);
        measurement->squares += loss.squares / loss.weights * (double)view->n_elements * share;
        measurement->of_tensors[task->tensor - measurement->tensors].squares += loss.squares;
        measurement->of_tensors[task->tensor - measurement->tensors].values += loss.values;
    }
    measurement->largest = loss.largest > measurement->largest ? loss.largest : measurement->largest;
    advance(measurement, (double)++measurement->n_done / (double)measurement->n_tasks);
    lock_drop(&measurement->lock);
}

/* Returns the number of runs that are measured of a tensor: every *ret_stride-th. */
static uint64_t measured_runs(const struct view *view, bool all, uint64_t *ret_stride)
{
    uint64_t n_runs = (view->n_elements + RUN_ELEMENTS - 1) / RUN_ELEMENTS;
    *ret_stride = all || n_runs <= SAMPLED_RUNS ? 1 : n_runs / SAMPLED_RUNS;
    return n_runs / *ret_stride;
}

/* Fills in the tasks of all tensors, unless `tasks` is NULL, and returns their number. */
static size_t divide(const struct artifact *artifact, bool all, struct task *tasks)
{
    size_t n_tasks = 0;
    for (size_t i = 0; i < artifact->n_tensors; i++) {
        const struct artifact_tensor *tensor = &artifact->tensors[i];
        uint64_t stride, n_measured = measured_runs(tensor->tensor->view, all, &stride);
        for (uint64_t first = 0; first < n_measured; first += RUNS_PER_TASK, n_tasks++)
            if (tasks != NULL)
                tasks[n_tasks] = (struct task){
                    .tensor = tensor,
                    .first_run = first,
                    .n_runs = n_measured - first < RUNS_PER_TASK ? n_measured - first : RUNS_PER_TASK,
                    .stride = stride,
                };
    }
    return n_tasks;
}

uint64_t quantization_bytes(const struct gguf_model *model, bool all)
{
    uint64_t n_elements = 0, stride;
    for (size_t i = 0; i < model->tensors->n_tensors; i++) {
        const struct view *view = model->tensors->tensors[i].view;
        uint64_t most = measured_runs(view, all, &stride) * RUN_ELEMENTS;
        n_elements += view->n_elements < most ? view->n_elements : most;
    }
    return n_elements * sizeof(float);
}

static void sum_sizes(const struct artifact *artifact, uint64_t *ret_elements, uint64_t *ret_bytes)
{
    uint64_t n_elements = 0, n_bytes = 0;
    for (size_t i = 0; i < artifact->n_tensors; i++) {
        n_elements += artifact->tensors[i].tensor->view->n_elements;
        n_bytes += artifact_tensor_bytes(&artifact->tensors[i]);
    }
    *ret_elements = n_elements;
    *ret_bytes = n_bytes;
}

/* Keeps the error of each matrix. */
static void keep_matrices(struct quantization *quantization, const struct artifact *artifact,
                          const struct loss *of_tensors)
{
    quantization->arena = arena_new();
    quantization->tensors = arena_array(quantization->arena, artifact->n_tensors, sizeof *quantization->tensors);
    for (size_t i = 0; i < artifact->n_tensors; i++) {
        const struct tensor *tensor = artifact->tensors[i].tensor;
        if (tensor->view->rank >= 2 && of_tensors[i].values > 0)
            quantization->tensors[quantization->n_tensors++] = (struct quantized_tensor){
                .name = arena_strdup(quantization->arena, tensor->name),
                .type = artifact->tensors[i].encoding.dtype,
                .relative_error = loss_relative(&of_tensors[i]),
            };
    }
}

/* All matrices count alike: weighted by elements, an exact embedding would hide the losses of the layers. */
static double relative_error(const struct quantization *quantization)
{
    double sum = 0;
    for (size_t i = 0; i < quantization->n_tensors; i++)
        sum += quantization->tensors[i].relative_error * quantization->tensors[i].relative_error;
    return quantization->n_tensors != 0 ? sqrt(sum / (double)quantization->n_tensors) : 0;
}

/* Fills in everything except the file's size. */
static bool measure(struct measurement *measurement, const struct artifact *artifact, bool all,
                    struct quantization *quantization)
{
    uint64_t n_elements, n_bytes;
    measurement->n_tasks = divide(artifact, all, NULL);
    struct task *tasks = memory_alloc(measurement->n_tasks * sizeof *tasks);
    divide(artifact, all, tasks);
    measurement->tasks = tasks;
    measurement->tensors = artifact->tensors;
    measurement->of_tensors = memory_alloc((artifact->n_tensors + 1) * sizeof *measurement->of_tensors);
    memset(measurement->of_tensors, 0, artifact->n_tensors * sizeof *measurement->of_tensors);
    lock_init(&measurement->lock);
    pool_run(measurement->n_tasks, run_task, measurement);
    lock_destroy(&measurement->lock);
    free(tasks);

    sum_sizes(artifact, &n_elements, &n_bytes);
    quantization->bits_per_weight = n_elements ? (double)n_bytes * 8 / (double)n_elements : 0;
    quantization->rmse = n_elements ? sqrt(measurement->squares / (double)n_elements) : 0;
    quantization->largest_error = measurement->largest;
    keep_matrices(quantization, artifact, measurement->of_tensors);
    quantization->relative_error = relative_error(quantization);
    free(measurement->of_tensors);
    return !measurement->failed;
}

/* Measures one mix; an impossible file is a result, not a failure. */
static bool measure_mix(const struct gguf_edition *edition, const struct quantize_options *options, bool all,
                        struct measurement *measurement, struct quantization *quantization, struct error *error)
{
    struct artifact artifact;
    quantization->is_possible =
        quantize_artifact(edition, quantization->mix, options, &artifact, &quantization->reason);
    if (!quantization->is_possible)
        return true;
    struct arena *arena = arena_new();
    struct span_list spans = {.arena = arena};
    bool good = artifact.container->lay_out(&artifact, &spans, error);
    arena_free(arena);
    if (good) {
        quantization->file_bytes = spans.size;
        good = measure(measurement, &artifact, all, quantization);
    }
    artifact_free(&artifact);
    return good;
}

static bool measure_mixes(struct quantizations *measured, const char *path, const struct quantize_options *options,
                          bool all, struct error *error)
{
    struct gguf_model *model = measured->model;
    uint64_t n_bytes = quantization_bytes(model, all);
    const struct gguf_edition edition = {.model = model, .outline = quantize_outline_of(model, model->arena)};
    if (edition.outline == NULL)
        return error_set(error, "%s: no family of models is known for it, so nothing is quantized", path);
    bool done = true;
    stage_begin("measuring", measured->n_rows * n_bytes);
    for (size_t i = 0; done && i < measured->n_rows; i++) {
        struct measurement measurement = {.error = error, .n_bytes = n_bytes};
        done = measure_mix(&edition, options, all, &measurement, &measured->rows[i], error);
        advance(&measurement, 1);
    }
    stage_end();
    return done;
}

bool quantizations_measure(const struct tree *tree, bool all, struct quantizations *ret_quantizations,
                           struct error *error)
{
    const struct checkpoint *checkpoint = tree_checkpoint(tree);
    const struct request *request = &tree_options(tree)->request;
    struct quantizations measured = {.by_importance = request->quantize.imatrix != NULL};
    if (facts_of(checkpoint).is_adapter)
        return error_set(error, "%s: a LoRA adapter, and adapters are not quantized; -o lora= merges it with its base",
                         checkpoint->path);
    if (state_dict_of(checkpoint) != NULL)
        return error_set(error, "%s: a diffusion model: quantizations of language models are measured, not of these",
                         checkpoint->path);
    measured.model = gguf_model_new(checkpoint, &request->references, error);
    if (measured.model == NULL)
        return false;
    while (mixes[measured.n_rows].name != NULL)
        measured.n_rows++;
    measured.rows = memory_alloc(measured.n_rows * sizeof *measured.rows);
    for (size_t i = 0; i < measured.n_rows; i++)
        measured.rows[i] = (struct quantization){.mix = &mixes[i]};
    if (measure_mixes(&measured, checkpoint->path, &request->quantize, all, error)) {
        *ret_quantizations = measured;
        return true;
    }
    quantizations_free(&measured);
    return false;
}

void quantizations_free(struct quantizations *quantizations)
{
    for (size_t i = 0; i < quantizations->n_rows; i++)
        arena_free(quantizations->rows[i].arena);
    free(quantizations->rows);
    gguf_model_free(quantizations->model);
}

bool quantization_is_best(const struct quantization *quantizations, size_t count, const struct quantization *one)
{
    for (const struct quantization *other = quantizations; other < quantizations + count; other++) {
        bool is_equal = other->file_bytes == one->file_bytes && other->relative_error == one->relative_error;
        if (other->is_possible && other->file_bytes <= one->file_bytes &&
            other->relative_error <= one->relative_error && (!is_equal || other < one))
            return false;
    }
    return true;
}

/* The least relative error for each word: Q4_K_M has a small loss, Q8_0 is nearly lossless. */
#define SMALL_LOSS_ENDS 0.09

const char *quantization_word(double relative_error)
{
    static const struct {
        double least;
        const char *word;
    } words[] = {{0.25, "very large loss"}, {0.14, "large loss"},        {SMALL_LOSS_ENDS, "medium loss"},
                 {0.05, "small loss"},      {0.0125, "very small loss"}, {0, "nearly lossless"}};
    size_t i = 0;
    while (relative_error < words[i].least)
        i++;
    return words[i].word;
}

const struct quantization *quantization_choice(const struct quantization *quantizations, size_t count)
{
    const struct quantization *choice = NULL;
    for (size_t i = 0; i < count; i++) {
        const struct quantization *candidate = &quantizations[i];
        if (!candidate->is_possible || !(candidate->relative_error < SMALL_LOSS_ENDS))
            continue;
        if (choice == NULL || candidate->file_bytes < choice->file_bytes)
            choice = candidate;
    }
    return choice;
}

void quantizations_put(struct json_writer *writer, const struct quantizations *quantizations)
{
    const struct quantization *rows = quantizations->rows;
    const struct quantization *choice = quantization_choice(rows, quantizations->n_rows);
    json_begin_array(writer, NULL);
    for (const struct quantization *row = rows; row < rows + quantizations->n_rows; row++) {
        json_put_template(writer, "\n{'type': %s", row->mix->name);
        if (row->is_possible) {
            json_put_number(writer, "bytes", row->file_bytes);
            json_put_f64(writer, "bits_per_weight", row->bits_per_weight, 6);
            json_put_f64(writer, "rmse", row->rmse, 6);
            json_put_f64(writer, "relative_error", row->relative_error, 6);
            json_put_f64(writer, "largest_error", row->largest_error, 6);
            json_put_template(writer, "'loss': %s, 'recommended': %b", quantization_word(row->relative_error),
                              row == choice);
        } else {
            json_put_text(writer, "reason", row->reason.message);
        }
        json_end(writer);
    }
    json_end(writer);
}
