/* Names in layout files: which meaning counts, parameters that a user gives, templates, and what goes on too long. */
#include "models/layouts/scope.h"
#include "models/packings/packings.h"

#include "sources/location.h"

#include "tests/unit/check.h"
#include "tests/unit/files.h"

#define FOUR(a, b) "\"c" a "\": \"c" b " + c" b " + c" b " + c" b "\","

static const char text[] =
    "{\"parameters\": {\"tp\": 1, \"fast-mode\": false, \"kind\": \"a\"}, \"files\": {\"name\": \"f\"},"
    "\"let\": {\"twice\": \"tp * 2\", \"tp\": 9, \"circle\": \"circle + 1\", \"layers\": 7,"
    "\"b0\": \"tp\", \"b1\": \"b0 + b0\", \"packed\": \"quantization('FP8_PER_CHANNEL_PER_TOKEN')\"," FOUR("1", "0")
        FOUR("2", "1") FOUR("3", "2") FOUR("4", "3") FOUR("5", "4") FOUR("6", "5") FOUR("7", "6") FOUR("8", "7")
            FOUR("9", "8") FOUR("10", "9") FOUR("11", "10") FOUR("12", "11")
                FOUR("13", "12") "\"c0\": \"tp\"}, \"tensors\": [{\"from\": \"a\"}]}";

static struct scope scope_with(const struct layout_file *file, struct arena *arena, const char *parameters,
                               struct error *error)
{
    struct tensor_set *set = tensor_set_new(arena);
    struct scope scope = {.file = file, .set = set, .arena = arena};
    tensor_set_seal(set, error);
    error->message[0] = '\0';
    scope_read_parameters(&scope, parameters, error);
    return scope;
}

static void test_parameters(const struct layout_file *file, struct arena *arena)
{
    static const char *const rows[][2] = {
        {"tp=4,fast-mode,kind=x=y", "4 1 x=y"},
        {"tp=2KiB,,fast-mode=0", "2048 0 a"},
        {"tp=0,tp=3", "3 0 a"},
        {"tp", "own: tp: '=VALUE' is missing"},
        {"kind", "own: kind: '=VALUE' is missing"},
        {"tp=x", "own: tp: 'x' is not a number"},
        {"fast-mode=2", "own: fast-mode: '2' is neither 0 nor 1"},
        {"fast_mode", "own: unknown parameter 'fast_mode' (known: tp, fast-mode, kind); did you mean 'fast-mode'?"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct error error;
        const char *filled = NULL;
        struct scope scope = scope_with(file, arena, rows[i][0], &error);
        if (*error.message == '\0' && !scope_fill(&scope, "{tp} {fast_mode ? 1 : 0} {kind}", &filled, &error))
            filled = NULL;
        CHECK_TEXT(filled != NULL ? filled : error.message, rows[i][1]);
    }
}

/* Locals, the last one first, count before parameters, these before definitions, and these before the model. */
static void test_order(const struct layout_file *file, struct arena *arena)
{
    struct error error;
    uint64_t number;
    struct scope scope = scope_with(file, arena, "tp=4", &error);
    CHECK(scope_number(&scope, "twice", 8, &number, &error) && number == 8);
    CHECK(scope_number(&scope, "layers", 100, &number, &error) && number == 7);
    scope_push(&scope, "tp", value_of_number(5));
    scope_push(&scope, "tp", value_of_number(6));
    CHECK(scope_number(&scope, "twice", 100, &number, &error) && number == 12);
    scope_pop(&scope);
    CHECK(scope_number(&scope, "twice", 100, &number, &error) && number == 10);
    scope_pop(&scope);
    CHECK(scope_number(&scope, "twice", 8, &number, &error) && number == 8);
    CHECK(scope_knows(&scope, "architecture") && scope_knows(&scope, "config.any") && !scope_knows(&scope, "row"));
}

static void test_values(const struct layout_file *file, struct arena *arena)
{
    struct error error;
    uint64_t number;
    bool holds = false;
    const char *filled;
    struct scope scope = scope_with(file, arena, NULL, &error);
    CHECK(!scope_number(&scope, "twice", 1, &number, &error));
    CHECK_TEXT(error.message, "'twice' is not a number from 0 to 1");
    CHECK(!scope_number(&scope, "0 - 1", 9, &number, &error) && !scope_number(&scope, "kind", 9, &number, &error));
    CHECK(scope_holds(&scope, NULL, &holds, &error) && holds);
    CHECK(scope_holds(&scope, "tp > 1", &holds, &error) && !holds);
    CHECK(scope_holds(&scope, "of('b', 'abc') && !of('d', 'abc') && !has('a')", &holds, &error) && holds);
    CHECK(scope_fill(&scope, "a{tp + 1}b{kind}c", &filled, &error));
    CHECK_TEXT(filled, "a2bac");
    CHECK(!scope_fill(&scope, "{config.none}", &filled, &error));
    CHECK_TEXT(error.message, "'{config.none}' is neither a number nor a string");
    CHECK(!scope_holds(&scope, "fail('no such thing')", &holds, &error));
    CHECK(strstr(error.message, "no such thing") != NULL);
    CHECK(!scope_holds(&scope, "quantization('FP9')", &holds, &error));
    CHECK(strstr(error.message, "no packing is called 'FP9'") != NULL);
    CHECK(!scope_holds(&scope, "quantization('FP8_PER_CHANNEL_PER_TOKEN')", &holds, &error));
    scope.weights = &(const struct output_weight){"a.weight", packer_find("FP8_PER_CHANNEL_PER_TOKEN")};
    CHECK(!scope_holds(&scope, "packed", &holds, &error));
    scope.n_weights = 1;
    CHECK(scope_holds(&scope, "packed", &holds, &error) && holds);
    const struct output_weight none = {"a.weight", NULL};
    scope.weights = &none;
    CHECK(!scope_holds(&scope, "packed", &holds, &error)); /* it is computed again */
    scope.weights = &(const struct output_weight){"a.weight", packer_find("FP8_PER_CHANNEL_PER_TOKEN")};
    CHECK(scope_holds(&scope, "quantization('FP8_PER_CHANNEL_PER_TOKEN')", &holds, &error) && holds);
    CHECK(!scope_number(&scope, "circle", 9, &number, &error));
    CHECK(strstr(error.message, "definitions use each other too deeply") != NULL);
    CHECK(scope_number(&scope, "b1", 9, &number, &error) && number == 2); /* it goes on after that */
    CHECK_NAMED(scope_number(&scope, "c13", 1 << 26, &number, &error) && number == 1 << 26, "each is computed once");
}

int main(void)
{
    struct error error;
    struct arena *arena = arena_new();
    files_begin();
    files_write_text("own.json", text);
    struct source *source = location_open_file("own.json", &error);
    const struct layout_file *file = layout_file_read(source, "own", arena, &error);
    if (CHECK(file != NULL)) {
        test_parameters(file, arena);
        test_order(file, arena);
        test_values(file, arena);
    }
    source_close(source);
    files_remove();
    arena_free(arena);
    return check_done();
}
