/* Counts the tensors that an output leaves out, by reason, for one note per reason. */
#pragma once

#include "formats/checkpoint.h"

enum { LEFT_OUT_MAX = 32 }; /* reasons; tensors with further reasons count as the last one's */

/* One reason. Arrays have LEFT_OUT_MAX elements and a zeroed one after them. Texts are not copied. */
struct left_out {
    const char *reason, *first; /* the first tensor's name */
    size_t n_tensors;
};

void left_out_add(struct left_out *left_out, const char *reason, const char *name);

/* Notes which tensors the output `subject` lacks. */
void left_out_note(const struct left_out *left_out, const struct checkpoint *checkpoint, enum subject subject);
