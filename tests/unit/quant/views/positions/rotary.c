/* Tables of rotary positions. Expected values: the hash of the table is from a file that TensorRT-LLM's converter
 * wrote (Phi-3-mini-4k-instruct, embed_positions_for_gpt_attention and rotary_inv_freq: all factors 1); the others are
 * numpy 1.26.4's, by the formula that quant/views/positions.h names. */
#include "quant/views/positions.h"

#include "base/encodings.h"
#include "base/little_endian.h"
#include "tests/unit/check.h"
#include "tests/unit/numbers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 32, POSITIONS = 4096 };

static void check_hash(const void *bytes, size_t length, const char *first_digits)
{
    char hex[SHA256_HEX + 1];
    sha256_hex(bytes, length, hex);
    hex[strlen(first_digits)] = '\0';
    CHECK_TEXT(hex, first_digits);
}

static void check_floats(const float *values, size_t n, const char *first_digits)
{
    float stored[COUNT];
    memcpy(stored, values, n * sizeof *values);
    little_endian(stored, n, sizeof *stored);
    check_hash(stored, n * sizeof *stored, first_digits);
}

static void check_converter(struct arena *arena)
{
    struct error error;
    float factors[COUNT];
    for (int i = 0; i < COUNT; i++)
        factors[i] = 1;
    const float *frequencies = rotary_frequencies(arena, 10000, factors, COUNT);
    check_floats(frequencies, COUNT, "734f9e6b629f7baccc4de81b7e8d2982");
    const struct view *view = view_rotary(arena, frequencies, COUNT, POSITIONS, 1);
    float *table = malloc(view->n_elements * sizeof *table);
    CHECK(view->rank == 2 && view->shape[0] == 1 && view->shape[1] == POSITIONS * COUNT * 2);
    CHECK(view_read(view, 0, view->n_elements, table, &error));
    check_hash(table, view->n_elements * sizeof *table, "a7fabb46885d129d446bd699ab4cec90");
    for (uint64_t first = 1; first < view->n_elements - 100; first += 9973) {
        float part[99];
        CHECK(view_read(view, first, 99, part, &error));
        CHECK(memcmp(part, table + first, sizeof part) == 0);
    }
    free(table);
}

/* 70000 positions of two frequencies: all angles are within the range of the polynomials. */
static void check_long(struct arena *arena)
{
    enum { LONG = 70000 };
    struct error error;
    const float factors[] = {1.0299999713897705f, 40.5f};
    const float *frequencies = rotary_frequencies(arena, 10000, factors, 2);
    float scale = rotary_scale(LONG, 4096), *table = malloc(LONG * 4 * sizeof *table);
    check_floats(frequencies, 2, "a78b54b45b0887ceac6fcb708aba6b71");
    CHECK(view_read(view_rotary(arena, frequencies, 2, LONG, scale), 0, LONG * 4, table, &error));
    check_hash(table, LONG * 4 * sizeof *table, "d9606b8a0dcf3ed20a44ce4f84a0db58");
    free(table);
}

static void check_scale(void)
{
    CHECK(rotary_scale(4096, 4096) == 1 && rotary_scale(4096, 8192) == 1);
    CHECK(rotary_scale(131072, 4096) == 1.19023811817169189453125f);
}

/* Beyond the range of the polynomials the C library computes: within a unit in the last place of the exact value. */
static void check_beyond(void)
{
    for (float angle = 71476.125f; angle < 200000; angle += 977.0625f) {
        float cosine = (float)cos((double)angle), sine = (float)sin((double)angle);
        CHECK(fabsf(rotary_cos(angle) - cosine) <= fabsf(nextafterf(cosine, 2) - cosine));
        CHECK(fabsf(rotary_sin(angle) - sine) <= 2 * fabsf(nextafterf(sine, 2) - sine));
    }
    CHECK(isnan(rotary_cos(INFINITY)) && isnan(rotary_sin(NAN)));
}

int main(void)
{
    struct arena *arena = arena_new();
    check_converter(arena);
    check_long(arena);
    check_scale();
    check_beyond();
    arena_free(arena);
    return check_done();
}
