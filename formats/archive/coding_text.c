/* text: bytes that are no numbers, such as headers and vocabularies. */
#include "formats/archive/codings.h"

#include "formats/archive/frames.h"

static size_t bound(const struct coding *coding, size_t n_bytes)
{
    return frame_bound(n_bytes);
}

static bool encode(const struct coding *coding, struct coder *coder, const struct coding_chunk *chunk,
                   const unsigned char *bytes, unsigned char *out, size_t *ret_length, struct error *error)
{
    struct frames_out frames = {coder, out, out + bound(coding, chunk->n_bytes)};
    if (!frame_write(&frames, FRAME_MATCHED, bytes, chunk->n_bytes, error))
        return false;
    *ret_length = (size_t)(frames.at - out);
    return true;
}

static bool decode(const struct coding *coding, struct coder *coder, const struct coding_chunk *chunk,
                   const unsigned char *encoded, size_t length, unsigned char *bytes, struct error *error)
{
    struct frames_in frames = {coder, encoded, length};
    return frame_read(&frames, bytes, chunk->n_bytes, error) && frames_end(&frames, error);
}

const struct coding text_codings[] = {
    {.name = "text", .unit_bytes = 1, .unit_values = 1, .bound = bound, .encode = encode, .decode = decode},
    {.name = NULL},
};
