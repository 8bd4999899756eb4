/* Orbax: directories whose arrays TensorStore wrote (tests/data/make_orbax.py), whole and damaged. */
#include "formats/orbax/zarr.h"

#include "tests/unit/formats/torch/archive.h"

#include <dirent.h>

static const struct open_options defaults;

static char *data_path(const char *name)
{
    struct buffer path = {0};
    buffer_printf(&path, "%s/orbax/%s", getenv("WFS_TEST_DATA"), name);
    buffer_append(&path, "", 1);
    return (char *)path.bytes;
}

static struct buffer file_of(const char *path)
{
    struct buffer bytes = {0};
    char piece[4096];
    FILE *file = fopen(path, "rb");
    files_must(file != NULL, path);
    for (size_t n; (n = fread(piece, 1, sizeof piece, file)) > 0;)
        buffer_append(&bytes, piece, n);
    fclose(file);
    return bytes;
}

/* Compares each directory with its lines in expected.txt, the order of names aside: both are sorted. */
static void check_directories(void)
{
    char *path = data_path("expected.txt");
    struct buffer expected = file_of(path);
    buffer_append(&expected, "", 1);
    free(path);
    unsigned n_directories = 0;
    for (char *at = (char *)expected.bytes; at != NULL && *at == '#';) {
        char *name = at + 2, *lines = strchr(name, '\n') + 1, *end = strstr(lines, "\n#");
        lines[-1] = '\0';
        at = end != NULL ? end + 1 : NULL;
        if (end != NULL)
            *end = '\0';
        else
            lines[strlen(lines) - 1] = '\0';
        path = data_path(name);
        char *described = archive_describe(path, &defaults);
        CHECK_NAMED(strcmp(described, lines) == 0, name);
        if (strcmp(described, lines) != 0)
            fprintf(stderr, "%s\n%s\n", described, lines);
        free(described);
        free(path);
        n_directories++;
    }
    CHECK(n_directories == 6);
    buffer_free(&expected);
}

/* Damage. */

/* Copies the database of the test data to "d", and gets the path of its data file. */
static void copy_database(const char *name, char data_file[300])
{
    char *from = data_path(name);
    struct buffer path = {0};
    buffer_printf(&path, "%s/d", from);
    buffer_append(&path, "", 1);
    DIR *directory = opendir((const char *)path.bytes);
    files_must(directory != NULL, "the data directory");
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;)
        if (*entry->d_name != '.')
            snprintf(data_file, 300, "d/d/%s", entry->d_name);
    closedir(directory);
    path.length = 0;
    buffer_printf(&path, "%s/%s", from, data_file + 2);
    buffer_append(&path, "", 1);
    struct buffer bytes = file_of((const char *)path.bytes);
    files_write(data_file, bytes.bytes, bytes.length);
    buffer_free(&bytes);
    path.length = 0;
    buffer_printf(&path, "%s/manifest.ocdbt", from);
    buffer_append(&path, "", 1);
    bytes = file_of((const char *)path.bytes);
    files_write("d/manifest.ocdbt", bytes.bytes, bytes.length);
    buffer_free(&bytes);
    buffer_free(&path);
    free(from);
}

static bool describes_as(const char *part)
{
    char *described = archive_describe("d", &defaults);
    bool found = strstr(described, part) != NULL;
    if (!found)
        fprintf(stderr, "%s\n", described);
    free(described);
    return found;
}

static void check_damage(void)
{
    char data_file[300] = "";
    copy_database("database", data_file);
    struct buffer manifest = file_of("d/manifest.ocdbt"), data = file_of(data_file);
    CHECK(describes_as("plain F32 [5, 3] 0 1 2"));
    bool all_found = true;
    for (size_t i = 0; i < manifest.length; i++) { /* its checksum covers each byte */
        manifest.bytes[i] ^= 0x10;
        files_write("d/manifest.ocdbt", manifest.bytes, manifest.length);
        all_found &= describes_as("manifest.ocdbt: OCDBT: ");
        manifest.bytes[i] ^= 0x10;
    }
    CHECK(all_found);
    for (size_t length = 0; length < manifest.length; length += 7) {
        files_write("d/manifest.ocdbt", manifest.bytes, length);
        all_found &= describes_as("manifest.ocdbt: ");
    }
    CHECK(all_found);
    files_write("d/manifest.ocdbt", manifest.bytes, manifest.length);
    for (size_t i = 0; i < data.length; i++) { /* nodes have checksums, values have not: nothing crashes */
        data.bytes[i] ^= 0x10;
        files_write(data_file, data.bytes, data.length);
        char *described = archive_describe("d", &defaults);
        all_found &= *described != '\0';
        free(described);
        data.bytes[i] ^= 0x10;
    }
    CHECK(all_found);
    for (size_t length = 0; length < data.length; length += 11) {
        files_write(data_file, data.bytes, length);
        all_found &= describes_as("truncated");
    }
    CHECK(all_found);
    files_must(remove(data_file) == 0, "remove");
    CHECK(describes_as("No such file or directory"));
    buffer_free(&manifest);
    buffer_free(&data);
}

static void check_missing(void)
{
    static const char tree[] =
        "{\"tree_metadata\":{\"('gone',)\":{\"key_metadata\":[{\"key\":\"gone\",\"key_type\":2},{\"key\":1,"
        "\"key_type\":1}],\"value_metadata\":{\"value_type\":\"np.ndarray\",\"skip_deserialize\":false}}}}";
    char data_file[300] = "";
    copy_database("database", data_file);
    files_write("d/_METADATA", tree, sizeof tree - 1);
    CHECK(describes_as("_METADATA lists the array 'gone.1', which is missing"));
    files_must(remove("d/_METADATA") == 0, "remove");
}

