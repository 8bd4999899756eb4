/* The kernels guess the same scales, whatever the values and the scales of blocks are. */
#include "quant/blocks/scale_guess.h"

#include "tests/unit/check.h"

#include <math.h>
#include <string.h>

enum { BLOCKS = 400, VALUES = BLOCKS * SCALE_GUESS_BLOCK, BLOCK_MOST = 256, SCALES_MOST = 16 };

static float values[VALUES];
static unsigned char blocks[BLOCKS * BLOCK_MOST];

static uint32_t random_bits(void)
{
    static uint32_t state = 1;
    state = state * 1664525 + 1013904223;
    return state >> 8;
}

/* Fills the blocks with weights; the later ones with any bits, among them infinities and NaNs. */
static void fill(void)
{
    static const float special[] = {NAN, INFINITY, -INFINITY, 0.f, -0.f, 1e-42f, 3e38f};
    for (size_t i = 0; i < VALUES; i++) {
        values[i] = ((float)random_bits() / 0x1p23f - 1) * 0.1f;
        if (i > VALUES / 2 && random_bits() % 16 == 0)
            values[i] = special[random_bits() % (sizeof special / sizeof *special)];
        else if (i > VALUES / 4 * 3)
            values[i] = i % 512 < 256 ? -fabsf(values[i]) : fabsf(values[i]);
    }
    for (size_t i = 0; i < sizeof blocks; i++)
        blocks[i] = (unsigned char)random_bits();
}

static void check(const struct dtype *dtype)
{
    static unsigned char wanted[BLOCKS * SCALES_MOST], made[BLOCKS * SCALES_MOST];
    const struct scale_guess *guess = scale_guess_of(dtype);
    memset(wanted, 0xa5, sizeof wanted);
    scale_guess_make_at(CPU_PORTABLE, guess, values, blocks, BLOCKS, wanted);
    for (int level = CPU_PORTABLE; level <= (int)cpu_level(); level++) {
        memset(made, 0xa5, sizeof made);
        scale_guess_make_at((enum cpu_level)level, guess, values, blocks, BLOCKS, made);
        CHECK_NAMED(memcmp(made, wanted, sizeof made) == 0, dtype->name);
    }
}

int main(void)
{
    fill();
    for (size_t i = 0; dtypes[i] != NULL; i++)
        if (scale_guess_of(dtypes[i]) != NULL)
            check(dtypes[i]);
    return check_done();
}
