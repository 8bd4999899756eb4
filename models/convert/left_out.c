#include "models/convert/left_out.h"

#include <string.h>

void left_out_add(struct left_out *left_out, const char *reason, const char *name)
{
    size_t i = 0;
    while (i + 1 < LEFT_OUT_MAX && left_out[i].reason != NULL && strcmp(left_out[i].reason, reason) != 0)
        i++;
    if (left_out[i].reason == NULL) {
        left_out[i].reason = reason;
        left_out[i].first = name;
    }
    left_out[i].n_tensors++;
}

void left_out_note(const struct left_out *left_out, const struct checkpoint *checkpoint, enum subject subject)
{
    for (; left_out->reason != NULL; left_out++)
        if (left_out->n_tensors == 1)
            checkpoint_note(checkpoint, subject, "tensor '%.200s' is left out: %s", left_out->first, left_out->reason);
        else
            checkpoint_note(checkpoint, subject, "%zu tensors are left out, '%.200s' first: %s", left_out->n_tensors,
                            left_out->first, left_out->reason);
}
