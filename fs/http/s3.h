/* A read-only object store in the protocol of S3, with addresses in path style. A bucket is an owner of models, and a
 * key the name of a model and of one of its files: s3://ORG/NAME-GGUF/NAME-Q4_K_M.gguf.
 *
 * Answers ListBuckets, HeadBucket, GetBucketLocation, GetBucketVersioning, ListObjects in both versions, HeadObject and
 * GetObject. A listing plans the files on its page, since it has their sizes; with a delimiter, models are listed
 * without that. Models that are found only by their names are listed only if the prefix has the name. Errors are S3's
 * XML.
 *
 * Source: Amazon S3 API Reference. */
#pragma once

#include "fs/http/answer.h"
#include "fs/http/protocols.h"
#include "fs/http/query.h"

#include <time.h>

/* Reports whether the client of a request speaks S3: the request has a signature, a header or a parameter that only
 * such clients send. `route` is what route_parse() makes of its path, and of weight for parameters alone, which other
 * protocols may have, too. */
bool s3_is_asked(const struct http_request *request, const struct route *route);

/* Answers with a refusal, and returns true, unless the request is one to read, and has the secret's signature
 * (s3_signature.c). `secret` is NULL if anybody may read. */
bool s3_refuse(const struct http_request *request, const char *secret, struct answer *answer);

/* What the protocol's files share. */

/* Answers with a page of a bucket that exists: its keys, in the order of their bytes, from a query of either version.
 * Source: ListObjects and ListObjectsV2. */
void s3_list(const struct repositories *repositories, const struct query *query, const char *bucket,
             struct answer *answer);

/* Begins an answer in XML with the start of its root element, which the caller ends. */
struct buffer *s3_begin(struct answer *answer, const char *element);

/* Append an element: a text, a number, or a time, "2026-01-31T12:00:00.000Z". */
void s3_put(struct buffer *out, const char *element, const char *text);
void s3_put_number(struct buffer *out, const char *element, uint64_t number);
void s3_put_time(struct buffer *out, const char *element, time_t time);

/* Makes the answer an error of S3, in place of what it has. */
void s3_fail(struct answer *answer, unsigned status, const char *code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Signatures of requests to S3: AWS Signature Version 4, in the Authorization header or in the query of a presigned
 * address. The secret is the server's token; any key id, region and payload hash will do, since requests here have no
 * body.
 *
 * Source: AWS, "Authenticating Requests (AWS Signature Version 4)"; "Error responses". */

/* A refusal: an error code of S3 and its status. */
struct s3_refusal {
    unsigned status;
    const char *code, *message; /* static */
};

/* Reports whether a request is signed with the secret, for a time within 15 minutes of `now`, or is presigned and has
 * not expired; else sets the refusal. Takes a time that does not depend on where a signature differs. */
bool s3_signature_is_valid(const struct http_request *request, const char *secret, time_t now,
                           struct s3_refusal *ret_refusal);
