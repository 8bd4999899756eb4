/* A process that detaches the mount for a server in the sandbox, which can neither unmount nor start fusermount3.
 *
 * It is started before any source is opened, keeps no descriptor but its end of a socket, ignores the signals of the
 * terminal, and ends with the server, also if that is killed. Its only input are the requests of that server. */
#pragma once

#include "fs/mount/own_mount.h"

struct unmounter;

/* Starts the process. Returns NULL if that is impossible. Only for a process with one thread. */
struct unmounter *unmounter_start(void);

/* Detaches a mount like own_mount_detach(), which is called instead if there is no unmounter. */
bool unmounter_detach(struct unmounter *unmounter, const struct own_mount *own, enum detach how, struct error *error);

/* Ends the process, and waits for it; NULL is allowed. */
void unmounter_free(struct unmounter *unmounter);
