/* Expected: the examples of RFC 7617, section 2, and RFC 6750, section 2.1; base64 by coreutils. */
#include "fs/http/authorization.h"

#include "tests/unit/check.h"

static const struct {
    const char *header, *token;
    bool expected;
} headers[] = {
    {"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "open sesame", true},
    {"basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "open sesame", true},
    {"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "open sesam", false},
    {"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "open sesame!", false},
    {"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "Aladdin:open sesame", false},
    {"Basic OnRva2Vu", "token", true},      /* ":token" */
    {"Basic dG9rZW4=", "token", false},     /* "token" */
    {"Basic dTp0b2tlbgA=", "token", false}, /* "u:token" and a NUL */
    {"Basic !", "token", false},
    {"Basic ", "token", false},
    {"Basic", "token", false},
    {"Bearer mF_9.B5f-4.1JqM", "mF_9.B5f-4.1JqM", true},
    {"BEARER mF_9.B5f-4.1JqM", "mF_9.B5f-4.1JqM", true},
    {"Bearer mF_9.B5f-4.1JqM ", "mF_9.B5f-4.1JqM", false},
    {"Bearer mF_9.B5f-4.1JqX", "mF_9.B5f-4.1JqM", false},
    {"Bearer ", "token", false},
    {"Bearertoken", "token", false},
    {"token", "token", false},
    {"", "token", false},
    {NULL, "token", false},
};

int main(void)
{
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        CHECK_NAMED(authorization_has_token(headers[i].header, headers[i].token) == headers[i].expected,
                    headers[i].header != NULL ? headers[i].header : "no header");
    return check_done();
}
