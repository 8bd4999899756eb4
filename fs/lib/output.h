/* A file that is being written. It gets its name when it is complete, so a partial file never has it. Several threads
 * may write files of one name: each file is complete, and the last stays. */
#pragma once

#include "base/error.h"

#include <stdint.h>
#include <sys/types.h>

struct output {
    int fd;
    bool is_file;     /* false for a pipe or a device, which is written in place */
    char *path;       /* the final name */
    char *temporary;  /* the name until the file is complete, which a process that is killed may leave */
    bool has_no_name; /* O_TMPFILE: the temporary name is not in use */
};

/* Opens an output, and reserves `size` bytes if the file system can: a full one fails at once. Follows links. A new
 * file has the mode, usually OUTPUT_MODE, without the bits of the umask. The error's code is the errno. */
enum { OUTPUT_MODE = 0666 };
bool output_open(struct output *output, const char *path, uint64_t size, mode_t mode, struct error *error);

/* Gives the file its name, replacing a file that has it. Frees the output, even on failure. */
bool output_finish(struct output *output, struct error *error);

/* Removes the file, unless it is written in place, and frees the output. */
void output_discard(struct output *output);
