/* What packings share: finding the parts of a weight, and saying what does not fit.
 *
 * Parts are tensors whose names begin as that of the key does. What is found is noted in the weight that is being put
 * together. Sizes come from a file: a packing compares every shape with what it follows from before it makes a view of
 * it. Errors name the part, what it is, and what it would have to be. */
#pragma once

#include "models/packings/packing.h"
#include "quant/unpack.h"

struct packed {
    const struct packing_input *input;
    const struct tensor *key;
    size_t stem; /* bytes of the key's name that those of its parts begin with */
    struct unpacked *unpacked;
    struct error *error;
};

/* What a part may hold. */
enum {
    F8 = 1,
    F16_F32 = 2,
    E8M0 = 4,
    U8 = 8,
    I8 = 16,
    I16 = 32,
    WORDS = 64 /* I32, U32 */,
    I64 = 128,
    BYTES = F8 | U8 | I8
};

/* Begins a weight whose key is the stem and `own`, which the key's name ends with; the key is the first part. */
struct packed packed_begin(const struct packing_input *input, const struct tensor *key, const char *own,
                           struct unpacked *unpacked, struct error *error);

/* The part that is called as the stem and `suffix`. Where there is none *ret_view is NULL. */
bool packed_find(struct packed *packed, const char *suffix, unsigned kinds, const struct view **ret_view);

/* The same where there has to be one; NULL where there is none. */
const struct view *packed_need(struct packed *packed, const char *suffix, unsigned kinds);

/* The same of a matrix of that shape. */
const struct view *packed_matrix(struct packed *packed, const char *suffix, unsigned kinds, uint64_t n_rows,
                                 uint64_t n_columns);

/* Whether a view is a matrix of rows and columns, of which it has at least one each. */
bool packed_is_matrix(const struct view *view);

/* Whether a part is a matrix of that shape. */
bool packed_check(const struct packed *packed, const char *suffix, const struct view *view, uint64_t n_rows,
                  uint64_t n_columns);

/* Says that the shape of a part does not fit, and why; false. */
bool packed_misfit(const struct packed *packed, const char *suffix, const struct view *view, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Reads a part that has to be there and to hold `n` integers, 8 at most; for parts that say what shape others are. */
bool packed_integers(struct packed *packed, const char *suffix, unsigned kinds, int64_t *values, size_t n);

/* The name of the weight: the stem and `suffix`. */
void packed_name(const struct packed *packed, const char *suffix);

/* What the converter refuses in the groups of compressed-tensors, which it takes one of, of certain strategies, up to a
 * NULL; NULL: nothing. */
const char *packed_beyond_groups(const struct packing_input *input, const char *const *strategies);

/* The columns of a group as quantization_config says under the key, -1 standing for all of them; 0 where it says
 * nothing. Fails where it says what no group can be of. */
bool packed_group_size(const struct packed *packed, const char *key, uint64_t n_columns, uint64_t *ret_size);

/* The bits of an element, the same way; fails where they are not a number of one digit. */
bool packed_bits(const struct packed *packed, uint64_t *ret_bits);

/* A number of quantization_config that is a whole one above 0; 0 where there is none. */
uint64_t packed_number(const struct json *config, const char *key);

/* Elements [0, n_rows) x [0, n_columns) of a matrix that may be larger. */
const struct view *packed_cut(struct arena *arena, const struct view *view, uint64_t n_rows, uint64_t n_columns);

/* MXFP4: bytes of two elements each, the first in the low half, in blocks of 32 columns with an exponent of 2 each,
 * whose bias is 127 and which has no code for what is not a number. The columns of scales fit those of bytes. */
const struct view *packed_mxfp4(struct arena *arena, const struct view *bytes, const struct view *scales);

/* The same as ggml's blocks: bytes [..., n, 16], exponents [..., n] become MXFP4 [..., n * 32]. NULL where the two
 * shapes are not of one weight. */
const struct view *packed_mxfp4_blocks(struct arena *arena, const struct view *bytes, const struct view *scales);

static inline uint64_t rounded_up(uint64_t number, uint64_t divisor)
{
    return number / divisor + (number % divisor != 0);
}
