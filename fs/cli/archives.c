#include "fs/cli/archives.h"

#include "base/report.h"
#include "base/text.h"
#include "formats/checkpoint.h"
#include "formats/zip/zip.h"
#include "fs/cli/progress.h"
#include "models/formats.h"
#include "sources/location.h"

#include <stdio.h>
#include <string.h>

/* Reports whether a file can be read and begins as a zip archive does. */
static bool is_archive(const struct source *source)
{
    char head[4];
    struct error unused;
    return source_is_file(source) && source_size(source) >= sizeof head &&
           source_read(source, 0, sizeof head, head, &unused) && memcmp(head, "PK\3\4", sizeof head) == 0;
}

static void add_progress(void *context, uint64_t n_bytes)
{
    progress_add(context, n_bytes);
}

static uint64_t content_bytes(const struct zip_directory *directory)
{
    uint64_t n_bytes = 0;
    for (size_t i = 0; i < directory->n_members; i++)
        n_bytes += directory->members[i].size;
    return n_bytes;
}

/* Returns the number of members that nothing can be compared with: a damaged one among them is not noticed. */
static size_t count_without_crc(const struct zip_directory *directory)
{
    size_t n = 0;
    for (size_t i = 0; i < directory->n_members; i++)
        n += !zip_member_has_crc(&directory->members[i]);
    return n;
}

/* Returns the number of damaged members. */
static size_t check_members(const struct zip_directory *directory, const char *name)
{
    struct progress progress;
    size_t n_damaged = 0;
    progress_begin(&progress, name, content_bytes(directory));
    for (size_t i = 0; i < directory->n_members; i++) {
        struct error error;
        if (zip_member_check(directory, &directory->members[i], add_progress, &progress, &error))
            continue;
        progress_hide(&progress);
        report("%s", error.message);
        n_damaged++;
    }
    progress_end(&progress);
    return n_damaged;
}

/* Prints a line on stdout for the archive, if its directory can be read. Never returns ARCHIVES_NONE. */
static enum archives check_archive(const struct source *source)
{
    char size[SIZE_TEXT];
    struct error error;
    struct zip_directory directory;
    struct arena *arena = arena_new();
    size_t n_damaged = 1, n_unknown;
    if (!zip_directory_read(&directory, source, arena, &error)) {
        report("%s", error.message);
    } else {
        n_damaged = check_members(&directory, source_name(source));
        n_unknown = count_without_crc(&directory);
        text_put(source_name(source), stdout);
        printf(": %zu of %zu members have the CRC of the directory, %s in all",
               directory.n_members - n_damaged - n_unknown, directory.n_members,
               size_text(content_bytes(&directory), size));
        if (n_unknown > 0)
            printf("; of %zu members the directory has no CRC", n_unknown);
        putchar('\n');
    }
    arena_free(arena);
    return n_damaged != 0 ? ARCHIVES_DAMAGED : ARCHIVES_WHOLE;
}

enum archives check_archives(const struct checkpoint *checkpoint)
{
    enum archives found = ARCHIVES_NONE;
    for (size_t i = 0; i < checkpoint->n_sources; i++) {
        enum archives one = is_archive(checkpoint->sources[i]) ? check_archive(checkpoint->sources[i]) : ARCHIVES_NONE;
        found = one > found ? one : found;
    }
    return found;
}

enum archives check_named_archives(const char *name, struct error *error)
{
    const struct open_options plain = {0};
    struct error unused;
    enum archives found = ARCHIVES_NONE;
    struct source *file = location_open_file(name, &unused);
    if (file != NULL && is_archive(file)) {
        found = check_archive(file);
        source_close(file);
        return found;
    }
    source_close(file);
    error_set(
        error,
        "%s: not a zip archive of torch or numpy, so it has no checksums; to compare a GGUF, name its SOURCE, too",
        name);
    const struct checkpoint *checkpoint = checkpoint_open(name, formats, &plain, error);
    if (checkpoint != NULL)
        found = check_archives(checkpoint);
    checkpoint_close(checkpoint);
    return found;
}
