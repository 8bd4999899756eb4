#include "remote/sigv4.h"

#include <nettle/base16.h>
#include <nettle/hmac.h>
#include <string.h>

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
