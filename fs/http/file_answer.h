/* Answers that are files, whole or in part. */
#pragma once

#include "fs/http/answer.h"
#include "fs/http/repository.h"

/* Ends the entity tags of /ORG/NAME/FILE, which clients of S3 may ask for without a sign that they are: they take all
 * tags for an MD5 but those of objects that were uploaded in parts. */
#define S3_TAG_ENDING "-1"

/* Answers a request for a file of the repository's tree; HEAD requests plan the file and read nothing. `name` is for
 * messages and chooses the content type. The entity tag is the file's identity and `tag_ending`, "" if its form is of
 * no importance. Returns false, with no answer, if the file turns out to be absent. */
bool file_answer(const struct repository *repository, node_id node, const char *name, const char *tag_ending,
                 const struct http_request *request, struct answer *answer);

/* Chooses the part of answer->file to send by the headers of the request, or another status: 206, 304, 412, 416.
 * `modified` is the answer's Last-Modified; NULL: it has none. */
void file_answer_part(const struct http_request *request, const char *etag, const time_t *modified,
                      struct answer *answer);
