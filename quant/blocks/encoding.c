#include "quant/blocks/encoding.h"

struct kernels encoding_kernels_at(struct encoding encoding, enum cpu_level level)
{
    struct kernels best = dtype_kernels_at(encoding.dtype, level);
    for (int i = CPU_PORTABLE; encoding.rule != NULL && i <= (int)level; i++)
        if (encoding.rule->encode[i] != NULL)
            best.encode = encoding.rule->encode[i];
    if (encoding.rule != NULL || encoding.importance == NULL)
        best.encode_weighted = NULL;
    return best;
}

struct kernels encoding_kernels(struct encoding encoding)
{
    return encoding_kernels_at(encoding, cpu_level());
}
