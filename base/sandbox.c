#include "base/sandbox.h"

#include <asm/ioctls.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/fuse.h>
#include <linux/landlock.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { IS_SANITIZED = 1 };
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
enum { IS_SANITIZED = 1 };
#else
enum { IS_SANITIZED = 0 };
#endif
#else
enum { IS_SANITIZED = 0 };
#endif

/* Names that an architecture or libseccomp does not know are skipped, so the lists hold those of all of them: 32-bit
 * ones, those that musl uses, and those of later kernels. */

/* Any process needs these, whatever it does: memory, time, its own signals, its end. */
static const char *const common_calls[] = {
    /* memory */
    "brk",
    "madvise",
    "mprotect",
    "mremap",
    "munmap",
    /* threads and processors */
    "futex",
    "futex_time64",
    "futex_waitv",
    "getcpu",
    "get_robust_list",
    "membarrier",
    "rseq",
    "sched_getaffinity",
    "sched_getparam",
    "sched_getscheduler",
    "sched_get_priority_max",
    "sched_get_priority_min",
    "sched_yield",
    "set_robust_list",
    "set_tid_address",
    /* who this process is */
    "getegid",
    "getegid32",
    "geteuid",
    "geteuid32",
    "getgid",
    "getgid32",
    "getgroups",
    "getgroups32",
    "getpgid",
    "getpgrp",
    "getpid",
    "getppid",
    "getresgid",
    "getresgid32",
    "getresuid",
    "getresuid32",
    "getsid",
    "gettid",
    "getuid",
    "getuid32",
    /* time */
    "clock_getres",
    "clock_getres_time64",
    "clock_gettime",
    "clock_gettime64",
    "clock_nanosleep",
    "clock_nanosleep_time64",
    "gettimeofday",
    "nanosleep",
    "time",
    "times",
    /* signals that it gets, and its end */
    "exit",
    "exit_group",
    "restart_syscall",
    "rt_sigaction",
    "rt_sigpending",
    "rt_sigprocmask",
    "rt_sigreturn",
    "rt_sigsuspend",
    "rt_sigtimedwait",
    "rt_sigtimedwait_time64",
    "sigaltstack",
    "sigreturn",
    /* descriptors that it has */
    "close",
    "close_range",
    "fcntl",
    "fcntl64",
    "fstat",
    "fstat64",
    "fstatfs",
    "fstatfs64",
    "poll",
    "ppoll",
    "ppoll_time64",
    /* giving up paths */
    "landlock_restrict_self",
    /* messages on sockets that it has */
    "recvfrom",
    "recvmsg",
    "sendmsg",
    "sendto",
    NULL,
};

/* Reading models: files, threads, the store of kept bytes, outputs. */
static const char *const reader_calls[] = {
    /* finding and opening files */
    "access",
    "chdir",
    "faccessat",
    "faccessat2",
    "fchdir",
    "mmap",
    "mmap2",
    "fstatat64",
    "getcwd",
    "getdents",
    "getdents64",
    "lstat",
    "lstat64",
    "newfstatat",
    "open",
    "openat",
    "openat2",
    "readlink",
    "readlinkat",
    "stat",
    "stat64",
    "statfs",
    "statfs64",
    "statx",
    "umask",
    /* reading and writing them */
    "_llseek",
    "copy_file_range",
    "fadvise64",
    "fadvise64_64",
    "arm_fadvise64_64",
    "fallocate",
    "fdatasync",
    "flock",
    "fsync",
    "ftruncate",
    "ftruncate64",
    "lseek",
    "mincore",
    "msync",
    "pread64",
    "preadv",
    "preadv2",
    "pwrite64",
    "pwritev",
    "pwritev2",
    "read",
    "readahead",
    "readv",
    "sendfile",
    "sendfile64",
    "splice",
    "sync_file_range",
    "tee",
    "vmsplice",
    "write",
    "writev",
    /* names in the store and of outputs */
    "futimesat",
    "link",
    "linkat",
    "mkdir",
    "mkdirat",
    "rename",
    "renameat",
    "renameat2",
    "rmdir",
    "symlink",
    "symlinkat",
    "unlink",
    "unlinkat",
    "utime",
    "utimensat",
    "utimensat_time64",
    "utimes",
    /* waiting for several things */
    "_newselect",
    "dup",
    "dup2",
    "dup3",
    "epoll_create",
    "epoll_create1",
    "epoll_ctl",
    "epoll_pwait",
    "epoll_pwait2",
    "epoll_wait",
    "eventfd",
    "eventfd2",
    "inotify_add_watch",
    "inotify_init",
    "inotify_init1",
    "inotify_rm_watch",
    "memfd_create",
    "pipe",
    "pipe2",
    "pselect6",
    "pselect6_time64",
    "select",
    "socketpair",
    "timerfd_create",
    "timerfd_gettime",
    "timerfd_settime",
    /* the machine and this process */
    "getpriority",
    "getrandom",
    "getrlimit",
    "getrusage",
    "gettimeofday",
    "sched_setaffinity",
    "setsid",
    "sysinfo",
    "ugetrlimit",
    "uname",
    "wait4",
    "waitid",
    "waitpid",
    /* giving up more rights */
    "capget",
    "landlock_add_rule",
    "landlock_create_ruleset",
    "seccomp",
    NULL,
};

