#include "fs/mount/negotiation.h"

#include <linux/fuse.h>
#include <string.h>

/* Bits of flags2, which are those from 32 on in the kernel's headers. The depth of stacked file systems follows it. */
enum { PASSTHROUGH = 1 << 5, IDMAPPED = 1 << 8 };
static const size_t depth_offset = offsetof(struct fuse_init_out, flags2) + sizeof(uint32_t);

/* The mount counts as one layer, so that sources must not be on stacked file systems, while overlayfs may still be
 * stacked on the mount: the kernel allows two. */
enum { STACKED_LAYERS = 1 };

void negotiation_note_request(struct negotiation *negotiation, const void *request, size_t length)
{
    const struct fuse_in_header *header = request;
    struct fuse_init_in init;
    const size_t needed = sizeof *header + offsetof(struct fuse_init_in, flags2) + sizeof init.flags2;
    if (length < needed || header->opcode != FUSE_INIT)
        return;
    memcpy(&init, header + 1, needed - sizeof *header);
    negotiation->offered = (init.flags & FUSE_INIT_EXT) != 0 ? init.flags2 : 0;
}

void negotiation_edit_reply(struct negotiation *negotiation, const struct iovec *iov, int count)
{
    const uint32_t layers = STACKED_LAYERS;
    const uint32_t wanted =
        (negotiation->wants_idmapped ? IDMAPPED : 0) | (negotiation->wants_passthrough ? PASSTHROUGH : 0);
    const uint32_t accepted = negotiation->offered & wanted;
    const struct fuse_out_header *header = iov[0].iov_base;
    if (accepted == 0 || count != 2 || header->error != 0 || iov[1].iov_len != sizeof(struct fuse_init_out))
        return;
    struct fuse_init_out *init = iov[1].iov_base;
    init->flags |= FUSE_INIT_EXT;
    init->flags2 |= accepted;
    negotiation->has_passthrough = (accepted & PASSTHROUGH) != 0;
    if (negotiation->has_passthrough)
        memcpy((char *)init + depth_offset, &layers, sizeof layers);
}
