#include "fs/cli/pack/archive_check.h"

#include "base/pool.h"
#include "base/report.h"
#include "fs/cli/terminal.h"
#include "sources/archive/location.h"

#include <inttypes.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 4 << 20 /* bytes */ };

/* A file that is read and hashed at once: one piece while the next one is decoded. */
struct checking {
    struct source *source;
    unsigned char *pieces[2];
    uint64_t number;       /* of the piece that is read */
    size_t length, before; /* of that piece, and of the one that is hashed; 0: there is none */
    struct sha256_ctx hash;
    bool is_read;
    struct error error;
};

static void do_half(void *context, size_t index)
{
    struct checking *checking = context;
    unsigned char *piece = checking->pieces[(checking->number + index) % 2];
    if (index != 0)
        sha256_update(&checking->hash, checking->before, piece);
    else if (checking->length > 0)
        checking->is_read =
            source_read(checking->source, checking->number * PIECE, checking->length, piece, &checking->error);
}

/* Reads a file; fails if its bytes are not the original's. */
static bool check_bytes(struct source *source, const struct files_entry *entry, struct progress *progress,
                        struct error *error)
{
    struct checking checking = {
        .source = source, .pieces = {memory_alloc(PIECE), memory_alloc(PIECE)}, .is_read = true};
    struct digest found;
    uint64_t left = entry->size;
    sha256_init(&checking.hash);
    for (; checking.is_read && (left > 0 || checking.before > 0); checking.number++) {
        checking.length = left < PIECE ? (size_t)left : PIECE;
        pool_run(2, do_half, &checking);
        progress_add(progress, checking.length);
        checking.before = checking.length;
        left -= checking.length;
    }
    sha256_digest(&checking.hash, sizeof found.bytes, found.bytes);
    free(checking.pieces[0]);
    free(checking.pieces[1]);
    if (!checking.is_read)
        *error = checking.error;
    return checking.is_read && (digest_same(&found, &entry->digest) ||
                                error_set(error, "damaged: its bytes do not have the SHA-256 of the original"));
}

bool archive_check_file(struct archive *archive, size_t member, size_t index, struct progress *progress,
                        struct error *error)
{
    const struct files *files = archive_files(archive, member, error);
    if (files == NULL)
        return false;
    const struct files_entry *entry = &files->entries[index];
    const char *name = archive_member(archive, member)->name;
    struct arena *arena = arena_new();
    const char *shown = *entry->path != '\0' ? arena_printf(arena, "%s/%s", name, entry->path) : name;
    struct source *source = archive_source(archive, member, index, shown, error);
    bool good = source != NULL && check_bytes(source, entry, progress, error);
    if (source != NULL && !good)
        error_prefix(error, "%s", shown);
    source_close(source);
    arena_free(arena);
    return good;
}

static bool is_below(const char *path, const char *folder)
{
    size_t length = strlen(folder);
    return strncmp(path, folder, length) == 0 && (length == 0 || path[length] == '\0' || path[length] == '/');
}

bool archive_check(struct archive *archive, size_t member, const char *path, struct archive_sums *sums,
                   struct error *error)
{
    const struct files *files = archive_files(archive, member, error);
    const char *name = archive_member(archive, member)->name;
    struct progress progress;
    if (files == NULL)
        return false;
    progress_begin(&progress, name, files->n_bytes);
    for (size_t i = 0; i < files->n_entries; i++) {
        const struct files_entry *entry = &files->entries[i];
        if (entry->kind != FILES_FILE || !is_below(entry->path, path))
            continue;
        struct error wrong;
        sums->n_files++;
        sums->n_bytes += entry->size;
        if (!archive_check_file(archive, member, i, &progress, &wrong)) {
            progress_hide(&progress);
            report("%s", wrong.message);
            sums->n_damaged++;
        }
    }
    progress_end(&progress);
    return true;
}

static int print_sums(const char *text, const struct archive_sums *sums)
{
    char size[SIZE_TEXT];
    print_name(text);
    printf(": %" PRIu64 " of %" PRIu64 " files have the SHA-256 of the originals, %s in all\n",
           sums->n_files - sums->n_damaged, sums->n_files, size_text(sums->n_bytes, size));
    return sums->n_damaged != 0;
}

int archive_verify(const char *text)
{
    enum { TROUBLE = 2 };
    struct archive_sums sums = {0};
    struct error error;
    const char *rest;
    bool is_archive, good = true;
    struct archive *archive = archive_of_text(text, &rest, &is_archive, &error);
    size_t length = strcspn(rest != NULL && archive != NULL ? rest : "", "/");
    if (archive == NULL) {
        report("%s", error.message);
        return TROUBLE;
    }
    size_t only = *rest != '\0' ? archive_find(archive, rest, length) : SIZE_MAX;
    if (*rest != '\0' && only == SIZE_MAX)
        good = error_set(&error, "%s has no source of that name", text);
    for (size_t i = 0; good && i < archive_count(archive); i++)
        if (only == SIZE_MAX || only == i)
            good = archive_check(archive, i, rest[length] == '/' ? rest + length + 1 : "", &sums, &error);
    archive_drop(archive);
    if (good)
        return print_sums(text, &sums);
    report("%s", error.message);
    return TROUBLE;
}

bool archive_holds(const char *source)
{
    struct error unused;
    const char *file;
    if (strstr(source, "://") != NULL)
        location_close(location_open(source, LOCATION_INSIDE, &file, &unused));
    return archive_prefix(source) > 0;
}
