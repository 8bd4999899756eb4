/* Element types and block types.
 *
 * A dtype is a constant: a name, the size of a block, and kernels that turn blocks into F32 values and back.
 * An element type such as BF16 is a block of one element; a packed one such as F4 is a block of two. Kernels are
 * total: any input bytes give some output, and no error is reported. Kernels keep no state between calls, except tables
 * that the IQ encoders build once, for which memory may run out (base/arena.h). The caller owns both buffers, which do
 * not overlap; blocks may be at any alignment, F32 values are aligned to 4 bytes.
 *
 * A block type is in one file of quant/blocks, alone or with its kin (`q8.c`). Fast kernels (`kernels/block32_avx2.c`)
 * give the same bits; dtype_kernels() chooses them. To add a block type, write its file and a row in
 * quant/blocks/dtypes.c. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Turns `n_blocks` blocks into n_blocks * block_elements values. */
typedef void decode_function(const void *blocks, float *values, size_t n_blocks);

/* Turns n_blocks * block_elements values into `n_blocks` blocks. */
typedef void encode_function(const float *values, void *blocks, size_t n_blocks);

/* Like encode_function, but weights errors: importance[i] is the weight of values[i], and mean_squares[j] is the mean
 * square of the whole row of block j, for dtypes with `weighs_rows`. */
typedef void encode_weighted_function(const float *values, const float *importance, const float *mean_squares,
                                      void *blocks, size_t n_blocks);

/* Replaces the codes of `n_blocks` blocks by those that follow from their scales and the values (codes.h). */
typedef void codes_function(const float *values, void *blocks, size_t n_blocks);

struct kernels {
    decode_function *decode;
    encode_function *encode;
    encode_weighted_function *encode_weighted; /* NULL: importance has no effect */
};

/* The instruction sets of a processor for the kernels: NEON, of every 64-bit ARM, and those of x86-64, where each level
 * includes the lower one. AVX2 means AVX2, FMA and F16C; AVX-512 adds F, BW, DQ, VL and VBMI. FMA is never used where
 * it would change a result: see -ffp-contract=off. */
enum cpu_level { CPU_PORTABLE, CPU_NEON, CPU_AVX2, CPU_AVX512, CPU_LEVELS };

/* Returns the level of this processor, found once; the environment variable WFS_CPU (a level's name) lowers it. */
enum cpu_level cpu_level(void);

/* Reports whether kernels of a level run here: the processor has it, and WFS_CPU does not prevent it. */
bool cpu_runs(enum cpu_level level);
const char *cpu_level_name(enum cpu_level level);

enum dtype_kind {
    DTYPE_FLOAT,   /* floating point, F4 and F6 included */
    DTYPE_INTEGER, /* BOOL included: a byte that is 0 or not; packed ones (sub_byte.h) */
    DTYPE_COMPLEX, /* has no F32 value */
    DTYPE_BLOCK,   /* quantized in blocks along a row: a row holds whole blocks */
};

enum { GGML_TYPE_NONE = -1 };

/* Bytes of a block. */
struct block_part {
    uint8_t offset, length;
};

struct dtype {
    const char *name; /* spelled as in safetensors or ggml: "BF16", "Q4_K" */
    /* the file in tensors/NAME/ with the tensor in this dtype: "bf16"; NULL: none */
    const char *view_name;
    const char *numpy; /* descr of a .npy header, "<f4"; NULL: numpy has no such type */
    enum dtype_kind kind;
    uint16_t block_elements;
    uint16_t block_bytes;
    int16_t ggml_type; /* type id in GGUF, or GGML_TYPE_NONE */
    uint8_t n_scales;  /* number of F16 scales in a block, which must be finite */
    uint8_t scale_offset[2];
    /* reports whether a block's scales are finite, for a scale in several pieces; NULL: see n_scales */
    bool (*scales_finite)(const void *block);
    bool weighs_rows;     /* encode_weighted needs mean_squares */
    uint16_t encode_cost; /* approximate picoseconds per element of the best kernel on one core, to decide on threads */

    /* Portable kernels at CPU_PORTABLE, and faster ones; a missing one falls back to those of lower levels. Without
     * decode, values cannot be shown as numbers. Without encode, the type is a target only with importance, or never.
     */
    struct kernels kernels[CPU_LEVELS];

    /* How codes follow from scales, at each level like the other kernels, and which bytes of a block are its scales,
     * minimums included; the other bytes are codes. NULL and 0: codes do not follow from scales. */
    codes_function *codes[CPU_LEVELS];
    struct block_part scale_parts[2];
    const struct scale_form *scale_form; /* of these types */
};

/* A kernel for x86-64 alone, and one for 64-bit ARM alone. */
#if defined(__x86_64__)
#define ON_X86(kernel) kernel
#else
#define ON_X86(kernel) NULL
#endif
#if defined(__aarch64__)
#define ON_ARM(kernel) kernel
#else
#define ON_ARM(kernel) NULL
#endif

#define FOR_AVX2   __attribute__((target("avx2,fma,f16c"), flatten))
#define FOR_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi"), flatten))

/* Defines NAME_portable and, for x86-64, NAME_avx2 and NAME_avx512 from the inline function NAME by `define_at`:
 * DEFINE_DECODER_AT or DEFINE_ENCODER_AT. The compiler vectorizes its loop for each level, with the same results. */
#if defined(__x86_64__)
#define DEFINE_LEVELS(define_at, name)                                                                                 \
    define_at(name, portable) define_at(name, avx2, FOR_AVX2) define_at(name, avx512, FOR_AVX512)
