/* The factors by which Llama 3 slows its rotary frequencies. */
#pragma once

#include "models/families/shared.h"

struct rope_freqs {
    double theta, factor, low_factor, high_factor, old_context; /* as in rope_scaling of config.json */
};

/* Returns the factor for the frequency of dimension 2 i, whose exponent is 2 i / dimensions. */
float rope_freq_factor(const struct rope_freqs *scaling, float exponent);

/* Reports whether the rope is scaled the Llama 3 way. */
bool rope_is_llama3(const struct model_builder *builder);

/* Adds rope_freqs.weight for such a rope, which turns `turned` of `head_dim` dimensions; the others get factors of 1.
 * `factor` is the default for a rope without a factor. Like the converter's classes, computes in F32 or, `in_doubles`,
 * in doubles. */
bool rope_freqs_add(struct model_builder *builder, double factor, double turned, double head_dim, bool in_doubles,
                    struct error *error);
