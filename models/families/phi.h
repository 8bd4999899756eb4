/* Shared by the Phi 3 families. */
#pragma once

#include "models/families/shared.h"

extern const struct key_row phi3_keys[];

/* Adds rope_factors_long and rope_factors_short, and the key of the scale of attention that belongs to them. */
bool phi3_add_rope_factors(struct model_builder *builder, struct error *error);

/* Adds the two tensors, of `n_factors` each, if rope_scaling has them. */
bool add_rope_factor_tensors(struct model_builder *builder, uint64_t n_factors, struct error *error);