/* Metadata of arrays: what is not supported is a refusal, what is damaged an error. */

static const struct {
    const char *text, *says; /* the refusal or the error; NULL: neither */
} metadata[] = {
#define V2(shape, chunks, dtype, rest)                                                                                 \
    "{\"zarr_format\":2,\"shape\":" shape ",\"chunks\":" chunks ",\"dtype\":\"" dtype "\"," rest "}"
    {V2("[3]", "[2]", "<f4", "\"compressor\":null"), NULL},
    {V2("[3]", "[2]", "<f4", "\"compressor\":{\"id\":\"blosc\"}"), "compressed by 'blosc', which wfs does not read"},
    {V2("[3]", "[2]", "<f4", "\"filters\":[{\"id\":\"delta\"}]"), "a filter 'delta', which wfs does not read"},
    {V2("[3]", "[2]", "<U4", "\"compressor\":null"), "elements of the type '<U4', which wfs does not read"},
    {V2("[3]", "[0]", "<f4", "\"order\":\"C\""), "x: damaged metadata: not an array of zarr 2 or 3"},
    {V2("[3]", "[2,2]", "<f4", "\"order\":\"C\""), "x: damaged metadata: not an array of zarr 2 or 3"},
    {V2("[-3]", "[2]", "<f4", "\"order\":\"C\""), "x: damaged metadata: not an array of zarr 2 or 3"},
    {V2("3", "[]", "<f4", "\"order\":\"C\""), "x: damaged metadata: not an array of zarr 2 or 3"},
    {V2("[4611686018427387904]", "[1]", "<f4", "\"order\":\"C\""), "x: damaged metadata: the array's size overflows"},
    {V2("[1]", "[4611686018427387904]", "<f4", "\"a\":1"), "x: damaged metadata: the array's size overflows"},
    {V2("[1]", "[1073741824]", "<f4", "\"a\":1"), "chunks of more than 1 GiB '?', which wfs does not read"},
    {"{\"zarr_format\":4}", "x: damaged metadata: not an array of zarr 2 or 3"},
    {"{\"zarr_format\":3,\"node_type\":\"group\"}", "x: damaged metadata: not an array of zarr 2 or 3"},
    {"[]", "x: damaged metadata: not an array of zarr 2 or 3"},
#define V3(codecs)                                                                                                     \
    "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[4,4],\"data_type\":\"float32\",\"chunk_grid\":{"            \
    "\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[4,4]}},\"codecs\":[" codecs "]}"
    {V3("{\"name\":\"bytes\"}"), NULL},
    {V3("{\"name\":\"bytes\"},{\"name\":\"blosc\"}"), "the codec 'blosc', which wfs does not read"},
    {V3("{\"name\":\"bytes\"},{\"name\":\"gzip\"},{\"name\":\"zstd\"}"),
     "several compressors '?', which wfs does not read"},
    {V3(""), "x: damaged metadata: not an array of zarr 2 or 3"},
    {V3("{\"name\":\"transpose\",\"configuration\":{\"order\":[1,1]}},{\"name\":\"bytes\"}"),
     "x: damaged metadata: not an array of zarr 2 or 3"},
    {V3("{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[3,4],\"codecs\":[{\"name\":\"bytes\"}]}}"),
     "x: damaged metadata: not an array of zarr 2 or 3"},
};

static void check_metadata(void)
{
    for (size_t i = 0; i < sizeof metadata / sizeof *metadata; i++) {
        struct arena *arena = arena_new();
        struct zarr_array array;
        struct error error = {""};
        const char *says = zarr_read(metadata[i].text, strlen(metadata[i].text), "x", arena, &array, &error)
                               ? array.refusal
                               : error.message;
        CHECK_TEXT(says != NULL ? says : "", metadata[i].says != NULL ? metadata[i].says : "");
        arena_free(arena);
    }
}

static void check_codecs(void)
{
    static const unsigned char zeros[] = {0x28, 0xb5, 0x2f, 0xfd, 0x20, 3, 0x19, 0, 0, 1, 2, 3}; /* one raw block */
    unsigned char out[4];
    size_t length;
    CHECK(codec_decode(CODEC_ZSTD, zeros, sizeof zeros, out, 3) == NULL && out[2] == 3);
    CHECK(codec_decode(CODEC_ZSTD, zeros, sizeof zeros, out, 4) != NULL);
    CHECK(codec_decode(CODEC_ZSTD, zeros, sizeof zeros, out, 2) != NULL);
    CHECK(codec_decode(CODEC_ZSTD, zeros, sizeof zeros - 1, out, 3) != NULL);
    CHECK(codec_decode(CODEC_CRC32C, (const unsigned char *)"123456789\x83\x92\x06\xe3", 13, (unsigned char[9]){0},
                       9) == NULL);
    CHECK(codec_decode(CODEC_CRC32C, (const unsigned char *)"12345\x83\x92\x06\xe3", 9, (unsigned char[9]){0}, 5) !=
          NULL);
    unsigned char *decoded = codec_decode_zstd(zeros, sizeof zeros, 3, &length);
    CHECK(decoded != NULL && length == 3 && decoded[0] == 1);
    free(decoded);
    CHECK(codec_decode_zstd(zeros, sizeof zeros, 2, &length) == NULL);
    CHECK(codec_decode_zstd(zeros, sizeof zeros - 1, 3, &length) == NULL);
}

int main(void)
{
    files_begin();
    check_directories();
    check_damage();
    check_missing();
    check_metadata();
    check_codecs();
    files_remove();
    return check_done();
}
