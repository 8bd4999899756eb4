/* codes-TYPE: the planes of the scales, a frame each; those of sub-blocks as their differences from guesses
 * (quant/blocks/scale_guess.h). The codes are computed from the scales and the values (quant/blocks/codes.h). If they
 * differ from the tensor's, a last frame has the exclusive or of computed and stored blocks. */
#include "sources/archive/codings.h"

#include "quant/blocks/codes.h"
#include "quant/blocks/scale_guess.h"
#include "sources/archive/block_planes.h"
#include "sources/archive/frames.h"

#include <string.h>

static bool is_of_scales(const struct block_plane *plane)
{
    return plane->count != 0 && !plane->is_codes;
}

static void compute(const struct coding *coding, const float *values, unsigned char *blocks, size_t n)
{
    codes_of(coding->dtype)(values, blocks, n);
}

static size_t bound(const struct coding *coding, size_t n_bytes)
{
    size_t n_blocks = n_bytes / coding->unit_bytes, sum = frame_bound(n_bytes);
    for (const struct block_plane *plane = block_planes_of(coding->dtype); is_of_scales(plane); plane++)
        sum += frame_bound(n_blocks * block_plane_bytes(plane));
    return sum;
}

static bool read_values(const struct coding *coding, struct coder *coder, const struct coding_chunk *chunk,
                        struct error *error)
{
    return chunk->input->read(chunk->input->context, chunk->first,
                              chunk->n_bytes / coding->unit_bytes * coding->unit_values, coder_buffers(coder)->values,
                              error);
}

/* Makes what the type's rule gives for the values, or zeros. */
static void predict(const struct coding *coding, const float *values, size_t n_blocks, unsigned char *blocks)
{
    if (coding->predicts_scales)
        dtype_kernels(coding->dtype).encode(values, blocks, n_blocks);
    else
        memset(blocks, 0, n_blocks * coding->unit_bytes);
}

static void exclusive_or(unsigned char *bytes, const unsigned char *others, size_t n)
{
    for (size_t i = 0; i < n; i++)
        bytes[i] ^= others[i];
}

/* Makes what stands for a plane of scales without a frame: a guess, or the predicted scales. Returns the guess. */
static const struct scale_guess *expect(const struct coding *coding, const struct block_plane *plane,
                                        const float *values, const unsigned char *predicted, size_t n_blocks,
                                        unsigned char *expected)
{
    const struct scale_guess *guess = plane->stride == 1 ? scale_guess_of(coding->dtype) : NULL;
    if (guess != NULL)
        scale_guess_make(guess, values, predicted, n_blocks, expected);
    else
        block_plane_gather(plane, predicted, n_blocks, coding->unit_bytes, expected);
    return guess;
}

/* Writes how the scales of blocks differ from the expected ones, and puts them in place of the predicted ones. */
static bool write_scales(const struct coding *coding, struct frames_out *frames, const unsigned char *bytes,
                         size_t n_blocks, unsigned char *predicted, struct error *error)
{
    unsigned char *content = coder_buffers(frames->coder)->planes, *other = content + FRAME_MOST / 2;
    const float *values = coder_buffers(frames->coder)->values;
    for (const struct block_plane *plane = block_planes_of(coding->dtype); is_of_scales(plane); plane++) {
        const size_t n = n_blocks * block_plane_bytes(plane);
        const struct scale_guess *guess = expect(coding, plane, values, predicted, n_blocks, other);
        block_plane_gather(plane, bytes, n_blocks, coding->unit_bytes, content);
        block_plane_scatter(plane, content, n_blocks, coding->unit_bytes, predicted);
        if (guess != NULL)
            scale_guess_subtract(guess, content, other, n);
        else
            exclusive_or(content, other, n);
        if (!frame_write(frames, guess != NULL || coding->predicts_scales ? FRAME_SPARSE : FRAME_HUFFMAN, content, n,
                         error))
            return false;
    }
    return true;
}

