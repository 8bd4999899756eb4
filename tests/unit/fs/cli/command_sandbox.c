/* The sandbox of a command, tried from inside: what code that has taken it over could do before it reads a byte. */
#include "fs/cli/sandbox.h"

#include "base/sandbox.h"
#include "models/formats.h"
#include "tests/unit/check.h"
#include "tests/unit/files.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>

static const char file[] = "\x38\0\0\0\0\0\0\0{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}  1234";

static bool reads(const char *path)
{
    static const struct open_options options;
    struct error error;
    const struct checkpoint *checkpoint = checkpoint_open(path, formats, &options, &error);
    checkpoint_close(checkpoint);
    return checkpoint != NULL;
}

static bool opens(const char *path, int flags)
{
    int fd = open(path, flags, 0600);
    return fd >= 0 && close(fd) == 0;
}

/* Reports whether the kernel lets this process try to connect to a port; nobody listens there. */
static bool connects(in_port_t port)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    return fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) != 0 && errno == ECONNREFUSED;
}

static bool binds(void)
{
    const struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    return fd >= 0 && bind(fd, (const struct sockaddr *)&address, sizeof address) == 0;
}

struct
try {
    const char *options; /* NULL: none */
    struct command_needs needs;
    bool reads_private; /* all can be read */
    bool writes_out;    /* in the destination's folder */
    bool connects;
};

/* Returns a bit for each attempt that went wrong. */
static int run_try(const struct try *try)
{
    static const char *const sources[] = {"a/model.safetensors", "b"};
    struct options options;
    struct error error;
    struct command_needs needs = try->needs;
    options_init(&options);
    options.delays_files = true;
    files_must(try->options == NULL || options_parse(&options, try->options, &error), "options");
    needs.sources = sources;
    needs.n_sources = sizeof sources / sizeof *sources;
    enter_command_sandbox(&needs, &options);
    const bool wrong[] = {
        !reads("a/model.safetensors") || !reads("b"),
        !opens("b/beside", O_RDONLY),
        opens("private/key", O_RDONLY) != try->reads_private,
        opens("/etc/passwd", O_RDONLY) != try->reads_private,
        opens("out/new", O_CREAT | O_WRONLY) != try->writes_out,
        opens("a/new", O_CREAT | O_WRONLY) || opens("a/model.safetensors", O_RDWR),
        opens("adapter/model.safetensors", O_RDONLY) != (try->options != NULL),
        connects(1) != try->connects,
        binds() != needs.listens,
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
    char cache[1024];
    files_must(getcwd(cache, sizeof cache - 8) != NULL, "here");
    setenv("XDG_CACHE_HOME", strcat(cache, "/cache"), 1);
    unsetenv("CACHE_DIRECTORY");
    setenv("HF_HUB_CACHE", "/nonexistent", 1);
    int paths = sandbox_open_paths(&(struct sandbox_paths){0});
    if (paths == 0) {
        check_skip("paths", "this kernel lacks the layer");
        files_remove();
        return check_done();
    }
    close(paths);
    check_try(&(struct try){0}, "the folders of the sources, to read");
    check_try(&(struct try){.needs.destination = "out/model.gguf", .writes_out = true},
              "and that of a new file, to write");
    check_try(&(struct try){.needs.destination = "out/model.safetensors", .writes_out = true}, "of one to replace");
    check_try(&(struct try){.needs.destination = "out", .writes_out = true}, "a directory to write to");
    check_try(&(struct try){.needs.destination = "/dev/null"}, "a device");
    check_try(&(struct try){.needs.listens = true}, "connections of others");
    check_try(&(struct try){.options = "base=adapter"}, "what an option names");
    check_try(&(struct try){.options = "follow-links", .reads_private = true}, "links that may lead anywhere, to read");
    check_try(&(struct try){.options = "base=adapter,lora=http://127.0.0.1:1/m", .connects = true}, "a server");
    files_remove();
    return check_done();
}
