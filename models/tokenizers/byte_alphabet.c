#include "models/tokenizers/byte_alphabet.h"

#include <stdbool.h>
#include <string.h>
#include <utf8proc.h>

size_t byte_character(unsigned char byte, char out[BYTE_CHARACTER_BYTES])
{
    utf8proc_uint8_t encoded[4];
    utf8proc_int32_t code_point = byte;
    bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    if (!printable)
        code_point = 256 + (byte <= 32 ? byte : byte <= 160 ? byte - 127 + 33 : 67);
    size_t length = (size_t)utf8proc_encode_char(code_point, encoded);
    memcpy(out, encoded, length);
    return length;
}
