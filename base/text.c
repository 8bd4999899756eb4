#include "base/text.h"

#include <stdio.h>
#include <string.h>
#include <utf8proc.h>

size_t text_character(const char *text, size_t length)
{
    utf8proc_int32_t code_point;
    utf8proc_ssize_t taken =
        utf8proc_iterate((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)(length < 4 ? length : 4), &code_point);
    return taken > 0 ? (size_t)taken : 0;
}

size_t text_valid_prefix(const char *text, size_t length)
{
    size_t at = 0;
    while (at < length) {
        unsigned long long word;
        if (length - at >= sizeof word && (memcpy(&word, text + at, sizeof word), (word & 0x8080808080808080) == 0)) {
            at += sizeof word;
            continue;
        }
        size_t taken = text_character(text + at, length - at);
        if (taken == 0)
            return at;
        at += taken;
    }
    return length;
}

void text_printable(const char *text, size_t length, char *out, size_t capacity)
{
    size_t used = 0;
    for (size_t at = 0; at < length;) {
        char escaped[5];
        const char *piece = text + at;
        size_t taken = text_character(piece, length - at), piece_length = taken;
        bool control = taken == 1 && ((unsigned char)*piece < 0x20 || *piece == 0x7f);
        if (taken == 0 || control) {
            taken = 1;
            piece_length = (size_t)snprintf(escaped, sizeof escaped, "\\x%02x", (unsigned char)*piece);
            piece = escaped;
        }
        if (used + piece_length + 1 > capacity)
            break;
        memcpy(out + used, piece, piece_length);
        used += piece_length;
        at += taken;
    }
    out[used] = '\0';
}

int text_compare(const char *a, size_t a_length, const char *b, size_t b_length)
{
    int order = memcmp(a, b, a_length < b_length ? a_length : b_length);
    return order != 0 ? order : (a_length > b_length) - (a_length < b_length);
}
