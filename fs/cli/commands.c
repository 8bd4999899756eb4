#include "fs/cli/command.h"

#include <string.h>

extern const struct command umount_command, mounts_command, exec_command, ls_command, cat_command, cp_command,
    info_command, serve_command, sha256_command, diff_command, verify_command, attest_command, layout_command,
    complete_command, manual_command, cache_command, fetch_command, pack_command;

const struct command *const commands[] = {
    &mount_command,    &umount_command, &mounts_command, &exec_command,   &ls_command,
    &cat_command,      &cp_command,     &pack_command,   &info_command,   &serve_command,
    &sha256_command,   &diff_command,   &verify_command, &attest_command, &layout_command,
    &complete_command, &fetch_command,  &cache_command,  &manual_command, NULL,
};

const struct command *command_find(const char *name)
{
    for (const struct command *const *command = commands; *command != NULL; command++)
        if (strcmp((*command)->name, name) == 0)
            return *command;
    return NULL;
}
