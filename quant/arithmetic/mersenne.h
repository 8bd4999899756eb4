/* The random numbers of mt19937, from any place in their sequence.
 *
 * A place is reached from the nearest one before it that is kept: one in about four million words, and those where
 * recent reads ended. The first read of a far place takes up to a second for each thousand million words before it.
 * Source: Matsumoto and Nishimura, Mersenne Twister, 1998; the seed is used as by init_genrand(). */
#pragma once

#include "base/arena.h"

#include <stdint.h>

struct mersenne;

/* Returns the sequence of a seed. It may be read by several threads at once. */
struct mersenne *mersenne_new(struct arena *arena, uint32_t seed);

/* Stores words [first, first + n) of the sequence. */
void mersenne_read(struct mersenne *mersenne, uint64_t first, size_t n, uint32_t *words);
