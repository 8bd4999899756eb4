/* Signs requests without a body for S3 and the stores that speak its protocol: AWS Signature Version 4. A server
 * computes the same signature to judge requests.
 *
 * A server computes the signature again from the request that arrives. The caller therefore sends the path and the
 * query as they were signed, byte for byte, and all headers that sigv4_append_headers() writes. Other headers, such as
 * Range and If-Match, are not signed and may be added.
 *
 * Source: AWS, "Signature Version 4 signing process" and "Authenticating Requests (Authorization Header)". */
#pragma once

#include "base/buffer.h"
#include "base/sha256.h"

#include <time.h>

struct sigv4_key {
    const char *id, *secret;
    const char *token;  /* of temporary credentials; NULL: none */
    const char *region; /* "us-east-1" */
};

/* The path and the query are percent-encoded, once, as percent_encode() does, and the path keeps its slashes. */
struct sigv4_request {
    const char *method; /* "GET" or "HEAD" */
    const char *host;   /* as the Host header has it: with ":port" unless the port is the scheme's own */
    const char *path;   /* begins with '/' */
    const char *query;  /* its parameters are sorted by name, as bytes; "": none */
};

/* Appends the headers "x-amz-...: value\n" and "Authorization: value\n", for a request that is sent at `now`. Servers
 * refuse a time that is more than 15 minutes off. */
void sigv4_append_headers(const struct sigv4_request *request, const struct sigv4_key *key, time_t now,
                          struct buffer *out);

/* Writes the signature of a canonical request: 64 lower-case digits and a NUL. `timestamp` is "20260131T120000Z". */
void sigv4_sign(const char *canonical, size_t length, const char *timestamp, const char *region, const char *secret,
                char signature[SHA256_HEX + 1]);
