/* The notation of rearrangements: what is made of a text, and what is refused. The values that move are compared in
 * rearrangement.c. */
#include "models/relation/axes.h"

#include "base/buffer.h"
#include "tests/unit/check.h"

#include <stdlib.h>

/* What was parsed, written anew: with one blank between names, and axes by their numbers. */

static void put_factor(struct buffer *out, const struct factor *factor);

static void put_section(struct buffer *out, const struct section *section)
{
    const struct factor *previous = NULL;
    for (const struct factor *factor = section->first; factor != NULL; factor = factor->next) {
        buffer_append_text(out, previous != NULL ? " " : "");
        put_factor(out, factor);
        buffer_append_text(out, factor->previous == previous ? "" : "?");
        previous = factor;
    }
    buffer_append_text(out, section->last == previous ? "" : "?");
}

static void put_factor(struct buffer *out, const struct factor *factor)
{
    unsigned n_sections = 0;
    if (factor->kind == FACTOR_AXIS)
        buffer_printf(out, "#%u", factor->number);
    if (factor->kind == FACTOR_ONE)
        buffer_append_text(out, "1");
    if (factor->kind == FACTOR_REST)
        buffer_append_text(out, "...");
    if (factor->kind != FACTOR_GROUP)
        return;
    buffer_printf(out, "%u(", factor->number);
    for (const struct section *section = factor->sections; section != NULL; section = section->next) {
        buffer_append_text(out, n_sections++ > 0 ? " + " : "");
        put_section(out, section);
    }
    buffer_append_text(out, n_sections == factor->n_sections ? ")" : "?)");
}

static const char *written(const struct rearrangement *rearrangement, char text[512])
{
    struct buffer out = {0};
    for (unsigned side = FORWARD; side <= BACKWARD; side++) {
        buffer_append_text(&out, side == BACKWARD ? " -> " : "");
        for (unsigned i = 0; i < rearrangement->n_tensors[side]; i++) {
            const struct axes *axes = &rearrangement->sides[side][i];
            buffer_append_text(&out, i > 0 ? ", " : "");
            put_section(&out, &(struct section){axes->first, axes->last, NULL});
            buffer_printf(&out, "/%u", axes->n_dimensions);
        }
    }
    snprintf(text, 512, "%.*s", (int)out.length, (const char *)out.bytes);
    buffer_free(&out);
    return text;
}

