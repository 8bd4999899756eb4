#include "fs/http/s3.h"

#include "base/encodings.h"
#include "base/text.h"
#include "fs/http/answer.h"
#include "remote/aws.h"

#include <nettle/memops.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    SKEW_SECONDS = 15 * 60,
    MOST_EXPIRES = 7 * 24 * 3600,
    DATE = 8,       /* "20260131" */
    TIMESTAMP = 16, /* "20260131T120000Z" */
};

static const char algorithm[] = "AWS4-HMAC-SHA256";

/* What a request says of its signature. */
struct claim {
    const char *credential; /* "KEY/20260131/us-east-1/s3/aws4_request" */
    const char *headers;    /* "host;x-amz-date" */
    const char *signature;
    const char *timestamp;
    const char *payload; /* the hash that the client signed, or "UNSIGNED-PAYLOAD" */
    const char *region;
    time_t from, to; /* when the request may arrive */
};

static bool refuse(struct s3_refusal *refusal, unsigned status, const char *code, const char *message)
{
    *refusal = (struct s3_refusal){status, code, message};
    return false;
}

/* Returns the value of a field of the Authorization header: "Credential=...,". NULL if it is missing. */
static const char *field_of(const char *header, const char *name, struct arena *arena)
{
    for (const char *at = header + strlen(algorithm); *at != '\0'; at += strcspn(at, ",")) {
        at += strspn(at, ", \t");
        if (text_starts_with(at, name))
            return arena_strndup(arena, at + strlen(name), strcspn(at + strlen(name), ", \t"));
    }
    return NULL;
}

/* Parses "20260131T120000Z". */
static bool parse_timestamp(const char *text, time_t *ret_time)
{
    struct tm utc = {0};
    const char *end = strlen(text) == TIMESTAMP ? strptime(text, "%Y%m%dT%H%M%SZ", &utc) : NULL;
    *ret_time = timegm(&utc);
    return end != NULL && *end == '\0';
}

static bool read_header(const struct http_request *request, const char *header, struct claim *claim,
                        struct arena *arena, struct s3_refusal *refusal)
{
    time_t at;
    const char *payload = request_header(request, "x-amz-content-sha256");
    char empty[SHA256_HEX + 1];
    sha256_hex("", 0, empty);
    *claim = (struct claim){
        .credential = field_of(header, "Credential=", arena),
        .headers = field_of(header, "SignedHeaders=", arena),
        .signature = field_of(header, "Signature=", arena),
        .timestamp = request_header(request, "x-amz-date"),
        .payload = payload != NULL ? payload : arena_strdup(arena, empty),
    };
    if (claim->credential == NULL || claim->headers == NULL || claim->signature == NULL)
        return refuse(refusal, 400, "AuthorizationHeaderMalformed",
                      "the Authorization header needs Credential, SignedHeaders and Signature");
    if (claim->timestamp == NULL || !parse_timestamp(claim->timestamp, &at))
        return refuse(refusal, 403, "AccessDenied", "a signed request needs a header x-amz-date: 20260131T120000Z");
    claim->from = at - SKEW_SECONDS;
    claim->to = at + SKEW_SECONDS;
    return true;
}

static bool read_query(const struct http_request *request, const struct query *query, struct claim *claim,
                       struct s3_refusal *refusal)
{
    time_t at;
    const char *payload = request_header(request, "x-amz-content-sha256"),
               *expires = query_value(query, "X-Amz-Expires");
    *claim = (struct claim){
        .credential = query_value(query, "X-Amz-Credential"),
        .headers = query_value(query, "X-Amz-SignedHeaders"),
        .signature = query_value(query, "X-Amz-Signature"),
        .timestamp = query_value(query, "X-Amz-Date"),
        .payload = payload != NULL ? payload : "UNSIGNED-PAYLOAD",
    };
    unsigned long seconds = expires != NULL && *expires >= '0' && *expires <= '9' ? strtoul(expires, NULL, 10) : 0;
    if (claim->credential == NULL || claim->headers == NULL || claim->signature == NULL || claim->timestamp == NULL ||
        !parse_timestamp(claim->timestamp, &at) || seconds == 0 || seconds > MOST_EXPIRES)
        return refuse(refusal, 400, "AuthorizationQueryParametersError",
                      "a presigned address needs X-Amz-Credential, X-Amz-Date, X-Amz-SignedHeaders, X-Amz-Signature, "
                      "and X-Amz-Expires of at most 604800 seconds");
    claim->from = at - SKEW_SECONDS;
    claim->to = at + (time_t)seconds;
    return true;
}

/* Checks the scope of a credential, and finds its region. A key id may have slashes. */
static bool read_scope(struct claim *claim, struct arena *arena)
{
    enum { PARTS = 4 };
    char *text = arena_strdup(arena, claim->credential), *parts[PARTS];
    for (size_t i = PARTS; i > 0; i--) {
        char *slash = strrchr(text, '/');
        if (slash == NULL)
            return false;
        *slash = '\0';
        parts[i - 1] = slash + 1;
    }
    claim->region = parts[1];
    return strlen(parts[0]) == DATE && memcmp(parts[0], claim->timestamp, DATE) == 0 && strcmp(parts[2], "s3") == 0 &&
           strcmp(parts[3], "aws4_request") == 0;
}

/* Appends the path of the target, with each character encoded or not as S3 has it. */
static void append_path(const char *path, struct arena *arena, struct buffer *out)
{
    for (const char *c = path; *c != '\0'; c++) {
        int high = *c == '%' ? text_hex_digit(c[1]) : -1, low = high >= 0 ? text_hex_digit(c[2]) : -1;
        const char letter[] = {low >= 0 ? (char)(high * 16 + low) : *c, '\0'};
        buffer_append_text(out, low < 0 && *c == '/' ? "/"
                                : letter[0] == '\0'  ? "%00"
                                                     : percent_encode(letter, "", arena));
        c += low >= 0 ? 2 : 0;
    }
}

