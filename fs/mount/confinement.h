/* Which layers of the sandbox bind a server, told to other processes: the kernel tells of some of them alone.
 *
 * A server keeps a file in memory open whose name says so, which those who may look at its descriptors can read, just
 * as they find the server by them (processes.h). */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct confinement {
    unsigned layers; /* a sum of enum sandbox_layer */
    bool network;    /* it may connect to servers */
    bool opens_all;  /* its opener opens what any link leads to */
};

/* Shows the confinement of this process, for its life. */
void confinement_show(const struct confinement *confinement);

/* Finds out the confinement that a process shows; false: none, or it cannot be seen. */
bool confinement_of(pid_t process, struct confinement *ret_confinement);
