#include "fs/lib/archives.h"

#include "formats/checkpoint.h"
#include "formats/zip/zip.h"
#include "fs/lib/stage.h"
#include "models/formats.h"
#include "sources/location.h"

#include <string.h>

/* Reports whether a file can be read and begins as a zip archive does. */
static bool is_archive(const struct source *source)
{
    char head[4];
    struct error unused;
    return source_is_file(source) && source_size(source) >= sizeof head &&
           source_read(source, 0, sizeof head, head, &unused) && memcmp(head, "PK\3\4", sizeof head) == 0;
}

static void add_to_stage(void *context, uint64_t n_bytes)
{
    stage_add(n_bytes);
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

static void check_members(const struct zip_directory *directory, struct arena *arena, struct checked_archive *archive)
{
    const char **damages = arena_array(arena, directory->n_members + 1, sizeof *damages);
    struct error error;
    archive->damages = damages;
    stage_begin(archive->name, archive->n_bytes);
    for (size_t i = 0; i < directory->n_members; i++)
        if (!zip_member_check(directory, &directory->members[i], add_to_stage, NULL, &error))
            damages[archive->n_damages++] = arena_strdup(arena, error.message);
    stage_end();
}

static void check_archive(const struct source *source, archive_taker *take, void *context)
{
    struct arena *arena = arena_new();
    struct zip_directory directory;
    struct error error;
    const char *unread = error.message;
    struct checked_archive archive = {.name = source_name(source)};
    if (zip_directory_read(&directory, source, arena, &error)) {
        archive.n_members = directory.n_members;
        archive.n_unknown = count_without_crc(&directory);
        archive.n_bytes = content_bytes(&directory);
        check_members(&directory, arena, &archive);
    } else {
        archive.damages = &unread;
        archive.n_damages = 1;
    }
    take(context, &archive);
    arena_free(arena);
}

size_t archives_check(const struct checkpoint *checkpoint, archive_taker *take, void *context)
{
    size_t n_archives = 0;
    for (size_t i = 0; i < checkpoint->n_sources; i++)
        if (is_archive(checkpoint->sources[i])) {
            check_archive(checkpoint->sources[i], take, context);
            n_archives++;
        }
    return n_archives;
}

size_t archives_check_named(const char *name, archive_taker *take, void *context, struct error *error)
{
    const struct open_options plain = {0};
    struct error unused;
    struct source *file = location_open_file(name, &unused);
    bool is_one = file != NULL && is_archive(file);
    if (is_one)
        check_archive(file, take, context);
    source_close(file);
    if (is_one)
        return 1;
    error_set(
        error,
        "%s: not a zip archive of torch or numpy, so it has no checksums; to compare a GGUF, name its SOURCE, too",
        name);
    const struct checkpoint *checkpoint = checkpoint_open(name, formats, &plain, error);
    size_t n_archives = checkpoint != NULL ? archives_check(checkpoint, take, context) : 0;
    checkpoint_close(checkpoint);
    return n_archives;
}