/* Reads the scales of blocks in place of the predicted ones. Sets *ret_other if any differs from these. */
static bool read_scales(const struct coding *coding, struct frames_in *frames, size_t n_blocks,
                        unsigned char *predicted, bool *ret_other, struct error *error)
{
    unsigned char *content = coder_buffers(frames->coder)->planes, *other = content + FRAME_MOST / 2;
    const float *values = coder_buffers(frames->coder)->values;
    *ret_other = false;
    for (const struct block_plane *plane = block_planes_of(coding->dtype); is_of_scales(plane); plane++) {
        const size_t n = n_blocks * block_plane_bytes(plane);
        if (!frame_read(frames, content, n, error))
            return false;
        const struct scale_guess *guess = expect(coding, plane, values, predicted, n_blocks, other);
        if (guess != NULL)
            scale_guess_add(guess, content, other, n);
        else
            exclusive_or(content, other, n);
        *ret_other |= memcmp(content, other, n) != 0;
        block_plane_scatter(plane, content, n_blocks, coding->unit_bytes, predicted);
    }
    return true;
}

static bool encode(const struct coding *coding, struct coder *coder, const struct coding_chunk *chunk,
                   const unsigned char *bytes, unsigned char *out, size_t *ret_length, struct error *error)
{
    const size_t n_blocks = chunk->n_bytes / coding->unit_bytes;
    const float *values = coder_buffers(coder)->values;
    unsigned char *computed = coder_buffers(coder)->more;
    struct frames_out frames = {coder, out, out + bound(coding, chunk->n_bytes)};
    if (!read_values(coding, coder, chunk, error))
        return false;
    predict(coding, values, n_blocks, computed);
    if (!write_scales(coding, &frames, bytes, n_blocks, computed, error))
        return false;
    coding->compute(coding, values, computed, n_blocks);
    if (!frame_write_changes(&frames, computed, bytes, chunk->n_bytes, error))
        return false;
    *ret_length = (size_t)(frames.at - out);
    return true;
}

static bool decode(const struct coding *coding, struct coder *coder, const struct coding_chunk *chunk,
                   const unsigned char *encoded, size_t length, unsigned char *bytes, struct error *error)
{
    const size_t n_blocks = chunk->n_bytes / coding->unit_bytes;
    const float *values = coder_buffers(coder)->values;
    struct frames_in frames = {coder, encoded, length};
    bool other;
    if (!read_values(coding, coder, chunk, error))
        return false;
    predict(coding, values, n_blocks, bytes);
    if (!read_scales(coding, &frames, n_blocks, bytes, &other, error))
        return false;
    if (other || !coding->predicts_scales)
        coding->compute(coding, values, bytes, n_blocks);
    return frame_read_changes(&frames, bytes, chunk->n_bytes, error);
}

#define CODES(type, elements, bytes, of_type, ...)                                                                     \
    {                                                                                                                  \
        .name = "codes-" type, .unit_bytes = (bytes), .unit_values = (elements), .dtype = &(of_type),                  \
        .input = CODING_VALUES, .compute = compute, .bound = bound, .encode = encode, .decode = decode, __VA_ARGS__    \
    }

const struct coding codes_codings[] = {
    CODES("Q4_0", 32, 18, q4_0_dtype, .predicts_scales = true),
    CODES("Q4_1", 32, 20, q4_1_dtype, .predicts_scales = true),
    CODES("Q5_0", 32, 22, q5_0_dtype, .predicts_scales = true),
    CODES("Q5_1", 32, 24, q5_1_dtype, .predicts_scales = true),
    CODES("Q8_0", 32, 34, q8_0_dtype, .predicts_scales = true),
    CODES("Q2_K", 256, 84, q2_k_dtype, .predicts_scales = false),
    CODES("Q3_K", 256, 110, q3_k_dtype, .predicts_scales = false),
    CODES("Q4_K", 256, 144, q4_k_dtype, .predicts_scales = false),
    CODES("Q5_K", 256, 176, q5_k_dtype, .predicts_scales = false),
    CODES("Q6_K", 256, 210, q6_k_dtype, .predicts_scales = false),
    CODES("IQ4_NL", 32, 18, iq4_nl_dtype, .predicts_scales = false),
    CODES("IQ4_XS", 256, 136, iq4_xs_dtype, .predicts_scales = false),
    {.name = NULL},
};
