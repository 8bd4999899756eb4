#include "base/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <sched.h>
#include <seccomp.h>
#include <stdlib.h>
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

/* Capabilities. */

/* Keeps what root needs to read any user's files, to write copies of them, and to listen on a low port. */
static const uint64_t kept_capabilities = 1ULL << CAP_DAC_OVERRIDE | 1ULL << CAP_DAC_READ_SEARCH | 1ULL << CAP_CHOWN |
                                          1ULL << CAP_FOWNER | 1ULL << CAP_NET_BIND_SERVICE;

static bool drop_capabilities(uint64_t kept)
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

/* System calls. */

/* Calls that no reader of files needs. Names that libseccomp does not know are skipped. */
static const char *const refused_calls[] = {
    "execve",
    "execveat",
    "process_vm_readv",
    "process_vm_writev",
    "pidfd_getfd",
    "kcmp", /* other programs */
    "mount",
    "umount",
    "umount2",
    "pivot_root",
    "chroot",
    "move_mount",
    "open_tree",
    "fsopen",
    "fsconfig",
    "fsmount",
    "fspick",
    "mount_setattr",
    "unshare",
    "setns",
    "swapon",
    "swapoff",
    "quotactl",
    "quotactl_fd",
    "acct", /* mounts */
    "init_module",
    "finit_module",
    "delete_module",
    "kexec_load",
    "kexec_file_load",
    "reboot",
    "bpf",
    "perf_event_open",
    "userfaultfd",
    "io_uring_setup",
    "add_key",
    "request_key",
    "keyctl",
    "iopl",
    "ioperm",
    "syslog", /* the kernel */
    "open_by_handle_at",
    "settimeofday",
    "clock_settime",
    "clock_adjtime",
    "adjtimex",
    "sethostname",
    "setdomainname",
    "personality",
    "vhangup",
    "lookup_dcookie",
    "nfsservctl",
    "uselib",
    "modify_ldt",
    "setuid",
    "setgid",
    "setreuid",
    "setregid",
    "setresuid",
    "setresgid",
    "setgroups",
    NULL,
};

static bool refuse(scmp_filter_ctx filter, const char *name)
{
    int call = seccomp_syscall_resolve_name(name);
    return call == __NR_SCMP_ERROR || seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), call, 0) == 0;
}

/* Refuses namespaces by clone(); clone3() hides its flags in memory, and libraries go back to clone() without it. */
static bool refuse_namespaces(scmp_filter_ctx filter)
{
    static const uint64_t flags[] = {CLONE_NEWUSER, CLONE_NEWNS,  CLONE_NEWPID,   CLONE_NEWNET,
                                     CLONE_NEWIPC,  CLONE_NEWUTS, CLONE_NEWCGROUP};
    bool done = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0) == 0;
    for (size_t i = 0; done && i < sizeof flags / sizeof *flags; i++)
        done = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
                                SCMP_A0(SCMP_CMP_MASKED_EQ, flags[i], flags[i])) == 0;
    return done;
}

/* Leaves sockets on this machine, for syslog. */
static bool refuse_network(scmp_filter_ctx filter)
{
    return seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_NE, AF_UNIX)) == 0;
}

static bool filter_calls(bool network)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    bool done = filter != NULL && seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1) == 0 &&
                (IS_SANITIZED || refuse(filter, "ptrace")) && refuse_namespaces(filter) &&
                (network || refuse_network(filter));
    for (const char *const *name = refused_calls; done && *name != NULL; name++)
        done = refuse(filter, *name);
    done = done && seccomp_load(filter) == 0;
    if (filter != NULL)
        seccomp_release(filter);
    return done;
}

/* Paths. The first version of Landlock has all rights below but the last; the C library has none of the calls. */

static const uint64_t reading = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
static const uint64_t first_version = LANDLOCK_ACCESS_FS_MAKE_SYM * 2 - 1;
static const uint64_t refer = 1 << 13,
                      cut = 1 << 14; /* from versions 2 and 3 on; Debian 12's header lacks the latter */

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

int sandbox_open_paths(const struct sandbox_paths *paths)
{
    static const char *const system[] = {"/usr",  "/lib", "/lib64", "/bin",     "/sbin", "/etc",
                                         "/proc", "/sys", "/run",   "/var/run", "/nix",  NULL};
    static const char *const devices[] = {"/dev", "/sys/devices/virtual/bdi", NULL};
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    uint64_t all = first_version | (version >= 2 ? refer : 0) | (version >= 3 ? cut : 0);
    struct landlock_ruleset_attr attributes = {.handled_access_fs = all};
    int rules = version < 1 ? -1 : (int)syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0);
    if (rules < 0)
        return 0;
    allow_paths(rules, system, reading);
    allow_paths(rules, devices, reading | LANDLOCK_ACCESS_FS_WRITE_FILE);
    allow_paths(rules, paths->readable, reading);
    allow_paths(rules, paths->writable, all & ~(uint64_t)LANDLOCK_ACCESS_FS_EXECUTE);
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
    bool dropped = drop_capabilities(kept_capabilities | sandbox->capabilities);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return 0; /* without it, the kernel refuses the other layers, too */
    if (dropped)
        layers |= SANDBOX_PRIVILEGES;
    if (sandbox->paths > 0 && sandbox->emptied != NULL)
        allow_path(sandbox->paths, sandbox->emptied, LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_READ_DIR);
    if (sandbox_restrict_paths(sandbox->paths))
        layers |= SANDBOX_PATHS;
    if (filter_calls(sandbox->network))
        layers |= SANDBOX_CALLS;
    return layers;
}
