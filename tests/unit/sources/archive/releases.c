/* Archives of releases, which every later version reads: tests/data/archives/VERSION, with the SHA-256 of the originals
 * (tests/data/make_archive.py). */
#include "base/arena.h"
#include "sources/archive/location.h"
#include "sources/source.h"
#include "tests/unit/check.h"

#include <stdio.h>
#include <stdlib.h>

static bool has_line(const char *sums, const char *line)
{
    const char *found = strstr(sums, line);
    return found != NULL && (found == sums || found[-1] == '\n');
}

static void check_file(struct archive *archive, size_t member, size_t entry, const char *sums)
{
    const struct archive_member *of = archive_member(archive, member);
    struct error error;
    const struct files_entry *file = &archive_files(archive, member, &error)->entries[entry];
    struct source *source = archive_source(archive, member, entry, file->path, &error);
    unsigned char *bytes = memory_alloc((size_t)file->size + 1);
    char hex[SHA256_HEX + 1] = "", line[1000];
    if (source != NULL && source_read(source, 0, (size_t)file->size, bytes, &error)) {
        struct digest digest = digest_of(bytes, (size_t)file->size);
        digest_hex(&digest, hex);
    } else {
        fprintf(stderr, "%s\n", error.message);
    }
    snprintf(line, sizeof line, "%s  %s/%s\n", hex, of->name, file->path);
    CHECK_NAMED(has_line(sums, line), file->path);
    source_close(source);
    free(bytes);
}

static void check_release(const char *version)
{
    static char sums[100000];
    char path[1000];
    struct error error = {""};
    size_t n_files = 0, n_lines = 0;
    snprintf(path, sizeof path, "%s/archives/%s/SHA256SUMS", getenv("WFS_TEST_DATA"), version);
    FILE *file = fopen(path, "r");
    if (!CHECK(file != NULL))
        return;
    sums[fread(sums, 1, sizeof sums - 1, file)] = '\0';
    fclose(file);
    for (const char *at = sums; (at = strchr(at, '\n')) != NULL; at++)
        n_lines++;
    snprintf(path, sizeof path, "%s/archives/%s/archive.wfs", getenv("WFS_TEST_DATA"), version);
    struct location *location = archive_directory(path, &error);
    struct archive *archive = location != NULL ? archive_open(location, path, &error) : NULL;
    if (!CHECK(archive != NULL)) {
        fprintf(stderr, "%s\n", error.message);
        return;
    }
    for (size_t i = 0; i < archive_count(archive); i++) {
        const struct files *files = archive_files(archive, i, &error);
        for (size_t j = 0; CHECK(files != NULL) && j < files->n_entries; j++)
            if (files->entries[j].kind == FILES_FILE) {
                check_file(archive, i, j, sums);
                n_files++;
            }
    }
    CHECK(n_files == n_lines);
    archive_drop(archive);
}

int main(void)
{
    check_release("0.1.0");
    return check_done();
}
