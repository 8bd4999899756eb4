#include "base/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

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
