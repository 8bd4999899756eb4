/* The front matter of README.md. Expected values: yaml.safe_load() of PyYAML 6.0.3, which the reference reads cards
 * with; where the front matter ends and what a line becomes, as str.splitlines() and its loader have it. */
#include "models/card/general.h"

#include "base/buffer.h"

#include "tests/unit/check.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

static const struct {
    const char *scalar;
    enum yaml_type type;
    const char *value; /* a float as Python's repr() has it */
} scalars[] = {
    {"no", YAML_BOOL, "0"},
    {"yes", YAML_BOOL, "1"},
    {"No", YAML_BOOL, "0"},
    {"YES", YAML_BOOL, "1"},
    {"on", YAML_BOOL, "1"},
    {"Off", YAML_BOOL, "0"},
    {"y", YAML_STRING, "y"},
    {"n", YAML_STRING, "n"},
    {"true", YAML_BOOL, "1"},
    {"False", YAML_BOOL, "0"},
    {"TRUE", YAML_BOOL, "1"},
    {"tRue", YAML_STRING, "tRue"},
    {"~", YAML_NULL, ""},
    {"null", YAML_NULL, ""},
    {"Null", YAML_NULL, ""},
    {"NULL", YAML_NULL, ""},
    {"nul", YAML_STRING, "nul"},
    {"1", YAML_INTEGER, "1"},
    {"-1", YAML_INTEGER, "-1"},
    {"+1", YAML_INTEGER, "1"},
    {"0", YAML_INTEGER, "0"},
    {"00", YAML_INTEGER, "0"},
    {"007", YAML_INTEGER, "7"},
    {"08", YAML_STRING, "08"},
    {"0x1F", YAML_INTEGER, "31"},
    {"0x", YAML_STRING, "0x"},
    {"0b101", YAML_INTEGER, "5"},
    {"0b", YAML_STRING, "0b"},
    {"0o17", YAML_STRING, "0o17"},
    {"1_000", YAML_INTEGER, "1000"},
    {"_1", YAML_STRING, "_1"},
    {"1_", YAML_INTEGER, "1"},
    {"1:30", YAML_INTEGER, "90"},
    {"1:60", YAML_STRING, "1:60"},
    {"-1:30:15", YAML_INTEGER, "-5415"},
    {"1.0", YAML_FLOAT, "1.0"},
    {"-1.5", YAML_FLOAT, "-1.5"},
    {"+1.5", YAML_FLOAT, "1.5"},
    {"1.", YAML_FLOAT, "1.0"},
    {".5", YAML_FLOAT, "0.5"},
    {".", YAML_STRING, "."},
    {"1e3", YAML_STRING, "1e3"},
    {"1.5e3", YAML_STRING, "1.5e3"},
    {"1.5e+3", YAML_FLOAT, "1500.0"},
    {"1.5E-3", YAML_FLOAT, "0.0015"},
    {"1e+3", YAML_STRING, "1e+3"},
    {".inf", YAML_FLOAT, "inf"},
    {"-.Inf", YAML_FLOAT, "-inf"},
    {".NaN", YAML_FLOAT, "nan"},
    {"+.inf", YAML_FLOAT, "inf"},
    {"inf", YAML_STRING, "inf"},
    {"nan", YAML_STRING, "nan"},
    {"190:20:30.15", YAML_FLOAT, "685230.15"},
    {"2024-01-31", YAML_DATE, ""},
    {"2024-1-3", YAML_STRING, "2024-1-3"},
    {"2001-12-14t21:59:43.10-05:00", YAML_DATE, ""},
    {"0.1.2", YAML_STRING, "0.1.2"},
    {"v1.0", YAML_STRING, "v1.0"},
    {"apache-2.0", YAML_STRING, "apache-2.0"},
    {"en", YAML_STRING, "en"},
    {"9223372036854775807", YAML_INTEGER, "9223372036854775807"},
    {"9223372036854775808", YAML_INTEGER, "9223372036854775807"},
    {"-9223372036854775808", YAML_INTEGER, "-9223372036854775807"},
    {"123456789012345678901", YAML_INTEGER, "9223372036854775807"},
    {"'no'", YAML_STRING, "no"},
    {"\"no\"", YAML_STRING, "no"},
    {"'1'", YAML_STRING, "1"},
    {"1,000", YAML_STRING, "1,000"},
    {"a:b", YAML_STRING, "a:b"},
    {"http://x/y", YAML_STRING, "http://x/y"},
};

static const struct yaml_value *read_card(struct arena *arena, const char *readme, const char *key)
{
    const struct yaml_value *card = NULL;
    struct error error = {""};
    bool read = front_matter_read(arena, readme, strlen(readme), &card, &error);
    if (!read)
        fprintf(stderr, "  %s\n", error.message);
    return read && card != NULL ? yaml_get(card, key) : NULL;
}

static bool is_float(double real, const char *expected)
{
    return strcmp(expected, "nan") == 0 ? isnan(real) : real == strtod(expected, NULL);
}

static void test_scalars(struct arena *arena)
{
    for (size_t i = 0; i < sizeof scalars / sizeof *scalars; i++) {
        char readme[128], number[32] = "";
        snprintf(readme, sizeof readme, "---\nk: %s\n---\n", scalars[i].scalar);
        const struct yaml_value *value = read_card(arena, readme, "k");
        if (!CHECK_NAMED(value != NULL && value->type == scalars[i].type, scalars[i].scalar))
            continue;
        if (value->type == YAML_BOOL || value->type == YAML_INTEGER) {
            snprintf(number, sizeof number, "%" PRId64, value->integer);
            CHECK_TEXT(number, scalars[i].value);
        } else if (value->type == YAML_FLOAT) {
            CHECK_NAMED(is_float(value->real, scalars[i].value), scalars[i].scalar);
        } else if (value->type == YAML_STRING) {
            CHECK_TEXT(value->text, scalars[i].value);
        }
    }
}

