/* Any bytes as a checkpoint: opens it, lists everything, stats everything, reads ranges of every file; opens it as the
 * formats that the user may name, and as a source that has no name. */
#include "models/formats.h"

#include "tests/fuzz/visit_tree.h"

#include <fcntl.h>

enum { MAX_INPUT = 1 << 16 };

static char directory[] = "/tmp/wfs-fuzz-XXXXXX";

static void remove_directory(void)
{
    rmdir(directory);
}

static void check(const struct checkpoint *checkpoint, size_t size, const struct error *error)
{
    uint64_t n_cached, n_bytes;
    if (checkpoint == NULL) {
        require_one_line(error);
        return;
    }
    require(checkpoint_bytes(checkpoint) >= size);
    require(!checkpoint_cached(checkpoint, &n_cached, &n_bytes) && n_bytes >= size);
    checkpoint_close(checkpoint);
}

static void open_otherwise(const char *path, const uint8_t *data, size_t size)
{
    struct error error;
    struct open_options options = {.format = "such"};
    require(checkpoint_open(path, formats, &options, &error) == NULL);
    for (const struct format *const *format = formats; *format != NULL; format++) {
        options.format = (*format)->name;
        check(checkpoint_open(path, formats, &options, &error), size, &error);
    }
    check(checkpoint_of_source(source_of_bytes(data, size, "input"), formats, &error), size, &error);
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
    open_otherwise(path, data, size);
    unlink(path);
    return 0;
}
