/* Layout files: what is read of them, and the file, the line and the place of what is wrong. */
#include "models/layouts/layout_file.h"

#include "sources/location.h"

#include "tests/unit/check.h"
#include "tests/unit/files.h"

/* The file, or NULL. */
static const struct layout_file *read_text(const char *text, struct arena *arena, struct error *error)
{
    files_write_text("own.json", text);
    struct source *source = location_open_file("own.json", error);
    files_must(source != NULL, "own.json");
    const struct layout_file *file = layout_file_read(source, "own", arena, error);
    source_close(source);
    return file;
}

#define FILE_OF(rest)    "{\"files\": {\"name\": \"a\"},\n\"tensors\": [{\"from\": \"b\"}],\n" rest "}"
#define TENSORS_OF(rest) "{\"files\": {\"name\": \"a\"},\n\"tensors\": [" rest "]}"
#define ROW_OF(rest)     TENSORS_OF("{\"from\": \"b\"},\n{\"from\": \"b\", " rest "}")
#define FILES_OF(rest)   "{\"files\":\n{" rest "}}"
#define TEN(text)        text text text text text text text text text text

static const struct {
    const char *text, *message;
} rows[] = {
    {"[]", "1: not an object"},
    {"{\"odd\": 1}", "1: odd: unknown"},
    {"{}", "1: files: not an object"},
    {FILES_OF("\"for\": {\"a\": 2}"), "2: files.name: missing, or contains a slash"},
    {FILES_OF("\"name\": \"a/b\""), "2: files.name: missing, or contains a slash"},
    {FILES_OF("\"name\": \"a\\u0000\""), "2: files.name: not a string"},
    {FILES_OF("\"name\": \"{a\""), "2: files.name: { without }"},
    {FILES_OF("\"name\": \"{1 +}\""), "2: files.name: '1 +': column 4: expected a number, a name, a string or ("},
    {FILES_OF("\"name\": \"a\", \"format\": \"zip\""), "2: files.format: neither safetensors nor raw"},
    {FILES_OF("\"name\": \"a\", \"format\": \"raw\""), "2: files.manifest: raw files need a manifest, and no \"for\""},
    {FILES_OF("\"name\": \"a\", \"format\": \"raw\", \"manifest\": \"m\", \"for\": {\"a\": 1}"),
     "2: files.manifest: raw files need a manifest, and no \"for\""},
    {FILES_OF("\"name\": \"a\", \"manifest\": \"m\""), "2: files.manifest: only raw files have a manifest"},
    {FILES_OF("\"name\": \"a\", \"for\": {}"), "2: files.for: not an object with one name and its number"},
    {FILES_OF("\"name\": \"a\", \"for\": {\"a\": 1, \"b\": 1}"),
     "2: files.for: not an object with one name and its number"},
    {FILES_OF("\"name\": \"a\", \"part_size\": []"), "2: files.part_size: not an expression"},
    {"{\"files\": {\"name\": \"a\"}}", "1: tensors: not an array of 1 to 4096 rows"},
    {TENSORS_OF(""), "2: tensors: not an array of 1 to 4096 rows"},
    {TENSORS_OF("\n5"), "3: tensors[0]: not an object"},
    {TENSORS_OF("{\"to\": \"a\"}"), "2: tensors[0].from: use either \"from\" or \"translated\""},
    {TENSORS_OF("{\"from\": \"a\", \"translated\": \"b\"}"),
     "2: tensors[0].from: use either \"from\" or \"translated\""},
    {TENSORS_OF("{\"tensors\": 1}"), "2: tensors[0].tensors: not an array"},
    {TENSORS_OF("{\"tensors\": [],\n\"form\": 1}"), "3: tensors[0].form: unknown"},
    {TENSORS_OF("{\"tensors\": [{\"from\": \"a\"},\n{\"from\": 1}]}"),
     "3: tensors[0].tensors[1].from: neither a string nor an array of strings"},
    {ROW_OF("\"dtype\": [" TEN("\"F32\", ") TEN("\"F32\", ") "\"F32\"]"), "3: tensors[1].dtype: more than 16 elements"},
    {ROW_OF("\"axes\": \"a a\""), "3: tensors[1].axes: 'a a': column 3: a name comes twice in one tensor"},
    {ROW_OF("\"axes\": [\"a -> a, a\", \"a -> a\"]"),
     "3: tensors[1].axes: a step takes another number of tensors than the step before it makes"},
    {ROW_OF("\"axes\": \"a\""), "3: tensors[1].axes: both sides are the same, which changes nothing; leave it out"},
    {ROW_OF("\"axes\": \"a b -> a b\""),
     "3: tensors[1].axes: both sides are the same, which changes nothing; leave it out"},
    {ROW_OF("\"axes\": \"row column -> column\""),
     "3: tensors[1].axes: 'row column -> column' loses the axis row: keep it, or select a part, with "
     "\"axes\": {\"row\": {\"size\": ..., \"part\": ...}} in the layout file"},
    {ROW_OF("\"axes\": \"(a (b + c d)) -> (a d)\""),
     "3: tensors[1].axes: '(a (b + c d)) -> (a d)' loses the axis c: keep it, or select a part, with "
     "\"axes\": {\"c\": {\"size\": ..., \"part\": ...}} in the layout file"},
    {ROW_OF("\"axes\": []"), "3: tensors[1].axes: an empty array"},
    {ROW_OF("\"when\": \"1\\u0000\""), "3: tensors[1].when: not an expression"},
    {ROW_OF("\"when\\u0000\": \"1\""), "3: tensors[1].when: unknown"},
    {ROW_OF("\"axes\": \"a -> a, a\""), "3: tensors[1].axes: the last step must make one tensor"},
    {ROW_OF("\"rule\": \"x\""), "3: tensors[1].rule: unknown"},
    {ROW_OF("\"map\": \"x + 2\""), "3: tensors[1].map: unknown"},
    {ROW_OF("\"optional\": null"), "3: tensors[1].optional: not true or false"},
    {ROW_OF("\"constant\": [1, \"2\"]"), "3: tensors[1].constant: neither a number nor an array of numbers"},
    {ROW_OF("\"scaled\": true"), "3: tensors[1].scaled: not an object"},
    {ROW_OF("\"scaled\": {\"as\": \"FP9\"}"), "3: tensors[1].scaled.as: unknown"},
    {ROW_OF("\"scaled\": {\"scale\": \"a\"}"), "3: tensors[1].scaled.scale: unknown"},
    {ROW_OF("\"rotary\": 1"), "3: tensors[1].rotary: not an object"},
    {ROW_OF("\"rotary\": {\"base\": 10000}"), "3: tensors[1].rotary.factors: missing"},
    {ROW_OF("\"rotary\": {\"base\": 1, \"factors\": \"rope.f\", \"positions\": 9}"),
     "3: tensors[1].rotary.trained: missing"},
    {ROW_OF("\"rotary\": {\"base\": \"1 +\", \"factors\": \"a\"}"),
     "3: tensors[1].rotary.base: '1 +': column 4: expected a number, a name, a string or ("},
    {ROW_OF("\"each\": [\"a\"]"), "3: tensors[1].each: not an object with one name and an array of strings"},
    {ROW_OF("\"each\": {\"a\": \"b\", \"c\": \"d\"}"),
     "3: tensors[1].each: not an object with one name and an array of strings"},
    {ROW_OF("\"each\": {\"a\": [1]}"), "3: tensors[1].each: neither a string nor an array of strings"},
    {ROW_OF("\"keys\": {\"a\": 1}"), "3: 'a' is neither a text nor a list of texts"},
    {FILE_OF("\"side_files\": \"yes\""), "3: side_files: not true or false"},
    {FILE_OF("\"parameters\": []"), "3: parameters: not an object"},
    {FILE_OF("\"let\": {\"a\": null}"), "3: let.a: not an expression"},
    {FILE_OF("\"axes\": {\"a\": {\"part\": 1}}"), "3: axes.a: \"size\" is missing"},
    {FILE_OF("\"axes\": {\"a\": {\"size\": 1, \"of\": 1}}"), "3: axes.a.of: unknown"},
    {FILE_OF("\"family\": \"nobody\""), "3: family: unknown"},
    {FILE_OF("\"refuse\": {}"), "3: refuse: not an array"},
    {FILE_OF("\"refuse\": [\n{\"when\": 1}]"), "4: refuse[0]: \"when\" or \"because\" is missing"},
    {FILE_OF("\"documents\": {\"a\": {}}"), "3: documents: not an array"},
    {FILE_OF("\"documents\": [{\"name\": \"a/b\", \"members\": []}]"),
     "3: documents[0]: \"name\" or \"members\" is missing"},
    {FILE_OF("\"documents\": [{\"name\": \"a\", \"members\": [{\"set\": {}},\n{\"sets\": {}}]}]"),
     "4: documents[0].members[1].sets: unknown"},
    {FILE_OF("\"documents\": [{\"name\": \"a\", \"members\": [{\"set\": [1]}]}]"),
     "3: documents[0].members[0].set: missing, or not an object"},
    {FILE_OF("\"documents\": [{\"name\": \"a\", \"members\": [{\"when\": 1}]}]"),
     "3: documents[0].members[0].set: missing, or not an object"},
    {FILE_OF("\"documents\": [{\"name\": \"a\", \"members\": [{\"set\": {}, \"when\": []}]}]"),
     "3: documents[0].members[0].when: not an expression"},
};

