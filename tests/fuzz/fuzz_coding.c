/* A chunk of a pack's tensor: the first line is the name of its coding, the next two bytes are its length in units, and
 * the rest are its frames.
 *
 * Holds: a refusal is one line, and frames that are taken give the same bytes again; the rest of the input as bytes
 * that are coded, instead of frames, comes back. */
#include "base/arena.h"
#include "base/checked.h"
#include "sources/archive/coding.h"
#include "tests/fuzz/fuzz.h"

enum { LENGTH = 2 };

static bool read_input(void *context, uint64_t first, size_t count, void *out, struct error *error)
{
    const struct coding *coding = *(const struct coding **)context;
    float *values = out;
    unsigned char *bytes = out;
    if (coding->input == CODING_VALUES)
        for (size_t i = 0; i < count; i++)
            values[i] = (float)((first + i) % 251) - 125;
    else
        for (size_t i = 0; i < count * coding->unit_bytes; i++)
            bytes[i] = (unsigned char)((first + i) * 37);
    return true;
}

static void decode_any(const struct coding *coding, struct coder *coder, const struct coding_chunk *chunk,
                       const uint8_t *frames, size_t length)
{
    struct error error = {""};
    unsigned char *bytes = memory_alloc(chunk->n_bytes + 1), *again = memory_alloc(chunk->n_bytes + 1);
    if (coding_decode(coding, coder, chunk, frames, length, bytes, &error)) {
        require(coding_decode(coding, coder, chunk, frames, length, again, &error));
        require(memcmp(bytes, again, chunk->n_bytes) == 0);
    } else {
        require_one_line(&error);
    }
    free(again);
    free(bytes);
}

static void encode_any(const struct coding *coding, struct coder *coder, struct coding_chunk chunk,
                       const uint8_t *bytes, size_t n)
{
    struct error error;
    chunk.n_bytes = n - n % coding->unit_bytes;
    if (chunk.n_bytes > coding_bytes(coding, CODING_CHUNK))
        chunk.n_bytes = coding_bytes(coding, CODING_CHUNK);
    size_t length, bound = coding_bound(coding, chunk.n_bytes);
    unsigned char *frames = memory_alloc(bound), *decoded = memory_alloc(chunk.n_bytes + 1);
    require(coding_encode(coding, coder, &chunk, bytes, frames, &length, &error) && length <= bound);
    require(coding_decode(coding, coder, &chunk, frames, length, decoded, &error));
    require(memcmp(decoded, bytes, chunk.n_bytes) == 0);
    free(decoded);
    free(frames);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct coder *coder;
    char name[32];
    const uint8_t *end = memchr(data, '\n', size < sizeof name ? size : sizeof name);
    if (end == NULL || (size_t)(end - data) + 1 + LENGTH > size)
        return 0;
    snprintf(name, sizeof name, "%.*s", (int)(end - data), (const char *)data);
    const struct coding *coding = coding_by_name(name);
    if (coding == NULL)
        return 0;
    if (coder == NULL)
        coder = coder_new();
    const struct coding_input input = {read_input, &coding};
    const uint8_t *rest = end + 1 + LENGTH;
    size_t n_units = (size_t)read_le(end + 1, LENGTH) % (CODING_CHUNK / coding->unit_values + 1);
    const struct coding_chunk chunk = {.n_bytes = n_units * coding->unit_bytes, .input = &input};
    decode_any(coding, coder, &chunk, rest, size - (size_t)(rest - data));
    encode_any(coding, coder, chunk, rest, size - (size_t)(rest - data));
    return 0;
}
