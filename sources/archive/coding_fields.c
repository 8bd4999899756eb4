/* fields-TYPE: the planes of the type's fields, a frame each. */
#include "sources/archive/codings.h"

#include "sources/archive/block_planes.h"
#include "sources/archive/frames.h"

static size_t bound(const struct coding *coding, size_t n_bytes)
{
    size_t n_blocks = n_bytes / coding->unit_bytes, sum = 0;
    for (const struct block_plane *plane = block_planes_of(coding->dtype); plane->count != 0; plane++)
        sum += frame_bound(n_blocks * block_plane_bytes(plane));
    return sum;
}

static bool encode(const struct coding *coding, struct coder *coder, const struct coding_chunk *chunk,
                   const unsigned char *bytes, unsigned char *out, size_t *ret_length, struct error *error)
{
    const size_t n_blocks = chunk->n_bytes / coding->unit_bytes;
    unsigned char *content = coder_buffers(coder)->planes;
    struct frames_out frames = {coder, out, out + bound(coding, chunk->n_bytes)};
    for (const struct block_plane *plane = block_planes_of(coding->dtype); plane->count != 0; plane++) {
        block_plane_gather(plane, bytes, n_blocks, coding->unit_bytes, content);
        if (!frame_write(&frames, FRAME_HUFFMAN, content, n_blocks * block_plane_bytes(plane), error))
            return false;
    }
    *ret_length = (size_t)(frames.at - out);
    return true;
}

static bool decode(const struct coding *coding, struct coder *coder, const struct coding_chunk *chunk,
                   const unsigned char *encoded, size_t length, unsigned char *bytes, struct error *error)
{
    const size_t n_blocks = chunk->n_bytes / coding->unit_bytes;
    unsigned char *content = coder_buffers(coder)->planes;
    struct frames_in frames = {coder, encoded, length};
    for (const struct block_plane *plane = block_planes_of(coding->dtype); plane->count != 0; plane++) {
        if (!frame_read(&frames, content, n_blocks * block_plane_bytes(plane), error))
            return false;
        block_plane_scatter(plane, content, n_blocks, coding->unit_bytes, bytes);
    }
    return frames_end(&frames, error);
}

#define FIELDS(type, elements, bytes, of_type)                                                                         \
    {                                                                                                                  \
        .name = "fields-" type, .unit_bytes = (bytes), .unit_values = (elements), .dtype = &(of_type), .bound = bound, \
        .encode = encode, .decode = decode                                                                             \
    }

const struct coding fields_codings[] = {
    FIELDS("Q4_0", 32, 18, q4_0_dtype),
    FIELDS("Q4_1", 32, 20, q4_1_dtype),
    FIELDS("Q5_0", 32, 22, q5_0_dtype),
    FIELDS("Q5_1", 32, 24, q5_1_dtype),
    FIELDS("Q8_0", 32, 34, q8_0_dtype),
    FIELDS("Q8_1", 32, 36, q8_1_dtype),
    FIELDS("Q2_K", 256, 84, q2_k_dtype),
    FIELDS("Q3_K", 256, 110, q3_k_dtype),
    FIELDS("Q4_K", 256, 144, q4_k_dtype),
    FIELDS("Q5_K", 256, 176, q5_k_dtype),
    FIELDS("Q6_K", 256, 210, q6_k_dtype),
    FIELDS("IQ4_NL", 32, 18, iq4_nl_dtype),
    FIELDS("IQ4_XS", 256, 136, iq4_xs_dtype),
    FIELDS("IQ1_S", 256, 50, iq1_s_dtype),
    FIELDS("IQ1_M", 256, 56, iq1_m_dtype),
    FIELDS("IQ2_XXS", 256, 66, iq2_xxs_dtype),
    FIELDS("IQ2_XS", 256, 74, iq2_xs_dtype),
    FIELDS("IQ2_S", 256, 82, iq2_s_dtype),
    FIELDS("IQ3_XXS", 256, 98, iq3_xxs_dtype),
    FIELDS("IQ3_S", 256, 110, iq3_s_dtype),
    FIELDS("TQ1_0", 256, 54, tq1_0_dtype),
    FIELDS("TQ2_0", 256, 66, tq2_0_dtype),
    FIELDS("MXFP4", 32, 17, mxfp4_dtype),
    FIELDS("NVFP4", 64, 36, nvfp4_dtype),
    FIELDS("Q1_0", 128, 18, q1_0_dtype),
    FIELDS("Q2_0", 64, 18, q2_0_dtype),
    {.name = NULL},
};
