/* Reads the XML that S3 and the stores that speak its protocol answer with: a page of a listing, and an error.
 *
 * Answers are input like any other: a document type, which could define entities, is refused; elements that have no
 * meaning here are skipped. Results live in the caller's arena.
 *
 * Source: Amazon S3 API Reference, ListObjectsV2 and Error Responses. */
#pragma once

#include "base/arena.h"
#include "base/error.h"

#include <stdint.h>

struct s3_object {
    const char *key;
    uint64_t size;             /* bytes */
    const char *etag;          /* with its quotation marks; opaque */
    const char *last_modified; /* "2026-01-31T12:00:00.000Z" */
};

struct s3_page {
    const struct s3_object *objects; /* without keys that end in '/': consoles make such objects for folders */
    size_t n_objects;
    const char *next; /* the continuation token of the next page; NULL: this page is the last */
};

/* Reads an answer to ListObjectsV2 that was asked for with encoding-type=url. A key with a NUL byte, or an object
 * without a key or a size, is an error. */
bool s3_page_read(const char *text, size_t length, struct arena *arena, struct s3_page *ret_page, struct error *error);

/* What an error answer says; members that it lacks are NULL. */
struct s3_failure {
    const char *code; /* "NoSuchKey" */
    const char *message;
    const char *region; /* the bucket's, in AuthorizationHeaderMalformed and PermanentRedirect */
};

/* Reads the body of an error answer. An empty or invalid body leaves all members NULL. */
struct s3_failure s3_failure_read(const char *text, size_t length, struct arena *arena);