#else
#define DEFINE_LEVELS(define_at, name) define_at(name, portable)
#endif

/* Defines NAME_decode over many blocks of `elements` values in `bytes` bytes from NAME_decode_block. */
#define DEFINE_BLOCK_DECODER(name, elements, bytes)                                                                    \
    static void name##_decode(const void *blocks, float *values, size_t n_blocks)                                      \
    {                                                                                                                  \
        for (size_t i = 0; i < n_blocks; i++)                                                                          \
            name##_decode_block((const uint8_t *)blocks + i * (bytes), values + i * (elements));                       \
    }

#define DEFINE_DECODER_AT(name, level, ...)                                                                            \
    __VA_ARGS__ static void name##_##level(const void *blocks, float *values, size_t n_blocks)                         \
    {                                                                                                                  \
        name(blocks, values, n_blocks);                                                                                \
    }
#define DEFINE_ENCODER_AT(name, level, ...)                                                                            \
    __VA_ARGS__ static void name##_##level(const float *values, void *blocks, size_t n_blocks)                         \
    {                                                                                                                  \
        name(values, blocks, n_blocks);                                                                                \
    }

/* Defines NAME_decode_portable, NAME_decode_avx2 and NAME_decode_avx512 from an inline NAME_decode_block whose
 * arguments are `restrict`. */
#define DEFINE_BLOCK_DECODERS(name, elements, bytes)                                                                   \
    static inline void name##_decode(const uint8_t *blocks, float *values, size_t n_blocks)                            \
    {                                                                                                                  \
        for (size_t i = 0; i < n_blocks; i++)                                                                          \
            name##_decode_block(blocks + i * (bytes), values + i * (elements));                                        \
    }                                                                                                                  \
    DEFINE_LEVELS(DEFINE_DECODER_AT, name##_decode)

/* The fields that most block types have in common. */
#define BLOCK_DTYPE(prefix, upper, id, elements, bytes)                                                                \
    .name = upper, .view_name = #prefix, .kind = DTYPE_BLOCK, .block_elements = (elements), .block_bytes = (bytes),    \
    .ggml_type = (id)

/* Returns the best kernels of `dtype` at `level` or below. */
struct kernels dtype_kernels_at(const struct dtype *dtype, enum cpu_level level);

/* Returns the best kernels for this processor. */
struct kernels dtype_kernels(const struct dtype *dtype);

/* All dtypes, NULL at the end; the order is the one in which views are listed. */
extern const struct dtype *const dtypes[];

/* Returns the dtype with exactly this name or GGUF type id; NULL if there is none. */
const struct dtype *dtype_by_name(const char *name);
const struct dtype *dtype_by_ggml_type(uint32_t ggml_type);

/* Returns the blocks that hold `n_elements` elements; only packed integers (sub_byte.h) may end inside the last one. */
static inline uint64_t dtype_blocks(const struct dtype *dtype, uint64_t n_elements)
{
    return n_elements / dtype->block_elements + (n_elements % dtype->block_elements > 0);
}

/* Returns the bytes of those blocks. */
static inline uint64_t dtype_bytes(const struct dtype *dtype, uint64_t n_elements)
{
    return dtype_blocks(dtype, n_elements) * dtype->block_bytes;
}

/* Types that code names directly. */
extern const struct dtype f32_dtype, f16_dtype, bf16_dtype, f64_dtype, u8_dtype, i32_dtype, i64_dtype, q4_0_dtype,
    f8_e4m3_dtype;

/* Encodings: a dtype with the rule and the importance that its encoder uses.
 *
 * Most dtypes have one encoder. A rule is another encoder for the same blocks. Many encoders can also weight errors by
 * the importance of columns. */

struct rule {
    const char *name;
    encode_function *encode[CPU_LEVELS]; /* a missing level falls back to the lower one, as for dtypes */
};

struct encoding {
    const struct dtype *dtype;
    const struct rule *rule; /* NULL: the dtype's own */

    /* How much each column of a tensor's rows matters: those of the first matrix, of the second ..., since stacked
     * matrices (experts) have columns of their own. NULL: all columns matter alike. */
    const float *importance;

    const char *tensor; /* name, for messages; NULL: unknown */
};

/* Returns the encoding of `dtype` with its own encoder and no importance. */
static inline struct encoding encoding_of(const struct dtype *dtype)
{
    return (struct encoding){.dtype = dtype};
}

/* Returns the best kernels at `level` or below; encode_weighted is NULL if the encoding has no importance. */
struct kernels encoding_kernels_at(struct encoding encoding, enum cpu_level level);

/* Returns the best kernels for this processor. */
struct kernels encoding_kernels(struct encoding encoding);

/* Q4_0 as some engines quantize at load time: d = amax / 7, round half away from zero, clamp to -8..7. */
extern const struct rule q4_0_absmax7_rule;

/* What an encoding changes in values: sums over as many runs as are measured. */
struct loss {
    double squares; /* of the differences */
    double values;  /* squares of the exact values */
    double weights; /* of all elements, which the other two sums are weighted by; without weights each element has 1 */
    double largest; /* difference, not weighted */
};

/* Adds `n` values and what they became. `weights` has one for each; NULL: all are 1. */
void loss_add(struct loss *loss, const float *exact, const float *stored, size_t n, const float *weights);

/* Returns the root mean square of the differences as a share of that of the values; 0 if all values are 0. */
double loss_relative(const struct loss *loss);
