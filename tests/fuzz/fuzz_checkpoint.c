/* Any bytes as a checkpoint: opens it, lists everything, stats everything, reads ranges of every file. */
#include "tests/fuzz/visit_tree.h"

#include <fcntl.h>

enum { MAX_INPUT = 1 << 16 };

static char directory[] = "/tmp/wfs-fuzz-XXXXXX";

static void remove_directory(void)
{
    rmdir(directory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct content_options options;
    static char path[64];
    if (size > MAX_INPUT)
        return 0;
    if (path[0] == '\0') {
        require(mkdtemp(directory) != NULL && atexit(remove_directory) == 0);
        snprintf(path, sizeof path, "%s/input", directory);
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    require(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    close(fd);
    visit_path(path, &options, NULL);
    unlink(path);
    return 0;
}
