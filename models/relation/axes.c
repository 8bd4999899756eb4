#include "models/relation/axes.h"

#include "base/text.h"

#include <ctype.h>
#include <string.h>

enum { MAX_DEPTH = 8, MAX_FACTORS = 256 };

struct parser {
    struct arena *arena;
    const char *text, *at;
    struct rearrangement *result;
    struct error *error;
    unsigned depth, n_factors, n_groups;
};

static bool fail(const struct parser *parser, const char *at, const char *reason)
{
    return error_set(parser->error, "'%.200s': column %zu: %s", parser->text, (size_t)(at - parser->text) + 1, reason);
}

static bool is_name_start(char c)
{
    return isalpha((unsigned char)c) || c == '_';
}

static void skip_blanks(struct parser *parser)
{
    while (*parser->at == ' ' || *parser->at == '\t' || *parser->at == '\n')
        parser->at++;
}

/* Returns the number of a name, a new number for a new name. */
static bool name_number(struct parser *parser, const char *name, size_t length, unsigned *ret_number)
{
    struct rearrangement *result = parser->result;
    unsigned number = 0;
    while (number < result->n_names &&
           (strncmp(result->names[number], name, length) != 0 || result->names[number][length] != '\0'))
        number++;
    if (number == AXES_MAX)
        return fail(parser, name, "more than 32 names");
    if (number == result->n_names)
        result->names[result->n_names++] = arena_strndup(parser->arena, name, length);
    *ret_number = number;
    return true;
}

static struct factor *append_factor(struct parser *parser, struct factor **first, struct factor **last)
{
    struct factor *factor = arena_alloc(parser->arena, sizeof *factor);
    factor->previous = *last;
    if (*last != NULL)
        (*last)->next = factor;
    else
        *first = factor;
    return *last = factor;
}

static bool parse_factor(struct parser *parser, struct factor *factor, uint32_t *names);

/* Parses the factors of a product; *names are the names so far, none of which may come again. */
static bool parse_product(struct parser *parser, struct section *section, uint32_t *names)
{
    for (skip_blanks(parser); *parser->at != '\0' && *parser->at != ')' && *parser->at != '+'; skip_blanks(parser)) {
        const char *start = parser->at;
        uint32_t own = 0;
        if (!parse_factor(parser, append_factor(parser, &section->first, &section->last), &own))
            return false;
        if ((own & *names) != 0)
            return fail(parser, start, "a name comes twice in one product");
        *names |= own;
    }
    return section->first != NULL || fail(parser, parser->at, "a name is missing");
}

static bool parse_group(struct parser *parser, struct factor *factor, uint32_t *names)
{
    const char *start = parser->at++;
    struct section **link = &factor->sections;
    factor->kind = FACTOR_GROUP;
    factor->number = parser->n_groups++;
    if (parser->n_groups > AXES_MAX_GROUPS || ++parser->depth > MAX_DEPTH)
        return fail(parser, start, "too many groups");
    for (;;) {
        uint32_t own = 0;
        *link = arena_alloc(parser->arena, sizeof **link);
        if (++factor->n_sections > AXES_MAX_SECTIONS)
            return fail(parser, parser->at, "more than 64 sections");
        if (!parse_product(parser, *link, &own))
            return false;
        *names |= own;
        link = &(*link)->next;
        if (*parser->at != '+')
            break;
        parser->at++;
    }
    parser->depth--;
    return *parser->at++ == ')' || fail(parser, start, "the group is not closed");
}

static bool parse_factor(struct parser *parser, struct factor *factor, uint32_t *names)
{
    const char *start = parser->at;
    if (++parser->n_factors > MAX_FACTORS)
        return fail(parser, start, "too many names");
    if (*start == '(')
        return parse_group(parser, factor, names);
    if (*start == '1' && !isalnum((unsigned char)start[1])) {
        factor->kind = FACTOR_ONE;
        parser->at++;
        return true;
    }
    if (!is_name_start(*start))
        return fail(parser, start, "expected a name, 1, ... or (");
    while (isalnum((unsigned char)*parser->at) || *parser->at == '_')
        parser->at++;
    if (!name_number(parser, start, (size_t)(parser->at - start), &factor->number))
        return false;
    *names |= UINT32_C(1) << factor->number;
    return true;
}

static bool parse_dimension(struct parser *parser, struct axes *axes)
{
    const char *start = parser->at;
    uint32_t own = 0;
    struct factor *factor = append_factor(parser, &axes->first, &axes->last);
    axes->n_dimensions++;
    if (text_starts_with(parser->at, "...")) {
        if (axes->has_rest)
            return fail(parser, start, "... comes twice");
        factor->kind = FACTOR_REST;
        axes->has_rest = true;
        parser->at += 3;
        return true;
    }
    if (!parse_factor(parser, factor, &own))
        return false;
    if ((own & axes->names) != 0)
        return fail(parser, start, "a name comes twice in one tensor");
    axes->names |= own;
    return true;
}

