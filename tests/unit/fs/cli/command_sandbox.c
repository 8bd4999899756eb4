/* The paths of a command, tried from inside: a child opens its sources, leaves itself their paths, and tries others. */
#include "fs/cli/command_sandbox.h"

#include "base/sandbox.h"
#include "formats/checkpoint.h"
#include "models/formats.h"
#include "tests/unit/check.h"
#include "tests/unit/files.h"

#include <fcntl.h>
#include <sys/wait.h>

static const char file[] = "\x38\0\0\0\0\0\0\0{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}  1234";

static const struct checkpoint *must_open(const char *path)
{
    static const struct open_options options;
    struct error error;
    const struct checkpoint *checkpoint = checkpoint_open(path, formats, &options, &error);
    files_must(checkpoint != NULL, path);
    return checkpoint;
}

static bool opens(const char *path, int flags)
{
    int fd = open(path, flags, 0600);
    return fd >= 0 && close(fd) == 0;
}

struct
try {
    const char *options, *destination; /* NULL: none */
    bool reads_private;                /* all paths stay open */
    bool writes_out, writes_beside;    /* in the destination's folder, in that of a source */
};

/* Returns a bit for each attempt that went wrong. */
static int run_try(const struct try *try)
{
    struct options options;
    struct error error;
    options_init(&options);
    files_must(try->options == NULL || options_parse(&options, try->options, &error), "options");
    const struct checkpoint *const both[] = {must_open("a/model.safetensors"), must_open("b/model.safetensors")};
    sandbox_enter(&(struct sandbox){0}); /* as each command has */
    confine_command(both, 2, &options, try->destination);
    const bool wrong[] = {
        !opens("a/model.safetensors", O_RDONLY),
        !opens("b/beside", O_RDONLY),
        opens("private/key", O_RDONLY) != try->reads_private,
        opens("out/new", O_CREAT | O_WRONLY) != try->writes_out,
        opens("a/new", O_CREAT | O_WRONLY) != try->writes_beside,
        opens("adapter/model.safetensors", O_RDONLY) != (try->options != NULL),
    };
    int bits = 0;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        bits |= wrong[i] << i;
    return bits;
}

static void check_try(const struct try *try, const char *name)
{
    int status = -1;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        _exit(run_try(try));
    waitpid(child, &status, 0);
    if (!CHECK_NAMED(status == 0, name))
        fprintf(stderr, "%s: status %#x\n", name, (unsigned)status);
}

int main(void)
{
    static const char *const folders[] = {"a", "b", "adapter", "private", "out"};
    files_begin();
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char path[64];
        files_must(mkdir(folders[i], 0700) == 0, folders[i]);
        snprintf(path, sizeof path, "%s/model.safetensors", folders[i]);
        files_write(path, file, sizeof file - 1);
    }
    files_write_text("b/beside", "");
    files_write_text("private/key", "");
    setenv("HF_HUB_CACHE", "/nonexistent", 1);
    int paths = sandbox_open_paths(&(struct sandbox_paths){0});
    if (paths == 0) {
        check_skip("paths", "this kernel lacks the layer");
        files_remove();
        return check_done();
    }
    close(paths);
    check_try(&(struct try){0}, "the folders of the sources, to read");
    check_try(&(struct try){.destination = "out/model.gguf", .writes_out = true}, "and that of a new file, to write");
    check_try(&(struct try){.destination = "out/model.safetensors", .writes_out = true}, "of one to replace");
    check_try(&(struct try){.destination = "out", .writes_out = true}, "a directory to write to");
    check_try(&(struct try){.destination = "/dev/null"}, "a device");
    check_try(&(struct try){.options = "base=adapter"}, "what an option names");
    check_try(
        &(struct try){.options = "follow-links", .reads_private = true, .writes_out = true, .writes_beside = true},
        "links that may lead anywhere");
    files_remove();
    return check_done();
}
