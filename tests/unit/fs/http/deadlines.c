/* A connection whose request does not arrive in time is ended, and no other. */
#include "fs/http/admission.h"

#include "tests/unit/check.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SECONDS = 1, ENOUGH = 20 * 1000 /* milliseconds, on a busy machine */ };

struct connection {
    int server, client;
    struct deadline *deadline;
};

static struct connection connect_to(struct deadlines *deadlines)
{
    int pair[2] = {-1, -1};
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    return (struct connection){pair[0], pair[1], deadline_add(deadlines, pair[0])};
}

static void disconnect(struct connection *connection)
{
    deadline_remove(connection->deadline);
    close(connection->server);
    close(connection->client);
}

static bool ends_within(const struct connection *connection, int milliseconds)
{
    char byte;
    struct pollfd events = {.fd = connection->client, .events = POLLIN};
    return poll(&events, 1, milliseconds) == 1 && read(connection->client, &byte, 1) == 0;
}

int main(void)
{
    struct error error;
    struct deadlines *deadlines = deadlines_new(SECONDS, &error);
    if (!CHECK(deadlines != NULL))
        return check_done();
    struct connection answered = connect_to(deadlines), slow = connect_to(deadlines), again = connect_to(deadlines);
    deadline_stop(answered.deadline);
    deadline_stop(again.deadline);
    CHECK_NAMED(ends_within(&slow, ENOUGH), "a request that does not arrive ends the connection");
    CHECK_NAMED(!ends_within(&answered, 0), "one that has arrived does not");
    deadline_renew(again.deadline);
    CHECK_NAMED(ends_within(&again, ENOUGH), "the next request has a deadline, too");
    CHECK_NAMED(!ends_within(&answered, 0), "an answer may take longer");
    disconnect(&slow);
    disconnect(&answered);
    disconnect(&again);
    deadlines_free(deadlines);
    return check_done();
}
