/* Base64. */
#include "base/encodings.h"

#include "base/arena.h"
#include "base/text.h"

#include <limits.h>
#include <nettle/base16.h>
#include <nettle/base64.h>
#include <nettle/sha2.h>
#include <string.h>

void *base64_decode(struct arena *arena, const char *text, size_t length, size_t *ret_length)
{
    struct base64_decode_ctx context;
    *ret_length = BASE64_DECODE_LENGTH(length);
    uint8_t *bytes = arena_alloc(arena, *ret_length);
    base64_decode_init(&context);
    bool good = base64_decode_update(&context, ret_length, bytes, length, text) && base64_decode_final(&context);
    return good && *ret_length > 0 ? bytes : NULL;
}

char *base64_encode(struct arena *arena, const void *bytes, size_t length)
{
    size_t text_length = BASE64_ENCODE_RAW_LENGTH(length);
    char *text = arena_alloc(arena, text_length + 1);
    base64_encode_raw(text, length, bytes);
    text[text_length] = '\0';
    return text;
}

/* Escapes of URLs. */

const char *percent_encode(const char *text, const char *kept, struct arena *arena)
{
    static const char digits[] = "0123456789ABCDEF";
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    char *encoded = arena_alloc(arena, 3 * strlen(text) + 1), *out = encoded;
    for (; *text != '\0'; text++) {
        if (strchr(plain, *text) != NULL || strchr(kept, *text) != NULL) {
            *out++ = *text;
            continue;
        }
        *out++ = '%';
        *out++ = digits[(unsigned char)*text >> 4];
        *out++ = digits[(unsigned char)*text & 15];
    }
    *out = '\0';
    return encoded;
}

const char *percent_decode(const char *text, size_t length, struct arena *arena)
{
    char *decoded = arena_alloc(arena, length + 1), *out = decoded;
    for (size_t i = 0; i < length; i++) {
        int byte = (unsigned char)text[i];
        if (byte == '%') {
            int high = length - i > 2 ? text_hex_digit(text[i + 1]) : -1;
            int low = high >= 0 ? text_hex_digit(text[i + 2]) : -1;
            if (low < 0)
                return NULL;
            byte = high << 4 | low;
            i += 2;
        }
        if (byte == '\0')
            return NULL;
        *out++ = (char)byte;
    }
    *out = '\0';
    return decoded;
}

const char *percent_decode_name(const char *text, size_t length, struct arena *arena)
{
    const char *name = percent_decode(text, length, arena);
    bool is_name = name != NULL && *name != '\0' && strlen(name) <= NAME_MAX && strchr(name, '/') == NULL &&
                   strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
    return is_name ? name : NULL;
}

/* Hashes. */

void sha256_hex(const void *bytes, size_t length, char hex[SHA256_HEX + 1])
{
    uint8_t digest[SHA256_DIGEST_SIZE];
    struct sha256_ctx context;
    sha256_init(&context);
    sha256_update(&context, length, bytes);
    sha256_digest(&context, sizeof digest, digest);
    base16_encode_update(hex, sizeof digest, digest);
    hex[SHA256_HEX] = '\0';
}
