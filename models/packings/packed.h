/* Shared by packings: finds the parts of a weight, and reports parts that disagree.
 *
 * The names of parts begin like the key's name. The functions here add each part they find to the weight. Shapes come
 * from a file: a packing checks every shape against the others before it makes a view of the part. Errors name the
 * part, its dtype and shape, and the fact that disagrees. */
#pragma once

#include "base/checked.h"
#include "models/packings/packing.h"
#include "quant/views/unpack.h"
#include "quant/views/view.h"

struct packed {
    const struct packing_input *input;
    const struct tensor *key;
    const struct packing_key *spelling; /* the packing's spelling that the key matches */
    size_t stem;                        /* the length of the start that the key's name shares with its parts' names */
    struct unpacked *unpacked;
    struct error *error;
};

/* Kinds of dtypes that a part may have. */
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

/* Begins the weight of a key and names the weight. The key becomes the first part; `unpacked->parts` must have room for
 * PACKING_MAX_PARTS. */
struct packed packed_begin(const struct packing_input *input, const struct tensor *key,
                           const struct packing_key *spelling, struct unpacked *unpacked, struct error *error);

/* Finds the part named by the stem and `suffix`; *ret_view is NULL if it is missing. Fails if its kind is none of
 * `kinds`. */
bool packed_find(struct packed *packed, const char *suffix, unsigned kinds, const struct view **ret_view);

/* Like packed_find() for a required part: returns NULL, with an error, if it is missing. */
const struct view *packed_need(struct packed *packed, const char *suffix, unsigned kinds);

/* Like packed_need() for a matrix that must have this shape. */
const struct view *packed_matrix(struct packed *packed, const char *suffix, unsigned kinds, uint64_t n_rows,
                                 uint64_t n_columns);

/* Reports whether a view is a matrix with at least one row and one column. */
bool packed_is_matrix(const struct view *view);

/* Reports whether a part is a matrix of this shape; else sets the error. */
bool packed_check(const struct packed *packed, const char *suffix, const struct view *view, uint64_t n_rows,
                  uint64_t n_columns);

