#include "remote/retry.h"

#include "tests/unit/check.h"

static const char origin[] = "https://host:443", other[] = "https://other:443";

int main(void)
{
    struct error error = {.message = ""}, reason = {.message = "Connection refused"};
    CHECK(!outage_refuses(origin, 0, &error));
    outage_begin(origin, 100, &reason);
    CHECK(outage_refuses(origin, 101, &error));
    CHECK_TEXT(error.message, "the server could not be reached just before: Connection refused");
    CHECK(!outage_refuses(other, 101, &error));
    CHECK(outage_refuses(origin, 100 + OUTAGE_PAUSE - 1, &error));
    CHECK_NAMED(!outage_refuses(origin, 100 + OUTAGE_PAUSE, &error), "after the pause one request tries");
    CHECK_NAMED(outage_refuses(origin, 200 + OUTAGE_PAUSE, &error), "others fail until it has ended");
    outage_begin(origin, 300 + OUTAGE_PAUSE, &reason);
    CHECK(outage_refuses(origin, 300 + OUTAGE_PAUSE, &error));
    outage_end(origin);
    CHECK(!outage_refuses(origin, 301 + OUTAGE_PAUSE, &error));
    for (int i = 0; i <= OUTAGE_SERVERS; i++) {
        char name[32];
        snprintf(name, sizeof name, "https://%d:443", i);
        outage_begin(name, 0, &reason);
    }
    CHECK_NAMED(!outage_refuses("https://0:443", 1, &error), "only so many servers are remembered");
    CHECK(outage_refuses("https://64:443", 1, &error));
    return check_done();
}
