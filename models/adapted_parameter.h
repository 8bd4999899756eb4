/* Pairs of an adapter that change a parameter and not a layer (target_parameters of adapter_config.json): weights of
 * experts that are stacked, [experts, rows, columns], which have no layers of their own.
 *
 * A pair is called as the module that has the parameter, once more within ".base_layer" for each other one of it: which
 * of them it changes its shapes tell. A holds those of all experts one on the other, [experts rank, columns], and B
 * those of all side by side, [rows, rank experts], where the expert varies fastest. Earlier releases of peft, and
 * modules whose matrices are multiplied from the left, take the rows for columns: FITS_TURNED. A parameter that is a
 * matrix is one like that of any layer.
 *
 * Source: peft 0.21, ParamWrapper of tuners/lora/layer.py, _inject_parameters() of tuners/tuners_utils.py. */
#pragma once

#include "models/adapter.h"

enum parameter_fit { FITS = 1, FITS_TURNED = 2 };

/* Of one module; the names of more are not looked into. */
enum { MODULE_MAX_PARAMETERS = 8 };

/* What a pair changes where it changes the parameter of that name in target_parameters ("experts.down_proj", or
 * "down_proj" of any module): the name with that of its module, in the arena; NULL: the pair is not of a module that
 * the name is about. */
const char *parameter_name(struct arena *arena, const struct adapter_pair *pair, const char *target);

/* The ways in which a pair fits a parameter of these dimensions, of enum parameter_fit; 0: it does not. */
unsigned parameter_fit(const struct adapter_pair *pair, unsigned rank, const uint64_t *shape);

/* Both factors of what is added to a parameter that the pair fits, of as many dimensions. */
void parameter_factors(struct arena *arena, const struct adapter_pair *pair, unsigned rank, const uint64_t *shape,
                       enum parameter_fit fit, const struct view **ret_left, const struct view **ret_right);