static int by_name_and_value(const void *a, const void *b)
{
    const struct query_parameter *one = a, *other = b;
    int order = strcmp(one->name, other->name);
    return order != 0 ? order : strcmp(one->value, other->value);
}

static void append_query(const struct query *query, struct arena *arena, struct buffer *out)
{
    struct query_parameter *sorted = arena_array(arena, query->count + 1, sizeof *sorted);
    size_t count = 0;
    for (size_t i = 0; i < query->count; i++)
        if (strcmp(query->items[i].name, "X-Amz-Signature") != 0)
            sorted[count++] = (struct query_parameter){percent_encode(query->items[i].name, "", arena),
                                                       percent_encode(query->items[i].value, "", arena)};
    qsort(sorted, count, sizeof *sorted, by_name_and_value);
    for (size_t i = 0; i < count; i++)
        buffer_printf(out, "%s%s=%s", i > 0 ? "&" : "", sorted[i].name, sorted[i].value);
}

/* Appends a value without blanks at its ends, and with one blank for several. */
static void append_trimmed(const char *value, struct buffer *out)
{
    for (const char *at = value + strspn(value, " \t"); *at != '\0';) {
        size_t length = strcspn(at, " \t"), blanks = strspn(at + length, " \t");
        buffer_append(out, at, length);
        at += length + blanks;
        if (blanks != 0 && *at != '\0')
            buffer_append_text(out, " ");
    }
}

/* Appends the signed headers; a header that was not sent has no line, which fits no signature. */
static void append_headers(const struct http_request *request, const char *names, struct arena *arena,
                           struct buffer *out)
{
    for (const char *at = names; *at != '\0'; at += strspn(at, ";")) {
        size_t length = strcspn(at, ";"), n_found = 0;
        const char *name = arena_strndup(arena, at, length);
        for (size_t i = 0; i < request->n_headers; i++) {
            if (strcasecmp(request->headers[i].name, name) != 0)
                continue;
            buffer_printf(out, "%s", n_found++ == 0 ? name : ",");
            buffer_append_text(out, n_found == 1 ? ":" : "");
            append_trimmed(request->headers[i].value, out);
        }
        buffer_append_text(out, n_found > 0 ? "\n" : "");
        at += length;
    }
}

static bool has_host(const char *names)
{
    const char *host = strstr(names, "host");
    return host != NULL && (host == names || host[-1] == ';') && (host[4] == '\0' || host[4] == ';');
}

static bool fits(const struct http_request *request, const struct query *query, const struct claim *claim,
                 const char *secret, struct arena *arena)
{
    char signature[SHA256_HEX + 1];
    struct buffer text = {0};
    buffer_printf(&text, "%s\n", request->method);
    append_path(request->path, arena, &text);
    buffer_append_text(&text, "\n");
    append_query(query, arena, &text);
    buffer_append_text(&text, "\n");
    append_headers(request, claim->headers, arena, &text);
    buffer_printf(&text, "\n%s\n%s", claim->headers, claim->payload);
    sigv4_sign((const char *)text.bytes, text.length, claim->timestamp, claim->region, secret, signature);
    buffer_free(&text);
    return strlen(claim->signature) == SHA256_HEX && memeql_sec(claim->signature, signature, SHA256_HEX);
}

static bool judge(const struct http_request *request, const char *secret, time_t now, struct arena *arena,
                  struct s3_refusal *refusal)
{
    const char *header = request_header(request, "Authorization");
    struct query query = query_parse(request->query, arena);
    bool is_presigned = header == NULL && query_value(&query, "X-Amz-Algorithm") != NULL;
    const char *older = query_value(&query, "AWSAccessKeyId"), /* of version 2 */
        *named = is_presigned     ? query_value(&query, "X-Amz-Algorithm")
                 : header != NULL ? header
                                  : older;
    struct claim claim;
    if (named == NULL)
        return refuse(refusal, 403, "AccessDenied",
                      "this server asks for a signature: any key id, with the server's token as the secret key");
    if (strncmp(named, algorithm, strlen(algorithm)) != 0)
        return refuse(refusal, 400, "InvalidRequest", "wfs knows signatures of the form AWS4-HMAC-SHA256 only");
    if (is_presigned ? !read_query(request, &query, &claim, refusal)
                     : !read_header(request, header, &claim, arena, refusal))
        return false;
    if (!read_scope(&claim, arena) || !has_host(claim.headers))
        return refuse(refusal, 400, "AuthorizationHeaderMalformed",
                      "the credential must be KEY/DATE/REGION/s3/aws4_request of the request's date, and the Host "
                      "header must be signed");
    if (!fits(request, &query, &claim, secret, arena))
        return refuse(refusal, 403, "SignatureDoesNotMatch",
                      "the signature is another one: the secret key must be the server's token");
    if (now < claim.from || now > claim.to)
        return is_presigned ? refuse(refusal, 403, "AccessDenied", "Request has expired")
                            : refuse(refusal, 403, "RequestTimeTooSkewed",
                                     "the time of the request and the server's differ by more than 15 minutes");
    return true;
}

bool s3_signature_is_valid(const struct http_request *request, const char *secret, time_t now,
                           struct s3_refusal *ret_refusal)
{
    struct arena *arena = arena_new();
    bool is_valid = judge(request, secret, now, arena, ret_refusal);
    arena_free(arena);
    return is_valid;
}
