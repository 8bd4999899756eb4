/* How the tensors of a pack are coded.
 *
 * A tensor is cut into chunks of coding_chunk() values (the last one is shorter), each of which is coded and decoded
 * alone. The coded form of a chunk is a series of zstd frames, so that any zstd can check it. Every frame has its
 * content size and its checksum; with a second input, a skippable frame at the end has the CRC-32 of the chunk. A
 * coding is a row:
 *
 *     raw            one frame of the bytes as they are
 *     zstd           one frame of bytes that zstd compresses as usual: headers, text, integers
 *     planes-N       byte planes of numbers of N bits, a frame each
 *     rotated-N      the same after the sign was moved below the mantissa: for floating point
 *     fields-TYPE    blocks of a GGUF type: the planes of its fields
 *     codes-TYPE     the planes of the scales alone, where the codes follow from the weights that were quantized; of
 *                    Q8_0, Q4_0, Q4_1, Q5_0 and Q5_1 as the exclusive or with the scales that follow without a matrix;
 *                    of K types and IQ4_XS, those of sub-blocks as their differences from guesses
 *     cast-TYPE      floating point that another tensor's becomes by rounding or widening
 *     ENGINE-...     what an engine makes of groups of weights: codes, or a number for each group; of FP8, W8A8 and
 *                    FP4, codes that follow from a scale which the frames have
 *     difference-N   how far floating point of N bits is from a base tensor
 *
 * Each plane of each chunk is coded by Huffman codes alone (which decode several times as fast as zstd's matches, and
 * for weights save more), or kept raw where they save less than 1 %.
 *
 * Frames are hostile: decoding writes exactly the bytes of the chunk or fails, takes no memory that depends on them,
 * and accepts no frame of another size, no dictionary and nothing after the last frame. What is encoded decodes to the
 * same bytes with every version of libzstd, but different versions may encode to different bytes. */
#pragma once

#include "base/error.h"
#include "quant/blocks/dtype.h"

enum { CODING_CHUNK = 1 << 16 /* values, at most */, CODING_LEAST_CHUNK = 1 << 12 };

/* What a coding computes a chunk from, beside its frames. */
enum coding_input_kind {
    CODING_ALONE,
    CODING_BASE,   /* another tensor with as many values of the same width */
    CODING_VALUES, /* the weights that were quantized or rounded, as F32 */
};

/* Reads values [first, first + count) of the second input into `out`: the bytes of the base as they are stored, or F32
 * values of this machine. Both calls of a chunk's coding, to encode and to decode, must be given the same. */
struct coding_input {
    bool (*read)(void *context, uint64_t first, size_t count, void *out, struct error *error);
    void *context;
};

struct coding_chunk {
    uint64_t first;                   /* value of the tensor with which the chunk begins */
    size_t n_bytes;                   /* decoded; a multiple of unit_bytes, at most those of CODING_CHUNK values */
    const struct coding_input *input; /* NULL for CODING_ALONE */
};

/* The contexts and buffers of one thread: about 1 MB. */
struct coder;
struct coder *coder_new(void);
void coder_free(struct coder *coder);

struct coding_form;

struct coding {
    const char *name;
    unsigned unit_bytes, unit_values; /* of a value, of a block, or of what is stored of a group of values */
    enum coding_input_kind input;
    const struct dtype *dtype;      /* of the tensor; NULL: any values of that size */
    const struct dtype *other;      /* that engines give the same bytes; NULL: none */
    unsigned rotation;              /* of planes */
    bool is_raw, is_matched;        /* codings of bytes that are no numbers */
    bool predicts_scales;           /* from the values, at no cost */
    const struct coding_form *form; /* for the functions of some codings */

    /* Of CODING_VALUES: sets what follows of units from the values, and from the rest of the units. */
    void (*compute)(const struct coding *coding, const float *values, unsigned char *units, size_t n);

    /* The same as the functions below, without the CRC-32. */
    size_t (*bound)(const struct coding *coding, size_t n_bytes);
    bool (*encode)(const struct coding *coding, struct coder *coder, const struct coding_chunk *chunk,
                   const unsigned char *bytes, unsigned char *out, size_t *ret_length, struct error *error);
    bool (*decode)(const struct coding *coding, struct coder *coder, const struct coding_chunk *chunk,
                   const unsigned char *frames, size_t length, unsigned char *bytes, struct error *error);
};

/* Returns the coding of that name; NULL if there is none. */
const struct coding *coding_by_name(const char *name);

/* Returns coding number `i`, in the order of the table; NULL after the last one. */
const struct coding *coding_at(size_t i);

/* Returns how many values the chunks of a new tensor have: a power of two. Numbers have half as many as others: a small
 * read decodes a whole chunk, and their planes lose nothing by it. */
uint32_t coding_chunk(const struct coding *coding);

/* Returns the bytes of so many values, decoded; `values` is a power of two from CODING_LEAST_CHUNK to CODING_CHUNK. */
size_t coding_bytes(const struct coding *coding, uint32_t values);

/* Returns the most bytes that a coded chunk of so many bytes takes. */
size_t coding_bound(const struct coding *coding, size_t n_bytes);

/* Codes the bytes of a chunk; `out` has room for the bound. */
bool coding_encode(const struct coding *coding, struct coder *coder, const struct coding_chunk *chunk,
                   const void *bytes, void *out, size_t *ret_length, struct error *error);

/* Decodes what coding_encode() gave for a chunk into `room`; fails if these are not the chunk's bytes. The CRC-32 is
 * not computed again: equal bytes have the same. */
bool coding_check(const struct coding *coding, struct coder *coder, const struct coding_chunk *chunk,
                  const void *frames, size_t length, const void *bytes, void *room, struct error *error);

/* Decodes a chunk into chunk->n_bytes bytes, which are undefined after a failure. The error names neither the file nor
 * the chunk. */
bool coding_decode(const struct coding *coding, struct coder *coder, const struct coding_chunk *chunk,
                   const void *frames, size_t length, void *bytes, struct error *error);