/* Connections: libcurl and the resolver, or libmicrohttpd. */
static const char *const network_calls[] = {
    "getpeername", "getsockname", "getsockopt", "recvmmsg", "recvmmsg_time64",
    "sendmmsg",    "setsockopt",  "shutdown",   NULL,
};
static const char *const connecting_calls[] = {"bind", "connect", NULL};
static const char *const listening_calls[] = {"accept", "accept4", "bind", "listen", NULL};

/* An opener finds files and opens them. It has no call that reads one. */
static const char *const opener_calls[] = {
    "chdir",  "fstatat64", "inotify_add_watch", "lstat",      "lstat64", "newfstatat", "open",
    "openat", "openat2",   "readlink",          "readlinkat", "stat",    "stat64",     NULL,
};

/* A mounter finds its mount in the table of mounts and detaches it, and removes its directory. */
static const char *const mounter_calls[] = {
    "mmap",
    "mmap2",
    "access",
    "faccessat",
    "faccessat2",
    "fstatat64",
    "getdents64",
    "getxattr",
    "lgetxattr",
    "lseek",
    "_llseek",
    "lstat",
    "lstat64",
    "newfstatat",
    "open",
    "openat",
    "pidfd_send_signal",
    "pread64",
    "read",
    "readlink",
    "readlinkat",
    "rmdir",
    "stat",
    "stat64",
    "statx",
    "umount2",
    "unlinkat",
    "write",
    "writev",
    NULL,
};

/* What a sanitizer needs in a reader: its search for leaks stops the other threads from a process of its own. */
static const char *const sanitizer_calls[] = {
    "arch_prctl", "mlock", "personality", "prctl", "prlimit64", "ptrace", NULL,
};

static bool is_known(int call)
{
    return call != __NR_SCMP_ERROR;
}

static bool allow(scmp_filter_ctx filter, const char *const *names)
{
    bool done = true;
    for (; done && *names != NULL; names++) {
        int call = seccomp_syscall_resolve_name(*names);
        done = !is_known(call) || seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 0) == 0;
    }
    return done;
}

/* Allows a call if the low 32 bits of an argument are one of the values: the kernel looks at no others here. */
static bool allow_values(scmp_filter_ctx filter, const char *name, unsigned argument, const uint32_t *values, size_t n)
{
    int call = seccomp_syscall_resolve_name(name);
    bool done = true;
    for (size_t i = 0; i < n && done && is_known(call); i++)
        done = seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 1,
                                SCMP_CMP(argument, SCMP_CMP_MASKED_EQ, UINT64_C(0xffffffff), values[i])) == 0;
    return done;
}
#define ALLOW_VALUES(filter, name, argument, ...)                                                                      \
    allow_values(filter, name, argument, (const uint32_t[]){__VA_ARGS__},                                              \
                 sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

/* Threads of this process, and no process or namespace; a sanitizer's process is in no other namespace. */
static bool allow_threads(scmp_filter_ctx filter)
{
    static const uint64_t namespaces =
        CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
    uint64_t mask = namespaces | (IS_SANITIZED ? 0 : CLONE_THREAD), wanted = IS_SANITIZED ? 0 : CLONE_THREAD;
    return seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0) == 0 &&
           seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1, SCMP_A0(SCMP_CMP_MASKED_EQ, mask, wanted)) == 0;
}

/* Signals to threads of this process. musl names the thread alone, which may be another's: Landlock keeps those out. */
static bool allow_own_signals(scmp_filter_ctx filter)
{
    bool done =
        ALLOW_VALUES(filter, "tgkill", 0, (uint32_t)getpid()) && ALLOW_VALUES(filter, "kill", 0, (uint32_t)getpid());
#ifndef __GLIBC__
    done = done && allow(filter, (const char *const[]){"tkill", NULL});
#endif
    return done;
}

