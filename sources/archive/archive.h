/* Archives: OCI image layouts whose manifests hold sources that `wfs pack` stored (docs/archive.md).
 *
 * An archive lies at a location: a directory, or a folder on a server. It is read when it is opened; what is added or
 * removed later is not seen. While it is open and has the same index, opening it again gives the same archive. Lists of
 * files and indices of packs are read when they are first needed. Archives are counted: sources and locations that are
 * made from one hold it. All functions are safe from any number of threads. */
#pragma once

#include "sources/archive/files.h"
#include "sources/archive/pack.h"
#include "sources/location.h"

#define ARCHIVE_LAYOUT_FILE   "oci-layout"
#define ARCHIVE_INDEX_FILE    "index.json"
#define ARCHIVE_BLOBS         "blobs/sha256"
#define ARCHIVE_NAME_KEY      "org.opencontainers.image.ref.name"
#define ARCHIVE_INDEX_TYPE    "application/vnd.oci.image.index.v1+json"
#define ARCHIVE_MANIFEST_TYPE "application/vnd.oci.image.manifest.v1+json"
#define ARCHIVE_EMPTY_TYPE    "application/vnd.oci.empty.v1+json"
#define ARCHIVE_TYPE          "application/vnd.wfs.archive.v1"
#define ARCHIVE_FILES_TYPE    "application/vnd.wfs.archive.files.v1+zstd"
#define ARCHIVE_PACK_TYPE     "application/vnd.wfs.archive.pack.v1+zstd"

enum { ARCHIVE_DOCUMENT = 4 << 20 /* bytes of the index, or of a manifest */ };

/* A blob, as a descriptor names it. */
struct archive_blob {
    struct digest digest;
    uint64_t size;
};

/* A source in an archive. */
struct archive_member {
    const char *name;
    struct archive_blob manifest, list;
    const struct archive_blob *packs;
    size_t n_packs;
};

struct archive;

/* Reports whether a location is an OCI image layout. */
bool archive_is_at(const struct location *location);

/* Opens the archive at a location, which it takes, even on failure. `shown` begins its errors. A directory's layout
 * file is locked (flock, shared) as long as the archive is open: lists and packs are opened late, and pruning removes
 * those that the newest index does not name. */
struct archive *archive_open(struct location *location, const char *shown, struct error *error);

/* For the process that changes an archive: takes no lock, and reads an archive without a manifest as an empty one. */
struct archive *archive_open_to_add(struct location *location, const char *shown, struct error *error);

struct archive *archive_hold(struct archive *archive); /* returns it */
void archive_drop(struct archive *archive);            /* NULL is allowed */

const char *archive_shown(const struct archive *archive);

/* The members, sorted by name. */
size_t archive_count(const struct archive *archive);
const struct archive_member *archive_member(const struct archive *archive, size_t index);

/* Returns the number of the member of that name; SIZE_MAX: none. */
size_t archive_find(const struct archive *archive, const char *name, size_t length);

/* Returns the list of a member's files, which lives as long as the archive. NULL on failure. */
const struct files *archive_files(struct archive *archive, size_t member, struct error *error);

/* Returns a pack of a member, which lives as long as the archive. NULL on failure. */
struct pack *archive_pack(struct archive *archive, size_t member, size_t pack, struct error *error);

/* Opens a blob, which the archive must outlive. NULL on failure. */
struct source *archive_open_blob(const struct archive *archive, const struct digest *digest, struct error *error);

/* Makes the source of a file, which holds the archive. NULL on failure. */
struct source *archive_source(struct archive *archive, size_t member, size_t entry, const char *name,
                              struct error *error);

/* Fills in what identifies a file, without opening its packs. */
void archive_identify(const struct archive *archive, size_t member, const struct files_entry *entry,
                      struct source_identity *ret_identity);

/* Returns the archive that a source of archive_source() belongs to, and its member; NULL for other sources. */
struct archive *archive_of_source(const struct source *source, size_t *ret_member);

/* Returns the SHA-256 that the archive states of such a source; NULL for other sources. Lives as long as the source. */
const struct digest *archive_digest_of_source(const struct source *source);
