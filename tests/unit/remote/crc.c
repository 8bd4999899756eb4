/* The CRC-32 of a store's granules is zlib's, at any length and alignment. */
#include "remote/crc.h"

#include "tests/unit/check.h"

#include <zlib.h>

enum { LONGEST = 256 << 10, MARGIN = 16 };

int main(void)
{
    static unsigned char bytes[LONGEST + MARGIN];
    uint32_t state = 1;
    bool same = true;
    for (size_t i = 0; i < sizeof bytes; i++) {
        state = state * 1664525 + 1013904223;
        bytes[i] = (unsigned char)(state >> 24);
    }
    for (unsigned length = 0; length < 700; length++)
        for (unsigned from = 0; from < MARGIN; from++)
            same &= crc_of(bytes + from, length) == crc32(0, bytes + from, length);
    CHECK_NAMED(same, "short runs");
    for (unsigned from = 0; from < MARGIN; from++)
        CHECK(crc_of(bytes + from, LONGEST) == crc32(0, bytes + from, LONGEST));
    CHECK_NAMED(crc_of("123456789", 9) == 0xcbf43926, "the check value of CRC-32");
    return check_done();
}
