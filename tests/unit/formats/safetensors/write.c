/* Files as the safetensors library wrote them (tests/data/make_safetensors.py): their tensors, in any order, give the
 * same files. */
#include "formats/safetensors/safetensors.h"

#include "base/little_endian.h"
#include "formats/checkpoint.h"
#include "sources/source.h"

#include "tests/unit/check.h"
#include "tests/unit/formats/readers_table.h"
#include "tests/unit/models/laid_out.h"

#include <stdlib.h>

static const struct row {
    const char *name;
    const char *key, *value; /* its metadata */
} rows[] = {
    {"dtypes", "format", "pt"},
    {"names", "format", "pt"},
    {"shapes", NULL, NULL},
    {"nothing", NULL, NULL},
    {"metadata", "a\tb\"\xc3\xa9", "\\\x7f"},
};

static bool is_file(const struct source *source, const struct buffer *made)
{
    struct error error;
    unsigned char *bytes = malloc(made->length);
    bool same = source_size(source) == made->length && source_read(source, 0, made->length, bytes, &error) &&
                memcmp(bytes, made->bytes, made->length) == 0;
    free(bytes);
    return same;
}

static void written(const struct row *row)
{
    char path[512];
    struct error error = {""};
    snprintf(path, sizeof path, "%s/safetensors/%s.safetensors", getenv("WFS_TEST_DATA"), row->name);
    const struct checkpoint *checkpoint = checkpoint_open(path, readers, &(struct open_options){0}, &error);
    if (!CHECK_NAMED(checkpoint != NULL, path))
        return;
    const struct tensor_set *set = checkpoint->tensors;
    for (int reversed = 0; reversed < 2; reversed++) {
        struct artifact artifact = {.container = &safetensors_container};
        artifact_reserve(&artifact, set->n_tensors);
        if (row->key != NULL)
            gguf_set_text(&artifact.metadata, row->key, row->value);
        for (size_t i = 0; i < set->n_tensors; i++) {
            const struct tensor *tensor = &set->tensors[reversed ? set->n_tensors - 1 - i : i];
            CHECK(safetensors_refusal(tensor->name, tensor->name_length, tensor->dtype) == NULL);
            artifact.tensors[i] = (struct artifact_tensor){tensor, encoding_of(tensor->dtype)};
        }
        struct buffer made = laid_out(&artifact);
        CHECK_NAMED(is_file(checkpoint->sources[0], &made), path);
        buffer_free(&made);
        artifact_free(&artifact);
    }
    checkpoint_close(checkpoint);
}

static void refused(void)
{
    CHECK_TEXT(safetensors_refusal("a", 1, dtype_by_name("Q4_0")), "safetensors has no such dtype");
    CHECK_TEXT(safetensors_refusal("a", 1, dtype_by_name("C128")), "safetensors has no such dtype");
    CHECK_TEXT(safetensors_refusal("\xff", 1, &f32_dtype), "its name is not UTF-8");
    CHECK(safetensors_refusal("__metadata__", 12, &f32_dtype) != NULL);
    CHECK(safetensors_refusal("__metadata__", 11, &f32_dtype) == NULL);
}

static void too_large(void)
{
    struct error error = {""};
    uint64_t shape[] = {(uint64_t)1 << 61};
    struct tensor tensor = {.name = "a", .name_length = 1, .rank = 1, .dtype = &f32_dtype, .shape = shape};
    struct artifact_tensor written = {&tensor, encoding_of(&f32_dtype)};
    struct artifact artifact = {.container = &safetensors_container, .tensors = &written, .n_tensors = 1};
    struct span_list spans = {.arena = arena_new()};
    CHECK(!safetensors_container.lay_out(&artifact, &spans, &error));
    CHECK_TEXT(error.message, "tensor 'a': its F32 elements do not fit in a file");
    arena_free(spans.arena);
}

/* Appends the header of `n` tensors of one number, as serde_json writes it. */
static void append_header(struct buffer *out, int n, bool has_metadata)
{
    const char *const metadata = has_metadata ? "\"__metadata__\":{\"format\":\"pt\"}" : "";
    buffer_append_zeros(out, 8);
    buffer_printf(out, "{%s", metadata);
    for (int i = 0; i < n; i++)
        buffer_printf(out, "%s\"t%03d\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[%d,%d]}",
                      i > 0 || has_metadata ? "," : "", i, 4 * i, 4 * i + 4);
    buffer_append_text(out, "}");
    while (out->length % 8 != 0)
        buffer_append_text(out, " ");
    for (int i = 0; i < 8; i++)
        out->bytes[i] = (unsigned char)((out->length - 8) >> (8 * i));
}

/* The header is made in pieces: of as many tensors as fill pieces, of fewer and of more. */
static void check_many(int n, bool has_metadata)
{
    static char names[100][5];
    static float numbers[100];
    const uint64_t one = 1;
    struct arena *arena = arena_new();
    struct artifact artifact = {.container = &safetensors_container};
    struct buffer expected = {0};
    artifact_reserve(&artifact, (size_t)n);
    if (has_metadata)
        gguf_set_text(&artifact.metadata, "format", "pt");
    for (int i = 0; i < n; i++) {
        struct tensor *tensor = arena_alloc(arena, sizeof *tensor);
        snprintf(names[i], sizeof names[i], "t%03d", i);
        numbers[i] = (float)i;
        *tensor = tensor_of_view(names[i], view_numbers(arena, 1, &one, &numbers[i]));
        artifact.tensors[n - 1 - i] = (struct artifact_tensor){tensor, encoding_of(&f32_dtype)};
    }
    append_header(&expected, n, has_metadata);
    little_endian(numbers, (size_t)n, sizeof *numbers);
    buffer_append(&expected, numbers, (size_t)n * sizeof *numbers);
    struct buffer made = laid_out(&artifact);
    CHECK(made.length == expected.length && memcmp(made.bytes, expected.bytes, made.length) == 0);
    buffer_free(&made);
    buffer_free(&expected);
    artifact_free(&artifact);
    arena_free(arena);
}

int main(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        written(&rows[i]);
    refused();
    too_large();
    for (int n = 0; n < 100; n += 1 + n / 3)
        for (int has_metadata = 0; has_metadata < 2; has_metadata++)
            check_many(n, has_metadata);
    for (int n = 31; n <= 65; n++)
        check_many(n, n % 2 == 0);
    return check_done();
}
