/* Element types and block types.
 *
 * A dtype is a constant: a name, the size of a block, and kernels that turn blocks into F32 values and back.
 * An element type such as BF16 is a block of one element; a packed one such as F4 is a block of two. Kernels are
 * total: any input bytes give some output, nothing is allocated, no state is kept, no error is reported. The caller
 * owns both buffers, which do not overlap; blocks may be at any alignment, F32 values are aligned to 4 bytes.
 *
 * A block type is one file in quant/ (`q4_0.c`), decode and encode together; its fast kernels are beside it
 * (`q4_0_avx2.c`), give the same bits, and are chosen by dtype_kernels(). To add one, write the file and add a
 * row to quant/dtypes.c. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Turns `n_blocks` blocks into n_blocks * block_elements values. */
typedef void decode_function(const void *blocks, float *values, size_t n_blocks);

/* Turns n_blocks * block_elements values into `n_blocks` blocks. */
typedef void encode_function(const float *values, void *blocks, size_t n_blocks);

/* The same where errors count by how much a value matters: importance[i] says it of values[i], and mean_squares[j] is
 * the mean square of the whole row that block j is part of, for dtypes whose `weighs_rows` is set. */
typedef void encode_weighted_function(const float *values, const float *importance, const float *mean_squares,
                                      void *blocks, size_t n_blocks);

struct kernels {
    decode_function *decode;
    encode_function *encode;
    encode_weighted_function *encode_weighted; /* NULL: the importance of values makes no difference */
};

/* What a processor offers to the kernels; each level includes those before it.
 * AVX2 means AVX2, FMA and F16C; AVX-512 means F, BW, DQ, VL and VBMI besides. FMA is never used where it would change
 * a result: see -ffp-contract=off. */
enum cpu_level { CPU_PORTABLE, CPU_AVX2, CPU_AVX512, CPU_LEVELS };

/* The level of this processor, found once; the environment variable WFS_CPU (portable, avx2, avx512) lowers it. */
enum cpu_level cpu_level(void);
const char *cpu_level_name(enum cpu_level level);

enum dtype_kind {
    DTYPE_FLOAT,   /* floating point, F4 and F6 included */
    DTYPE_INTEGER, /* and BOOL: a byte that is zero or not */
    DTYPE_COMPLEX, /* has no F32 value */
    DTYPE_BLOCK,   /* quantized in blocks along a row: a row holds whole blocks */
};

enum { GGML_TYPE_NONE = -1 };

struct dtype {
    const char *name; /* as safetensors or ggml spell it: "BF16", "Q4_K" */
    /* the file in tensors/NAME/ that shows a tensor as this dtype: "bf16"; NULL: none is offered */
    const char *view_name;
    const char *numpy; /* descr of a .npy header, "<f4"; NULL where numpy has no such type */
    enum dtype_kind kind;
    uint16_t block_elements;
    uint16_t block_bytes;
    int16_t ggml_type; /* type id in GGUF, or GGML_TYPE_NONE */
    uint8_t n_scales;  /* number of F16 scales in a block, and where they are: none may be infinite or NaN */
    uint8_t scale_offset[2];
    /* the same, for a block whose scale is not in one place; NULL: see n_scales */
    bool (*scales_finite)(const void *block);
    bool weighs_rows;     /* encode_weighted looks at mean_squares */
    uint16_t encode_cost; /* rough picoseconds per element of the best kernel on one core, to decide what to split */

    /* Portable kernels at CPU_PORTABLE, faster ones where they exist; an absent level falls back to the one before.
     * No decode: the values cannot be shown as numbers. No encode: a target only where the importance of values is
     * known, or never. */
    struct kernels kernels[CPU_LEVELS];
};

/* Defines NAME_decode over many blocks of `elements` values in `bytes` bytes from decode_block. */
#define DEFINE_BLOCK_DECODER(name, elements, bytes)                                                                    \
    static void name##_decode(const void *blocks, float *values, size_t n_blocks)                                      \
    {                                                                                                                  \
        for (size_t i = 0; i < n_blocks; i++)                                                                          \
            decode_block((const uint8_t *)blocks + i * (bytes), values + i * (elements));                              \
    }

/* The best kernels of `dtype` at `level` or below. */
struct kernels dtype_kernels_at(const struct dtype *dtype, enum cpu_level level);

/* The best kernels for this processor. */
struct kernels dtype_kernels(const struct dtype *dtype);

/* All dtypes, NULL at the end; the order is the one in which views are listed. */
extern const struct dtype *const dtypes[];

/* By the name in `name`, exact; NULL where there is none. */
const struct dtype *dtype_by_name(const char *name);
const struct dtype *dtype_by_ggml_type(uint32_t ggml_type);

/* Bytes of `n_elements` elements, a whole number of blocks. */
static inline uint64_t dtype_bytes(const struct dtype *dtype, uint64_t n_elements)
{
    return n_elements / dtype->block_elements * dtype->block_bytes;
}

/* Types that code names directly. */
extern const struct dtype f32_dtype, f16_dtype, bf16_dtype, u8_dtype, q4_0_dtype;
