#include "fs/mount/mounter.h"

#include "base/arena.h"
#include "base/helper.h"
#include "base/sandbox.h"
#include "fs/mount/device.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum task { TASK_MOUNT, TASK_DETACH, TASK_READAHEAD, TASK_GIVE, TASK_TAKE_BACK, TASK_SIGNAL, TASK_RELEASE };

enum { MAX_SOURCE = 4096 };

/* Messages keep their bounds: the socket is one of packets. */
struct request {
    enum task task;
    enum detach how;
    int number;              /* KiB, the kernel's number of a file, or a signal */
    char source[MAX_SOURCE]; /* a name to show */
};

struct reply {
    bool done;
    int number;
    struct error error;
    struct own_mount own;
};

/* The mounter's side. */

struct attendant {
    const struct mounter_plan *plan;
    struct mountpoint mountpoint;
    struct own_mount own;
    int program; /* a pidfd, or -1 */
};

static bool is_capable(int capability)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];
    return syscall(SYS_capget, &header, data) == 0 && (data[capability / 32].effective >> capability % 32 & 1) != 0;
}

/* Reports whether this user can change the directory that holds the mount point without overriding its permissions. */
static bool owns_parent(const char *path)
{
    char parent[PATH_MAX];
    const char *slash = strrchr(path, '/');
    struct stat status;
    snprintf(parent, sizeof parent, "%.*s", slash > path ? (int)(slash - path) : 1, path);
    return stat(parent, &status) == 0 && status.st_uid == geteuid() && (status.st_mode & S_IRWXU) == S_IRWXU;
}

/* Gives up what is no longer needed once the mount exists. Without CAP_SYS_ADMIN, fusermount3 will have to detach it,
 * which no process can start in a sandbox. */
static void confine(const struct attendant *attendant)
{
    uint64_t kept = 1ULL << CAP_SYS_ADMIN;
    if (!is_capable(CAP_SYS_ADMIN))
        return;
    if (attendant->program >= 0)
        kept |= 1ULL << CAP_KILL;
    if (attendant->mountpoint.path != NULL &&
        !owns_parent(attendant->mountpoint.path)) /* root's mount in a user's directory */
        kept |= 1ULL << CAP_DAC_OVERRIDE;
    sandbox_enter(&(struct sandbox){.role = SANDBOX_MOUNTER, .capabilities = kept});
}

/* Prepares the mount point and mounts. Tries again if the previous wfs has removed the directory in between. */
static int mount_device(struct attendant *attendant, const char *source, struct error *error)
{
    const struct mounter_plan *plan = attendant->plan;
    struct session_options options = plan->options;
    int device = -1;
    bool vanished = true;
    options.source = source;
    for (int attempt = 0; device < 0 && vanished && attempt < 3; attempt++) {
        if (plan->prepared == NULL && !mountpoint_prepare(&attendant->mountpoint, plan->path, &plan->checks, error))
            return -1;
        device = device_mount(attendant->mountpoint.path, &options, error);
        vanished = device < 0 && plan->prepared == NULL && mountpoint_vanished(&attendant->mountpoint);
        if (device < 0 && plan->prepared == NULL)
            mountpoint_release(&attendant->mountpoint);
    }
    return device;
}

/* Mounts once. The server's copy of the hold is to be the only one. */
static bool carry_out_mount(struct attendant *attendant, struct request *request, struct reply *reply, int ret_fds[2])
{
    request->source[sizeof request->source - 1] = '\0';
    if (attendant->own.path[0] != '\0')
        return error_set(&reply->error, "%s: is mounted already", attendant->own.path);
    ret_fds[0] = mount_device(attendant, request->source, &reply->error);
    if (ret_fds[0] < 0)
        return false;
    if (attendant->plan->prepared == NULL) {
        ret_fds[1] = attendant->mountpoint.hold;
        attendant->mountpoint.hold = -1;
    }
    attendant->own = own_mount_at(attendant->mountpoint.path);
    reply->own = attendant->own;
    return chdir("/") == 0;
}

/* Raises the mount's window in which the kernel reads ahead of a sequential reader. Only root can. */
static void raise_readahead(const struct own_mount *own, unsigned wanted)
{
    enum { MOST = 1 << 16 };
    char path[64];
    snprintf(path, sizeof path, "/sys/class/bdi/%u:%u/read_ahead_kb", own->device_major, own->device_minor);
    FILE *file = own->number != 0 && wanted <= MOST ? fopen(path, "r+e") : NULL;
    unsigned kib;
    if (file == NULL)
        return;
    if (fscanf(file, "%u", &kib) == 1 && kib < wanted) {
        rewind(file);
        fprintf(file, "%u\n", wanted);
    }
    fclose(file);
}

static int give(const struct attendant *attendant, int device, int file)
{
    struct {
        int32_t fd;
        uint32_t flags;
        uint64_t padding;
    } map = {.fd = file};
    return attendant->plan->passes_files && file >= 0 ? ioctl(device, SANDBOX_BACKING_OPEN, &map) : -1;
}

static void carry_out(struct attendant *attendant, struct request *request, const int sent[2], struct reply *reply,
                      int ret_fds[2])
{
    uint32_t number = (uint32_t)request->number;
    reply->done = true;
    switch (request->task) {
    case TASK_MOUNT:
        reply->done = carry_out_mount(attendant, request, reply, ret_fds);
        break;
    case TASK_DETACH:
        reply->done =
            own_mount_detach(&attendant->own, request->how == DETACH_FORCE ? DETACH_FORCE : DETACH_LAZY, &reply->error);
        break;
    case TASK_READAHEAD:
        raise_readahead(&attendant->own, number);
        break;
    case TASK_GIVE:
        reply->number = give(attendant, sent[0], sent[1]);
        break;
    case TASK_TAKE_BACK:
        ioctl(sent[0], SANDBOX_BACKING_CLOSE, &number);
        break;
    case TASK_SIGNAL:
        syscall(SYS_pidfd_send_signal, attendant->program, request->number, NULL, 0);
        break;
    case TASK_RELEASE:
        mountpoint_release(&attendant->mountpoint);
        break;
    }
}