/* Settings that change this thread's name or tell what is in force, and limits of this process. */
static bool allow_settings(scmp_filter_ctx filter)
{
    enum { SET_VMA = 0x53564d41 }; /* PR_SET_VMA, by which the C library names memory */
    return IS_SANITIZED || (ALLOW_VALUES(filter, "prctl", 0, PR_GET_NAME, PR_SET_NAME, SET_VMA, PR_GET_SECCOMP,
                                         PR_GET_NO_NEW_PRIVS, PR_GET_DUMPABLE, PR_CAPBSET_READ) &&
                            ALLOW_VALUES(filter, "prlimit64", 0, 0, (uint32_t)getpid()));
}

/* Requests about terminals that change nothing, sharing blocks between files, and a queue of its own for each thread
 * that serves a mount. */
static bool allow_reader_ioctls(scmp_filter_ctx filter)
{
    static const uint32_t settings_2 = 0x802c542a; /* TCGETS2, whose structure the C library's headers hide */
    return ALLOW_VALUES(filter, "ioctl", 1, TCGETS, settings_2, TIOCGWINSZ, FIONREAD, FIONBIO, FICLONE, FICLONERANGE,
                        (uint32_t)FUSE_DEV_IOC_CLONE);
}

static bool allow_reading(scmp_filter_ctx filter, unsigned uses)
{
    bool network = (uses & (SANDBOX_CONNECTS | SANDBOX_LISTENS)) != 0;
    return allow(filter, reader_calls) && (!IS_SANITIZED || allow(filter, sanitizer_calls)) && allow_threads(filter) &&
           allow_own_signals(filter) && allow_settings(filter) && allow_reader_ioctls(filter) &&
           (!network || allow(filter, network_calls)) &&
           (!network || ALLOW_VALUES(filter, "socket", 0, AF_INET, AF_INET6)) &&
           ((uses & SANDBOX_CONNECTS) == 0 ||
            (allow(filter, connecting_calls) && ALLOW_VALUES(filter, "socket", 0, AF_NETLINK))) &&
           ((uses & SANDBOX_LISTENS) == 0 || allow(filter, listening_calls));
}

/* An opener maps no file, and writes at most to one. */
static bool allow_opening(scmp_filter_ctx filter, int written)
{
    static const char *const calls[] = {"mmap", "mmap2"};
    bool done = allow(filter, opener_calls);
    for (size_t i = 0; i < sizeof calls / sizeof *calls && done; i++) {
        int call = seccomp_syscall_resolve_name(calls[i]);
        done = !is_known(call) || seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 1,
                                                   SCMP_A3(SCMP_CMP_MASKED_EQ, MAP_ANONYMOUS, MAP_ANONYMOUS)) == 0;
    }
    return done && (written < 0 || ALLOW_VALUES(filter, "pwrite64", 0, (uint32_t)written));
}

static bool allow_mounting(scmp_filter_ctx filter)
{
    return allow(filter, mounter_calls) &&
           ALLOW_VALUES(filter, "ioctl", 1, (uint32_t)SANDBOX_BACKING_OPEN, (uint32_t)SANDBOX_BACKING_CLOSE);
}

bool sandbox_filter_calls(const struct sandbox *sandbox)
{
    enum sandbox_role role = sandbox->role;
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    bool done = filter != NULL && seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1) == 0 &&
                allow(filter, common_calls) && (role != SANDBOX_READER || allow_reading(filter, sandbox->uses)) &&
                (role != SANDBOX_OPENER || allow_opening(filter, sandbox->written)) &&
                (role != SANDBOX_MOUNTER || allow_mounting(filter)) && seccomp_load(filter) == 0;
    if (filter != NULL)
        seccomp_release(filter);
    return done;
}

/* Capabilities. */

const uint64_t sandbox_reading = 1ULL << CAP_DAC_READ_SEARCH;
const uint64_t sandbox_copying =
    1ULL << CAP_DAC_OVERRIDE | 1ULL << CAP_DAC_READ_SEARCH | 1ULL << CAP_FOWNER | 1ULL << CAP_NET_BIND_SERVICE;

