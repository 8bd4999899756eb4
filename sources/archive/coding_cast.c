/* cast-TYPE: floating point that is another tensor's, rounded to the type or widened: no frame. If some values are
 * others, a frame has the exclusive or of computed and stored values. An infinity or a NaN counts as 0 before it is
 * rounded, since programs differ in what they make of it. */
#include "sources/archive/codings.h"

#include "sources/archive/frames.h"

#include <math.h>

static size_t bound(const struct coding *coding, size_t n_bytes)
{
    return frame_bound(n_bytes);
}

/* Rounds the values of the input. */
static bool cast(const struct coding *coding, struct coder *coder, const struct coding_chunk *chunk,
                 unsigned char *ret_bytes, struct error *error)
{
    float *values = coder_buffers(coder)->values;
    const size_t n = chunk->n_bytes / coding->unit_bytes;
    if (!chunk->input->read(chunk->input->context, chunk->first, n, values, error))
        return false;
    for (size_t i = 0; i < n; i++)
        values[i] = isfinite(values[i]) ? values[i] : 0;
    dtype_kernels(coding->dtype).encode(values, ret_bytes, n);
    return true;
}

static bool encode(const struct coding *coding, struct coder *coder, const struct coding_chunk *chunk,
                   const unsigned char *bytes, unsigned char *out, size_t *ret_length, struct error *error)
{
    unsigned char *computed = coder_buffers(coder)->more;
    struct frames_out frames = {coder, out, out + bound(coding, chunk->n_bytes)};
    if (!cast(coding, coder, chunk, computed, error))
        return false;
    unsigned any = 0;
    for (size_t i = 0; i < chunk->n_bytes; i++)
        any |= computed[i] ^= bytes[i];
    if (any != 0 && !frame_write(&frames, FRAME_MATCHED, computed, chunk->n_bytes, error))
        return false;
    *ret_length = (size_t)(frames.at - out);
    return true;
}

static bool decode(const struct coding *coding, struct coder *coder, const struct coding_chunk *chunk,
                   const unsigned char *encoded, size_t length, unsigned char *bytes, struct error *error)
{
    const unsigned char *others = coder_buffers(coder)->planes;
    struct frames_in frames = {coder, encoded, length};
    if (!cast(coding, coder, chunk, bytes, error))
        return false;
    if (frames.left == 0)
        return true;
    if (!frame_read(&frames, coder_buffers(coder)->planes, chunk->n_bytes, error))
        return false;
    for (size_t i = 0; i < chunk->n_bytes; i++)
        bytes[i] ^= others[i];
    return frames_end(&frames, error);
}

#define CAST(type, of_type, bytes)                                                                                     \
    {                                                                                                                  \
        .name = "cast-" type, .unit_bytes = (bytes), .unit_values = 1, .dtype = &(of_type), .input = CODING_VALUES,    \
        .bound = bound, .encode = encode, .decode = decode                                                             \
    }

const struct coding cast_codings[] = {
    CAST("F32", f32_dtype, 4),
    CAST("F16", f16_dtype, 2),
    CAST("BF16", bf16_dtype, 2),
    {.name = NULL},
};
