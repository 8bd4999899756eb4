/* Patterns of tensor names. */
#include "models/relation/pattern.h"
#include "base/text.h"
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
    {"a.{}.b.{expert}.c", "a.4.b.17.c", true, 4, 17},
};

/* A name and the pattern that makes it have one skeleton. */
static void check_skeletons(void)
{
    static const struct {
        const char *name, *skeleton;
    } skeletons[] = {
        {"lm_head", "lm_head"},
        {"h.12.w1", "h.#.w#"},
        {"h.{}.w1", "h.#.w#"},
        {"a.{expert}.b", "a.#.b"},
        {"12", "#"},
        {"a.0.5.b", "a.#.#.b"},
        {"", ""},
        {"a{b", "a{b"},
    };
    char skeleton[16];
    for (size_t i = 0; i < sizeof skeletons / sizeof *skeletons; i++) {
        CHECK(pattern_skeleton(skeletons[i].name, strlen(skeletons[i].name), skeleton, sizeof skeleton));
        CHECK_TEXT(skeleton, skeletons[i].skeleton);
    }
    CHECK(!pattern_skeleton("a.rather.long.name", 18, skeleton, sizeof skeleton));
}

static void check_placeholders(void)
{
    size_t length;
    CHECK(pattern_count("a.{}.b.{expert}") == 2 && pattern_count("a") == 0);
    CHECK(pattern_number_name("a.{}.b", 0, &length) != NULL && length == 0);
    const char *name = pattern_number_name("a.{}.b.{expert}.c", 1, &length);
    CHECK(name != NULL && length == 6 && text_starts_with(name, "expert"));
    CHECK(pattern_number_name("a.{}.b", 1, &length) == NULL);
}

int main(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t numbers[PATTERN_NUMBERS];
        bool matches = pattern_match(rows[i].pattern, rows[i].name, strlen(rows[i].name), numbers);
        bool same_numbers = !matches || (numbers[0] == rows[i].first && numbers[1] == rows[i].second);
        CHECK_NAMED(matches == rows[i].matches && same_numbers, rows[i].name);
    }
    struct arena *arena = arena_new();
    CHECK_TEXT(pattern_fill(arena, "blk.{}.x", (const uint64_t[PATTERN_NUMBERS]){12}, ".weight"), "blk.12.x.weight");
    CHECK_TEXT(pattern_fill(arena, "a.{}.b.{}", (const uint64_t[PATTERN_NUMBERS]){0, 345}, ""), "a.0.b.345");
    CHECK_TEXT(pattern_fill(arena, "output", (const uint64_t[PATTERN_NUMBERS]){0}, ".bias"), "output.bias");
    CHECK_TEXT(pattern_fill(arena, "a.{}.b.{expert}", (const uint64_t[PATTERN_NUMBERS]){2, 3}, ""), "a.2.b.3");
    arena_free(arena);
    check_skeletons();
    check_placeholders();
    return check_done();
}
