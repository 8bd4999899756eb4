#include "models/tokenizers/byte_alphabet.h"

#include <string.h>
#include <utf8proc.h>

size_t byte_character(unsigned char byte, char out[BYTE_CHARACTER_BYTES])
{
    utf8proc_uint8_t encoded[4];
    utf8proc_int32_t code_point = byte;
    if (byte <= 32)
        code_point = 256 + byte;
    else if (byte >= 127 && byte <= 160)
        code_point = 256 + 33 + byte - 127;
    else if (byte == 173)
        code_point = 256 + 67;
    size_t length = (size_t)utf8proc_encode_char(code_point, encoded);
    memcpy(out, encoded, length);
    return length;
}

/* Returns the byte that a character stands for; -1: none. */
static int byte_of(utf8proc_int32_t code_point)
{
    if (code_point >= 256 && code_point <= 256 + 32)
        return code_point - 256;
    if (code_point > 256 + 32 && code_point < 256 + 67)
        return code_point - 256 - 33 + 127;
    if (code_point == 256 + 67)
        return 173;
    bool stands_for_itself = (code_point > 32 && code_point < 127) || (code_point > 160 && code_point < 256);
    return stands_for_itself && code_point != 173 ? code_point : -1;
}

bool byte_characters_decode(const char *text, size_t length, unsigned char *bytes, size_t *ret_n_bytes)
{
    size_t n_bytes = 0;
    for (size_t at = 0; at < length;) {
        utf8proc_int32_t code_point;
        utf8proc_ssize_t n =
            utf8proc_iterate((const utf8proc_uint8_t *)text + at, (utf8proc_ssize_t)(length - at), &code_point);
        int byte = n > 0 ? byte_of(code_point) : -1;
        if (byte < 0)
            return false;
        bytes[n_bytes++] = (unsigned char)byte;
        at += (size_t)n;
    }
    *ret_n_bytes = n_bytes;
    return true;
}
