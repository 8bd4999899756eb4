/* The exponential: sums of what torch.exp (torch 2.9.1 with MKL 2024.2 on an AMD processor) makes of floats by their
 * bits. */
#include "base/buffer.h"
#include "base/encodings.h"
#include "quant/arithmetic/torch_functions.h"
#include "tests/unit/check.h"

static const struct {
    uint32_t first, end, step;
    const char *sha256;
} runs[] = {
    {0x00000000, 0x7f800000, 4099, "cf460bd404c7c2eff6548c2fd05c1edcea7c809ad606e7d5942a58c1b3acf24c"},
    {0x80000000, 0xff800000, 4099, "a5ea52f8e12a758386488072fefa759cd22c23a20f53b47033b5472b4051e250"},
    {0x3f000000, 0x42b00000, 257, "1104ffe7be247b9449458fef454bd25d673f7d0807bd40496fb5e8cf3687bc93"},
    {0xbf000000, 0xc2d00000, 257, "bf99f763a0ecc6920ddd7d09214415fb7ce541b418b429377808560af1ac0192"},
};

int main(void)
{
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        struct buffer results = {0};
        char hex[SHA256_HEX + 1];
        for (uint64_t bits = runs[i].first; bits < runs[i].end; bits += runs[i].step) {
            uint32_t word = (uint32_t)bits;
            float x;
            memcpy(&x, &word, sizeof x);
            x = exponential(x);
            memcpy(&word, &x, sizeof x);
            buffer_append_le(&results, word, sizeof word);
        }
        sha256_hex(results.bytes, results.length, hex);
        CHECK_TEXT(hex, runs[i].sha256);
        buffer_free(&results);
    }
    return check_done();
}