static void attend(int socket, void *context)
{
    static struct request request;
    struct attendant attendant = {.plan = context, .program = -1};
    struct helper_message message = {.bytes = &request, .length = sizeof request};
    /* fusermount3 may be in a place that only PATH names */
    sandbox_empty_environment(is_capable(CAP_SYS_ADMIN) ? NULL : "PATH=");
    if (attendant.plan->program != 0)
        attendant.program = (int)syscall(SYS_pidfd_open, attendant.plan->program, 0);
    if (attendant.plan->prepared != NULL) {
        attendant.mountpoint = *attendant.plan->prepared;
        attendant.mountpoint.hold = -1;
    }
    if (mountpoint_is_descriptor(attendant.plan->path)) /* which another process has mounted */
        confine(&attendant);
    while (helper_receive(socket, &message)) {
        static struct reply reply;
        int fds[2] = {-1, -1};
        memset(&reply, 0, sizeof reply);
        carry_out(&attendant, &request, message.descriptors, &reply, fds);
        helper_close(&message);
        bool answered = helper_answer(socket, &(struct helper_message){&reply, sizeof reply, {fds[0], fds[1]}});
        for (int i = 0; i < 2; i++)
            if (fds[i] >= 0)
                close(fds[i]);
        if (request.task == TASK_MOUNT && reply.done)
            confine(&attendant);
        if (!answered)
            break;
    }
    if (attendant.program >= 0) /* the program cannot go on without the mount */
        syscall(SYS_pidfd_send_signal, attendant.program, SIGKILL, NULL, 0);
}

/* The server's side. */

struct mounter {
    struct helper helper;
    struct mounter_plan plan;
    struct own_mount made;
};

struct mounter *mounter_start(const struct mounter_plan *plan, struct error *error)
{
    struct mounter *mounter = memory_alloc(sizeof *mounter);
    *mounter = (struct mounter){.plan = *plan};
    if (helper_start(&mounter->helper, attend, &mounter->plan, NULL))
        return mounter;
    error_set_errno(error, errno, "%s: the process that mounts cannot be started", plan->path);
    free(mounter);
    return NULL;
}

/* Asks for a task, with descriptors or -1. Returns false if the process has ended. */
static bool ask(struct mounter *mounter, const struct request *request, int first, int second, struct reply *reply,
                int ret_fds[2])
{
    struct request sent = *request;
    const struct helper_message message = {&sent, sizeof sent, {first, second}};
    struct helper_message answer = {reply, sizeof *reply, {-1, -1}};
    bool answered = helper_ask(&mounter->helper, &message, &answer);
    if (answered && ret_fds != NULL)
        memcpy(ret_fds, answer.descriptors, sizeof answer.descriptors);
    else if (answered)
        helper_close(&answer);
    return answered;
}

bool mounter_mount(struct mounter *mounter, const char *source, struct mounter_device *ret_device, struct error *error)
{
    struct request request = {.task = TASK_MOUNT};
    struct reply reply;
    int fds[2];
    snprintf(request.source, sizeof request.source, "%s", source);
    if (!ask(mounter, &request, -1, -1, &reply, fds))
        return error_set_errno(error, errno, "%s: cannot be mounted", mounter->plan.path);
    if (!reply.done) {
        *error = reply.error;
        return false;
    }
    mounter->made = reply.own;
    *ret_device = (struct mounter_device){fds[0], fds[1], &mounter->made};
    return true;
}

bool mounter_detach(struct mounter *mounter, enum detach how, struct error *error)
{
    const struct request request = {.task = TASK_DETACH, .how = how};
    struct reply reply;
    if (!ask(mounter, &request, -1, -1, &reply, NULL))
        return error_set_errno(error, errno, "%s: cannot be unmounted; 'wfs umount' unmounts it", mounter->made.path);
    if (!reply.done)
        *error = reply.error;
    return reply.done;
}

void mounter_raise_readahead(struct mounter *mounter, unsigned kib)
{
    struct reply reply;
    ask(mounter, &(struct request){.task = TASK_READAHEAD, .number = (int)kib}, -1, -1, &reply, NULL);
}

int mounter_give(struct mounter *mounter, int device, int file)
{
    struct reply reply;
    return ask(mounter, &(struct request){.task = TASK_GIVE}, device, file, &reply, NULL) ? reply.number : -1;
}

void mounter_take_back(struct mounter *mounter, int device, int number)
{
    struct reply reply;
    ask(mounter, &(struct request){.task = TASK_TAKE_BACK, .number = number}, device, -1, &reply, NULL);
}

void mounter_signal(struct mounter *mounter, int number)
{
    struct reply reply;
    ask(mounter, &(struct request){.task = TASK_SIGNAL, .number = number}, -1, -1, &reply, NULL);
}

void mounter_free(struct mounter *mounter)
{
    struct reply reply;
    if (mounter == NULL)
        return;
    ask(mounter, &(struct request){.task = TASK_RELEASE}, -1, -1, &reply, NULL);
    helper_end(&mounter->helper);
    free(mounter);
}
