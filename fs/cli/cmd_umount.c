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
    .summary = "Take a mount away, also one whose wfs has died",
    .flags = (const struct flag[]){{'l', "lazy", "at once; who still reads may finish"}, {0}},
    .examples =
        (const struct example[]){
            {"wfs umount /mnt/m", "when nobody uses it any more"},
            {"wfs umount -l /mnt/m", "now"},
            {0},
        },
    .min_arguments = 1,
    .max_arguments = 1,
    .run = run,
};
