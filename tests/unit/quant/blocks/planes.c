/* Planes against the plainest loop that gives them: byte by byte, at every level of the processor, for counts that
 * leave a rest and at odd addresses. */
#include "quant/blocks/planes.h"

#include "base/checked.h"
#include "tests/unit/quant/levels.h"

#include <stdlib.h>

enum { MOST = 200, ROOM = 16 };

static uint64_t state = 3;

static unsigned char random_byte(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned char)(state >> 56);
}

/* Returns byte `j` of a number that is rotated to the left. */
static unsigned char expected_byte(const unsigned char *number, unsigned width, unsigned rotation, unsigned j)
{
    uint64_t value = read_le(number, width), top = value >> (8 * width - 1) & 1;
    if (rotation == 1)
        value = value << 1 | top;
    return (unsigned char)(value >> 8 * j);
}

static bool splits_and_joins(enum cpu_level level, unsigned width, unsigned rotation, size_t n, size_t odd)
{
    static unsigned char numbers[MOST * 8 + ROOM], planes[MOST * 8 + ROOM], joined[MOST * 8 + ROOM];
    const struct planes_kernels *kernels = planes_kernels_at(width, level);
    for (size_t i = 0; i < sizeof numbers; i++) {
        numbers[i] = random_byte();
        planes[i] = joined[i] = 0xA5;
    }
    kernels->split(numbers + odd, n, rotation, planes + odd);
    kernels->join(planes + odd, n, rotation, joined + odd);
    bool equal = memcmp(joined + odd, numbers + odd, n * width) == 0;
    for (size_t i = 0; i < n; i++)
        for (unsigned j = 0; j < width; j++)
            equal &= planes[odd + i + j * n] == expected_byte(numbers + odd + i * width, width, rotation, j);
    for (size_t i = odd + n * width; i < sizeof planes; i++)
        equal &= planes[i] == 0xA5 && joined[i] == 0xA5;
    return equal;
}

static void check_level(enum cpu_level level)
{
    char name[64];
    for (unsigned width = 2; width <= 8; width *= 2)
        for (unsigned rotation = 0; rotation < 2; rotation++) {
            bool equal = true;
            for (size_t n = 0; n <= MOST; n++)
                equal &= splits_and_joins(level, width, rotation, n, n % 7);
            snprintf(name, sizeof name, "width %u, rotated by %u, %s", width, rotation, cpu_level_name(level));
            CHECK_NAMED(equal, name);
        }
}

int main(void)
{
    for (enum cpu_level level = CPU_PORTABLE; level < CPU_LEVELS; level++)
        if (level_runs(level, "planes"))
            check_level(level);
    return check_done();
}
