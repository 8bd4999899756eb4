/* The sandbox, tried from inside: each test runs in a child that enters it, and reports one bit for each attempt. */
#include "base/sandbox.h"

#include "tests/unit/check.h"
#include "tests/unit/files.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>

/* Runs try() in a child, and returns its status; -1 if a signal ended it. */
static int in_child(int (*try)(void))
{
    int status = -1;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        _exit(try());
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Returns a bit for each attempt that went wrong. */
static int bits(const bool *wrong, size_t n)
{
    int result = 0;
    for (size_t i = 0; i < n; i++)
        result |= wrong[i] << i;
    return result;
}
#define WRONG(...) bits((const bool[]){__VA_ARGS__}, sizeof((const bool[]){__VA_ARGS__}))

static bool refused(long result)
{
    return result < 0 && errno == EPERM;
}

/* Programs, namespaces, mounts, other processes. */
static int try_calls(void)
{
    char *const arguments[] = {"true", NULL};
    if ((sandbox_enter(&(struct sandbox){0}) & SANDBOX_CALLS) == 0)
        return 77;
    return WRONG(!refused(execve("/bin/true", arguments, arguments)), !refused(unshare(CLONE_NEWUSER)),
                 !refused(mount("none", "/", "tmpfs", 0, NULL)), !refused(syscall(SYS_bpf, 0, NULL, 0)),
                 !refused(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL)),
                 !refused(syscall(SYS_process_vm_readv, getppid(), NULL, 0, NULL, 0, 0)), !refused(setuid(0)));
}

static int try_network(void)
{
    if ((sandbox_enter(&(struct sandbox){0}) & SANDBOX_CALLS) == 0)
        return 77;
    int ends[2];
    return WRONG(!refused(socket(AF_INET, SOCK_STREAM, 0)), !refused(socket(AF_INET6, SOCK_DGRAM, 0)),
                 !refused(socket(AF_NETLINK, SOCK_RAW, 0)), !refused(socket(AF_UNIX, SOCK_DGRAM, 0)),
                 !refused(connect(0, NULL, 0)), socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0);
}

/* What changes files of others, terminals and processes. */
static int try_changes(void)
{
    const char byte = 'i';
    if ((sandbox_enter(&(struct sandbox){0}) & SANDBOX_CALLS) == 0)
        return 77;
    return WRONG(!refused(chmod("single", 04755)), !refused(chown("single", 1, 1)), !refused(fchmod(0, 0777)),
                 !refused(setxattr("single", "user.a", "b", 1, 0)), !refused(ioctl(0, TIOCSTI, &byte)),
                 !refused(ioctl(0, 0x100000000 | TIOCSTI, &byte)), !refused(kill(getppid(), 0)),
                 kill(getpid(), 0) != 0);
}

/* An opener opens, and reads nothing. */
static int try_opener(void)
{
    if ((sandbox_enter(&(struct sandbox){.role = SANDBOX_OPENER}) & SANDBOX_CALLS) == 0)
        return 77;
    int fd = open("single", O_RDONLY);
    char byte;
    return WRONG(fd < 0, !refused(read(fd, &byte, 1)), !refused(pread(fd, &byte, 1, 0)),
                 mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) != MAP_FAILED, !refused(unlink("single")),
                 !refused(socket(AF_UNIX, SOCK_DGRAM, 0)), !refused(write(fd, &byte, 1)));
}

/* A mounter detaches, and neither mounts nor starts a program. */
static int try_mounter(void)
{
    char *const arguments[] = {"true", NULL};
    if ((sandbox_enter(&(struct sandbox){.role = SANDBOX_MOUNTER, .capabilities = ~0ULL}) & SANDBOX_CALLS) == 0)
        return 77;
    return WRONG(refused(umount2("no such", MNT_DETACH)), !refused(mount("none", "/", "tmpfs", 0, NULL)),
                 !refused(execve("/bin/true", arguments, arguments)), !refused(fork()),
                 !refused(socket(AF_UNIX, SOCK_DGRAM, 0)), !refused(chmod("single", 04755)));
}

