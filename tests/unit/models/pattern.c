/* Patterns of tensor names. */
#include "models/tensors.h"
#include "tests/unit/check.h"

#define NONE UINT64_MAX

static const struct {
    const char *pattern, *name;
    bool matches;
    uint64_t first, second;
} rows[] = {
    {"lm_head", "lm_head", true, NONE, NONE},
    {"lm_head", "lm_head.weight", false},
    {"blk.{}.x", "blk.0.x", true, 0, NONE},
    {"blk.{}.x", "blk.123.x", true, 123, NONE},
    {"blk.{}.x", "blk..x", false},
    {"blk.{}.x", "blk.01.x", false}, /* not how numbers are written */
    {"blk.{}.x", "blk.-1.x", false},
    {"blk.{}.x", "blk.1000000000.x", false}, /* more layers than anything has */
    {"a.{}.b.{}.c", "a.4.b.17.c", true, 4, 17},
    {"a.{}.b.{}.c", "a.4.b.c", false},
    {"h.{}", "h.7", true, 7, NONE},
    {"h.{}", "h.7x", false},
    {"cls.*", "cls.predictions.bias", true, NONE, NONE},
    {"cls.*", "cls", false},
    {"a.{}.*", "a.3.b", true, 3, NONE},
};

int main(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t numbers[2];
        bool matches = pattern_match(rows[i].pattern, rows[i].name, strlen(rows[i].name), numbers);
        bool same_numbers = !matches || (numbers[0] == rows[i].first && numbers[1] == rows[i].second);
        CHECK_NAMED(matches == rows[i].matches && same_numbers, rows[i].name);
    }
    struct arena *arena = arena_new();
    CHECK_TEXT(pattern_fill(arena, "blk.{}.x", (const uint64_t[]){12, NONE}, ".weight"), "blk.12.x.weight");
    CHECK_TEXT(pattern_fill(arena, "a.{}.b.{}", (const uint64_t[]){0, 345}, ""), "a.0.b.345");
    CHECK_TEXT(pattern_fill(arena, "output", (const uint64_t[]){NONE, NONE}, ".bias"), "output.bias");
    arena_free(arena);
    return check_done();
}
