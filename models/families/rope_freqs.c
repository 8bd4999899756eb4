/* rope_freqs.weight: the factors by which Llama 3 slows its rotary frequencies, as a tensor.
 *
 * Computed in F32, each operation rounded in the order in which torch does it (conversion/llama.py,
 * generate_extra_tensors), so that the bits are the same. */
#include "models/families/shared.h"

#include <math.h>
#include <strings.h>

enum { MAX_ROTARY_DIMENSIONS = 65536 };

static bool read_scaling(const struct model_builder *builder, double factor, struct rope_freqs *ret_scaling,
                         struct error *error)
{
    return builder_number(builder, "rope.rope_theta", 10000.0, &ret_scaling->theta, error) &&
           builder_number(builder, "rope.factor", factor, &ret_scaling->factor, error) &&
           builder_number(builder, "rope.low_freq_factor", 1.0, &ret_scaling->low_factor, error) &&
           builder_number(builder, "rope.high_freq_factor", 4.0, &ret_scaling->high_factor, error) &&
           builder_number(builder, "rope.original_max_position_embeddings", 8192, &ret_scaling->old_context, error);
}

float rope_freq_factor(const struct rope_freqs *scaling, float exponent)
{
    float frequency = 1.0f / powf((float)scaling->theta, exponent);
    float wavelength = (1.0f / frequency) * (float)(2 * M_PI);
    if ((double)wavelength < scaling->old_context / scaling->high_factor)
        return 1.0f;
    if ((double)wavelength > scaling->old_context / scaling->low_factor)
        return (float)scaling->factor;
    float smooth = ((1.0f / wavelength) * (float)scaling->old_context - (float)scaling->low_factor) /
                   (float)(scaling->high_factor - scaling->low_factor);
    return 1.0f / ((1.0f - smooth) / (float)scaling->factor + smooth);
}

/* Like rope_freq_factor(), for classes that compute with Python's numbers, from a frequency in F32. */
static float factor_in_doubles(const struct rope_freqs *scaling, float exponent)
{
    double wavelength = 2 * M_PI / (double)(1.0f / powf((float)scaling->theta, exponent));
    if (wavelength < scaling->old_context / scaling->high_factor)
        return 1.0f;
    if (wavelength > scaling->old_context / scaling->low_factor)
        return (float)scaling->factor;
    double smooth =
        (scaling->old_context / wavelength - scaling->low_factor) / (scaling->high_factor - scaling->low_factor);
    return (float)(1.0 / ((1.0 - smooth) / scaling->factor + smooth));
}

bool rope_freqs_add(struct model_builder *builder, double factor, double turned, double head_dim, bool in_doubles,
                    struct error *error)
{
    struct rope_freqs scaling;
    if (!read_scaling(builder, factor, &scaling, error))
        return false;
    if (!(turned >= 1 && turned <= head_dim && head_dim <= MAX_ROTARY_DIMENSIONS))
        return error_set(error, "config.json: head_dim is %.17g, of which %.17g are turned, outside 1 to %d", head_dim,
                         turned, MAX_ROTARY_DIMENSIONS);
    struct arena *arena = builder->model->arena;
    uint64_t n_turned = ((uint64_t)turned + 1) / 2, n = (uint64_t)head_dim / 2;
    uint64_t n_factors = n_turned > n ? n_turned : n;
    float *factors = arena_array(arena, n_factors, sizeof *factors);
    for (uint64_t i = 0; i < n_factors; i++)
        factors[i] = 1;
    for (uint64_t i = 0; i < n_turned; i++) {
        float exponent = (float)(2 * i) / (float)turned;
        factors[i] = in_doubles ? factor_in_doubles(&scaling, exponent) : rope_freq_factor(&scaling, exponent);
    }
    tensor_set_add_view(builder->model->tensors, "rope_freqs.weight", view_numbers(arena, 1, &n_factors, factors));
    return true;
}

bool rope_is_llama3(const struct model_builder *builder)
{
    const char *type = json_string(hparams_rope(builder->model->hparams, "rope_type"), NULL);
    return type != NULL && strcasecmp(type, "llama3") == 0;
}

bool add_rope_freqs(struct model_builder *builder, struct error *error)
{
    double dimensions;
    if (!rope_is_llama3(builder))
        return true;
    return compute_head_dim(builder, &dimensions, error) &&
           rope_freqs_add(builder, 8, dimensions, dimensions, false, error);
}
