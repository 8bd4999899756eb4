/* codes-TYPE: the planes of the scales, a frame each. The codes are computed from the scales and the values
 * (quant/codes.h). If they differ from the tensor's, a last frame has the exclusive or of computed and stored blocks.
 */
#include "formats/archive/codings.h"

#include "formats/archive/block_planes.h"
#include "formats/archive/frames.h"
#include "quant/codes.h"

#include <string.h>

static bool is_of_scales(const struct block_plane *plane)
{
    return plane->count != 0 && !plane->is_codes;
}

static size_t bound(const struct coding *coding, size_t n_bytes)
{
    size_t n_blocks = n_bytes / coding->unit_bytes, sum = frame_bound(n_bytes);
    for (const struct block_plane *plane = block_planes_of(coding->dtype); is_of_scales(plane); plane++)
        sum += frame_bound(n_blocks * block_plane_bytes(plane));
    return sum;
}

/* Completes blocks that have their scales, and zeros for codes. */
static bool compute_codes(const struct coding *coding, struct coder *coder, const struct coding_chunk *chunk,
                          unsigned char *blocks, struct error *error)
{
    const size_t n_blocks = chunk->n_bytes / coding->unit_bytes;
    float *values = coder_buffers(coder)->values;
    if (!chunk->input->read(chunk->input->context, chunk->first, n_blocks * coding->unit_values, values, error))
        return false;
    codes_of(coding->dtype)(values, blocks, n_blocks);
    return true;
}

static bool exclusive_or(unsigned char *bytes, const unsigned char *others, size_t n)
{
    unsigned any = 0;
    for (size_t i = 0; i < n; i++) {
        bytes[i] ^= others[i];
        any |= bytes[i];
    }
    return any != 0;
}

static bool encode(const struct coding *coding, struct coder *coder, const struct coding_chunk *chunk,
                   const unsigned char *bytes, unsigned char *out, size_t *ret_length, struct error *error)
{
    const size_t n_blocks = chunk->n_bytes / coding->unit_bytes;
    unsigned char *content = coder_buffers(coder)->planes, *computed = coder_buffers(coder)->more;
    struct frames_out frames = {coder, out, out + bound(coding, chunk->n_bytes)};
    memset(computed, 0, chunk->n_bytes);
    for (const struct block_plane *plane = block_planes_of(coding->dtype); is_of_scales(plane); plane++) {
        block_plane_gather(plane, bytes, n_blocks, coding->unit_bytes, content);
        block_plane_scatter(plane, content, n_blocks, coding->unit_bytes, computed);
        if (!frame_write(&frames, FRAME_HUFFMAN, content, n_blocks * block_plane_bytes(plane), error))
            return false;
    }
    if (!compute_codes(coding, coder, chunk, computed, error))
        return false;
    if (exclusive_or(computed, bytes, chunk->n_bytes) &&
        !frame_write(&frames, FRAME_MATCHED, computed, chunk->n_bytes, error))
        return false;
    *ret_length = (size_t)(frames.at - out);
    return true;
}

static bool decode(const struct coding *coding, struct coder *coder, const struct coding_chunk *chunk,
                   const unsigned char *encoded, size_t length, unsigned char *bytes, struct error *error)
{
    const size_t n_blocks = chunk->n_bytes / coding->unit_bytes;
    unsigned char *content = coder_buffers(coder)->planes;
    struct frames_in frames = {coder, encoded, length};
    memset(bytes, 0, chunk->n_bytes);
    for (const struct block_plane *plane = block_planes_of(coding->dtype); is_of_scales(plane); plane++) {
        if (!frame_read(&frames, content, n_blocks * block_plane_bytes(plane), error))
            return false;
        block_plane_scatter(plane, content, n_blocks, coding->unit_bytes, bytes);
    }
    if (!compute_codes(coding, coder, chunk, bytes, error))
        return false;
    if (frames.left == 0)
        return true;
    if (!frame_read(&frames, content, chunk->n_bytes, error))
        return false;
    exclusive_or(bytes, content, chunk->n_bytes);
    return frames_end(&frames, error);
}

#define CODES(type, elements, bytes, of_type)                                                                          \
    {                                                                                                                  \
        .name = "codes-" type, .unit_bytes = (bytes), .unit_values = (elements), .dtype = &(of_type),                  \
        .input = CODING_VALUES, .bound = bound, .encode = encode, .decode = decode                                     \
    }

const struct coding codes_codings[] = {
    CODES("Q4_0", 32, 18, q4_0_dtype),
    CODES("Q4_1", 32, 20, q4_1_dtype),
    CODES("Q5_0", 32, 22, q5_0_dtype),
    CODES("Q5_1", 32, 24, q5_1_dtype),
    CODES("Q8_0", 32, 34, q8_0_dtype),
    CODES("Q2_K", 256, 84, q2_k_dtype),
    CODES("Q3_K", 256, 110, q3_k_dtype),
    CODES("Q4_K", 256, 144, q4_k_dtype),
    CODES("Q5_K", 256, 176, q5_k_dtype),
    CODES("Q6_K", 256, 210, q6_k_dtype),
    CODES("IQ4_NL", 32, 18, iq4_nl_dtype),
    CODES("IQ4_XS", 256, 136, iq4_xs_dtype),
    {.name = NULL},
};
