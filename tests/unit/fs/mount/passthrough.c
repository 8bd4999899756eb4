/* What is agreed with the kernel about files that it reads by itself. The offsets and bits are those of struct
 * fuse_in_header, fuse_init_in, fuse_init_out and fuse_open_out in include/uapi/linux/fuse.h of Linux 6.18. */
#include "fs/mount/passthrough.h"

#include "formats/source.h"
#include "fs/tree/content_options.h"
#include "models/formats.h"
#include "tests/unit/check.h"
#include "tests/unit/write_safetensors.h"

#include <fcntl.h>
#include <unistd.h>

enum { OPCODE = 4, IN_FLAGS = 52, IN_FLAGS2 = 56, OUT_FLAGS = 12, OUT_FLAGS2 = 32, OUT_DEPTH = 36 };
enum { INIT = 26, GETATTR = 3 };
static const uint32_t extended = 1u << 30, offered = 1u << 5;

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

static const struct checkpoint *checkpoint;
static struct tree *tree;

/* Lets a request of `length` bytes and its reply pass. */
static void exchange_by(struct passthrough *passthrough, struct exchange *exchange, uint32_t opcode, uint32_t flags2,
                        size_t length)
{
    const struct iovec reply[] = {{exchange->header, sizeof exchange->header},
                                  {exchange->reply, sizeof exchange->reply}};
    memset(exchange, 0, sizeof *exchange);
    put(exchange->request + OPCODE, opcode);
    put(exchange->request + IN_FLAGS, extended);
    put(exchange->request + IN_FLAGS2, flags2);
    put(exchange->reply + OUT_FLAGS, 1);
    put(exchange->reply + OUT_FLAGS2, 2);
    passthrough_note_request(passthrough, exchange->request, length);
    passthrough_edit_reply(passthrough, reply, 2);
}

static void pass(struct exchange *exchange, uint32_t opcode, uint32_t flags2, size_t length, int device)
{
    struct passthrough *passthrough = passthrough_new(tree, device);
    exchange_by(passthrough, exchange, opcode, flags2, length);
    passthrough_free(passthrough);
}

static bool is_accepted(const struct exchange *exchange)
{
    return get(exchange->reply + OUT_FLAGS) == (1 | extended) && get(exchange->reply + OUT_FLAGS2) == (2 | offered) &&
           get(exchange->reply + OUT_DEPTH) == 1;
}

static bool is_unchanged(const struct exchange *exchange)
{
    return get(exchange->reply + OUT_FLAGS) == 1 && get(exchange->reply + OUT_FLAGS2) == 2 &&
           get(exchange->reply + OUT_DEPTH) == 0;
}

static void first_request(void)
{
    struct exchange exchange;
    pass(&exchange, INIT, offered, sizeof exchange.request, 0);
    CHECK_NAMED(is_accepted(&exchange), "what the kernel offers is accepted");
    pass(&exchange, INIT, ~offered, sizeof exchange.request, 0);
    CHECK_NAMED(is_unchanged(&exchange), "a kernel before 6.9 offers nothing");
    pass(&exchange, INIT, offered, 56, 0);
    CHECK_NAMED(is_unchanged(&exchange), "a short request of an old kernel");
    pass(&exchange, GETATTR, offered, sizeof exchange.request, 0);
    CHECK_NAMED(is_unchanged(&exchange), "another request");
    pass(&exchange, INIT, offered, sizeof exchange.request, -1);
    CHECK_NAMED(is_unchanged(&exchange), "a mount without passthrough accepts none");
}

/* A device that takes no sources, as that of an ordinary user: the kernel need not ask again. */
static void refused(void)
{
    struct error error;
    struct whole_file file;
    struct origin origin;
    struct node_attributes attributes;
    struct exchange exchange;
    int backing, device = open("/dev/null", O_RDWR);
    struct passthrough *passthrough = passthrough_new(tree, device);
    exchange_by(passthrough, &exchange, INIT, offered, sizeof exchange.request);
    CHECK(is_accepted(&exchange));
    CHECK(tree_largest_whole(tree) == checkpoint->sources[0] && !tree_has_branches(tree));
    CHECK(tree_walk(tree, "model.safetensors", &attributes, &error));
    CHECK(tree_whole_file(tree, attributes.id, &file) && file.descriptor == source_descriptor(checkpoint->sources[0]) &&
          file.origin.n_sources == 1);
    CHECK(passthrough_open(passthrough, attributes.id, &origin, &backing) == OPENED_BY_KERNEL);
    CHECK(tree_walk(tree, "tensors/a/raw", &attributes, &error) && !tree_whole_file(tree, attributes.id, &file));
    CHECK(tree_walk(tree, "model.gguf", &attributes, &error) && !tree_whole_file(tree, attributes.id, &file));
    CHECK(!tree_whole_file(tree, TREE_ROOT, &file));
    passthrough_free(passthrough);
    close(device);
}

static void reply(void)
{
    const struct passthrough_reply cached = passthrough_reply(7, O_RDONLY), direct = passthrough_reply(7, O_DIRECT);
    CHECK(sizeof cached == 16 && cached.handle == 0 && cached.backing == 7);
    CHECK(cached.flags == (1 << 7 | 1 << 5) && direct.flags == (1 << 7 | 1 << 5 | 1 << 0));
}

int main(void)
{
    static const struct content_options options = {0};
    static const char header[] = "{\"a\":{\"dtype\":\"F32\",\"shape\":[4194304],\"data_offsets\":[0,16777216]}}";
    struct error error;
    files_begin();
    files_write_safetensors("model.safetensors", header, sizeof header - 1, 0);
    files_must(truncate("model.safetensors", 8 + sizeof header - 1 + PASSTHROUGH_WORTHWHILE) == 0, "a sparse file");
    checkpoint = checkpoint_open("model.safetensors", formats, &(struct open_options){0}, &error);
    files_must(checkpoint != NULL, "model.safetensors");
    tree = tree_new(checkpoint, &options, &error);
    first_request();
    refused();
    reply();
    tree_free(tree);
    checkpoint_close(checkpoint);
    files_remove();
    return check_done();
}
