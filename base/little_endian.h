/* Numbers as files store them. All formats that wfs computes or writes are little-endian, whatever the machine is: a
 * number that is copied as it is from bytes of a file or a view, or to them, passes through little_endian(). */
#pragma once

#include <stddef.h>

/* Turns `n` numbers of `size` bytes each, at any alignment, from the machine's byte order to little-endian or back, in
 * place: reverses the bytes of each on a big-endian machine, and does nothing on a little-endian one. */
static inline void little_endian(void *numbers, size_t n, size_t size)
{
    unsigned char *number = numbers;
    if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
        return;
    for (size_t i = 0; i < n; i++, number += size)
        for (size_t low = 0, high = size - 1; low < high; low++, high--) {
            unsigned char byte = number[low];
            number[low] = number[high];
            number[high] = byte;
        }
}
