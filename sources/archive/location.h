/* Archives as locations: ARCHIVE, ARCHIVE/NAME and what is below, for code that names archives. */
#pragma once

#include "sources/archive/archive.h"

/* Returns how many bytes of a text name the archive that it leads into, or 0. A URL leads into an archive that
 * location_open() has opened in this process. */
size_t archive_prefix(const char *text);

/* Opens the archive of a text, and returns what follows the archive in the text: "" or "NAME/...". NULL, without an
 * error if the text leads into no archive. */
struct archive *archive_of_text(const char *text, const char **ret_rest, bool *ret_is_archive, struct error *error);

/* Like location_real_path(), for texts that lead into an archive; NULL for others. */
const char *archive_real_path(const char *text, struct arena *arena);

/* Makes the location of a folder of the archive, "" for all sources, or of the folder of a file, whose name *ret_file
 * becomes unless `ret_file` is NULL. Takes the archive, even on failure. */
struct location *archive_location(struct archive *archive, const char *path, const char **ret_file,
                                  struct error *error);

/* Opens a location of a text that leads into an archive. If it leads into none, returns NULL, and false in
 * *ret_is_archive. */
struct location *archive_location_open(const char *text, const char **ret_file, bool *ret_is_archive,
                                       struct error *error);

/* Turns the location of a folder on a server into that of the archive there; returns other locations unchanged. */
struct location *archive_location_of(struct location *location, const char *text, struct error *error);

/* Looks for an archive in the folders above a URL that names nothing, and opens the location of the URL in it. NULL,
 * perhaps without an error, if there is none. */
typedef struct location *archive_opener(const char *text, enum location_links links, const char **ret_file,
                                        struct error *error);
struct location *archive_location_above(const char *text, archive_opener *open, const char **ret_file,
                                        struct error *error);

/* Opens the directory of an archive on this machine as an ordinary location, for archive_open_to_add(). */
struct location *archive_directory(const char *path, struct error *error);