static void refused(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char expected[300];
        struct error error = {""};
        struct arena *arena = arena_new();
        snprintf(expected, sizeof expected, "own.json:%s", rows[i].message);
        CHECK_NAMED(read_text(rows[i].text, arena, &error) == NULL, rows[i].message);
        CHECK_TEXT(error.message, expected);
        arena_free(arena);
    }
}

static void rows_of_a_file(void)
{
    struct error error;
    struct arena *arena = arena_new();
    const struct layout_file *file = read_text(
        TENSORS_OF("{\"from\": \"b.*\"}, {\"from\": [\"{k}.c\", \"d\"], \"axes\": [\"a, b -> (a + b)\", \"parallel\"],"
                   "\"each\": {\"k\": [\"x\", \"{k}\"]}, \"when\": \"'{k}' == 'y'\", \"dtype\": \"F32\", \"map\": "
                   "\"-exp(x)\"},"
                   "{\"for\": {\"n\": 3}, \"when\": \"n\", \"tensors\": [{\"translated\": \"t{n}\", \"constant\": 0,"
                   "\"scaled\": {\"scales\": \"s\"}}]}"),
        arena, &error);
    if (!CHECK(file != NULL))
        return;
    CHECK(file->n_blocks == 3 && file->blocks[0].n_rows == 1 && file->blocks[1].n_rows == 2);
    const struct layout_row *row = &file->blocks[0].rows[0];
    CHECK_TEXT(row->to, "b.{rest}");
    CHECK(row->n_from == 1 && row->n_axes == 0 && row->n_dtypes == 0 && row->map == NULL && !row->optional);
    row = &file->blocks[1].rows[0];
    CHECK_TEXT(row->to, "x.c");
    CHECK_TEXT(row->from[0], "x.c");
    CHECK_TEXT(row->from[1], "d");
    CHECK_TEXT(row->when, "'x' == 'y'");
    CHECK(row->n_from == 2 && row->n_axes == 2 && row->axes[0] != NULL && row->axes[1] == NULL && row->is_parallel);
    CHECK(row->n_dtypes == 1 && row->map == &minus_exp && row->packed_when == NULL);
    CHECK_TEXT(row[1].to, "{k}.c"); /* what is put in is not looked at again */
    CHECK_TEXT(file->blocks[2].name, "n");
    CHECK_TEXT(file->blocks[2].count, "3");
    CHECK_TEXT(file->blocks[2].when, "n");
    row = &file->blocks[2].rows[0];
    CHECK_TEXT(row->to, "t{n}");
    CHECK_TEXT(row->place, "tensors[2].tensors[0]");
    CHECK_TEXT(row->packed_when, "true");
    CHECK_TEXT(row->packer->name, "FP8_PER_CHANNEL_PER_TOKEN");
    CHECK(row->constant != NULL && row->n_from == 0);
    CHECK_TEXT(layout_file_place(file, "tensors[9].to", arena), "own.json:2: tensors[9].to");
    arena_free(arena);
}

