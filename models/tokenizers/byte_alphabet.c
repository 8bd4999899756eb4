#include "models/tokenizers/byte_alphabet.h"

#include <stdbool.h>
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
