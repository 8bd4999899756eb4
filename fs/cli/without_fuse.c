/* What the commands for mounts do in a build without libfuse3. */
#include "base/report.h"
#include "fs/cli/command.h"
#include "fs/mount/mountpoint.h"

static int refuse(const struct invocation *invocation)
{
    report("%s: this wfs was built without FUSE; 'wfs ls', 'wfs cat', 'wfs cp' and 'wfs serve' need no mount",
           invocation->command->name);
    return EXIT_MISUSE;
}

/* Takes any operands, so that the reason above is what is said. */
#define REFUSED(word)                                                                                                  \
    {                                                                                                                  \
        .name = word, .usage = "...", .summary = "not in this build", .max_arguments = SIZE_MAX,                       \
        .takes_options = true, .mounts = true, .run = refuse,                                                          \
    }

const struct command mount_command = REFUSED("mount"), umount_command = REFUSED("umount"),
                     mounts_command = REFUSED("mounts"), exec_command = REFUSED("exec");

/* There are none. */
void mountpoint_each(void (*emit)(void *context, const char *path, const char *source), void *context)
{
    (void)emit;
    (void)context;
}
