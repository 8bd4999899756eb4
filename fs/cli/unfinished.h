/* The file that a command is writing, which must not stay unfinished if a signal ends the command. */
#pragma once

#include "fs/lib/output.h"

/* Like output_open(), and has SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGPIPE remove the temporary name of the output, if
 * it has one. One output at a time; call unfinished_none() before it is finished or discarded. */
bool unfinished_open(struct output *output, const char *path, uint64_t size, mode_t mode, struct error *error);
void unfinished_none(void);
