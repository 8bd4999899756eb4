/* Patterns of modules. Expected values: re.match() of Python, as match_name() of compressed-tensors calls it. */
#include "models/engines/ct_ignored.h"

#include "tests/unit/check.h"

#include <string.h>

static const struct {
    const char *pattern, *module;
    bool is_ignored;
} matches[] = {
    {"lm_head", "lm_head", true},
    {"lm_head", "model.lm_head", false},
    {"lm_head", "lm_head2", false},
    {"re:.*gate$", "model.layers.0.mlp.gate", true},
    {"re:.*gate$", "model.layers.0.mlp.gate_proj", false},
    {"re:gate$", "model.layers.0.mlp.gate", false},
    {"re:model", "model.layers.0.mlp.gate", true},
    {"re:", "anything", true},
    {"re:model\\.layers\\.[01]\\.", "model.layers.1.mlp", true},
    {"re:model\\.layers\\.[01]\\.", "model.layers.10.mlp", false},
};

static const struct {
    const char *pattern, *reason; /* part of the message; NULL: the pattern is valid */
} checks[] = {
    {"lm_head", NULL}, {"re:a{1}.*\\.b$", NULL}, {"re:(", "at 1"},      {"re:[", "at 1"},
    {"", "empty"},     {"a b", "blanks"},        {"it's", "quotation"}, {"\xc3\xa9", "ASCII"},
};

int main(void)
{
    struct error error;
    for (size_t i = 0; i < sizeof matches / sizeof *matches; i++) {
        struct arena *arena = arena_new();
        const char *const patterns[] = {"nothing", matches[i].pattern, NULL};
        const struct ct_ignored *ignored = ct_ignored_new(arena, patterns, &error);
        CHECK(ignored != NULL &&
              ct_is_ignored(ignored, matches[i].module, strlen(matches[i].module)) == matches[i].is_ignored);
        arena_free(arena);
    }
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        bool good = ct_ignored_check(checks[i].pattern, &error);
        CHECK(good == (checks[i].reason == NULL) && (good || strstr(error.message, checks[i].reason) != NULL));
    }
    return check_done();
}