bool sandbox_keep_capabilities(uint64_t kept)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];
    for (int capability = 0; prctl(PR_CAPBSET_READ, capability) >= 0; capability++)
        if ((kept >> capability & 1) == 0)
            prctl(PR_CAPBSET_DROP, capability); /* fails for ordinary users, who gain nothing from the set */
    if (syscall(SYS_capget, &header, data) != 0)
        return false;
    for (int i = 0; i < 2; i++) {
        data[i].permitted &= (uint32_t)(kept >> 32 * i);
        data[i].effective &= (uint32_t)(kept >> 32 * i);
        data[i].inheritable = 0;
    }
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    return syscall(SYS_capset, &header, data) == 0;
}

/* Paths and ports. The first version of Landlock has all rights below but the last two; the C library has none of the
 * calls, and Debian 12's header lacks what later versions added. */

static const uint64_t reading = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
static const uint64_t first_version = LANDLOCK_ACCESS_FS_MAKE_SYM * 2 - 1;
static const uint64_t refer = 1 << 13, cut = 1 << 14; /* from versions 2 and 3 on */
static const uint64_t bind_tcp = 1 << 0, connect_tcp = 1 << 1;
static const uint64_t abstract_sockets = 1 << 0, signals = 1 << 1;
enum { WITH_REFER = 2, WITH_PORTS = 4, WITH_SCOPES = 6, RULE_PORT = 2 }; /* versions; a kind of rule */

struct attributes {
    uint64_t files, ports, scopes;
};

struct port_rule {
    uint64_t allowed, port;
};

static void allow_path(int rules, const char *path, uint64_t rights)
{
    static const uint64_t for_files = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | cut;
    struct stat status;
    struct landlock_path_beneath_attr rule = {.parent_fd = open(path, O_PATH | O_CLOEXEC)};
    if (rule.parent_fd < 0)
        return;
    rule.allowed_access = fstat(rule.parent_fd, &status) == 0 && S_ISDIR(status.st_mode) ? rights : rights & for_files;
    syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
    close(rule.parent_fd);
}

static void allow_paths(int rules, const char *const *paths, uint64_t rights)
{
    for (; paths != NULL && *paths != NULL; paths++)
        allow_path(rules, *paths, rights);
}

static void allow_ports(int rules, const uint16_t *ports)
{
    for (; ports != NULL && *ports != 0; ports++) {
        const struct port_rule rule = {connect_tcp, *ports};
        syscall(SYS_landlock_add_rule, rules, RULE_PORT, &rule, 0);
    }
}

int sandbox_open_paths(const struct sandbox_paths *paths)
{
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    uint64_t all = first_version | (version >= WITH_REFER ? refer : 0) | (version >= 3 ? cut : 0);
    bool has_ports = version >= WITH_PORTS && paths->ports != NULL;
    struct attributes attributes = {all, has_ports ? connect_tcp | (paths->listens ? 0 : bind_tcp) : 0,
                                    version >= WITH_SCOPES ? abstract_sockets | signals : 0};
    size_t size = version >= WITH_SCOPES  ? sizeof attributes
                  : version >= WITH_PORTS ? offsetof(struct attributes, scopes)
                                          : offsetof(struct attributes, ports);
    int rules = version < (paths->moves_names ? WITH_REFER : 1)
                    ? -1
                    : (int)syscall(SYS_landlock_create_ruleset, &attributes, size, 0);
    if (rules < 0)
        return 0;
    allow_paths(rules, paths->readable, reading);
    allow_paths(rules, paths->listed, LANDLOCK_ACCESS_FS_READ_DIR);
    allow_paths(rules, paths->devices, reading | LANDLOCK_ACCESS_FS_WRITE_FILE);
    allow_paths(rules, paths->writable, all & ~(uint64_t)LANDLOCK_ACCESS_FS_EXECUTE);
    if (has_ports)
        allow_ports(rules, paths->ports);
    return rules;
}

bool sandbox_restrict_paths(int paths)
{
    if (paths <= 0)
        return false;
    bool done = syscall(SYS_landlock_restrict_self, paths, 0) == 0;
    close(paths);
    return done;
}

unsigned sandbox_enter(const struct sandbox *sandbox)
{
    unsigned layers = 0;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return 0; /* without it, the kernel refuses the other layers, too */
    if (sandbox_keep_capabilities(sandbox->capabilities))
        layers |= SANDBOX_PRIVILEGES;
    if (sandbox_filter_calls(sandbox))
        layers |= SANDBOX_CALLS;
    if (sandbox_restrict_paths(sandbox->paths))
        layers |= SANDBOX_PATHS;
    return layers;
}
