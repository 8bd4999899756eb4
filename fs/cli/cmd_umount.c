#include "base/report.h"
#include "fs/cli/command.h"
#include "fs/mount/mountpoint.h"

#include <stdlib.h>

enum { FLAG_LAZY };

static int run(const struct invocation *invocation)
{
    struct error error;
    if (mountpoint_clear(invocation->arguments[0], invocation->flags[FLAG_LAZY] ? DETACH_LAZY : DETACH_IDLE, &error))
        return EXIT_SUCCESS;
    report("%s", error.message);
    return EXIT_BAD_INPUT;
}

const struct command umount_command = {
    .name = "umount",
    .usage = "MOUNTPOINT",
    .summary = "Unmount, even if the wfs process has died",
    .group = MOUNT_COMMAND,
    .flags = (const struct flag[]){{'l', "lazy", "detach at once; programs that are reading can finish"}, {0}},
    .examples =
        (const struct example[]){
            {"wfs umount ~/m", "unmount if no program uses the mount"},
            {"wfs umount -l ~/m", "detach now"},
            {0},
        },
    .min_arguments = 1,
    .max_arguments = 1,
    .enters_sandbox_itself = true,
    .run = run,
};
