/* Scales of sub-blocks that a quantized file probably has, given its weights and the scales of its blocks: those that
 * just cover the values. Searches end near them, so what a file has instead takes fewer bits than its scales. The
 * functions are part of the format of archives (docs/archive.md): their results never change. */
#pragma once

#include "quant/blocks/dtype.h"

enum { SCALE_GUESS_BLOCK = 256 /* values */ };

struct scale_guess {
    const struct dtype *dtype;
    uint8_t scale, minimum; /* offsets of F16 scales in a block; the same if the type has no minimums */
    uint8_t n_parts;        /* sub-blocks of 256 values */
    bool has_minimums;
    float levels;          /* codes between the lowest and the highest; without minimums, from 0 to the lowest */
    float lowest, highest; /* scale */
    uint8_t offset;        /* what is added to a scale that is stored */
    uint8_t masks[2];      /* of the numbers in a byte of scales */
};

/* Returns how scales of a type are guessed; NULL: they are not. */
const struct scale_guess *scale_guess_of(const struct dtype *dtype);

/* Guesses the scales of blocks that have the scales of whole blocks: a byte for each sub-block, as the plane of scales
 * has them (sources/archive/block_planes.h), and one for each minimum after those, unless they share a byte. */
void scale_guess_make(const struct scale_guess *guess, const float *values, const unsigned char *blocks,
                      size_t n_blocks, unsigned char *ret_scales);

/* The same by the fastest kernel of a level or below. All give the same bytes. */
void scale_guess_make_at(enum cpu_level level, const struct scale_guess *guess, const float *values,
                         const unsigned char *blocks, size_t n_blocks, unsigned char *ret_scales);

/* Guesses the scales of one block. */
typedef void scale_guess_block(const struct scale_guess *guess, const float *values, const unsigned char *block,
                               unsigned char *ret_scales);
scale_guess_block scale_guess_block_avx2;

/* Take guesses from scales, number by number, and add them again. */
void scale_guess_subtract(const struct scale_guess *guess, unsigned char *scales, const unsigned char *guesses,
                          size_t n);
void scale_guess_add(const struct scale_guess *guess, unsigned char *scales, const unsigned char *guesses, size_t n);
