/* The sandbox of a server, tried from inside: what code that has taken it over could still do. */
#include "fs/cli/sandbox.h"

#include "base/sandbox.h"
#include "fs/mount/processes.h"
#include "models/formats.h"
#include "tests/unit/check.h"
#include "tests/unit/files.h"
#include "tests/unit/sanitized.h"
#include "tests/unit/write_safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <sys/xattr.h>

static bool refused(long result)
{
    return result < 0 && (errno == EPERM || errno == EACCES);
}

static bool opens(const char *path, int flags)
{
    int fd = open(path, flags, 0600);
    return fd >= 0 && close(fd) == 0;
}

static bool reads(const char *path)
{
    struct error error;
    const struct checkpoint *checkpoint = checkpoint_open(path, formats, &(struct open_options){0}, &error);
    if (checkpoint != NULL)
        checkpoint_close(checkpoint);
    return checkpoint != NULL;
}

static void enter(const char *words)
{
    static const char *const sources[] = {"model"};
    struct options options;
    struct error error;
    options_init(&options);
    files_must(options_parse(&options, words, &error), words);
    files_must(enter_server_sandbox(sources, 1, &options, &error), "the sandbox");
}

/* A sanitizer's search for leaks needs a process. */
static bool refuses_processes(void)
{
    return IS_SANITIZED || refused(fork());
}

/* As root the file of another user, and one that is root's own. */
static void check_calls(void)
{
    const char byte = 'i';
    enter("");
    CHECK(refused(chmod("true", 04755)) && refused(chown("true", 1, 1)));
    CHECK(refused(setxattr("true", "user.a", "b", 1, 0)));
    CHECK(refused(socket(AF_UNIX, SOCK_STREAM, 0)) && refused(socket(AF_INET, SOCK_STREAM, 0)));
    CHECK(refused(connect(0, NULL, 0)) && refused(bind(0, NULL, 0)));
    CHECK(refused(ioctl(0, TIOCSTI, &byte)));
    CHECK(refused(kill(getppid(), 0)) && refuses_processes());
    CHECK(refused(mount("none", "/", "tmpfs", 0, NULL)) && refused(umount2("/proc", MNT_DETACH)));
    CHECK(refused(execve("true", (char *[]){"true", NULL}, NULL)) && refused(setuid(1)));
}

static void check_paths(void)
{
    struct confinement confinement = {0};
    enter("");
    confinement_of(getpid(), &confinement);
    CHECK((confinement.layers & SANDBOX_CALLS) != 0 && (confinement.layers & SANDBOX_PRIVILEGES) != 0);
    CHECK(!confinement.network && !confinement.opens_all);
    CHECK_NAMED(reads("model"), "the opener opens the model, with a file that is there since");
    CHECK_NAMED(!reads("private"), "and nothing else");
    if ((confinement.layers & SANDBOX_PATHS) == 0)
        return;
    CHECK(!opens("model/model.safetensors", O_RDONLY) && !opens("private/model.safetensors", O_RDONLY));
    CHECK(!opens("new", O_CREAT | O_WRONLY) && !opens("model/new", O_CREAT | O_WRONLY) &&
          !opens("/etc/passwd", O_RDONLY));
    CHECK(opens("/dev/null", O_RDWR) && opens("/proc/self/mountinfo", O_RDONLY));
}

static void check_links(void)
{
    struct confinement confinement = {0};
    enter("follow-links");
    CHECK(confinement_of(getpid(), &confinement) && confinement.opens_all);
    CHECK(reads("private"));
}

static void check_store(void)
{
    enter("keep=all");
    CHECK(opens("cache/wfs/new", O_CREAT | O_WRONLY) && unlink("cache/wfs/new") == 0);
    CHECK(!opens("cache/new", O_CREAT | O_WRONLY));
}

/* An option that names a server, as one that names a file, is one of the sources. */
static void check_options(void)
{
    struct confinement confinement = {0};
    enter("base=private");
    CHECK(reads("private"));
    confinement_of(getpid(), &confinement);
    CHECK(!confinement.network);
}

static void check_network(void)
{
    struct confinement confinement = {0};
    enter("base=http://127.0.0.1:1/m");
    CHECK(confinement_of(getpid(), &confinement) && confinement.network);
    CHECK(socket(AF_INET, SOCK_STREAM, 0) >= 0 && refused(socket(AF_UNIX, SOCK_STREAM, 0)));
    CHECK(!opens("/etc/shadow", O_RDONLY) && !opens("private/model.safetensors", O_RDONLY));
}

static void in_child(void (*check)(void), const char *name)
{
    int status = -1;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO); /* the child's checks are one of the plan */
        check();
        _exit(check_failed != 0);
    }
    waitpid(child, &status, 0);
    CHECK_NAMED(status == 0, name);
}

int main(void)
{
    files_begin();
    files_must(mkdir("model", 0700) == 0 && mkdir("private", 0700) == 0, "folders");
    safetensors_write_ramps("model/model.safetensors", "x 2 2");
    safetensors_write_ramps("private/model.safetensors", "x 2 2");
    files_write_text("true", "");
    char cache[1024];
    files_must(getcwd(cache, sizeof cache - 8) != NULL, "here");
    setenv("XDG_CACHE_HOME", strcat(cache, "/cache"), 1);
    unsetenv("CACHE_DIRECTORY");
    setenv("HF_HUB_CACHE", "/nonexistent", 1);
    in_child(check_calls, "no modes, owners, attributes, sockets, terminals, signals, mounts and programs");
    in_child(check_paths, "no files but through the opener");
    in_child(check_links, "links that may lead anywhere");
    in_child(check_store, "the store");
    in_child(check_options, "what an option names");
    in_child(check_network, "a server on the network");
    files_remove();
    return check_done();
}
