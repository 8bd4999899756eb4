/* The directory of a zip archive, read strictly.
 *
 * Tensors are mapped in place in the archive, and any part of a deflated member can be read (deflate_index.h); libzip
 * can do neither, so wfs reads the directory itself. libzip then reads the archive a second time (libzip.c), must find
 * the same members, and reads whole members. Readers of zip archives resolve contradictions differently, which attacks
 * exploit; so every contradiction is an error:
 *
 * - the end record ends at the end of the file, and only one does; a zip64 end record is where its locator says,
 *   and the directory ends where the end record starts; one disk; the first local header is at offset 0;
 * - every entry of the directory is stored or deflated, not encrypted, of a non-empty name without NUL which no other
 *   entry has, not even after folding ASCII case (torch looks names up without regard to case);
 * - its local header says the same: name, method, flags, and CRC and sizes unless a data descriptor follows them;
 * - no two entries overlap, and a deflated one is at most 1032 times smaller than what it says it holds, 64 times where
 *   that is large;
 * - an extra area holds at most ZIP_MAX_FIELDS fields;
 * - libzip finds the same names, methods, sizes and CRCs.
 *
 * Source: APPNOTE.TXT 6.3.10, and torch's miniz, which deviates from it: local headers of "streamed" entries hold
 * zeros, their zip64 field may hold fewer numbers than the standard says, and every CRC is 0 if the user told torch
 * not to compute them (torch.serialization.set_crc32_options()).
 *
 * Everything lives in the arena it was read into, and libzip's memory is freed with it. */
#pragma once

#include "base/arena.h"
#include "sources/source.h"

/* torch and numpy write one field, programs that align members two or three. */
enum { ZIP_MAX_MEMBERS = 1 << 20, ZIP_MAX_DIRECTORY = 256 * 1024 * 1024, ZIP_MAX_FIELDS = 64 };

/* A deflated member may inflate to zip_inflated_constant bytes plus ZIP_INFLATED_RATIO for each stored byte: zeros
 * shrink to a thousandth, and reading them takes the time of their full size. */
static const uint64_t zip_inflated_constant = UINT64_C(256) << 20;
enum { ZIP_INFLATED_RATIO = 64 };

enum zip_method { ZIP_STORED = 0, ZIP_DEFLATED = 8 };

struct zip_member {
    const char *name; /* NUL-terminated */
    uint32_t name_length;
    uint16_t method, flags;   /* enum zip_method; general purpose bits */
    uint32_t crc;             /* of the content, checked by all functions that read it; 0: not computed */
    uint64_t header;          /* offset of the local header in the file */
    uint64_t offset;          /* of the first byte after the local header: the content, if stored */
    uint64_t compressed_size; /* bytes from `offset` on; all of them are inside the file */
    uint64_t size;            /* bytes of the content */
    /* deflated members: where the content starts in the inflated source (see deflate_index.h) */
    uint64_t inflated;
};

struct zip_directory {
    const struct source *source;
    struct zip_member *members; /* in the order of the directory */
    size_t n_members;
    const struct zip_member **by_name; /* sorted by name with ASCII case folded */
    struct libzip *second;             /* the second reader: libzip.c */
};

/* Reads the directory; the source must live until the arena is freed. The error names the file, the member at fault if
 * there is one, and the reason. */
bool zip_directory_read(struct zip_directory *directory, const struct source *source, struct arena *arena,
                        struct error *error);

/* Returns the member of exactly that name, or NULL. */
const struct zip_member *zip_directory_find(const struct zip_directory *directory, const char *name, size_t length);

/* Returns the whole content of a member, NUL-terminated, with its CRC checked if it has one, in memory that the caller
 * frees; fails above `limit` bytes. Like zip_member_check(), not safe for several threads at once. */
char *zip_member_read(const struct zip_directory *directory, const struct zip_member *member, size_t limit,
                      struct error *error);

/* Reports whether the directory has the CRC of a member's content. */
bool zip_member_has_crc(const struct zip_member *member);

/* Reads a member and checks its CRC; calls progress(context, n), unless it is NULL, for each n bytes. */
typedef void zip_progress(void *context, uint64_t n_bytes);
bool zip_member_check(const struct zip_directory *directory, const struct zip_member *member, zip_progress *progress,
                      void *context, struct error *error);

/* libzip as the second reader of an archive that zip.h has read.
 *
 * libzip opens the archive again, from the same source, with its own checks (ZIP_CHECKCONS), and must find the same
 * members: names, methods, sizes and CRCs in the same order. Readers of zip archives resolve contradictions
 * differently: if two independent readers agree, other programs will, too.
 *
 * libzip is written for trusted archives. Three limits bound the work that an attacker can cause:
 * - it may read twice what the headers hold, because a forged end record makes it read a directory again;
 * - names may not share its hash values, because it compares names with the same hash one by one;
 * - zip.h limits the number of extra fields, because libzip compares those of both headers one by one.
 *
 * Not safe for several threads at once. */

struct libzip;

/* Headers read before: libzip gets the same bytes, without a system call for each. */
struct zip_headers {
    const struct zip_piece {
        uint64_t offset; /* in the file */
        size_t length;
        const unsigned char *bytes;
    } * pieces; /* in the order of the file, the directory last */
    size_t n_pieces;
    uint64_t n_bytes; /* of all headers, in the pieces or not */
};

/* Opens the archive and compares it with its directory; needs the headers only during the call. Returns NULL if they
 * disagree or libzip refuses the archive; the error names the member, if known, and what each reader found. */
struct libzip *libzip_open(const struct zip_directory *directory, const struct zip_headers *headers,
                           struct error *error);

/* Reads member `index` to its end, and checks its CRC if it has one. The bytes go to `out` unless it is NULL;
 * progress(context, n), unless NULL, is called for each n bytes. */
bool libzip_read(struct libzip *libzip, size_t index, char *out, zip_progress *progress, void *context,
                 struct error *error);

void libzip_close(void *libzip);
