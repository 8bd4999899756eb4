#include "models/diffusion/component.h"

#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void describing_fail(struct describing *describing, const char *format, ...)
{
    char reason[256];
    va_list values;
    va_start(values, format);
    vsnprintf(reason, sizeof reason, format, values);
    va_end(values);
    if (!describing->failed)
        error_set(describing->error, "%s", reason);
    describing->failed = true;
}

uint64_t describing_size(struct describing *describing, const char *name, unsigned axis)
{
    const struct tensor *tensor = tensor_set_find_text(describing->set, name);
    if (tensor != NULL && tensor->rank > axis && tensor->shape[axis] > 0)
        return tensor->shape[axis];
    describing_fail(describing, "tensor '%s' is missing, or has too few dimensions", name);
    return 0;
}

void describing_put_size(struct describing *describing, const char *key, const char *tensor, unsigned axis)
{
    json_put_number(describing->writer, key, describing_size(describing, tensor, axis));
}

uint64_t describing_blocks(const struct tensor_set *set, const char *beginning)
{
    uint64_t n = 0;
    for (size_t i = 0; i < set->n_tensors; i++)
        if (text_starts_with(set->tensors[i].name, beginning)) {
            uint64_t number = strtoull(set->tensors[i].name + strlen(beginning), NULL, 10);
            n = number + 1 > n ? number + 1 : n;
        }
    return n;
}
