/* Both forms of the file, as tests/data/make_imatrix.py makes them, and files that are none. */
#include "models/quantize/imatrix.h"

#include "tests/unit/check.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

static const struct imatrix_filter all;

static bool has_values(const struct imatrix *imatrix, const char *name, const float *expected, size_t n_values)
{
    const struct imatrix_entry *entry = imatrix_find(imatrix, &all, name);
    return entry != NULL && entry->finite && entry->n_values == n_values &&
           memcmp(entry->values, expected, n_values * sizeof *expected) == 0;
}

static void data_path(char path[4096], const char *name)
{
    snprintf(path, 4096, "%s/gguf/%s", getenv("WFS_TEST_DATA"), name);
}

static void gguf_form(void)
{
    char path[4096];
    struct error error;
    struct arena *arena = arena_new();
    data_path(path, "imatrix.gguf");
    const struct imatrix *imatrix = imatrix_open(path, arena, &error);
    if (CHECK(imatrix != NULL)) {
        CHECK(imatrix_count(imatrix, &all) == 3);
        CHECK_TEXT(imatrix->dataset, "some.txt");
        CHECK(imatrix->n_chunks == 5);
        CHECK(imatrix->n_unseen == 1);
        CHECK(has_values(imatrix, "blk.0.attn_v.weight", (float[]){1, 2, 3, 4.5f}, 4));
        CHECK_NAMED(has_values(imatrix, "blk.0.ffn_up_exps.weight", (float[]){1, 2, 1, 1}, 4),
                    "an expert that was never met");
        CHECK_NAMED(has_values(imatrix, "blk.10.attn_v.weight", (float[]){1.f / 3, 1.f / 3, 1.f / 3}, 3),
                    "counts are rounded");
        CHECK(imatrix_find(imatrix, &all, "something else") == NULL);
    }
    arena_free(arena);
}

static void older_form(void)
{
    char path[4096];
    struct error error;
    struct arena *arena = arena_new();
    data_path(path, "imatrix.dat");
    const struct imatrix *imatrix = imatrix_open(path, arena, &error);
    if (CHECK(imatrix != NULL)) {
        CHECK(imatrix_count(imatrix, &all) == 2);
        CHECK_TEXT(imatrix->dataset, "old.txt");
        CHECK(imatrix->n_chunks == 9);
        CHECK_NAMED(has_values(imatrix, "a.weight", (float[]){5, 6}, 2), "no calls: the values as they are");
        CHECK_NAMED(has_values(imatrix, "b.weight", (float[]){1, 2, 3}, 3), "the later of two entries of one name");
    }
    arena_free(arena);
}

static void filters(void)
{
    char path[4096];
    struct error error;
    struct arena *arena = arena_new();
    const char *const some[] = {"blk.0.", "ffn", NULL}, *const none[] = {"blk.7.", NULL};
    data_path(path, "imatrix.gguf");
    const struct imatrix *imatrix = imatrix_open(path, arena, &error);
    if (CHECK(imatrix != NULL)) {
        CHECK(imatrix_count(imatrix, &(struct imatrix_filter){.include = some}) == 2);
        CHECK(imatrix_count(imatrix, &(struct imatrix_filter){.exclude = some}) == 1);
        CHECK(imatrix_count(imatrix, &(struct imatrix_filter){.include = none}) == 0);
        CHECK(imatrix_find(imatrix, &(struct imatrix_filter){.exclude = some}, "blk.0.attn_v.weight") == NULL);
        CHECK(imatrix_find(imatrix, &(struct imatrix_filter){.exclude = some}, "blk.10.attn_v.weight") != NULL);
    }
    CHECK(imatrix_count(NULL, &all) == 0 && imatrix_find(NULL, &all, "blk.0.attn_v.weight") == NULL);
    arena_free(arena);
}

/* One entry of one value, whose bits are given. */
#define ONE_ENTRY(value) "\1\0\0\0\1\0\0\0a\1\0\0\0\1\0\0\0" value

static const struct {
    const char *what;
    size_t length;
    const char *bytes, *error; /* what the message says; NULL: it is read */
} files[] = {
    {"nothing at all", 0, "", "truncated: the number of entries at byte 0 has 4 bytes, but 0 are left"},
    {"no entries", 4, "\0\0\0\0", "the number of entries at byte 0 is 0, and not at least 1"},
    {"one entry", 21, ONE_ENTRY("\0\0\200\77"), NULL},
    {"chunks without a dataset", 25, ONE_ENTRY("\0\0\200\77") "\3\0\0\0", NULL},
    {"a dataset that ends early", 30,
     ONE_ENTRY("\0\0\200\77") "\3\0\0\0"
                              "\2\0\0\0a",
     "the dataset's name"},
    {"an entry that is missing", 4, "\2\0\0\0", "the length of a name"},
    {"a name longer than the file", 8,
     "\1\0\0\0"
     "\377\0\0\0",
     "a name at byte 8 has 255 bytes, but 0 are left"},
    {"a name of a negative length", 8,
     "\1\0\0\0"
     "\377\377\377\377",
     "is -1, and not at least 0"},
    {"more values than bytes", 21, "\1\0\0\0\1\0\0\0a\1\0\0\0\2\0\0\0\0\0\0\0", "'a' has 2 values, but only 4 bytes"},
    {"2^31 - 1 values", 17, "\1\0\0\0\1\0\0\0a\1\0\0\0\377\377\377\177", "'a' has 2147483647 values, but only 0 bytes"},
    {"no values", 17, "\1\0\0\0\1\0\0\0a\1\0\0\0\0\0\0\0", "the number of values at byte 13 is 0"},
    {"another text", 24, "this is not a matrix at all", "not an importance matrix"},
    {"a GGUF that is cut", 6, "GGUF\3\0", "truncated: 4 bytes expected at offset 4 of 6; an interrupted download?"},
};

static void odd_files(void)
{
    char path[] = "/tmp/wfs-imatrix-XXXXXX";
    int descriptor = mkstemp(path);
    if (!CHECK(descriptor >= 0))
        return;
    close(descriptor);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct error error = {{0}};
        struct arena *arena = arena_new();
        FILE *file = fopen(path, "wb");
        fwrite(files[i].bytes, 1, files[i].length, file);
        fclose(file);
        bool is_read = imatrix_open(path, arena, &error) != NULL;
        if (!CHECK_NAMED(is_read == (files[i].error == NULL) &&
                             (is_read || strstr(error.message, files[i].error) != NULL),
                         files[i].what))
            fprintf(stderr, "  %s\n", error.message);
        arena_free(arena);
    }
    unlink(path);
}

static void not_finite(void)
{
    const float infinity[] = {1, INFINITY};
    struct imatrix_entry entry = {"a.weight", infinity, 2, false};
    const struct imatrix imatrix = {.file = "FILE", .entries = &entry, .n_entries = 1};
    const char *const it[] = {"a", NULL};
    struct error error;
    CHECK(!imatrix_check(&imatrix, &all, &error));
    CHECK_TEXT(error.message, "FILE: 'a.weight' has a value that is not finite");
    CHECK(imatrix_check(&imatrix, &(struct imatrix_filter){.exclude = it}, &error));
    CHECK(imatrix_check(NULL, &all, &error));
}

int main(void)
{
    gguf_form();
    older_form();
    filters();
    odd_files();
    not_finite();
    return check_done();
}
