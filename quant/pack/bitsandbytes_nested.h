/* The double quantization of bitsandbytes: the largest magnitudes of a weight's blocks, less their mean, in 8 bits.
 *
 * The mean needs every value of the weight; the first read of any of the views finds it, and it is kept. It is the F64
 * sum divided by the number of blocks: torch adds in another order, which rarely changes the last bit.
 *
 * Source: bitsandbytes, functional.py: create_dynamic_map() and quantize_4bit() with compress_statistics;
 * csrc/cpu_ops.cpp rounds a quotient to one of 65536 places between -1 and 1 before it takes the nearest level. */
#pragma once

#include "quant/views/view.h"

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
