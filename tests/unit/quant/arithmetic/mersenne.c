/* mt19937 from any place. Expected words: numpy's RandomState. */
#include "quant/arithmetic/torch_functions.h"

#include "tests/unit/check.h"

#include <pthread.h>

enum { MANY = 3000 };

static const struct place {
    uint64_t at;
    uint32_t word;
} places[] = {{0, 0x5fe1dc66},       {1, 0xcbea3db3},       {2, 0xf362035c},       {623, 0x40386559},
              {624, 0x067d62e4},     {1247, 0x3c72220d},    {1248, 0x9e45f1d9},    {4193279, 0x6c113bfc},
              {4193280, 0x6913cdff}, {9999999, 0x35c7895e}, {10000000, 0x84436478}};

enum { N_PLACES = sizeof places / sizeof *places };

/* Reads the places in an order that begins with the last, twice. */
static void check_places(struct mersenne *mersenne)
{
    for (int i = 0; i < 2 * N_PLACES; i++) {
        const struct place *place = &places[(N_PLACES - 1 + i * 7) % N_PLACES];
        uint32_t word;
        mersenne_read(mersenne, place->at, 1, &word);
        CHECK(word == place->word);
    }
}

static void check_runs(struct mersenne *mersenne)
{
    static uint32_t whole[MANY], part[MANY];
    mersenne_read(mersenne, 4192000, MANY, whole);
    CHECK(whole[1279] == 0x6c113bfc && whole[1280] == 0x6913cdff);
    for (uint64_t first = 0; first < MANY; first += 311) {
        mersenne_read(mersenne, 4192000 + first, MANY - first, part);
        CHECK(memcmp(part, whole + first, (MANY - first) * sizeof *part) == 0);
    }
}

static void *read_all(void *context)
{
    static uint32_t dummy;
    uint32_t words[64];
    for (int i = 0; i < 200; i++)
        mersenne_read(context, (uint64_t)(i * 7919 % 1000) * 5000, 64, words);
    return words[0] == 0 ? &dummy : NULL;
}

static void check_threads(struct mersenne *mersenne)
{
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, read_all, mersenne);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    check_places(mersenne);
}

int main(void)
{
    struct arena *arena = arena_new();
    uint32_t words[2];
    struct mersenne *mersenne = mersenne_new(arena, 42);
    check_places(mersenne);
    check_runs(mersenne);
    check_threads(mersenne_new(arena, 42));
    mersenne_read(mersenne_new(arena, 0), 0, 2, words);
    CHECK(words[0] == 0x8c7f0aac && words[1] == 0x97c4aa2f);
    mersenne_read(mersenne_new(arena, 0xffffffff), 0, 2, words);
    CHECK(words[0] == 0x18fe69a3 && words[1] == 0x1c924122);
    arena_free(arena);
    return check_done();
}
