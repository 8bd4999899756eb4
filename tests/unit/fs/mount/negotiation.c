/* What is agreed with the kernel in INIT. The offsets and bits are those of struct fuse_in_header, fuse_init_in and
 * fuse_init_out in include/uapi/linux/fuse.h of Linux 6.18. */
#include "fs/mount/negotiation.h"

#include "tests/unit/check.h"

enum { OPCODE = 4, IN_FLAGS = 52, IN_FLAGS2 = 56, OUT_ERROR = 4, OUT_FLAGS = 12, OUT_FLAGS2 = 32, OUT_DEPTH = 36 };
enum { INIT = 26, GETATTR = 3 };
static const uint32_t extended = 1u << 30, passthrough = 1u << 5, idmapped = 1u << 8;

struct exchange {
    unsigned char request[104], header[16], reply[64];
};

static void put(unsigned char *at, uint32_t value)
{
    memcpy(at, &value, sizeof value);
}

static uint32_t get(const unsigned char *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static struct exchange new_exchange(uint32_t opcode, uint32_t flags2)
{
    struct exchange exchange = {0};
    put(exchange.request + OPCODE, opcode);
    put(exchange.request + IN_FLAGS, extended);
    put(exchange.request + IN_FLAGS2, flags2);
    put(exchange.reply + OUT_FLAGS, 1);
    put(exchange.reply + OUT_FLAGS2, 2);
    return exchange;
}

/* Lets the request, of `length` bytes, and its reply pass. Returns whether passthrough was agreed on. */
static bool pass(struct exchange *exchange, size_t length, bool wants_passthrough)
{
    struct negotiation negotiation = {.wants_passthrough = wants_passthrough, .wants_idmapped = true};
    const struct iovec reply[] = {{exchange->header, sizeof exchange->header},
                                  {exchange->reply, sizeof exchange->reply}};
    negotiation_note_request(&negotiation, exchange->request, length);
    negotiation_edit_reply(&negotiation, reply, 2);
    return negotiation.has_passthrough;
}

static bool accepts(const struct exchange *exchange, uint32_t bits, uint32_t depth)
{
    return get(exchange->reply + OUT_FLAGS) == (1 | extended) && get(exchange->reply + OUT_FLAGS2) == (2 | bits) &&
           get(exchange->reply + OUT_DEPTH) == depth;
}

static bool is_unchanged(const struct exchange *exchange)
{
    return get(exchange->reply + OUT_FLAGS) == 1 && get(exchange->reply + OUT_FLAGS2) == 2 &&
           get(exchange->reply + OUT_DEPTH) == 0;
}

static void accepted(void)
{
    struct exchange exchange = new_exchange(INIT, ~0u);
    CHECK(pass(&exchange, sizeof exchange.request, true));
    CHECK_NAMED(accepts(&exchange, passthrough | idmapped, 1), "what the kernel offers is accepted, and nothing else");
    exchange = new_exchange(INIT, passthrough);
    CHECK(pass(&exchange, sizeof exchange.request, true) && accepts(&exchange, passthrough, 1));
    exchange = new_exchange(INIT, passthrough | idmapped);
    CHECK_NAMED(!pass(&exchange, sizeof exchange.request, false) && accepts(&exchange, idmapped, 0),
                "a mount without passthrough accepts none");
}

/* A mount that another program made may lack default_permissions. */
static void not_wanted(void)
{
    struct negotiation negotiation = {0};
    struct exchange exchange = new_exchange(INIT, ~0u);
    const struct iovec reply[] = {{exchange.header, sizeof exchange.header}, {exchange.reply, sizeof exchange.reply}};
    negotiation_note_request(&negotiation, exchange.request, sizeof exchange.request);
    negotiation_edit_reply(&negotiation, reply, 2);
    CHECK(is_unchanged(&exchange) && !negotiation.has_passthrough);
}

static void unchanged(void)
{
    struct exchange exchange = new_exchange(INIT, ~(passthrough | idmapped));
    CHECK_NAMED(!pass(&exchange, sizeof exchange.request, true) && is_unchanged(&exchange),
                "a kernel before 6.9 offers nothing");
    exchange = new_exchange(INIT, ~0u);
    CHECK_NAMED(!pass(&exchange, 56, true) && is_unchanged(&exchange), "a short request of an old kernel");
    exchange = new_exchange(INIT, ~0u);
    put(exchange.request + IN_FLAGS, 0);
    CHECK_NAMED(!pass(&exchange, sizeof exchange.request, true) && is_unchanged(&exchange), "bits that are not there");
    exchange = new_exchange(GETATTR, ~0u);
    CHECK_NAMED(!pass(&exchange, sizeof exchange.request, true) && is_unchanged(&exchange), "another request");
    exchange = new_exchange(INIT, ~0u);
    put(exchange.header + OUT_ERROR, (uint32_t)-71);
    CHECK_NAMED(!pass(&exchange, sizeof exchange.request, true) && is_unchanged(&exchange), "a reply with an error");
}

int main(void)
{
    accepted();
    not_wanted();
    unchanged();
    return check_done();
}
