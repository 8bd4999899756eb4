/* Expected: the examples of RFC 7617, section 2, and RFC 6750, section 2.1; base64 by coreutils. */
#include "fs/http/admission.h"

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

static const struct {
    const char *host, *names;
    bool is_allowed;
} hosts[] = {
    {"localhost", NULL, true},
    {"LocalHost:8090", NULL, true},
    {"localhost.:8090", NULL, true},
    {"models.localhost", NULL, true},
    {"127.0.0.1:8090", NULL, true},
    {"127.8.9.10", NULL, true},
    {"[::1]:8090", NULL, true},
    {"[0:0:0:0:0:0:0:1]", NULL, true},
    {"", NULL, false},
    {":8090", NULL, false},
    {"evil.example", NULL, false},
    {"localhost.evil.example", NULL, false},
    {"evillocalhost", NULL, false},
    {"127.0.0.1.evil.example", NULL, false},
    {"127.1", NULL, false}, /* an address only for some programs */
    {"2130706433", NULL, false},
    {"0.0.0.0", NULL, false},
    {"192.168.1.2", NULL, false},
    {"[::2]", NULL, false},
    {"server", "server", true},
    {"SERVER:80", "other,server", true},
    {"other", "other,server", true},
    {"server.evil.example", "other,server", false},
    {"serve", "other,server", false},
    {"other,server", "other,server", false},
    {"", "", false},
    {"192.168.1.2:8090", "192.168.1.2", true},
};

int main(void)
{
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        CHECK_NAMED(access_has_token(headers[i].header, headers[i].token) == headers[i].expected,
                    headers[i].header != NULL ? headers[i].header : "no header");
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++)
        CHECK_NAMED(access_by_name(hosts[i].host, hosts[i].names) == hosts[i].is_allowed, hosts[i].host);
    return check_done();
}
