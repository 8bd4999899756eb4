#include "fs/http/host.h"

#include "tests/unit/check.h"

int main(void)
{
    static const struct {
        const char *host, *names;
        bool is_allowed;
    } rows[] = {
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
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK_NAMED(host_is_allowed(rows[i].host, rows[i].names) == rows[i].is_allowed, rows[i].host);
    return check_done();
}
