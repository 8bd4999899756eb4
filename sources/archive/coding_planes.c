/* raw, zstd, planes-N and rotated-N: the lowest plane is the first frame. */
#include "sources/archive/codings.h"

#include "quant/blocks/planes.h"
#include "sources/archive/frames.h"

static size_t bound(const struct coding *coding, size_t n_bytes)
{
    return coding->unit_bytes * frame_bound(n_bytes / coding->unit_bytes);
}

static bool encode(const struct coding *coding, struct coder *coder, const struct coding_chunk *chunk,
                   const unsigned char *bytes, unsigned char *out, size_t *ret_length, struct error *error)
{
    const size_t width = coding->unit_bytes, n = chunk->n_bytes / width;
    struct frames_out frames = {coder, out, out + bound(coding, chunk->n_bytes)};
    const unsigned char *planes = bytes;
    if (width > 1) {
        planes = coder_buffers(coder)->planes;
        planes_kernels((unsigned)width)->split(bytes, n, coding->rotation, coder_buffers(coder)->planes);
    }
    for (size_t i = 0; i < width; i++)
        if (!frame_write(&frames, FRAME_HUFFMAN, planes + i * n, n, error))
            return false;
    *ret_length = (size_t)(frames.at - out);
    return true;
}

static bool decode(const struct coding *coding, struct coder *coder, const struct coding_chunk *chunk,
                   const unsigned char *encoded, size_t length, unsigned char *bytes, struct error *error)
{
    const size_t width = coding->unit_bytes, n = chunk->n_bytes / width;
    struct frames_in frames = {coder, encoded, length};
    unsigned char *planes = width > 1 ? coder_buffers(coder)->planes : bytes;
    for (size_t i = 0; i < width; i++)
        if (!frame_read(&frames, planes + i * n, n, error))
            return false;
    if (!frames_end(&frames, error))
        return false;
    if (width > 1)
        planes_kernels((unsigned)width)->join(planes, n, coding->rotation, bytes);
    return true;
}

static bool encode_whole(const struct coding *coding, struct coder *coder, const struct coding_chunk *chunk,
                         const unsigned char *bytes, unsigned char *out, size_t *ret_length, enum frame_kind kind,
                         struct error *error)
{
    struct frames_out frames = {coder, out, out + bound(coding, chunk->n_bytes)};
    if (!frame_write(&frames, kind, bytes, chunk->n_bytes, error))
        return false;
    *ret_length = (size_t)(frames.at - out);
    return true;
}

static bool encode_raw(const struct coding *coding, struct coder *coder, const struct coding_chunk *chunk,
                       const unsigned char *bytes, unsigned char *out, size_t *ret_length, struct error *error)
{
    return encode_whole(coding, coder, chunk, bytes, out, ret_length, FRAME_RAW, error);
}

static bool encode_matched(const struct coding *coding, struct coder *coder, const struct coding_chunk *chunk,
                           const unsigned char *bytes, unsigned char *out, size_t *ret_length, struct error *error)
{
    return encode_whole(coding, coder, chunk, bytes, out, ret_length, FRAME_TEXT, error);
}

#define PLANES(bits) .unit_bytes = (bits) / 8, .unit_values = 1, .bound = bound, .encode = encode, .decode = decode

const struct coding planes_codings[] = {
    {.name = "raw",
     .unit_bytes = 1,
     .unit_values = 1,
     .bound = bound,
     .encode = encode_raw,
     .decode = decode,
     .is_raw = true},
    {.name = "zstd",
     .unit_bytes = 1,
     .unit_values = 1,
     .bound = bound,
     .encode = encode_matched,
     .decode = decode,
     .is_matched = true},
    {.name = "planes-8", PLANES(8)},
    {.name = "planes-16", PLANES(16)},
    {.name = "planes-32", PLANES(32)},
    {.name = "planes-64", PLANES(64)},
    {.name = "rotated-16", PLANES(16), .rotation = 1},
    {.name = "rotated-32", PLANES(32), .rotation = 1},
    {.name = "rotated-64", PLANES(64), .rotation = 1},
    {.name = NULL},
};
