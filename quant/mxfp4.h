/* What the kernels of MXFP4 share. */
#pragma once

#include <stdint.h>

/* The E8M0 scale of a block of this largest magnitude, in F32 as the reference has it: log2f() may round up to the next
 * integer, and what is below 2^-125 wraps around. */
uint8_t mxfp4_exponent(float largest);
