/* HDF5 files that h5py wrote (tests/data/make_hdf5.py), with the oldest and the newest structures. */
#include "tests/unit/formats/torch/archive.h"
#include "tests/unit/numbers.h"

#include <stdlib.h>

static const struct open_options defaults;

/* The dataset's elements are 0, 1, 2 ... */
static bool counts(const struct checkpoint *checkpoint, const struct tensor *tensor)
{
    struct error error;
    float values[64];
    const struct view *view = tensor_view(tensor, checkpoint->arena);
    if (tensor->dtype != dtype_by_name("F32") || view->n_elements > 64 ||
        !read_numbers(view, 0, view->n_elements, values, &error))
        return false;
    for (uint64_t i = 0; i < view->n_elements; i++)
        if (values[i] != (float)i)
            return false;
    return true;
}

/* Like counts(), but only one chunk of 2 rows and 3 columns is stored, or of 5 rows; the other elements are -1. */
static bool counts_at_start(const struct checkpoint *checkpoint, const struct tensor *tensor)
{
    struct error error;
    float values[64];
    if (!read_numbers(tensor_view(tensor, checkpoint->arena), 0, tensor_elements(tensor), values, &error))
        return false;
    for (uint64_t i = 0; i < tensor_elements(tensor); i++) {
        bool is_stored = i / tensor->shape[1] < 2 && i % tensor->shape[1] < 3;
        if (values[i] != (is_stored ? (float)i : -1.0F))
            return false;
    }
    return true;
}

static const char described[] = "dtypes/bfloat16 BF16 [3] 0 1 2\n"
                                "dtypes/bool BOOL [2, 2] 0 1 0 1\n"
                                "dtypes/c8 C64 [2, 2] 00 00 00 00 00 00 00 00 00 00 80 3f 00 00 00 00 "
                                "00 00 00 40 00 00 00 00 00 00 40 40 00 00 00 00\n"
                                "dtypes/f2 F16 [2, 2] 0 1 2 3\n"
                                "dtypes/f4 F32 [2, 2] 0 1 2 3\n"
                                "dtypes/f8 F64 [2, 2] 0 1 2 3\n"
                                "dtypes/i1 I8 [2, 2] 0 1 2 3\n"
                                "dtypes/i8 I64 [2, 2] 0 1 2 3\n"
                                "dtypes/null F32 [] (a null dataspace has no values)\n"
                                "dtypes/text U8 [] (strings have no values)\n"
                                "dtypes/u2 U16 [2, 2] 0 1 2 3\n"
                                "dtypes/void U8 [2] (opaque elements have no values)\n";

static const char refused[] = "external U8 [2] (its elements are in other files, which wfs does not open)\n"
                              "filled F32 [2, 3] 2.5 2.5 2.5 2.5 2.5 2.5\n";

static void test_file(const char *name)
{
    struct error error = {""};
    char path[4096];
    snprintf(path, sizeof path, "%s/hdf5/%s", getenv("WFS_TEST_DATA"), name);
    const struct checkpoint *checkpoint = checkpoint_open(path, readers, &defaults, &error);
    CHECK_TEXT(error.message, "");
    size_t n_counting = 0, n_sparse = 0;
    for (size_t i = 0; i < checkpoint->tensors->n_tensors; i++) {
        const struct tensor *tensor = &checkpoint->tensors->tensors[i];
        const char *ending = strrchr(tensor->name, '/');
        bool is_sparse = ending != NULL && strcmp(ending, "/sparse") == 0;
        bool is_counting = !is_sparse && ending != NULL && strncmp(tensor->name, "dtypes", 6) != 0 &&
                           strncmp(tensor->name, "links", 5) != 0;
        CHECK_NAMED(!is_sparse || counts_at_start(checkpoint, tensor), tensor->name);
        CHECK_NAMED(!is_counting || counts(checkpoint, tensor), tensor->name);
        n_counting += is_counting;
        n_sparse += is_sparse;
    }
    CHECK(n_counting == 16 + 20 && n_sparse == 4);
    CHECK(checkpoint->metadata.n_kvs == 2);
    checkpoint_close(checkpoint);
    char *found = archive_describe(path, &defaults);
    CHECK(strncmp(found, described, sizeof described - 1) == 0);
    CHECK(strstr(found, refused) != NULL);
    CHECK(strstr(found, "\nlinks/again F16 [2, 2] 0 1 2 3\n") != NULL);
    free(found);
}

/* Opens a copy of a file in which all places with these bytes have others. Returns what is described, or the error;
 * free() it. */
static char *described_with(const char *name, const void *bytes, const void *others, size_t length)
{
    char path[4096];
    static unsigned char content[128 * 1024];
    size_t n_places = 0;
    snprintf(path, sizeof path, "%s/hdf5/%s", getenv("WFS_TEST_DATA"), name);
    FILE *file = fopen(path, "rb");
    size_t size = file != NULL ? fread(content, 1, sizeof content, file) : 0;
    CHECK(file != NULL && fclose(file) == 0 && size < sizeof content);
    for (size_t at = 0; at + length <= size; at++)
        if (memcmp(content + at, bytes, length) == 0) {
            memcpy(content + at, others, length);
            n_places++;
        }
    CHECK_NAMED(n_places > 0, name);
    files_write("damaged.h5", content, size);
    return archive_describe("damaged.h5", &defaults);
}

/* h5py: the elements of F64 are other numbers if the first bit of the mantissa is not implied; of two links of one
 * name, h5py.File(...)[name] finds one. */
static void damaged_files(void)
{
    static const unsigned char implied[] = {0x11, 0x21, 0x3f, 0, 8}, stored[] = {0x11, 0x01, 0x3f, 0, 8};
    char *found = described_with("earliest.h5", implied, stored, sizeof implied);
    CHECK(strstr(found, "dtypes/f8 U8 [2, 2] (floats of an unusual layout have no values)\n") != NULL);
    free(found);
    found = described_with("earliest.h5", "\0i1", "\0i8", 4);
    CHECK(strstr(found, "a group has two links of the name 'i8'") != NULL);
    free(found);
}

int main(void)
{
    files_begin();
    test_file("earliest.h5");
    test_file("latest.h5");
    damaged_files();
    return check_done();
}