static bool connects(const struct sockaddr_in *address)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    return connect(fd, (const struct sockaddr *)address, sizeof *address) == 0;
}

/* Connections to named ports alone, where the kernel can tell them apart. */
static int try_ports(void)
{
    struct sockaddr_in addresses[2];
    socklen_t length = sizeof *addresses;
    for (int i = 0; i < 2; i++) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        addresses[i] = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        files_must(bind(fd, (struct sockaddr *)&addresses[i], length) == 0 && listen(fd, 1) == 0 &&
                       getsockname(fd, (struct sockaddr *)&addresses[i], &length) == 0,
                   "a socket");
    }
    const uint16_t ports[] = {ntohs(addresses[0].sin_port), 0};
    int paths = sandbox_open_paths(&(struct sandbox_paths){.ports = ports});
    bool has_ports = syscall(SYS_landlock_create_ruleset, NULL, 0, 1) >= 4;
    sandbox_enter(&(struct sandbox){.uses = SANDBOX_CONNECTS, .paths = paths});
    return !has_ports ? 77 : WRONG(!connects(&addresses[0]), connects(&addresses[1]));
}

/* With paths, signals reach this process alone. */
static int try_signals(void)
{
    int ends[2];
    char byte;
    files_must(pipe(ends) == 0, "a pipe");
    pid_t other = fork();
    if (other == 0) {
        close(ends[1]);
        _exit(read(ends[0], &byte, 1) != 0); /* until this process ends */
    }
    bool has_scopes = syscall(SYS_landlock_create_ruleset, NULL, 0, 1) >= 6;
    int paths = sandbox_open_paths(&(struct sandbox_paths){0});
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); /* without which an ordinary user may restrict nothing */
    bool restricted = sandbox_restrict_paths(paths), stopped = kill(other, SIGKILL) == 0;
    if (!stopped && !has_scopes)
        return 77;
    return has_scopes ? WRONG(!restricted, stopped, kill(getpid(), 0) != 0) : 77;
}

static int try_allowed_network(void)
{
    sandbox_enter(&(struct sandbox){.uses = SANDBOX_CONNECTS});
    return socket(AF_INET, SOCK_STREAM, 0) < 0;
}

static sem_t entered;

static void *run_program(void *result)
{
    char *const arguments[] = {"true", NULL};
    while (sem_wait(&entered) != 0)
        ;
    *(bool *)result = refused(execve("/bin/true", arguments, arguments));
    return NULL;
}

/* A thread that ran before is in the filter, too, and new threads can be made. */
static int try_threads(void)
{
    bool earlier = false, later = false;
    pthread_t first, second;
    sem_init(&entered, 0, 0);
    pthread_create(&first, NULL, run_program, &earlier);
    if ((sandbox_enter(&(struct sandbox){0}) & SANDBOX_CALLS) == 0)
        _exit(77);
    sem_post(&entered);
    sem_post(&entered);
    bool made = pthread_create(&second, NULL, run_program, &later) == 0;
    if (made)
        pthread_join(second, NULL);
    pthread_join(first, NULL);
    return WRONG(!earlier, !later);
}

/* Returns a number of /proc/self/status. */
static unsigned long long status_number(const char *name, int base)
{
    char line[256];
    unsigned long long number = ~0ULL;
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, name, strlen(name)) == 0)
            number = strtoull(line + strlen(name), NULL, base);
    if (file != NULL)
        fclose(file);
    return number;
}

