/* tests/data/gguf/names.tsv is what gguf-py makes of the names: see tests/data/make_names.py. */
#include "models/card/general.h"

#include "tests/unit/check.h"

#include <stdlib.h>

enum { N_COLUMNS = 9 };

static bool same(const char *actual, const char *expected)
{
    return actual == NULL ? strcmp(expected, "\\N") == 0 : strcmp(actual, expected) == 0;
}

static void check_row(char *line)
{
    char *columns[N_COLUMNS] = {0};
    for (size_t i = 0; i < N_COLUMNS; i++)
        columns[i] = strsep(&line, "\t");
    struct arena *arena = arena_new();
    struct name_parts parts = name_parts_read(arena, columns[0], strtoll(columns[1], NULL, 10));
    const char *actual[] = {parts.full_name,
                            parts.organization,
                            parts.basename,
                            parts.finetune,
                            parts.version,
                            parts.size_label,
                            name_title(arena, parts.full_name)};
    bool passed = true;
    for (size_t i = 0; i < N_COLUMNS - 2; i++)
        passed &= same(actual[i], columns[i + 2]);
    if (!CHECK_NAMED(passed, columns[0]))
        for (size_t i = 0; i < N_COLUMNS - 2; i++)
            fprintf(stderr, "  is '%s', expected '%s'\n", actual[i] ? actual[i] : "(null)", columns[i + 2]);
    arena_free(arena);
}

/* gguf.size_label(total, shared, expert, expert_sum // expert_tensors) of gguf-py. */
static void size_labels(void)
{
    static const struct {
        struct parameter_count count;
        const char *label;
    } rows[] = {
        {{.total = 1}, "0.00K"},
        {{.total = 499}, "0.50K"},
        {{.total = 500}, "0.50K"},
        {{.total = 501}, "0.5K"},
        {{.total = 1500}, "1.5K"},
        {{.total = 9500}, "10K"},
        {{.total = 9501}, "10K"},
        {{.total = 10500}, "10K"},
        {{.total = 11500}, "12K"},
        {{.total = 1000000}, "1000K"},
        {{.total = 1000001}, "1.0M"},
        {{.total = 23068672}, "23M"},
        {{.total = 494032768}, "494M"},
        {{.total = 1000000000}, "1000M"},
        {{.total = 1000000001}, "1.0B"},
        {{.total = 6738415616}, "6.7B"},
        {{.total = 13000000000}, "13B"},
        {{.total = 1000000000001}, "1.0T"},
        {{46702792704, 1604472832, 5637144576, 768, 96}, "8x7.2B"},
        {{100, 10, 20, 7, 2}, "3x0.03K"},
    };
    struct arena *arena = arena_new();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK_TEXT(size_label(arena, &rows[i].count), rows[i].label);
    arena_free(arena);
}

int main(void)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/gguf/names.tsv", getenv("WFS_TEST_DATA"));
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length;
    CHECK(file != NULL);
    while (file != NULL && (length = getline(&line, &capacity, file)) > 0) {
        line[length - 1] = 0;
        check_row(line);
    }
    free(line);
    if (file != NULL)
        fclose(file);
    size_labels();
    return check_done();
}