static void top_of_a_file(void)
{
    struct error error;
    struct arena *arena = arena_new();
    const struct layout_file *file = read_text(
        "{\"files\": {\"name\": \"{name}.bin\", \"format\": \"raw\", \"manifest\": \"all.json\", \"part_size\": 9},"
        "\"let\": {\"a\": \"b + 1\", \"b\": 2}, \"axes\": {\"x\": \"a\", \"y\": {\"size\": 4, \"part\": \"b\"}},"
        "\"family\": \"llama\", \"side_files\": true, \"dtype\": [\"Q4_0\", \"F16\"], \"tensors\": [{\"from\": "
        "\"a\"}]}",
        arena, &error);
    if (!CHECK(file != NULL))
        return;
    CHECK_TEXT(file->name, "own");
    CHECK_TEXT(file->files.part_size, "9");
    CHECK(file->files.raw && file->files.each.name == NULL && file->side_files && file->n_dtypes == 2);
    CHECK(file->n_lets == 2 && file->n_axes == 2 && file->axes[0].part == NULL);
    CHECK_TEXT(file->lets[1].expression, "2");
    CHECK_TEXT(file->axes[1].size, "4");
    CHECK_TEXT(file->axes[1].part, "b");
    CHECK_TEXT(file->family->name, "llama");
    arena_free(arena);
}

int main(void)
{
    files_begin();
    refused();
    rows_of_a_file();
    top_of_a_file();
    files_remove();
    return check_done();
}