static int try_privileges(void)
{
    unsigned long long before = status_number("CapPrm:", 16);
    sandbox_enter(&(struct sandbox){.capabilities = 1ULL << CAP_KILL});
    unsigned long long now = status_number("CapPrm:", 16), effective = status_number("CapEff:", 16);
    unsigned long long lost = 1ULL << CAP_SYS_ADMIN | 1ULL << CAP_SYS_PTRACE | 1ULL << CAP_NET_ADMIN |
                              1ULL << CAP_SETUID | 1ULL << CAP_DAC_READ_SEARCH;
    unsigned long long kept = 1ULL << CAP_KILL;
    return WRONG(status_number("NoNewPrivs:", 10) != 1, (now & lost) != 0, (now & kept) != (before & kept),
                 (effective & ~now) != 0);
}

static bool opens(const char *path, int flags)
{
    int fd = open(path, flags, 0600);
    return fd >= 0 && close(fd) == 0;
}

/* Sources can be read, the store written, and nothing else but the system's directories. */
static int try_paths(void)
{
    const char *const readable[] = {"source", "no/such", "single", NULL}, *const writable[] = {"store", NULL},
                      *const devices[] = {"/dev/null", NULL};
    int paths =
        sandbox_open_paths(&(struct sandbox_paths){.readable = readable, .writable = writable, .devices = devices});
    unsigned layers = sandbox_enter(&(struct sandbox){.paths = paths});
    if ((layers & SANDBOX_PATHS) == 0)
        return 77;
    return WRONG(!opens("source/weights", O_RDONLY), opens("source/weights", O_RDWR),
                 opens("source/new", O_CREAT | O_RDWR), opens("private", O_RDONLY),
                 !opens("store/new", O_CREAT | O_RDWR),
                 opens("/proc/self/status", O_RDONLY) || !opens("/dev/null", O_RDWR), rmdir("mounts/made") == 0,
                 !opens("single", O_RDONLY));
}

static int try_all_paths(void)
{
    sandbox_enter(&(struct sandbox){0});
    return WRONG(!opens("private", O_RDWR), !opens("made", O_CREAT | O_RDWR));
}

static int try_environment(void)
{
    static char secret[] = "AWS_SECRET_ACCESS_KEY=hidden", other[] = "TOKEN=hidden", home[] = "HOME=/root";
    putenv(secret);
    putenv(home);
    putenv(other);
    sandbox_clear_environment((const char *const[]){"AWS_", NULL});
    bool wrong = getenv("AWS_SECRET_ACCESS_KEY") == NULL || getenv("HOME") == NULL || getenv("TOKEN") != NULL;
    sandbox_clear_environment(NULL);
    return WRONG(wrong, getenv("AWS_SECRET_ACCESS_KEY") != NULL, secret[0] != '\0' || secret[22] != '\0',
                 getenv("HOME") == NULL);
}

static void check_try(int (*try)(void), const char *name)
{
    int status = in_child(try);
    if (status == 77)
        check_skip(name, "this kernel lacks the layer");
    else if (!CHECK_NAMED(status == 0, name))
        fprintf(stderr, "%s: status %#x\n", name, (unsigned)status);
}

int main(void)
{
    files_begin();
    mkdir("source", 0700);
    mkdir("store", 0700);
    mkdir("mounts", 0700);
    mkdir("mounts/made", 0700);
    files_must(opens("source/weights", O_CREAT | O_WRONLY) && opens("private", O_CREAT | O_WRONLY) &&
                   opens("single", O_CREAT | O_WRONLY),
               "files");
    check_try(try_calls, "no programs, namespaces, mounts, modules and no memory of other processes");
    check_try(try_network, "no sockets");
    check_try(try_changes, "no modes, owners, attributes, terminals and signals");
    check_try(try_opener, "an opener reads nothing");
    check_try(try_mounter, "a mounter does nothing but detach");
    check_try(try_ports, "named ports");
    check_try(try_signals, "no signals to others");
    check_try(try_allowed_network, "the network where it is needed");
    check_try(try_threads, "earlier and later threads");
    check_try(try_privileges, "no privileges and only the capabilities in use");
    check_try(try_paths, "only named paths");
    check_try(try_all_paths, "all paths where none is named");
    check_try(try_environment, "an environment without secrets");
    files_remove();
    return check_done();
}
