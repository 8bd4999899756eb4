/* What this server and the kernel agree on in the first request, INIT, beyond what libfuse knows of.
 *
 * The kernel offers what it can do as bits, and uses what the reply accepts. libfuse accepts what it had heard of when
 * it was released; the bits below are younger than the libfuse of the systems that wfs runs on. So the request is
 * looked at before libfuse gets it, and the reply before the kernel does:
 *
 * - Passthrough (passthrough.h), from Linux 6.9 on, if the mount may use it.
 * - Idmapped mounts, from Linux 6.12 on: a container whose users are others than the machine's (`hostUsers: false` of
 *   Kubernetes, X-mount.idmap of mount(8)) gets the files with its own numbers. The kernel maps them and checks
 *   permissions by itself, since wfs mounts with default_permissions; requests then come without a user.
 *
 * Source: process_init_reply() in fs/fuse/inode.c and include/uapi/linux/fuse.h of Linux 6.18. The numbers of the
 * protocol are in negotiation.c because the headers of Debian 12 lack them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* Zero-initialized at first, and of one mount. */
struct negotiation {
    bool wants_passthrough; /* set by the mount before the first request, as the next one */
    bool wants_idmapped;    /* only of a mount with default_permissions: the kernel refuses others */
    bool has_passthrough;   /* the reply accepted it */
    uint32_t offered;       /* the younger half of the kernel's bits; 0 before INIT */
};

/* Looks at a request; one that is not INIT, or of an old kernel, offers nothing. */
void negotiation_note_request(struct negotiation *negotiation, const void *request, size_t length);

/* Accepts in the reply to INIT, a header and a body, what was offered and is wanted. A reply with an error stays as it
 * is. */
void negotiation_edit_reply(struct negotiation *negotiation, const struct iovec *iov, int count);
