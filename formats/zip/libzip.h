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
#pragma once

#include "formats/zip/zip.h"

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