/* Texts, and what they are: axes counted as they first come, groups as they open, after a '/' the dimensions. */
static void shapes(struct arena *arena)
{
    static const struct {
        const char *text, *expected;
        bool is_identity;
    } rows[] = {
        {"a b -> b a", "#0 #1/2 -> #1 #0/2", false},
        {"\ta\nb->b  a ", "#0 #1/2 -> #1 #0/2", false},
        {"a b", "#0 #1/2 -> #0 #1/2", true},
        {"a b -> a b", "#0 #1/2 -> #0 #1/2", true},
        {"", "/0 -> /0", true},
        {"1 -> ", "1/1 -> /0", false},
        {"a1 _b 1", "#0 #1 1/3 -> #0 #1 1/3", true},
        {"(head half pair) ... -> (head pair half) ...", "0(#0 #1 #2) .../2 -> 0(#0 #2 #1) .../2", false},
        {"(q + k + k) c -> q c, k c, k c", "0(#0 + #1 + #1) #2/2 -> #0 #2/2, #1 #2/2, #1 #2/2", false},
        {"(a (b 1 + (c d)) 1) (e)", "0(#0 1(#1 1 + 2(#2 #3)) 1) 3(#4)/2 -> 0(#0 1(#1 1 + 2(#2 #3)) 1) 3(#4)/2", true},
        {"(a), (b) -> (a + b)", "0(#0)/1, 0(#1)/1 -> 0(#0 + #1)/1", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[512];
        struct error error;
        const struct rearrangement *parsed = rearrangement_parse(arena, rows[i].text, &error);
        CHECK_TEXT(parsed != NULL ? written(parsed, text) : error.message, rows[i].expected);
        CHECK_NAMED(parsed != NULL && parsed->is_identity == rows[i].is_identity, rows[i].text);
    }
}

static void names(struct arena *arena)
{
    struct error error;
    char text[] = "(head 1 c) ... rest -> head ... rest, c ... new";
    const struct rearrangement *parsed = rearrangement_parse(arena, text, &error);
    memset(text, 'x', strlen(text)); /* it has a copy */
    CHECK_TEXT(parsed->text, "(head 1 c) ... rest -> head ... rest, c ... new");
    CHECK_TEXT(parsed->sides[FORWARD][0].text, "(head 1 c) ... rest");
    CHECK_TEXT(parsed->sides[BACKWARD][0].text, "head ... rest");
    CHECK_TEXT(parsed->sides[BACKWARD][1].text, "c ... new");
    CHECK(parsed->n_names == 4);
    CHECK(rearrangement_axis(parsed, "head") == 0 && rearrangement_axis(parsed, "c") == 1);
    CHECK(rearrangement_axis(parsed, "rest") == 2 && rearrangement_axis(parsed, "new") == 3);
    CHECK(rearrangement_axis(parsed, "hea") == -1 && rearrangement_axis(parsed, "heads") == -1);
    CHECK(parsed->sides[FORWARD][0].names == 7 && parsed->on_side[FORWARD] == 7);
    CHECK(parsed->sides[BACKWARD][0].names == 5 && parsed->sides[BACKWARD][1].names == 10);
    CHECK(parsed->on_side[BACKWARD] == 15);
    CHECK(parsed->sides[FORWARD][0].has_rest && parsed->sides[BACKWARD][1].has_rest);
    parsed = rearrangement_parse(arena, "a, b", &error);
    CHECK(parsed->n_tensors[BACKWARD] == 2 && parsed->on_side[FORWARD] == 3 && parsed->on_side[BACKWARD] == 3);
}

static void refused(struct arena *arena)
{
    static const char *const rows[][2] = {
        {"a - b", "column 3: expected a name, 1, ... or ("},
        {"(a , b)", "column 4: expected a name, 1, ... or ("},
        {"(a -> b)", "column 4: expected a name, 1, ... or ("},
        {"a + b", "column 3: expected a name, 1, ... or ("},
        {"10", "column 1: expected a name, 1, ... or ("},
        {"a \xc3\xa9", "column 3: expected a name, 1, ... or ("},
        {"(a + b) (c b)", "column 9: a name comes twice in one tensor"},
        {"(a (b + a))", "column 4: a name comes twice in one product"},
        {"(+ a)", "column 2: a name is missing"},
        {"a ..., b -> a", "column 1: some tensors have ... and some have not"},
        {"a -> a ...", "column 1: some tensors have ... and some have not"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char expected[200];
        struct error error = {""};
        snprintf(expected, sizeof expected, "'%s': %s", rows[i][0], rows[i][1]);
        CHECK_NAMED(rearrangement_parse(arena, rows[i][0], &error) == NULL, rows[i][0]);
        CHECK_TEXT(error.message, expected);
    }
}

/* As many of something as there may be are taken, and one more is refused. `%u` in a part is its number. */
static void limits(struct arena *arena)
{
    static const struct {
        const char *first, *next, *last;
        unsigned most;
        const char *reason;
    } rows[] = {
        {"a%u", " a%u", "", AXES_MAX, "more than 32 names"},
        {"a", ",a", "", AXES_MAX_TENSORS, "more than 16 tensors"},
        {"a -> a", ",a", "", AXES_MAX_TENSORS, "more than 16 tensors"},
        {"(a", "+a", ")", AXES_MAX_SECTIONS, "more than 64 sections"},
        {"(1)", "(1)", "", AXES_MAX_GROUPS, "too many groups"},
        {"(1)", ",(1)", "", AXES_MAX_TENSORS, "more than 16 tensors"}, /* groups are of a tensor */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[1024];
        struct error error = {""};
        for (unsigned count = rows[i].most; count <= rows[i].most + 1; count++) {
            int length = snprintf(text, sizeof text, rows[i].first, 0);
            for (unsigned k = 1; k < count; k++)
                length += snprintf(text + length, sizeof text - (size_t)length, rows[i].next, k);
            snprintf(text + length, sizeof text - (size_t)length, "%s", rows[i].last);
            CHECK_NAMED((rearrangement_parse(arena, text, &error) != NULL) == (count == rows[i].most), text);
        }
        CHECK_NAMED(strstr(error.message, rows[i].reason) != NULL, rows[i].reason);
    }
}

int main(void)
{
    struct arena *arena = arena_new();
    shapes(arena);
    names(arena);
    refused(arena);
    limits(arena);
    arena_free(arena);
    return check_done();
}
