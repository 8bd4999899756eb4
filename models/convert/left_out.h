/* Counts the tensors that a file cannot have by the reason, for one note a reason. */
#pragma once

#include "formats/checkpoint.h"

enum { LEFT_OUT_MAX = 32 }; /* reasons; tensors of further ones count to the last */

/* One reason, of an array of LEFT_OUT_MAX and a zero after them. Texts are not copied. */
struct left_out {
    const char *reason, *first; /* the first tensor's name */
    size_t n_tensors;
};

void left_out_add(struct left_out *left_out, const char *reason, const char *name);

/* Notes which tensors the output `subject` lacks. */
void left_out_note(const struct left_out *left_out, const struct checkpoint *checkpoint, enum subject subject);
