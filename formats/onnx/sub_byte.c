#include "formats/onnx/sub_byte.h"

#include "quant/dependencies.h"

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
                                 unsigned rank, const uint64_t *shape)
{
    struct sub_byte *elements = arena_alloc(arena, sizeof *elements);
    view_init(&elements->view, arena, &sub_byte_op, dtype_by_name(is_signed ? "I8" : "U8"), rank, shape);
    elements->packed = packed;
    elements->bits = (uint8_t)bits;
    elements->is_signed = is_signed;
    return &elements->view;
}
