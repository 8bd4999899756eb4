/* Listings of a bucket, for s3.h: a page of its keys, in the order of their bytes, from a query of either version.
 *
 * Source: Amazon S3 API Reference, ListObjects and ListObjectsV2. */
#pragma once

#include "fs/http/answer.h"
#include "fs/http/query.h"
#include "fs/http/repository.h"

/* Answers with a page. The bucket exists. */
void s3_list(const struct repositories *repositories, const struct query *query, const char *bucket,
             struct answer *answer);
