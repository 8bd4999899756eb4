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
#include "base/error.h"
#include "remote/uri.h"

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
