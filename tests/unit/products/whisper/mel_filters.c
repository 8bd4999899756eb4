/* Expected: the SHA-256 of the arrays in OpenAI's mel_filters.npz. */
#include "products/whisper/forms.h"

#include "base/encodings.h"
#include "base/little_endian.h"
#include "tests/unit/check.h"

static void published(uint64_t n_mels, const char *expected)
{
    static float filters[MEL_MOST_BANDS * MEL_FREQUENCIES];
    char hex[SHA256_HEX + 1];
    CHECK(mel_filters(n_mels, filters));
    little_endian(filters, n_mels * MEL_FREQUENCIES, sizeof *filters);
    sha256_hex(filters, n_mels * MEL_FREQUENCIES * sizeof *filters, hex);
    CHECK_TEXT(hex, expected);
}

int main(void)
{
    float unused[MEL_MOST_BANDS * MEL_FREQUENCIES];
    published(80, "4f2701b1d287d74a0dc9871026e9519d98cb76426615f2539b0d151a0ae4ec2e");
    published(128, "2a5f9822897750e047c85dea37cc268d3be0ecfd23c28a5f10da129d99d05afe");
    CHECK(!mel_filters(0, unused) && !mel_filters(64, unused) && !mel_filters(129, unused));
    return check_done();
}
