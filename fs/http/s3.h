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
#include "fs/http/repository.h"
#include "fs/http/route.h"

/* Reports whether the client of a request speaks S3: the request has a signature, a header or a parameter that only
 * such clients send. `route` is what route_parse() makes of its path, and of weight for parameters alone, which other
 * protocols may have, too. */
bool s3_is_asked(const struct http_request *request, const struct route *route);

/* Answers with a refusal, and returns true, unless the request is one to read, and has the secret's signature
 * (s3_signature.h). `secret` is NULL if anybody may read. */
bool s3_refuse(const struct http_request *request, const char *secret, struct answer *answer);

/* Answers ROUTE_S3. */
void s3_answer(const struct repositories *repositories, const struct http_request *request, const struct route *route,
               struct answer *answer);
