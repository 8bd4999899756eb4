/* Expected: bytes_to_unicode() of transformers' GPT-2 tokenizer. */
#include "models/tokenizers/byte_alphabet.h"

#include "tests/unit/check.h"

static const struct {
    unsigned char byte;
    const char *character;
} rows[] = {
    {0, "Ā"},   {'\n', "Ċ"}, {' ', "Ġ"}, {'!', "!"}, {'~', "~"}, {127, "ġ"},
    {160, "ł"}, {161, "¡"},  {172, "¬"}, {173, "Ń"}, {174, "®"}, {255, "ÿ"},
};

int main(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char out[BYTE_CHARACTER_BYTES + 1] = "";
        size_t length = byte_character(rows[i].byte, out);
        CHECK(length == strlen(rows[i].character));
        CHECK_TEXT(out, rows[i].character);
        unsigned char byte[1];
        size_t n_bytes;
        CHECK(byte_characters_decode(out, length, byte, &n_bytes) && n_bytes == 1 && byte[0] == rows[i].byte);
    }
    static const char *const others[] = {" ", "\n", "\u00ad", "\u0144", "\u4e2d", "\xff"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        unsigned char bytes[4];
        size_t n_bytes;
        CHECK(!byte_characters_decode(others[i], strlen(others[i]), bytes, &n_bytes));
    }
    return check_done();
}
