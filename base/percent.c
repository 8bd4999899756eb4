#include "base/encodings.h"

#include "base/text.h"

#include <limits.h>
#include <string.h>

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
