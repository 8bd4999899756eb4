/* The index of an archive and a manifest, with a NUL between them. The index finds the manifest by any digest.
 *
 * Holds: a refusal is one line, and the members that are taken have names of folders, in order. */
#include "sources/archive/archive.h"
#include "sources/location_scheme.h"
#include "tests/fuzz/fuzz.h"

struct documents_of_archive {
    const uint8_t *index, *manifest;
    size_t index_length, manifest_length;
};

static struct source *open_blob(const void *context, const char *path, const char *name, struct error *error)
{
    const struct documents_of_archive *input = context;
    bool is_index = strcmp(path, ARCHIVE_INDEX_FILE) == 0;
    return source_of_bytes(is_index ? input->index : input->manifest,
                           is_index ? input->index_length : input->manifest_length, name);
}

static bool identify_nothing(const void *context, const char *path, struct source_identity *ret_identity,
                             bool *ret_inside)
{
    return false;
}

static void close_nothing(void *context)
{
}

static void require_members(const struct archive *archive)
{
    for (size_t i = 0; i < archive_count(archive); i++) {
        const char *name = archive_member(archive, i)->name;
        require(*name != '\0' && strchr(name, '/') == NULL && strcmp(name, "..") != 0 && strcmp(name, ".") != 0);
        require(i == 0 || strcmp(archive_member(archive, i - 1)->name, name) < 0);
        require(archive_find(archive, name, strlen(name)) == i);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct location_ops ops = {.close = close_nothing, .identify = identify_nothing, .open = open_blob};
    const uint8_t *end = size > 0 ? memchr(data, '\0', size) : NULL;
    size_t length = end != NULL ? (size_t)(end - data) : size;
    struct documents_of_archive input = {data, end != NULL ? end + 1 : data + size, length,
                                         end != NULL ? size - length - 1 : 0};
    struct error error = {""};
    struct archive *archive = archive_open(location_new(&ops, &input), "archive", &error);
    if (archive == NULL)
        require_one_line(&error);
    else
        require_members(archive);
    archive_drop(archive);
    return 0;
}
