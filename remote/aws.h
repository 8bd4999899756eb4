/* The settings of AWS's own tools, for s3:// sources: credentials, region and endpoint, from the environment and from
 * ~/.aws. None of them comes from a command line, and none may appear in any output but the names of files and
 * profiles.
 *
 * Credentials are, in this order: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN; those of the profile
 * AWS_PROFILE (or "default") in AWS_SHARED_CREDENTIALS_FILE (or ~/.aws/credentials); those of the profile in
 * AWS_CONFIG_FILE (or ~/.aws/config). Without any, requests are anonymous. The region is AWS_REGION,
 * AWS_DEFAULT_REGION, the profile's, or us-east-1; the endpoint AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL or the profile's.
 * An empty variable counts as unset.
 *
 * Source: AWS, "Configuration and credential file settings in the AWS CLI". */
#pragma once

#include "base/arena.h"
#include "base/buffer.h"
#include "base/encodings.h"
#include "base/error.h"
#include "remote/uri.h"

#include <time.h>

struct aws_settings {
    const char *key_id, *secret; /* NULL: requests are anonymous */
    const char *token;           /* NULL: the credentials are not temporary */
    const char *region;
    const char *endpoint; /* a URL without a slash at the end; NULL: Amazon's own */
};

/* Reads them now, into `arena`; files may have changed since the last call, as those of temporary credentials do. Fails
 * if a file cannot be read although it exists, if AWS_PROFILE names a profile that no file has, or if a key has no
 * secret. */
bool aws_settings_read(struct arena *arena, struct aws_settings *ret_settings, struct error *error);

/* Returns the paths of the credentials file and of the config file. */
void aws_settings_files(struct arena *arena, const char *ret_files[2]);

/* Signs requests with the credentials that AWS's own tools would use (aws_settings_read()), for http.h.
 *
 * Temporary credentials are read again each minute: the tool that made them replaces them before they end. Safe from
 * any thread. */

/* Appends the headers of a signature for a GET request now, a line each; nothing where there are no credentials. */
void aws_sign(const char *region, const struct uri *uri, struct buffer *headers);

/* Signs requests without a body for S3 and the stores that speak its protocol: AWS Signature Version 4. A server
 * computes the same signature to judge requests.
 *
 * A server computes the signature again from the request that arrives. The caller therefore sends the path and the
 * query as they were signed, byte for byte, and all headers that sigv4_append_headers() writes. Other headers, such as
 * Range and If-Match, are not signed and may be added.
 *
 * Source: AWS, "Signature Version 4 signing process" and "Authenticating Requests (Authorization Header)". */

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
