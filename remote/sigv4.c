#include "remote/sigv4.h"

#include "base/sha256.h"

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

static void hash_canonical_request(const struct sigv4_request *request, const struct sigv4_key *key,
                                   const char *timestamp, char hex[SHA256_HEX + 1])
{
    struct buffer text = {0};
    buffer_printf(&text, "%s\n%s\n%s\nhost:%s\n", request->method, request->path, request->query, request->host);
    append_own_headers(key, timestamp, "", &text);
    buffer_printf(&text, "\n%s\n%s", signed_headers(key), body_hash);
    sha256_hex(text.bytes, text.length, hex);
    buffer_free(&text);
}

static void hmac(const void *key, size_t key_length, const char *text, uint8_t digest[SHA256_DIGEST_SIZE])
{
    struct hmac_sha256_ctx context;
    hmac_sha256_set_key(&context, key_length, key);
    hmac_sha256_update(&context, strlen(text), (const uint8_t *)text);
    hmac_sha256_digest(&context, SHA256_DIGEST_SIZE, digest);
}

static void derive_signing_key(const struct sigv4_key *key, const char *date, uint8_t digest[SHA256_DIGEST_SIZE])
{
    struct buffer secret = {0};
    buffer_printf(&secret, "AWS4%s", key->secret);
    hmac(secret.bytes, secret.length, date, digest);
    memset(secret.bytes, 0, secret.length);
    buffer_free(&secret);
    hmac(digest, SHA256_DIGEST_SIZE, key->region, digest);
    hmac(digest, SHA256_DIGEST_SIZE, "s3", digest);
    hmac(digest, SHA256_DIGEST_SIZE, "aws4_request", digest);
}

void sigv4_append_headers(const struct sigv4_request *request, const struct sigv4_key *key, time_t now,
                          struct buffer *out)
{
    char timestamp[TIMESTAMP + 1], date[DATE + 1], request_hash[SHA256_HEX + 1], signature[SHA256_HEX + 1] = "";
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(timestamp, sizeof timestamp, "%Y%m%dT%H%M%SZ", &utc);
    memcpy(date, timestamp, DATE);
    date[DATE] = '\0';
    hash_canonical_request(request, key, timestamp, request_hash);

    struct buffer scope = {0}, to_sign = {0};
    uint8_t digest[SHA256_DIGEST_SIZE];
    buffer_printf(&scope, "%s/%s/s3/aws4_request", date, key->region);
    buffer_append(&scope, "", 1);
    buffer_printf(&to_sign, "AWS4-HMAC-SHA256\n%s\n%s\n%s", timestamp, (const char *)scope.bytes, request_hash);
    buffer_append(&to_sign, "", 1);
    derive_signing_key(key, date, digest);
    hmac(digest, sizeof digest, (const char *)to_sign.bytes, digest);
    base16_encode_update(signature, sizeof digest, digest);

    append_own_headers(key, timestamp, " ", out);
    buffer_printf(out, "Authorization: AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, Signature=%s\n", key->id,
                  (const char *)scope.bytes, signed_headers(key), signature);
    buffer_free(&to_sign);
    buffer_free(&scope);
}
