/* The checksums of zip archives: torch and numpy files. */
#pragma once

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

struct checked_archive {
    const char *name;
    size_t n_members, n_unknown; /* of these the directory has no CRC: damage is not noticed */
    uint64_t n_bytes;            /* contents of the members */
    const char *const *damages;  /* a line for each damaged member; if n_members is 0, why there is no directory */
    size_t n_damages;
};

/* Takes an archive that was checked. It lives as long as the call. */
typedef void archive_taker(void *context, const struct checked_archive *archive);

/* Checks the archives among a checkpoint's weights files, each as a stage (fs/lib/stage.h): reads every member and
 * compares its CRC. Returns the number of archives. */
struct checkpoint;
size_t archives_check(const struct checkpoint *checkpoint, archive_taker *take, void *context);

/* Checks an archive itself, or those among the weights files of a directory or a hub folder. Returns 0, with the
 * reason, if there is none. */
size_t archives_check_named(const char *name, archive_taker *take, void *context, struct error *error);
