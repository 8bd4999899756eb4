/* The names of experts below mlp.: routed, and shared by all tokens. */
#pragma once

#include "models/families/shared.h"

/* Gathered as down, gate, up; and as gate, up, down. With the router, its correction, and the shared experts. */
extern const struct relation_row experts_tensors[], experts_gate_first_tensors[];
