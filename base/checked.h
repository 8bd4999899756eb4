/* Arithmetic on sizes that come from a file. Each function returns false, and leaves *result alone,
 * when the exact result does not fit. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

static inline bool checked_add(uint64_t a, uint64_t b, uint64_t *result)
{
    uint64_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        return false;
    *result = sum;
    return true;
}

static inline bool checked_multiply(uint64_t a, uint64_t b, uint64_t *result)
{
    uint64_t product;
    if (__builtin_mul_overflow(a, b, &product))
        return false;
    *result = product;
    return true;
}

/* Returns how many times `divisor` covers `number`. */
static inline uint64_t rounded_up(uint64_t number, uint64_t divisor)
{
    return number / divisor + (number % divisor != 0);
}

/* Rounds `value` up to a multiple of `alignment`, a power of two. */
static inline bool checked_align(uint64_t value, uint64_t alignment, uint64_t *result)
{
    uint64_t sum;
    if (!checked_add(value, alignment - 1, &sum))
        return false;
    *result = sum & ~(alignment - 1);
    return true;
}

/* Reads a little-endian number of `size` bytes (0 to 8) at any alignment. */
static inline uint64_t read_le(const void *bytes, unsigned size)
{
    const unsigned char *b = bytes;
    uint64_t value = 0;
    for (unsigned i = 0; i < size; i++)
        value |= (uint64_t)b[i] << (8 * i);
    return value;
}

/* Reads a big-endian number of `size` bytes (0 to 8) at any alignment. */
static inline uint64_t read_be(const void *bytes, unsigned size)
{
    const unsigned char *b = bytes;
    uint64_t value = 0;
    for (unsigned i = 0; i < size; i++)
        value = value << 8 | b[i];
    return value;
}
