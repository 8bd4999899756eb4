/* Answers that are files, whole or in part. */
#pragma once

#include "fs/http/answer.h"
#include "fs/http/repository.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Ends the entity tags of /ORG/NAME/FILE, which clients of S3 may ask for without a sign that they are: they take all
 * tags for an MD5 but those of objects that were uploaded in parts. */
#define S3_TAG_ENDING "-1"

/* Returns the media type of a file, by its name. */
const char *file_content_type(const char *name);

/* Returns an entity tag, in the arena: that of repository_plan() with an ending. */
const char *file_etag(const char etag[ETAG_TEXT], const char *ending, struct arena *arena);

/* Answers a request for a file of the repository's tree; HEAD requests plan the file and read nothing. `name` is for
 * messages and chooses the content type. The entity tag is the file's identity and `tag_ending`, "" if its form is of
 * no importance. Returns false, with no answer, if the file turns out to be absent. */
bool file_answer(const struct repository *repository, node_id node, const char *name, const char *tag_ending,
                 const struct http_request *request, struct answer *answer);

/* Chooses the part of answer->file to send by the headers of the request, or another status: 206, 304, 412, 416.
 * `modified` is the answer's Last-Modified; NULL: it has none. */
void file_answer_part(const struct http_request *request, const char *etag, const time_t *modified,
                      struct answer *answer);

/* Headers that make a request conditional, or ask for a part of a file.
 *
 * Source: RFC 9110, sections 8.8 (validators), 13 (conditional requests) and 14 (ranges). */

enum range { RANGE_WHOLE, RANGE_PART, RANGE_UNSATISFIABLE };

/* Parses a Range header; NULL: none was sent. Only one range of bytes is served: several, other units and invalid
 * headers stand for the whole file. A part is [*ret_first, *ret_first + *ret_length). */
enum range range_parse(const char *header, uint64_t size, uint64_t *ret_first, uint64_t *ret_length);

/* Reports whether a list of entity tags (If-Match, If-None-Match) has `etag`, which is strong and has its quotation
 * marks, or is "*". `weak`: W/"x" matches "x", too. */
bool etag_is_listed(const char *list, const char *etag, bool weak);

/* Reports whether an If-Modified-Since header names a date at or after `modified`. A header that is no date of the form
 * "Sun, 06 Nov 1994 08:49:37 GMT", the only one that is sent today, counts as none. */
bool unmodified_since(const char *header, time_t modified);
