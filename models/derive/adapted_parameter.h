/* Pairs of an adapter that change a parameter and not a layer (target_parameters of adapter_config.json): weights of
 * experts that are stacked, [experts, rows, columns], which have no layers of their own.
 *
 * A pair is called as the module that has the parameter, once more within ".base_layer" for each other one of it: which
 * of them it changes its shapes tell. A holds those of all experts one on the other, [experts rank, columns], and B
 * those of all side by side, [rows, rank experts], where the expert varies fastest. Earlier releases of peft, and
 * modules whose matrices are multiplied from the left, take the rows for columns: FITS_TURNED. A parameter that is a
 * matrix is one like that of any layer.
 *
 * Source: peft, ParamWrapper of tuners/lora/layer.py, _inject_parameters() of tuners/tuners_utils.py. */
#pragma once

#include "models/derive/adapter.h"

enum parameter_fit { FITS = 1, FITS_TURNED = 2 };

/* Limit for one module; further parameters are ignored. */
enum { MODULE_MAX_PARAMETERS = 8 };

/* Returns the parameter that a pair changes if it belongs to the entry `target` of target_parameters
 * ("experts.down_proj", or "down_proj" of any module): its name with its module's, in the arena. Returns NULL if the
 * pair belongs to another module. */
const char *parameter_name(struct arena *arena, const struct adapter_pair *pair, const char *target);

/* Returns how a pair fits a parameter of this shape: enum parameter_fit; 0: it does not. */
unsigned parameter_fit(const struct adapter_pair *pair, unsigned rank, const uint64_t *shape);

/* Returns the adapter's A and B matrices for a parameter that the pair fits, reshaped to the parameter's rank. */
void parameter_factors(struct arena *arena, const struct adapter_pair *pair, unsigned rank, const uint64_t *shape,
                       enum parameter_fit fit, const struct view **ret_left, const struct view **ret_right);