static bool at_end_of_tensor(const struct parser *parser)
{
    return *parser->at == '\0' || *parser->at == ',' || text_starts_with(parser->at, "->");
}

static bool parse_tensor(struct parser *parser, struct axes *axes)
{
    const char *start, *end;
    skip_blanks(parser);
    start = end = parser->at;
    parser->n_groups = 0;
    while (!at_end_of_tensor(parser)) {
        if (!parse_dimension(parser, axes))
            return false;
        end = parser->at;
        skip_blanks(parser);
    }
    axes->text = arena_strndup(parser->arena, start, (size_t)(end - start));
    return true;
}

static bool parse_side(struct parser *parser, enum direction side)
{
    struct rearrangement *result = parser->result;
    for (;;) {
        if (result->n_tensors[side] == AXES_MAX_TENSORS)
            return fail(parser, parser->at, "more than 16 tensors");
        struct axes *axes = &result->sides[side][result->n_tensors[side]++];
        if (!parse_tensor(parser, axes))
            return false;
        result->on_side[side] |= axes->names;
        if (*parser->at != ',')
            return true;
        parser->at++;
    }
}

/* Checks the open dimensions, which all tensors share: either all have some or none. */
static bool check_rests(struct parser *parser)
{
    const struct rearrangement *result = parser->result;
    bool has_rest = result->sides[FORWARD][0].has_rest;
    for (unsigned side = FORWARD; side <= BACKWARD; side++)
        for (unsigned i = 0; i < result->n_tensors[side]; i++)
            if (result->sides[side][i].has_rest != has_rest)
                return fail(parser, parser->text, "some tensors have ... and some have not");
    return true;
}

static bool sides_are_same(const struct rearrangement *result)
{
    if (result->n_tensors[FORWARD] != result->n_tensors[BACKWARD])
        return false;
    for (unsigned i = 0; i < result->n_tensors[FORWARD]; i++)
        if (strcmp(result->sides[FORWARD][i].text, result->sides[BACKWARD][i].text) != 0)
            return false;
    return true;
}

static bool parse_sides(struct parser *parser)
{
    struct rearrangement *result = parser->result;
    if (!parse_side(parser, FORWARD))
        return false;
    if (*parser->at == '\0') {
        memcpy(result->sides[BACKWARD], result->sides[FORWARD], sizeof result->sides[FORWARD]);
        result->n_tensors[BACKWARD] = result->n_tensors[FORWARD];
        result->on_side[BACKWARD] = result->on_side[FORWARD];
    } else {
        parser->at += 2;
        if (!parse_side(parser, BACKWARD))
            return false;
        if (*parser->at != '\0')
            return fail(parser, parser->at, "a second ->");
    }
    result->is_identity = sides_are_same(result);
    return check_rests(parser);
}

const struct rearrangement *rearrangement_parse(struct arena *arena, const char *text, struct error *error)
{
    struct parser parser = {.arena = arena, .text = text, .at = text, .error = error};
    parser.result = arena_alloc(arena, sizeof *parser.result);
    parser.result->text = arena_strdup(arena, text);
    return parse_sides(&parser) ? parser.result : NULL;
}

static uint32_t names_of(const struct factor *first)
{
    uint32_t names = 0;
    for (const struct factor *factor = first; factor != NULL; factor = factor->next) {
        names |= factor->kind == FACTOR_AXIS ? UINT32_C(1) << factor->number : 0;
        for (const struct section *section = factor->sections; section != NULL; section = section->next)
            names |= names_of(section->first);
    }
    return names;
}

/* Returns the axes of a product that are neither in `kept` nor in a section without any axis of `kept`. */
static uint32_t lost_axes(const struct factor *first, uint32_t kept)
{
    uint32_t lost = 0;
    for (const struct factor *factor = first; factor != NULL; factor = factor->next) {
        lost |= factor->kind == FACTOR_AXIS ? (UINT32_C(1) << factor->number) & ~kept : 0;
        for (const struct section *section = factor->sections; section != NULL; section = section->next)
            if (factor->n_sections == 1 || (names_of(section->first) & kept) != 0)
                lost |= lost_axes(section->first, kept);
    }
    return lost;
}

uint32_t rearrangement_parts(const struct rearrangement *rearrangement)
{
    uint32_t parts = 0;
    for (unsigned i = 0; i < rearrangement->n_tensors[FORWARD]; i++)
        parts |= lost_axes(rearrangement->sides[FORWARD][i].first, rearrangement->on_side[BACKWARD]);
    return parts;
}

int rearrangement_axis(const struct rearrangement *rearrangement, const char *name)
{
    for (unsigned i = 0; i < rearrangement->n_names; i++)
        if (strcmp(rearrangement->names[i], name) == 0)
            return (int)i;
    return -1;
}
