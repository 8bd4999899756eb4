/* The file that a command is writing, which must not stay unfinished if a signal ends the command. */
#pragma once

#include "fs/lib/output.h"

/* Has SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGPIPE remove the temporary name of an output, if it has one. One output at
 * a time; call unfinished_none() before it is finished or discarded. */
void unfinished_is(const struct output *output);
void unfinished_none(void);
