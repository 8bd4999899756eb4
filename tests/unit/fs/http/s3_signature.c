/* Expected: signatures that botocore 1.44's S3SigV4Auth and S3SigV4QueryAuth set for the same requests and time. */
#include "fs/http/s3.h"

#include "tests/unit/check.h"

#include <string.h>

enum { NOON = 1769860800, /* 2026-01-31T12:00:00Z */ QUARTER = 15 * 60 };

#define SECRET     "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
#define EMPTY      "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define CREDENTIAL "AWS4-HMAC-SHA256 Credential=some/key/20260131/eu-west-3/s3/aws4_request, "
#define USUAL      CREDENTIAL "SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature="
#define BUCKETS    USUAL "ed2656df9e6a1ab72a31b000926166fb437c030d3ded5c1a55f3b1a2509bc512"
#define PRESIGNED                                                                                                      \
    "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=some%2Fkey%2F20260131%2Feu-west-3%2Fs3%2Faws4_request"          \
    "&X-Amz-Date=20260131T120000Z&X-Amz-Expires=600&X-Amz-SignedHeaders=host&X-Amz-Signature="                         \
    "580dd55bad82208ab6e5b46ac160a3f26b1baf0d3e8b08f3c42334e6c1c2f27c"

/* Headers of all requests but presigned ones; the first is replaced. */
static const struct http_header usual[] = {
    {"Authorization", ""},           {"HOST", "127.0.0.1:8090"}, {"X-Amz-Date", "20260131T120000Z"},
    {"X-Amz-Content-SHA256", EMPTY}, {"Range", "bytes=0-9"},     {"X-Amz-Meta", "  a   b "}};
enum { N_USUAL = sizeof usual / sizeof *usual };

static const struct {
    const char *method, *path, *query;
    const char *authorization; /* NULL: none is sent, and no x-amz header */
    int now;
    const char *code; /* NULL: the signature is valid */
} requests[] = {
    {"GET", "/acme/Tiny/a%20b%2Bc%3Dd~%C3%A9.json", "",
     USUAL "99a932def283a8acc3b3053686da8567d709b50186b03b9e6c742906a6129dac", NOON, NULL},
    {"GET", "/acme/Tiny/a%20b+c=d%7E%c3%A9.json", "", /* the same name, written in another way */
     USUAL "99a932def283a8acc3b3053686da8567d709b50186b03b9e6c742906a6129dac", NOON, NULL},
    {"GET", "/acme",
     "list-type=2&prefix=Tiny%2Fl%20l%27ama%2F&delimiter=%2F&encoding-type=url&continuation-token=1%2F2%2B3%3D%3D",
     CREDENTIAL "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date;x-amz-meta, Signature="
                "113d034aa0ae9f84398d56ee2890564ab5bc39aa0de54c0615e9adf64b5a3c86",
     NOON, NULL},
    {"GET", "/", "x-id=ListBuckets", BUCKETS, NOON, NULL},
    {"GET", "/", "x-id=ListBuckets", BUCKETS, NOON + QUARTER, NULL},
    {"GET", "/", "x-id=ListBuckets", BUCKETS, NOON - QUARTER, NULL},
    {"GET", "/", "x-id=ListBuckets", BUCKETS, NOON + QUARTER + 1, "RequestTimeTooSkewed"},
    {"GET", "/", "x-id=ListBuckets", BUCKETS, NOON - QUARTER - 1, "RequestTimeTooSkewed"},
    {"HEAD", "/", "x-id=ListBuckets", BUCKETS, NOON, "SignatureDoesNotMatch"},
    {"GET", "/acme", "x-id=ListBuckets", BUCKETS, NOON, "SignatureDoesNotMatch"},
    {"GET", "/", "x-id=ListBuckets&x-id=b", BUCKETS, NOON, "SignatureDoesNotMatch"},
    {"GET", "/", "", BUCKETS, NOON, "SignatureDoesNotMatch"},
    {"GET", "/", "x-id=ListBuckets", BUCKETS "0", NOON, "SignatureDoesNotMatch"},
    {"GET", "/", "x-id=ListBuckets", USUAL, NOON, "SignatureDoesNotMatch"},
    {"GET", "/", "", CREDENTIAL "SignedHeaders=x-amz-date, Signature=0", NOON, "AuthorizationHeaderMalformed"},
    {"GET", "/", "", CREDENTIAL "SignedHeaders=host", NOON, "AuthorizationHeaderMalformed"},
    {"GET", "/", "", "AWS4-HMAC-SHA256", NOON, "AuthorizationHeaderMalformed"},
    {"GET", "/", "", "AWS4-HMAC-SHA256 Credential=k/20260130/r/s3/aws4_request, SignedHeaders=host, Signature=0", NOON,
     "AuthorizationHeaderMalformed"},
    {"GET", "/", "", "AWS4-HMAC-SHA256 Credential=20260131/r/s3/aws4_request, SignedHeaders=host, Signature=0", NOON,
     "AuthorizationHeaderMalformed"},
    {"GET", "/", "", "AWS key:signature", NOON, "InvalidRequest"},
    {"GET", "/", "AWSAccessKeyId=k&Signature=s&Expires=1", NULL, NOON, "InvalidRequest"},
    {"GET", "/", "", NULL, NOON, "AccessDenied"},
    {"HEAD", "/acme/Tiny/config.json", PRESIGNED, NULL, NOON, NULL},
    {"HEAD", "/acme/Tiny/config.json", PRESIGNED, NULL, NOON + 600, NULL},
    {"HEAD", "/acme/Tiny/config.json", PRESIGNED, NULL, NOON + 601, "AccessDenied"},
    {"HEAD", "/acme/Tiny/config.json", PRESIGNED, NULL, NOON - QUARTER - 1, "AccessDenied"},
    {"HEAD", "/acme/Tiny/other.json", PRESIGNED, NULL, NOON, "SignatureDoesNotMatch"},
    {"HEAD", "/acme/Tiny/config.json", PRESIGNED "&x=y", NULL, NOON, "SignatureDoesNotMatch"},
    {"HEAD", "/", "X-Amz-Algorithm=AWS4-HMAC-SHA256", NULL, NOON, "AuthorizationQueryParametersError"},
    {"HEAD", "/", "X-Amz-Algorithm=AWS4-ECDSA-P256-SHA256", NULL, NOON, "InvalidRequest"},
};

int main(void)
{
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        struct http_header headers[N_USUAL];
        struct s3_refusal refusal = {0};
        bool is_signed = requests[i].authorization != NULL;
        memcpy(headers, usual, sizeof usual);
        headers[0].value = requests[i].authorization;
        const struct http_request request = {
            .method = requests[i].method,
            .path = requests[i].path,
            .query = requests[i].query,
            .headers = is_signed ? headers : &headers[1],
            .n_headers = is_signed ? N_USUAL : 1,
        };
        bool is_valid = s3_signature_is_valid(&request, SECRET, requests[i].now, &refusal);
        CHECK_TEXT(is_valid ? "valid" : refusal.code, requests[i].code == NULL ? "valid" : requests[i].code);
        CHECK(!s3_signature_is_valid(&request, SECRET "x", requests[i].now, &refusal));
        CHECK(refusal.status >= 400);
    }
    return check_done();
}
