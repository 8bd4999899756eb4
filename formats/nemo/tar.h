/* Tar archives, member by member: ustar, with the long names and sizes of pax and GNU. Nothing is unpacked.
 *
 * A damaged header, or a member that is cut off, is an error; tar programs take the first for the end of the archive.
 * Source: POSIX pax, "Interchange Format"; the GNU tar manual, "Basic Tar Format". */
#pragma once

#include "sources/source.h"

enum { TAR_MAX_NAME = 4096, TAR_MAX_PAX = 64 * 1024 };

struct tar {
    const struct source *source;
    uint64_t at; /* of the next header */
};

struct tar_member {
    char name[TAR_MAX_NAME + 1];
    bool is_file; /* and no link, folder or sparse file */
    uint64_t offset, size;
};

/* Reads the next member; *ret_more is false, without an error, at the end. */
bool tar_next(struct tar *tar, struct tar_member *ret_member, bool *ret_more, struct error *error);
