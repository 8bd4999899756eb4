#include "formats/tensorflow/table.h"

enum { BITS = 4, STEPS = 1 << BITS };

/* The remainders of four bits, by the reflected polynomial 0x82f63b78. */
static const uint32_t steps[STEPS] = {
    0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
    0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
};

uint32_t crc32c(const void *bytes, size_t length)
{
    const unsigned char *at = bytes;
    uint32_t crc = ~UINT32_C(0);
    for (size_t i = 0; i < length; i++) {
        crc ^= at[i];
        crc = crc >> BITS ^ steps[crc % STEPS];
        crc = crc >> BITS ^ steps[crc % STEPS];
    }
    return ~crc;
}

uint32_t crc32c_masked(const void *bytes, size_t length)
{
    const uint32_t mask = 0xa282ead8;
    uint32_t crc = crc32c(bytes, length);
    return (crc >> 15 | crc << 17) + mask;
}
