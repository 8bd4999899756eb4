/* A file that is being written: it gets its name when it is complete, so a partial one never bears it. */
#pragma once

#include "base/error.h"

#include <stdint.h>

struct output {
    int fd;
    bool is_file;     /* false for a pipe or a device, which is written in place */
    char *path;       /* the final name */
    char *temporary;  /* the name until then */
    bool has_no_name; /* O_TMPFILE: the temporary name is not in use */
};

/* `size` is reserved where the file system can, so that a full one is noticed at once. */
bool output_open(struct output *output, const char *path, uint64_t size, struct error *error);

/* Gives the file its name, which replaces a file that has it. Frees the output, done or not. */
bool output_finish(struct output *output, struct error *error);

/* Frees it and leaves nothing behind. A signal that ends the process leaves nothing either. */
void output_discard(struct output *output);
