/* Batch norms of conformers: a GGUF has a factor and a summand, which the converter computes from the statistics. */
#include "models/projectors/projector.h"
#include "quant/views/convert.h"
#include "quant/views/unpack.h"

#include <math.h>
#include <string.h>

static const float epsilon = 1e-5F; /* of torch.nn.BatchNorm1d; no configuration changes it */

static void square_root(float *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        values[i] = sqrtf(values[i]);
}

struct norm {
    struct arena *arena;
    const struct dtype *dtype; /* torch computes in it */
    const struct view *weight, *bias, *mean, *var;
};

static const struct view *combine(const struct norm *norm, const struct view *left, enum combination op,
                                  const struct view *right)
{
    const struct sharing sharing = {.rows = 1, .columns = 1};
    return view_convert(norm->arena, view_combine(norm->arena, left, op, right, &sharing), norm->dtype);
}

/* Returns weight / sqrt(var + epsilon), with every step rounded. */
static const struct view *factor_of(const struct norm *norm)
{
    const struct view *sum = view_combine_number(norm->arena, norm->var, ADD, epsilon);
    sum = view_convert(norm->arena, sum, norm->dtype);
    return combine(norm, norm->weight, DIVIDE, view_map(norm->arena, sum, norm->dtype, square_root));
}

/* Adds the factor and summand of a norm whose statistics are four parts of a vector. */
static void add_folded(struct tensor_set *set, struct arena *arena, const struct view *statistics, const char *name)
{
    uint64_t n = statistics->n_elements / 4;
    const struct norm norm = {
        .arena = arena,
        .dtype = statistics->dtype == &f16_dtype ? &f16_dtype : &f32_dtype,
        .weight = view_slice(arena, statistics, 0, 0, n, 1),
        .bias = view_slice(arena, statistics, 0, n, n, 1),
        .mean = view_slice(arena, statistics, 0, 2 * n, n, 1),
        .var = view_slice(arena, statistics, 0, 3 * n, n, 1),
    };
    const struct view *factor = factor_of(&norm), *shift = combine(&norm, norm.mean, MULTIPLY, factor);
    tensor_set_add_view(set, arena_printf(arena, "%s.weight", name), factor);
    tensor_set_add_view(set, arena_printf(arena, "%s.bias", name), combine(&norm, norm.bias, SUBTRACT, shift));
}

void fold_batch_norms(struct model_builder *builder)
{
    static const char pattern[] = "a.blk.{}.conv_norm.statistics", last[] = ".statistics";
    struct gguf_model *model = builder->model;
    const struct tensor_set *set = model->tensors;
    model->tensors = tensor_set_new(model->arena);
    for (size_t i = 0; i < set->n_tensors; i++) {
        const struct tensor *tensor = &set->tensors[i];
        uint64_t numbers[PATTERN_NUMBERS];
        const struct view *view = tensor_view(tensor, model->arena);
        if (!pattern_match(pattern, tensor->name, tensor->name_length, numbers)) {
            tensor_set_add_view(model->tensors, tensor->name, view);
            continue;
        }
        size_t length = tensor->name_length - strlen(last);
        add_folded(model->tensors, model->arena, view, arena_printf(model->arena, "%.*s", (int)length, tensor->name));
    }
}
