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
    }
    return check_done();
}
