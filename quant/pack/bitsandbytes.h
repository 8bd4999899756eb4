/* Weights quantized as bitsandbytes does on a CPU: 4 bits in blocks of the flattened weight, and 8 bits by row.
 *
 * All arithmetic is in F32. Views read nothing until they are read, and then whole blocks, or whole rows. NaN has the
 * highest code of 4 bits and the code 0 of 8 bits.
 *
 * Source: bitsandbytes, backends/default/ops.py: quantize_4bit and int8_vectorwise_quant. */
#pragma once

#include "quant/views/view.h"

enum { BNB_LEVELS = 16, BNB_BLOCK = 64 };

/* A type of 4 bits: the values of its codes, as fractions of a block's largest magnitude. */
extern const float bnb_nf4_levels[BNB_LEVELS], bnb_fp4_levels[BNB_LEVELS];

/* Returns the codes of BNB_BLOCK values a block, two in a byte, the first in the high half: U8 [(elements + 1) / 2, 1].
 * `levels` is one of the tables above. */
const struct view *view_bnb_codes(struct arena *arena, const struct view *weight, const float levels[BNB_LEVELS]);

/* Returns the largest magnitude of each block: F32 [blocks]. */
const struct view *view_bnb_maxima(struct arena *arena, const struct view *weight);

/* Returns the codes of a matrix, each row divided by its largest magnitude and times 127: I8, of the same shape. Values
 * are rounded to F16 first. */
const struct view *view_bnb_rows(struct arena *arena, const struct view *matrix);

/* Returns the largest magnitude of each row, rounded to F16: F32 [rows]. */
const struct view *view_bnb_row_maxima(struct arena *arena, const struct view *matrix);

/* Compute what these views have for `n` whole blocks whose values are at hand: BNB_BLOCK / 2 bytes of codes each, or
 * the largest magnitude. */
void bnb_block_codes(const float levels[BNB_LEVELS], const float *values, size_t n, uint8_t *out);
void bnb_block_maxima(const float *values, size_t n, uint8_t *out);

/* The double quantization of bitsandbytes: the largest magnitudes of a weight's blocks, less their mean, in 8 bits.
 *
 * The mean needs every value of the weight; the first read of any of the views finds it, and it is kept. It is the F64
 * sum divided by the number of blocks: torch adds in another order, which rarely changes the last bit.
 *
 * Source: bitsandbytes, functional.py: create_dynamic_map() and quantize_4bit() with compress_statistics;
 * csrc/cpu_ops.cpp rounds a quotient to one of 65536 places between -1 and 1 before it takes the nearest level. */

enum { BNB_NESTED_BLOCK = 256, BNB_NESTED_LEVELS = 256 };

/* Fills in the values of the codes, in order. */
void bnb_nested_levels(float ret_levels[BNB_NESTED_LEVELS]);

struct bnb_nested;

/* Makes the record of a weight, in `arena`. `maxima` is view_bnb_maxima(); `levels`, those above, must live as long. */
struct bnb_nested *bnb_nested_new(struct arena *arena, const struct view *maxima, const float *levels);

/* Returns the codes: U8 [blocks]. */
const struct view *view_bnb_nested_codes(struct arena *arena, struct bnb_nested *nested);

/* Returns the largest distance from the mean in each BNB_NESTED_BLOCK blocks: F32. */
const struct view *view_bnb_nested_maxima(struct arena *arena, struct bnb_nested *nested);

/* Returns the text `before`, the mean, and "}", filled up with blanks to a length that does not depend on the mean: U8.
 * `spell` writes a number of at most BNB_SPELLED bytes with the NUL; it returns `out`. */
enum { BNB_SPELLED = 40 };
typedef const char *bnb_spell(double value, char out[BNB_SPELLED]);
const struct view *view_bnb_nested_text(struct arena *arena, struct bnb_nested *nested, const char *before,
                                        bnb_spell *spell);
