/* Signatures of requests to S3: AWS Signature Version 4, in the Authorization header or in the query of a presigned
 * address. The secret is the server's token; any key id, region and payload hash will do, since requests here have no
 * body.
 *
 * Source: AWS, "Authenticating Requests (AWS Signature Version 4)"; "Error responses". */
#pragma once

#include "fs/http/answer.h"

#include <time.h>

/* A refusal: an error code of S3 and its status. */
struct s3_refusal {
    unsigned status;
    const char *code, *message; /* static */
};

/* Reports whether a request is signed with the secret, for a time within 15 minutes of `now`, or is presigned and has
 * not expired; else sets the refusal. Takes a time that does not depend on where a signature differs. */
bool s3_signature_is_valid(const struct http_request *request, const char *secret, time_t now,
                           struct s3_refusal *ret_refusal);
