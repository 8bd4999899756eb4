#include "fs/http/plot.h"

#include <math.h>

double plot_step(double span, int most)
{
    static const double factors[] = {1, 2, 5};
    double power = pow(10, floor(log10(span / most)));
    for (int i = 0; i < 3; i++)
        if (span / (factors[i] * power) <= most)
            return factors[i] * power;
    return 10 * power;
}
