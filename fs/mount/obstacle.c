#include "fs/mount/device.h"

#include "fs/mount/mountpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char device[] = "/dev/fuse", without[] = "'wfs ls', 'wfs cat' and 'wfs cp' need no mount";

/* Returns 0, or the errno with which the device cannot be opened. */
static int open_device(void)
{
    int fd = open(device, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return errno;
    close(fd);
    return 0;
}

/* Looks for fusermount3 as libfuse and execvp() do. */
static bool has_fusermount(void)
{
    const char *path = getenv("PATH"), *directories = path != NULL ? path : "/usr/bin:/bin";
    char program[PATH_MAX];
    if (access("/usr/bin/fusermount3", X_OK) == 0)
        return true;
    for (const char *from = directories; *from != '\0'; from += strspn(from, ":")) {
        size_t length = strcspn(from, ":");
        snprintf(program, sizeof program, "%.*s/fusermount3", (int)length, from);
        if (access(program, X_OK) == 0)
            return true;
        from += length;
    }
    return false;
}

/* Reports whether this process may mount: root in a container may not, unless it was given the capability. */
static bool may_mount(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};
    return syscall(SYS_capget, &header, data) != 0 || (data[0].effective >> CAP_SYS_ADMIN & 1) != 0;
}

bool obstacle_explain(const char *mountpoint, const char *words, struct error *error)
{
    if (mountpoint_is_descriptor(mountpoint))
        return error_set(error, "%s: cannot mount: %s", mountpoint, words);
    int reason = open_device();
    if (reason == ENOENT || reason == ENODEV || reason == ENXIO)
        return error_set(error,
                         "%s: cannot mount: %s does not exist; 'modprobe fuse' loads it, containers need '--device "
                         "/dev/fuse --cap-add SYS_ADMIN'; %s",
                         mountpoint, device, without);
    if (reason != 0)
        return error_set(error,
                         "%s: cannot mount: %s: %s; containers need '--device /dev/fuse --cap-add SYS_ADMIN'; %s",
                         mountpoint, device, strerror(reason), without);
    if (geteuid() == 0 && !may_mount())
        return error_set(error,
                         "%s: cannot mount: this container lacks CAP_SYS_ADMIN ('--cap-add SYS_ADMIN'); 'wfs exec "
                         "SOURCE -- COMMAND' does without it if users may make namespaces here, and %s",
                         mountpoint, without);
    if (geteuid() != 0 && !has_fusermount())
        return error_set(error, "%s: cannot mount: fusermount3 is missing (package fuse3); %s", mountpoint, without);
    if (geteuid() != 0 && access(mountpoint, W_OK) != 0)
        return error_set(error, "%s: cannot mount: you cannot write to this directory; name one of your own, %s",
                         mountpoint, "or one that does not exist");
    return error_set(error, "%s: cannot mount: %s", mountpoint, words);
}
