#include "quant/views/loss.h"

#include <math.h>

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
