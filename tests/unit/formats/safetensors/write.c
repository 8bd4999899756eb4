/* Files as the safetensors library wrote them (tests/data/make_safetensors.py): their tensors, in any order, give the
 * same bytes before the data. */
#include "formats/safetensors/write.h"

#include "formats/checkpoint.h"
#include "formats/source.h"

#include "tests/unit/check.h"

#include <stdlib.h>

static const struct row {
    const char *name;
    struct safetensors_metadata metadata[2];
    bool no_metadata;
} rows[] = {
    {"dtypes", {{"format", "pt"}}, false},
    {"names", {{"format", "pt"}}, false},
    {"shapes", {{0}}, true},
    {"nothing", {{0}}, true},
    {"metadata", {{"a\tb\"\xc3\xa9", "\\\x7f"}}, false},
    {"no-metadata", {{0}}, false},
};

static bool same_beginning(const struct source *source, const struct buffer *header, uint64_t data_size)
{
    struct error error;
    unsigned char *bytes = malloc(header->length);
    bool same = source_size(source) == header->length + data_size &&
                source_read(source, 0, header->length, bytes, &error) &&
                memcmp(bytes, header->bytes, header->length) == 0;
    free(bytes);
    return same;
}

static bool same_offsets(const struct safetensors_place *places, size_t n_places, uint64_t start)
{
    for (size_t i = 0; i < n_places; i++)
        if (places[i].tensor->offset != start + places[i].offset)
            return false;
    return true;
}

static void written(const struct row *row)
{
    char path[512];
    struct error error = {""};
    snprintf(path, sizeof path, "%s/safetensors/%s.safetensors", getenv("WFS_TEST_DATA"), row->name);
    struct checkpoint *checkpoint = checkpoint_open(path, &(struct open_options){0}, &error);
    if (!CHECK_NAMED(checkpoint != NULL, path))
        return;
    const struct tensor_set *set = checkpoint->tensors;
    struct safetensors_place places[32];
    for (int reversed = 0; reversed < 2; reversed++) {
        struct buffer header;
        uint64_t data_size;
        for (size_t i = 0; i < set->n_tensors; i++) {
            const struct tensor *tensor = &set->tensors[reversed ? set->n_tensors - 1 - i : i];
            CHECK(safetensors_refusal(tensor->name, tensor->name_length, tensor->dtype) == NULL);
            places[i] = (struct safetensors_place){.tensor = tensor, .type = tensor->dtype};
        }
        CHECK_NAMED(safetensors_lay_out(places, set->n_tensors, row->no_metadata ? NULL : row->metadata, &header,
                                        &data_size, &error),
                    path);
        CHECK_NAMED(same_beginning(checkpoint->sources[0], &header, data_size), path);
        CHECK_NAMED(same_offsets(places, set->n_tensors, header.length), path);
        buffer_free(&header);
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
    struct buffer header;
    uint64_t data_size, shape[] = {(uint64_t)1 << 61};
    struct tensor tensor = {.name = "a", .name_length = 1, .rank = 1, .dtype = &f32_dtype, .shape = shape};
    struct safetensors_place places[2] = {{.tensor = &tensor, .type = &f32_dtype},
                                          {.tensor = &tensor, .type = &f32_dtype}};
    CHECK(!safetensors_lay_out(places, 1, NULL, &header, &data_size, &error));
    CHECK_TEXT(error.message, "tensor 'a': its F32 elements do not fit in a file");
}

int main(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        written(&rows[i]);
    refused();
    too_large();
    return check_done();
}
