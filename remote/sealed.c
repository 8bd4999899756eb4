#include "remote/sealed.h"

#include "base/arena.h"
#include "base/little_endian.h"
#include "remote/crc.h"
#include "remote/store.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_PATH = 4096 };

struct sealed {
    char *path;
    int file, crcs;
    atomic_bool is_damaged;
};

/* Opens DIRECTORY/NAME if it is a regular file of that size; else returns -1. */
static int open_sized(const char *directory, const char *name, uint64_t size)
{
    char path[MAX_PATH];
    struct stat status;
    snprintf(path, sizeof path, "%s/%s", directory, name);
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && (uint64_t)status.st_size == size))
        return fd;
    close(fd);
    return -1;
}

struct sealed *sealed_open(const char *directory, uint64_t size)
{
    uint64_t n_granules = (size + STORE_GRANULE - 1) / STORE_GRANULE;
    int file = open_sized(directory, SEALED_NAME, size);
    int crcs = file >= 0 ? open_sized(directory, SEALED_NAME ".crc", n_granules * sizeof(uint32_t)) : -1;
    if (crcs < 0) {
        if (file >= 0)
            close(file);
        return NULL;
    }
    futimens(file, NULL); /* what was used last is evicted last */
    struct sealed *sealed = memory_alloc(sizeof *sealed);
    *sealed = (struct sealed){.path = memory_alloc(MAX_PATH), .file = file, .crcs = crcs};
    snprintf(sealed->path, MAX_PATH, "%s/" SEALED_NAME, directory);
    return sealed;
}

void sealed_close(struct sealed *sealed)
{
    if (sealed == NULL)
        return;
    close(sealed->file);
    close(sealed->crcs);
    free(sealed->path);
    free(sealed);
}

int sealed_descriptor(const struct sealed *sealed)
{
    return sealed->file;
}

bool sealed_is_damaged(const struct sealed *sealed)
{
    return atomic_load(&sealed->is_damaged);
}

void sealed_remove(struct sealed *sealed)
{
    atomic_store(&sealed->is_damaged, true);
    unlink(sealed->path);
}

bool sealed_read(const struct sealed *sealed, uint64_t offset, size_t length, void *out)
{
    return pread(sealed->file, out, length, (off_t)offset) == (ssize_t)length;
}

bool sealed_take(struct sealed *sealed, uint64_t granule, size_t length, void *out)
{
    uint32_t crc;
    if (!sealed_read(sealed, granule * STORE_GRANULE, length, out) ||
        pread(sealed->crcs, &crc, sizeof crc, (off_t)(granule * sizeof crc)) != sizeof crc)
        return false;
    little_endian(&crc, 1, sizeof crc);
    if (crc == crc_of(out, length))
        return true;
    sealed_remove(sealed);
    return false;
}

/* A file under a name of its own. */
struct temporary {
    char path[MAX_PATH];
    int fd; /* -1: it cannot be made */
};

struct sealing {
    char directory[MAX_PATH - 64];
    struct temporary file, crcs;
};

static void make_temporary(struct temporary *temporary, const char *directory)
{
    snprintf(temporary->path, sizeof temporary->path, "%s/" SEALED_NAME ".XXXXXX", directory);
    temporary->fd = mkostemp(temporary->path, O_CLOEXEC);
}

/* Syncs a temporary file and gives it its name if it is complete, else removes it. Reports whether it has its name. */
static bool finish_temporary(struct temporary *temporary, const char *directory, const char *name, bool complete)
{
    char path[MAX_PATH];
    if (temporary->fd < 0)
        return false;
    snprintf(path, sizeof path, "%s/%s", directory, name);
    bool finished = complete && fsync(temporary->fd) == 0 && rename(temporary->path, path) == 0;
    if (!finished)
        unlink(temporary->path);
    close(temporary->fd);
    return finished;
}

struct sealing *sealing_begin(const char *directory)
{
    struct sealing *sealing = memory_alloc(sizeof *sealing);
    snprintf(sealing->directory, sizeof sealing->directory, "%s", directory);
    make_temporary(&sealing->file, directory);
    make_temporary(&sealing->crcs, directory);
    if (sealing->file.fd >= 0 && sealing->crcs.fd >= 0)
        return sealing;
    sealing_end(sealing, false);
    return NULL;
}

bool sealing_add(struct sealing *sealing, const void *granule, size_t length)
{
    uint32_t crc = crc_of(granule, length);
    little_endian(&crc, 1, sizeof crc);
    return write(sealing->file.fd, granule, length) == (ssize_t)length &&
           write(sealing->crcs.fd, &crc, sizeof crc) == sizeof crc;
}

bool sealing_end(struct sealing *sealing, bool complete)
{
    /* The CRCs come first: a file without them counts as absent. */
    bool has_crcs = finish_temporary(&sealing->crcs, sealing->directory, SEALED_NAME ".crc", complete);
    bool finished = finish_temporary(&sealing->file, sealing->directory, SEALED_NAME, has_crcs);
    free(sealing);
    return finished;
}
