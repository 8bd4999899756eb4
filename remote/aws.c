#include "remote/aws.h"

#include "base/lock.h"
#include "base/report.h"
#include "base/text.h"

#include <errno.h>
#include <nettle/base16.h>
#include <nettle/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Settings. */

struct profile {
    const char *name;
    bool found; /* in a file */
    const char *key_id, *secret, *token, *region, *endpoint;
};

static const struct {
    const char *name;
    size_t member;
} settings[] = {
    {"aws_access_key_id", offsetof(struct profile, key_id)},
    {"aws_secret_access_key", offsetof(struct profile, secret)},
    {"aws_session_token", offsetof(struct profile, token)},
    {"region", offsetof(struct profile, region)},
    {"endpoint_url", offsetof(struct profile, endpoint)},
};

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && *value != '\0' ? value : NULL;
}

static const char *first_of(const char *a, const char *b)
{
    return a != NULL ? a : b;
}

/* Cuts blanks at both ends, in place. */
static char *trim(char *text)
{
    text += strspn(text, " \t\r\n");
    size_t length = strlen(text);
    while (length > 0 && strchr(" \t\r\n", text[length - 1]) != NULL)
        text[--length] = '\0';
    return text;
}

/* Reports whether a line "[NAME]", or "[profile NAME]", begins the section of the profile. */
static bool names_profile(char *line, const char *profile)
{
    char *end = strchr(line, ']');
    if (end == NULL)
        return false;
    *end = '\0';
    char *name = trim(line + 1);
    if (text_starts_with(name, "profile ") || text_starts_with(name, "profile\t"))
        name = trim(name + strlen("profile"));
    size_t length = strlen(name);
    if (length >= 2 && name[0] == '"' && name[length - 1] == '"') {
        name[length - 1] = '\0';
        name++;
    }
    return strcmp(name, profile) == 0;
}

/* A setting that an earlier file has is kept. */
static void take_setting(struct profile *profile, char *line, struct arena *arena)
{
    char *equals = strchr(line, '=');
    if (equals == NULL)
        return;
    *equals = '\0';
    const char *name = trim(line), *value = trim(equals + 1);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        const char **member = (const char **)((char *)profile + settings[i].member);
        if (strcmp(name, settings[i].name) == 0 && *member == NULL && *value != '\0')
            *member = arena_strdup(arena, value);
    }
}

/* Reads the profile's section of a file; a missing file has none. */
static bool read_profile(const char *path, struct profile *profile, struct arena *arena, struct error *error)
{
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return errno == ENOENT || errno == ENOTDIR || error_set_errno(error, errno, "%s", path);
    char *line = NULL;
    size_t capacity = 0;
    bool inside = false;
    while (getline(&line, &capacity, file) >= 0) {
        if (*line == '[') {
            inside = names_profile(line, profile->name);
            profile->found |= inside;
        } else if (inside && strchr("#; \t", *line) == NULL) /* what is indented belongs to a nested setting */
            take_setting(profile, line, arena);
    }
    free(line);
    bool read = !ferror(file) || error_set_errno(error, errno, "%s", path);
    fclose(file);
    return read;
}

static const char *file_path(const char *name, const char *below_home, struct arena *arena)
{
    const char *path = variable(name), *home = variable("HOME");
    return path != NULL ? path : arena_printf(arena, "%s/%s", home != NULL ? home : "", below_home);
}

void aws_settings_files(struct arena *arena, const char *ret_files[2])
{
    ret_files[0] = file_path("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials", arena);
    ret_files[1] = file_path("AWS_CONFIG_FILE", ".aws/config", arena);
}

/* The credentials file comes first: its keys count where both files have some. */
static bool read_files(struct profile *profile, struct arena *arena, struct error *error)
{
    const char *files[2];
    aws_settings_files(arena, files);
    const char *credentials = files[0], *config = files[1];
    if (!read_profile(credentials, profile, arena, error) || !read_profile(config, profile, arena, error))
        return false;
    if (!profile->found && variable("AWS_PROFILE") != NULL)
        return error_set(error, "neither %s nor %s has the profile '%s' of AWS_PROFILE", credentials, config,
                         profile->name);
    return true;
}

bool aws_settings_read(struct arena *arena, struct aws_settings *ret_settings, struct error *error)
{
    struct profile profile = {.name = first_of(variable("AWS_PROFILE"), "default")};
    if (!read_files(&profile, arena, error))
        return false;
    const char *key_id = variable("AWS_ACCESS_KEY_ID");
    bool from_environment = key_id != NULL;
    struct aws_settings result = {
        from_environment ? key_id : profile.key_id,
        from_environment ? variable("AWS_SECRET_ACCESS_KEY") : profile.secret,
        from_environment ? variable("AWS_SESSION_TOKEN") : profile.token,
        first_of(first_of(variable("AWS_REGION"), variable("AWS_DEFAULT_REGION")),
                 first_of(profile.region, "us-east-1")),
        first_of(first_of(variable("AWS_ENDPOINT_URL_S3"), variable("AWS_ENDPOINT_URL")), profile.endpoint),
    };
    if ((result.key_id == NULL) != (result.secret == NULL))
        return error_set(error, "the AWS credentials %s have no %s",
                         from_environment ? "in the environment"
                                          : arena_printf(arena, "of the profile '%s'", profile.name),
                         result.secret == NULL ? "secret key" : "key id");
    if (result.endpoint != NULL && text_ends_with(result.endpoint, "/"))
        result.endpoint = arena_strndup(arena, result.endpoint, strlen(result.endpoint) - 1);
    *ret_settings = result;
    return true;
}

enum { FRESH_SECONDS = 60 };

