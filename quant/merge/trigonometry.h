/* Sines, cosines and arc cosines of F32 numbers, computed in F64 and rounded. torch calls Intel's MKL, whose errors are
 * up to 0.8 units in the last place: of random angles one sine in 20 and one arc cosine in 11 differ by a unit. */
#pragma once

#include <math.h>

static inline float torch_sin(float angle)
{
    return (float)sin((double)angle);
}

static inline float torch_cos(float angle)
{
    return (float)cos((double)angle);
}

static inline float torch_acos(float cosine)
{
    return (float)acos((double)cosine);
}
