/* Pairs of an adapter that change a parameter instead of a layer (target_parameters of adapter_config.json): the
 * stacked weights of experts, [experts, rows, columns], which are no layers of their own.
 *
 * A pair is named after the parameter's module; each further parameter of the module adds one ".base_layer" to the
 * name, so only its shape tells which parameter a pair changes. A stacks the matrices of all experts, [experts rank,
 * columns]; B has them side by side, [rows, rank experts], where the expert varies fastest. Earlier releases of peft,
 * and modules whose matrices are multiplied from the left, swap rows and columns: FITS_TURNED. A parameter that is a
 * matrix has a pair like that of any layer.
 *
 * Source: peft, ParamWrapper of tuners/lora/layer.py, _inject_parameters() of tuners/tuners_utils.py. */
#pragma once

#include "models/derive/adapter.h"

enum parameter_fit { FITS = 1, FITS_TURNED = 2 };

/* The most parameters of one module; further ones are ignored. */
enum { MODULE_MAX_PARAMETERS = 8 };

/* Returns the parameter that a pair may change by the entry `target` of target_parameters ("experts.down_proj", or
 * "down_proj" of any module): its name after its module's, in the arena. Returns NULL if the pair belongs to another
 * module. */
const char *parameter_name(struct arena *arena, const struct adapter_pair *pair, const char *target);

/* Returns how a pair fits a parameter of this shape, as a set of enum parameter_fit; 0: it does not. */
unsigned parameter_fit(const struct adapter_pair *pair, unsigned rank, const uint64_t *shape);

/* Returns B (left) and A (right) of a pair, reshaped to the rank of a parameter that the pair fits in the way `fit`. */
void parameter_factors(struct arena *arena, const struct adapter_pair *pair, unsigned rank, const uint64_t *shape,
                       enum parameter_fit fit, const struct view **ret_left, const struct view **ret_right);