/* Sets the error "'PART' is DTYPE SHAPE, but ...", completed by the format; returns false. */
bool packed_misfit(const struct packed *packed, const char *suffix, const struct view *view, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Reads a required part of `n` integers, at most 8, which are the shapes of other parts. */
bool packed_integers(struct packed *packed, const char *suffix, unsigned kinds, int64_t *values, size_t n);

/* Returns the feature of compressed-tensors' groups that makes the converter refuse them; NULL: none. The converter
 * accepts one group with one of `strategies`, a list up to a NULL. */
const char *packed_beyond_groups(const struct packing_input *input, const char *const *strategies);

/* Reads the columns of a group from this key of quantization_config: -1 means all columns, and *ret_size is 0 if the
 * key is missing. Fails if the value is invalid. */
bool packed_group_size(const struct packed *packed, const char *key, uint64_t n_columns, uint64_t *ret_size);

/* Like packed_group_size() for the bits of an element, 1 to 8. */
bool packed_bits(const struct packed *packed, const char *key, uint64_t *ret_bits);

/* Fails if quantization_config has the key with a value other than `stored`, the tensors' value. */
bool packed_agrees(const struct packed *packed, const char *key, uint64_t stored);

/* Returns a whole number above 0 from `config`; 0 if it has none. */
uint64_t packed_number(const struct json *config, const char *key);

/* Returns the codes of a matrix that is cut by rows into slices which share words, the first slice in the most
 * significant bits: all slices, below each other. */
const struct view *packed_slices(struct arena *arena, const struct view *words, unsigned bits, unsigned n_slices);

/* Returns elements [0, n_rows) x [0, n_columns) of a matrix. */
const struct view *packed_cut(struct arena *arena, const struct view *view, uint64_t n_rows, uint64_t n_columns);

/* Returns the powers of 2 for bytes that hold exponents with a bias of 127; 255 is infinity, not NaN. Byte 0 is
 * `least`: 0x1p-127F, or 0 for libraries that have no powers below 2^-126. */
const struct view *packed_powers(struct arena *arena, const struct view *scales, float least);

/* Folds a factor for each column of inputs into the columns of the values, matrices of any rank. Does nothing if the
 * part is missing; fails if it does not hold one number for each column. */
bool packed_scale_inputs(struct packed *packed, const char *suffix, const struct view **values);

/* Dequantizes MXFP4: bytes of two elements, the first in the low half, in blocks of 32 columns with one packed_powers()
 * each. The caller has checked the columns of `scales`. */
const struct view *packed_mxfp4(struct arena *arena, const struct view *bytes, const struct view *scales);

/* Like packed_mxfp4(), but as ggml's blocks: bytes [..., n, 16] and exponents [..., n] become MXFP4 [..., n * 32].
 * Returns NULL if the two shapes disagree. */
const struct view *packed_mxfp4_blocks(struct arena *arena, const struct view *bytes, const struct view *scales);

/* Dequantizes MXFP6: four codes of 6 bits in three bytes, the first in the lowest bits, E2M3 or E3M2 by the bits of the
 * mantissa, in blocks of 32 columns with one packed_powers() each. The caller has checked the columns of `scales`. */
const struct view *packed_mxfp6(struct arena *arena, const struct view *bytes, const struct view *scales,
                                unsigned mantissa_bits);

/* Rotates an unpacked weight back if quantization_config says that inputs are rotated, as AutoRound's `rotation_config`
 * does for MXFP4, MXFP8 and NVFP4: every linear module but lm_head multiplies groups of its inputs by a Hadamard
 * matrix, or by the module's own, B.hadamard_matrix. Then the weight has no blocks. Fails if the rotation is not
 * supported. */
bool rotation_undo(struct packed *packed);

/* Packed weights as codes and the numbers of their groups, for outputs that keep both: a weight is a view of its values
 * that remembers them. */

/* The parts of a weight whose groups lie along its rows, [..., rows, columns] with all rows below each other. Scales of
 * one byte are those of floating-point codes: exponents of 2 with a bias of 127, or E4M3. Otherwise codes are natural
 * numbers, and an element is code * scale + bias, or (code - zero) * scale. */
struct code_groups {
    const struct view
        *codes; /* U8 [rows, columns], below 2^bits; NULL: quantized in another way, and nothing else is set */
    const struct view *scales; /* [rows, groups]: U8, or F16, BF16 or F32 */
    const struct view *biases; /* [rows, groups], F16, BF16 or F32; NULL: there are zero points instead */
    const struct view *zeros;  /* [rows, groups], whole numbers in any dtype; NULL: all are 2^(bits - 1) */
    const struct view *factor; /* F32 [1], multiplies floating-point values; NULL: 1 */
    const struct view *order;  /* the group of each column, I32 or I64; NULL: neighbours, group_size each */
    uint64_t group_size;       /* columns; the last group may have fewer */
    uint8_t bits;
    bool is_transposed; /* the weight has the last two axes swapped: [..., columns, rows] */
    bool is_symmetric;  /* the weight declares that all zero points are 2^(bits - 1), which its zeros may contradict */
};

/* Returns `values` with their groups, which must live as long. */
const struct view *view_of_groups(struct arena *arena, const struct view *values, const struct code_groups *groups);

/* Returns the groups of such a view; NULL for any other view. */
const struct code_groups *groups_of(const struct view *view);

/* Packed weights as ggml's blocks that decode to exactly the same values: for elements made of a code, a 16-bit scale
 * and a zero point or offset, with scales for blocks of 32 columns. */

/* The formula of a matrix's elements: (code - middle) * scale, or code * scale + offset. */
struct repacking {
    const struct view *codes;            /* U8 [rows, columns], below 2^bits */
    const struct view *scales, *offsets; /* [rows, groups]; without offsets, NULL, the middle is 2^(bits - 1) */
    unsigned bits;
    uint64_t group_size;

    /* Stored zero points and groups, compared whenever blocks are read: reading fails for another zero point, or a
     * column of another group. NULL: not stored. */
    const struct view *zeros; /* U8 [rows, groups], all of them `zero` */
    uint8_t zero;
    const struct view *groups; /* by column: I32 or I64, in order */
};

/* Returns a view in Q4_0, Q4_1 or Q8_0; NULL if no such blocks are exact. */
const struct view *view_of_repacked(struct arena *arena, const struct repacking *repacking);

/* Reads all zero points and groups, and reports whether the blocks are right for them; true for any other view. */
bool view_repacked_holds(const struct view *view);
