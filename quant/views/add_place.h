/* Tables of numbers that are stored as differences from their places. */
#pragma once

#include "quant/views/view.h"

/* Returns each element of a view of I64 plus `times` its place, from 0; sums wrap around. */
const struct view *view_add_place(struct arena *arena, const struct view *view, int times);