/* What is between the lines. */
static void test_frames(struct arena *arena)
{
    static const struct {
        const char *readme, *value; /* of the key k; NULL: none */
    } rows[] = {
        {"", NULL},
        {"# Title\n---\nk: a\n---\n", NULL},
        {"---\nk: a\n---\ntext", "a"},
        {"---\n\nk: a\n\n---\ntext", "a"},
        {"---\r\nk: a\r\n---\r\ntext", "a"},
        {"---\nk: a\n---\nk: b\n---\n", "a"},
        {"---\nk: a\nk: b\n---\n", "b"},
        {"---\nb: &x {k: a}\n<<: *x\n---\n", "a"},
        {"---\nb: &x {k: a}\n<<: *x\nk: c\n---\n", "c"},
        {"---\nl:\n- no\nk: a\n---\n", "a"},
        {"---\n'k': \"\\u00e9\"\n---\n", "é"},
        {"---\nk: |\n  a\n  b\n---\n", "a\nb\n"},
        {"---\nk: >\n  a\n  b\n---\n", "a b\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct yaml_value *value = read_card(arena, rows[i].readme, "k");
        if (rows[i].value == NULL)
            CHECK_NAMED(value == NULL, rows[i].readme);
        else
            CHECK_TEXT(value != NULL ? value->text : NULL, rows[i].value);
    }
}

/* "- no" in a list is the language, which YAML 1.1 takes for false. */
static void test_lists(struct arena *arena)
{
    const struct yaml_value *list = read_card(arena, "---\nk:\n- en\n- no\n- [a, 2]\n- {b: ~}\n---\n", "k");
    if (!CHECK(list != NULL && list->type == YAML_LIST && list->n_pairs == 4))
        return;
    CHECK(list->pairs[1].value->type == YAML_STRING && list->pairs[1].key == NULL);
    CHECK_TEXT(list->pairs[1].value->text, "no");
    CHECK(list->pairs[2].value->type == YAML_LIST && list->pairs[2].value->pairs[1].value->integer == 2);
    CHECK(list->pairs[3].value->type == YAML_MAPPING);
    CHECK(yaml_get(list->pairs[3].value, "b") != NULL && yaml_get(list->pairs[3].value, "b")->type == YAML_NULL);
    CHECK(yaml_get(list->pairs[3].value, "absent") == NULL);
}

/* bool() of Python. */
static void test_truth(struct arena *arena)
{
    static const struct {
        const char *text;
        bool is_false;
    } rows[] = {{"~", true},  {"false", true}, {"0", true},     {"0.0", true}, {"''", true},
                {"[]", true}, {"{}", true},    {"true", false}, {"1", false},  {"-0.5", false},
                {"a", false}, {"'0'", false},  {"[0]", false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char readme[64];
        snprintf(readme, sizeof readme, "---\nk: %s\n---\n", rows[i].text);
        const struct yaml_value *value = read_card(arena, readme, "k");
        CHECK_NAMED(value != NULL && yaml_is_false(value) == rows[i].is_false, rows[i].text);
    }
}

static bool is_refused(struct arena *arena, const char *readme)
{
    const struct yaml_value *card;
    struct error error = {""};
    return !front_matter_read(arena, readme, strlen(readme), &card, &error) && error.message[0] != '\0';
}

/* What libyaml takes long for is refused; cycles are read, and a key is looked for in them for a bounded time. */
/* Mappings of 50 keys, each of which merges the one before: what they merge grows with the square of their number. */
static bool chain_is_refused(struct arena *arena, size_t n_mappings)
{
    enum { N_KEYS = 50 };
    struct buffer text = {0};
    buffer_append_text(&text, "---\n");
    for (size_t i = 0; i < n_mappings; i++) {
        buffer_printf(&text, "m%zu: &m%zu\n", i, i);
        if (i > 0)
            buffer_printf(&text, "  <<: *m%zu\n", i - 1);
        for (size_t j = 0; j < N_KEYS; j++)
            buffer_printf(&text, "  k%zu_%zu: v\n", i, j);
    }
    buffer_append(&text, "---\n", sizeof "---\n");
    bool refused = is_refused(arena, (const char *)text.bytes);
    buffer_free(&text);
    return refused;
}

static void test_hostile(struct arena *arena)
{
    enum { DEPTH = 10000 };
    char *deep = calloc(1, DEPTH + 64);
    strcpy(deep, "---\nk: ");
    memset(deep + 7, '[', DEPTH);
    strcpy(deep + 7 + DEPTH, "\n---\n");
    CHECK(is_refused(arena, deep));
    free(deep);
    CHECK(read_card(arena, "---\n\n---\n", "k") == NULL);
    CHECK(is_refused(arena, "---\nk: [a\n---\n"));
    CHECK(!chain_is_refused(arena, 20) && chain_is_refused(arena, 100));
    CHECK(is_refused(arena, "---\nk: *unknown\n---\n"));
    CHECK(is_refused(arena, "---\na: &x\n  <<: *x\n---\n"));
}

int main(void)
{
    struct arena *arena = arena_new();
    test_scalars(arena);
    test_frames(arena);
    test_lists(arena);
    test_truth(arena);
    test_hostile(arena);
    arena_free(arena);
    return check_done();
}
