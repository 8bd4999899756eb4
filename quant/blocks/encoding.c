#include "quant/blocks/encoding.h"

#include <math.h>

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

void loss_add(struct loss *loss, const float *exact, const float *stored, size_t n, const float *weights)
{
    for (size_t i = 0; i < n; i++) {
        double difference = fabs((double)exact[i] - (double)stored[i]),
               weight = weights != NULL ? (double)weights[i] : 1;
        loss->squares += weight * difference * difference;
        loss->values += weight * (double)exact[i] * (double)exact[i];
        loss->weights += weight;
        loss->largest = difference > loss->largest ? difference : loss->largest;
    }
}

double loss_relative(const struct loss *loss)
{
    return loss->values > 0 ? sqrt(loss->squares / loss->values) : 0;
}
