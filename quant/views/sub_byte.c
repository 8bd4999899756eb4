#include "quant/views/sub_byte.h"

#include "quant/views/dependencies.h"

/* Decodes integers of `bits` bits. */
static inline void decode(const uint8_t *bytes, float *values, size_t n_bytes, unsigned bits, bool is_signed)
{
    unsigned in_byte = 8 / bits, sign = is_signed ? 1u << (bits - 1) : 0, mask = (1u << bits) - 1;
    for (size_t i = 0; i < n_bytes; i++)
        for (unsigned j = 0; j < in_byte; j++)
            values[i * in_byte + j] = (float)((int)((bytes[i] >> (j * bits) & mask) ^ sign) - (int)sign);
}

#define SUB_BYTE(prefix, its_name, bits, is_signed)                                                                    \
    static inline void prefix##_decode(const uint8_t *bytes, float *values, size_t n_bytes)                            \
    {                                                                                                                  \
        decode(bytes, values, n_bytes, bits, is_signed);                                                               \
    }                                                                                                                  \
    DEFINE_LEVELS(DEFINE_DECODER_AT, prefix##_decode)                                                                  \
    const struct dtype prefix##_dtype = {                                                                              \
        .name = its_name,                                                                                              \
        .kind = DTYPE_INTEGER,                                                                                         \
        .block_elements = 8 / (bits),                                                                                  \
        .block_bytes = 1,                                                                                              \
        .ggml_type = GGML_TYPE_NONE,                                                                                   \
        .kernels[CPU_PORTABLE] = {.decode = prefix##_decode_portable},                                                 \
        .kernels[CPU_AVX2] = {.decode = ON_X86(prefix##_decode_avx2)},                                                 \
        .kernels[CPU_AVX512] = {.decode = ON_X86(prefix##_decode_avx512)},                                             \
    }

SUB_BYTE(i4, "I4", 4, true);
SUB_BYTE(u4, "U4", 4, false);
SUB_BYTE(i2, "I2", 2, true);
SUB_BYTE(u2, "U2", 2, false);

/* Elements in a byte each. */

struct sub_byte {
    struct view view;
    const struct view *packed;
    uint8_t bits;
    bool is_signed;
};

static unsigned char expand(const struct sub_byte *elements, unsigned code)
{
    unsigned sign = 1u << (elements->bits - 1);
    code &= 2 * sign - 1;
    return (unsigned char)(elements->is_signed ? (code ^ sign) - sign : code);
}

static bool sub_byte_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    enum { PIECE = 4096 };
    const struct sub_byte *elements = (const struct sub_byte *)view;
    unsigned char piece[PIECE], *to = out;
    uint64_t in_byte = 8 / elements->bits;
    while (count > 0) {
        uint64_t start = first / in_byte, skipped = first % in_byte;
        uint64_t n = count < PIECE * in_byte - skipped ? count : PIECE * in_byte - skipped;
        if (!view_read(elements->packed, start, (skipped + n + in_byte - 1) / in_byte, piece, error))
            return false;
        for (uint64_t i = skipped; i < skipped + n; i++)
            *to++ = expand(elements, (unsigned)piece[i / in_byte] >> (i % in_byte * elements->bits));
        first += n;
        count -= n;
    }
    return true;
}

static void sub_byte_depends(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    const struct sub_byte *elements = (const struct sub_byte *)view;
    uint64_t in_byte = 8 / elements->bits, start = first / in_byte, end = (first + count + in_byte - 1) / in_byte;
    view_depends(elements->packed, start, end - start, to);
}

static const struct view_op sub_byte_op = {.name = "sub-byte", .read = sub_byte_read, .depends = sub_byte_depends};

const struct view *view_sub_byte(struct arena *arena, const struct view *packed, unsigned bits, bool is_signed,
                                 const struct dtype *dtype, unsigned rank, const uint64_t *shape)
{
    struct sub_byte *elements = arena_alloc(arena, sizeof *elements);
    view_init(&elements->view, arena, &sub_byte_op, dtype, rank, shape);
    elements->packed = packed;
    elements->bits = (uint8_t)bits;
    elements->is_signed = is_signed;
    return &elements->view;
}

bool dtype_is_sub_byte(const struct dtype *dtype)
{
    return dtype->kind == DTYPE_INTEGER && dtype->block_elements > 1;
}

const struct view *view_expand(struct arena *arena, const struct view *view)
{
    bool is_signed = view->dtype == &i4_dtype || view->dtype == &i2_dtype;
    return view_sub_byte(arena, view, 8u / view->dtype->block_elements, is_signed,
                         is_signed ? dtype_by_name("I8") : &u8_dtype, view->rank, view->shape);
}