static struct lock lock = LOCK_INITIALIZER;
static struct arena *kept; /* holds the settings; NULL: they were not read yet */
static struct aws_settings current;
static time_t read_at;

/* Reads the settings where that is due. Settings that cannot be read leave the old ones. Called with the lock held. */
static void refresh(time_t now)
{
    struct aws_settings found;
    struct error error;
    if (kept != NULL && (current.token == NULL || now - read_at < FRESH_SECONDS))
        return;
    struct arena *arena = arena_new();
    if (!aws_settings_read(arena, &found, &error)) {
        report("%s", error.message);
        arena_free(arena);
        return;
    }
    arena_free(kept);
    kept = arena;
    current = found;
    read_at = now;
}

/* The Host header: the origin without its scheme, and without the port that the scheme has anyway. */
static const char *host_of(const struct uri *uri, struct arena *arena)
{
    const char *host = strstr(uri->origin, "://") + strlen("://"), *port = strrchr(host, ':');
    bool is_usual = strcmp(port, strncmp(uri->origin, "https", 5) == 0 ? ":443" : ":80") == 0;
    return is_usual ? arena_strndup(arena, host, (size_t)(port - host)) : host;
}

void aws_sign(const char *region, const struct uri *uri, struct buffer *headers)
{
    struct arena *arena = arena_new();
    time_t now = time(NULL);
    const struct sigv4_request request = {"GET", host_of(uri, arena), uri->path, uri->query};
    lock_take(&lock);
    refresh(now);
    const struct sigv4_key key = {current.key_id, current.secret, current.token, region};
    if (key.id != NULL)
        sigv4_append_headers(&request, &key, now, headers);
    lock_drop(&lock);
    arena_free(arena);
}

/* Signatures. */

/* SHA-256 of the empty body. */
static const char body_hash[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

enum { DATE = 8, TIMESTAMP = 16 }; /* "20260131", "20260131T120000Z" */

static void append_own_headers(const struct sigv4_key *key, const char *timestamp, const char *separator,
                               struct buffer *out)
{
    buffer_printf(out, "x-amz-content-sha256:%s%s\n", separator, body_hash);
    buffer_printf(out, "x-amz-date:%s%s\n", separator, timestamp);
    if (key->token != NULL)
        buffer_printf(out, "x-amz-security-token:%s%s\n", separator, key->token);
}

static const char *signed_headers(const struct sigv4_key *key)
{
    return key->token != NULL ? "host;x-amz-content-sha256;x-amz-date;x-amz-security-token"
                              : "host;x-amz-content-sha256;x-amz-date";
}

static struct buffer canonical_request(const struct sigv4_request *request, const struct sigv4_key *key,
                                       const char *timestamp)
{
    struct buffer text = {0};
    buffer_printf(&text, "%s\n%s\n%s\nhost:%s\n", request->method, request->path, request->query, request->host);
    append_own_headers(key, timestamp, "", &text);
    buffer_printf(&text, "\n%s\n%s", signed_headers(key), body_hash);
    return text;
}

static void hmac(const void *key, size_t key_length, const char *text, uint8_t digest[SHA256_DIGEST_SIZE])
{
    struct hmac_sha256_ctx context;
    hmac_sha256_set_key(&context, key_length, key);
    hmac_sha256_update(&context, strlen(text), (const uint8_t *)text);
    hmac_sha256_digest(&context, SHA256_DIGEST_SIZE, digest);
}

static void derive_signing_key(const char *key, const char *date, const char *region,
                               uint8_t digest[SHA256_DIGEST_SIZE])
{
    struct buffer secret = {0};
    buffer_printf(&secret, "AWS4%s", key);
    hmac(secret.bytes, secret.length, date, digest);
    memset(secret.bytes, 0, secret.length);
    buffer_free(&secret);
    hmac(digest, SHA256_DIGEST_SIZE, region, digest);
    hmac(digest, SHA256_DIGEST_SIZE, "s3", digest);
    hmac(digest, SHA256_DIGEST_SIZE, "aws4_request", digest);
}

void sigv4_sign(const char *canonical, size_t length, const char *timestamp, const char *region, const char *secret,
                char signature[SHA256_HEX + 1])
{
    char date[DATE + 1] = "", hash[SHA256_HEX + 1];
    uint8_t digest[SHA256_DIGEST_SIZE];
    struct buffer to_sign = {0};
    memcpy(date, timestamp, DATE);
    sha256_hex(canonical, length, hash);
    buffer_printf(&to_sign, "AWS4-HMAC-SHA256\n%s\n%s/%s/s3/aws4_request\n%s", timestamp, date, region, hash);
    buffer_append(&to_sign, "", 1);
    derive_signing_key(secret, date, region, digest);
    hmac(digest, sizeof digest, (const char *)to_sign.bytes, digest);
    base16_encode_update(signature, sizeof digest, digest);
    signature[SHA256_HEX] = '\0';
    buffer_free(&to_sign);
}

void sigv4_append_headers(const struct sigv4_request *request, const struct sigv4_key *key, time_t now,
                          struct buffer *out)
{
    char timestamp[TIMESTAMP + 1], signature[SHA256_HEX + 1];
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(timestamp, sizeof timestamp, "%Y%m%dT%H%M%SZ", &utc);
    struct buffer canonical = canonical_request(request, key, timestamp);
    sigv4_sign((const char *)canonical.bytes, canonical.length, timestamp, key->region, key->secret, signature);
    append_own_headers(key, timestamp, " ", out);
    buffer_printf(out,
                  "Authorization: AWS4-HMAC-SHA256 Credential=%s/%.*s/%s/s3/aws4_request, SignedHeaders=%s, "
                  "Signature=%s\n",
                  key->id, (int)DATE, timestamp, key->region, signed_headers(key), signature);
    buffer_free(&canonical);
}
