/* What the harnesses share. */
#pragma once

#include "formats/checkpoint_builder.h"
#include "formats/format.h"
#include "sources/source_kinds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static inline void require(bool condition)
{
    if (!condition)
        abort();
}

/* A refusal is one line. */
static inline void require_one_line(const struct error *error)
{
    require(error->message[0] != '\0' && strchr(error->message, '\n') == NULL);
}

static inline struct source *source_of_bytes(const uint8_t *data, size_t size, const char *name)
{
    struct error error;
    int fd = memfd_create("input", MFD_CLOEXEC);
    require(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    struct source *source = source_file_open(fd, name, &error);
    require(source != NULL);
    close(fd);
    return source;
}
