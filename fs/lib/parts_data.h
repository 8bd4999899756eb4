/* The bytes of a copy in parts (parts.h): writing the range of a part, comparing it with a copy that has its name,
 * checking what is on disk. `path` is the file, or the directory of the files. */
#pragma once

#include "fs/lib/parts.h"

/* Bytes of all files, one after the other. */
struct parts_range {
    uint64_t from, to;
};

/* Computes the range and writes it at its place, makes it durable, and sets the checksum (struct parts_marker). Makes
 * missing directories and empty files, too. */
bool parts_data_write(const struct parts_copy *copy, const char *path, struct parts_range range,
                      char checksum[SHA256_HEX + 1], struct error *error);

/* Computes the range and compares it, and the sizes of all files, with what is there. The error's code is EEXIST if
 * they differ. */
bool parts_data_compare(const struct parts_copy *copy, const char *path, struct parts_range range, struct error *error);

/* Reads the range from disk and sets its checksum. */
bool parts_data_check(const struct parts_copy *copy, const char *path, struct parts_range range,
                      char checksum[SHA256_HEX + 1], struct error *error);

/* Checks that all files have their sizes, now that all parts are done. */
bool parts_data_is_whole(const struct parts_copy *copy, const char *path, struct error *error);

/* Removes the files and directories of the copy, as far as they are there. */
void parts_data_remove(const struct parts_copy *copy, const char *path);
