/* difference-N: codes of the differences from the base (quant/blocks/ordered_difference.h), as byte planes, a frame
 * each.
 *
 * Either the codes are split as they are, or their lowest 4 bits, two codes a byte, are a frame before the planes of
 * the rest: this frame is shorter than a plane. Differences end in noise, and where that ends between two bytes, the
 * byte that is half noise is coded badly. The encoder tries both for a part of the chunk. */
#include "sources/archive/codings.h"

#include "quant/blocks/ordered_difference.h"
#include "quant/blocks/planes.h"
#include "sources/archive/frames.h"

#include <string.h>

static size_t bound(const struct coding *coding, size_t n_bytes)
{
    size_t n = n_bytes / coding->unit_bytes;
    return coding->unit_bytes * frame_bound(n) + frame_bound((n + 1) / 2);
}

static bool read_base(const struct coding *coding, struct coder *coder, const struct coding_chunk *chunk,
                      unsigned char **ret_base, struct error *error)
{
    *ret_base = (unsigned char *)coder_buffers(coder)->values;
    return chunk->input->read(chunk->input->context, chunk->first, chunk->n_bytes / coding->unit_bytes, *ret_base,
                              error);
}

/* Writes the frames of `n` codes, which are changed if their lowest bits are apart. */
static bool write_codes(const struct coding *coding, struct frames_out *frames, unsigned char *codes, size_t n,
                        bool apart, struct error *error)
{
    unsigned char *planes = coder_buffers(frames->coder)->planes;
    if (apart) {
        difference_kernels(coding->unit_bytes)->take_nibbles(codes, n, planes);
        if (!frame_write(frames, FRAME_SPARSE, planes, (n + 1) / 2, error))
            return false;
    }
    planes_kernels(coding->unit_bytes)->split(codes, n, 0, planes);
    for (size_t i = 0; i < coding->unit_bytes; i++)
        if (!frame_write(frames, FRAME_SPARSE, planes + i * n, n, error))
            return false;
    return true;
}

/* Reports whether codes are smaller with their lowest bits apart. `out` has room for them all. */
static bool smaller_apart(const struct coding *coding, struct frames_out out, const unsigned char *codes, size_t n)
{
    enum { SAMPLE = 8192 };
    struct error unsaid;
    const size_t width = coding->unit_bytes, n_sample = n < SAMPLE ? n : SAMPLE;
    unsigned char sample[SAMPLE * sizeof(uint32_t)];
    size_t lengths[2];
    for (int apart = 0; apart < 2; apart++) {
        struct frames_out frames = out;
        memcpy(sample, codes + (n - n_sample) / 2 * width, n_sample * width);
        if (!write_codes(coding, &frames, sample, n_sample, apart, &unsaid))
            return false;
        lengths[apart] = (size_t)(frames.at - out.at);
    }
    return lengths[1] < lengths[0];
}

static bool encode(const struct coding *coding, struct coder *coder, const struct coding_chunk *chunk,
                   const unsigned char *bytes, unsigned char *out, size_t *ret_length, struct error *error)
{
    const size_t n = chunk->n_bytes / coding->unit_bytes;
    unsigned char *codes = coder_buffers(coder)->more, *base;
    struct frames_out frames = {coder, out, out + bound(coding, chunk->n_bytes)};
    if (!read_base(coding, coder, chunk, &base, error))
        return false;
    memcpy(codes, bytes, chunk->n_bytes);
    difference_kernels(coding->unit_bytes)->code(codes, base, n);
    bool apart = n > 1 && smaller_apart(coding, frames, codes, n);
    if (!write_codes(coding, &frames, codes, n, apart, error))
        return false;
    *ret_length = (size_t)(frames.at - out);
    return true;
}

static bool decode(const struct coding *coding, struct coder *coder, const struct coding_chunk *chunk,
                   const unsigned char *encoded, size_t length, unsigned char *bytes, struct error *error)
{
    const size_t n = chunk->n_bytes / coding->unit_bytes;
    const struct difference_kernels *kernels = difference_kernels(coding->unit_bytes);
    unsigned char *planes = coder_buffers(coder)->planes, *nibbles = coder_buffers(coder)->more, *base;
    struct frames_in frames = {coder, encoded, length};
    bool apart = frame_content(&frames) < n;
    if (apart && !frame_read(&frames, nibbles, (n + 1) / 2, error))
        return false;
    for (size_t i = 0; i < coding->unit_bytes; i++)
        if (!frame_read(&frames, planes + i * n, n, error))
            return false;
    if (!frames_end(&frames, error) || !read_base(coding, coder, chunk, &base, error))
        return false;
    planes_kernels(coding->unit_bytes)->join(planes, n, 0, bytes);
    if (apart)
        kernels->give_nibbles(bytes, n, nibbles);
    kernels->restore(bytes, base, n);
    return true;
}

#define DIFFERENCE(bits)                                                                                               \
    {                                                                                                                  \
        .name = "difference-" #bits, .unit_bytes = (bits) / 8, .unit_values = 1, .input = CODING_BASE, .bound = bound, \
        .encode = encode, .decode = decode                                                                             \
    }

const struct coding difference_codings[] = {DIFFERENCE(16), DIFFERENCE(32), {.name = NULL}};
