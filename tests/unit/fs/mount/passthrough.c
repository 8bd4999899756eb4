/* Files that the kernel reads by itself. The bits are those of struct fuse_open_out in include/uapi/linux/fuse.h of
 * Linux 6.18. */
#include "fs/mount/passthrough.h"

#include "fs/tree/content_options.h"
#include "models/formats.h"
#include "sources/source.h"
#include "tests/unit/check.h"
#include "tests/unit/write_safetensors.h"

#include <fcntl.h>
#include <unistd.h>

/* A kernel that takes no file. */
static int give(void *context, int device, int file)
{
    return -1;
}

static void take_back(void *context, int device, int number)
{
}

static const struct checkpoint *checkpoint;
static struct tree *tree;

/* A device that takes no sources, as that of an ordinary user: the kernel need not ask again. */
static void refused(void)
{
    struct error error;
    struct whole_file file;
    struct origin origin;
    struct node_attributes attributes;
    const struct negotiation negotiation = {.wants_passthrough = true, .has_passthrough = true};
    int backing, device = open("/dev/null", O_RDWR);
    const struct passthrough_kernel kernel = {device, give, take_back, NULL};
    struct passthrough *passthrough = passthrough_new(tree, &kernel, &negotiation);
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
    refused();
    reply();
    tree_free(tree);
    checkpoint_close(checkpoint);
    files_remove();
    return check_done();
}
