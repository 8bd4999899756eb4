#include "sources/archive/digest.h"

#include <nettle/sha2.h>
#include <string.h>

struct digest digest_of(const void *bytes, size_t length)
{
    struct sha256_ctx hash;
    struct digest digest;
    sha256_init(&hash);
    sha256_update(&hash, length, bytes);
    sha256_digest(&hash, sizeof digest.bytes, digest.bytes);
    return digest;
}

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool digest_parse(const char *hex, struct digest *ret_digest)
{
    if (hex == NULL || strlen(hex) != SHA256_HEX)
        return false;
    for (size_t i = 0; i < sizeof ret_digest->bytes; i++) {
        int high = digit(hex[2 * i]), low = digit(hex[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        ret_digest->bytes[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

void digest_hex(const struct digest *digest, char hex[SHA256_HEX + 1])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < sizeof digest->bytes; i++) {
        hex[2 * i] = digits[digest->bytes[i] >> 4];
        hex[2 * i + 1] = digits[digest->bytes[i] & 15];
    }
    hex[SHA256_HEX] = '\0';
}

bool digest_same(const struct digest *a, const struct digest *b)
{
    return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}
