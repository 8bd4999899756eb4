#include "fs/mount/fuse_session.h"

#include "base/arena.h"
#include "base/arrival.h"
#include "base/pool.h"
#include "fs/mount/device.h"
#include "fs/mount/own_mount.h"
#include "sources/source.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* A window above 4 MiB gains nothing. Even one core gets two readers, since one slow read would delay all others. */
enum { READAHEAD_KIB = 4096, MIN_READERS = 2, MAX_READERS = 16 };

/* The time that a thread polls for its next request before it sleeps. Waking up takes about as long as copying a
 * megabyte, and threads that wake together often share one core. */
enum { AWAKE_NANOSECONDS = 50 * 1000 };

struct session {
    struct fuse_session *fuse;
    struct served served;
    struct serving serving; /* the user data of the operations */
    const char *mountpoint;
    struct session_mount mount;
    bool raise_readahead;
    const struct session_events *events;
    struct detachment *detachment; /* of a mount with remote sources; NULL: not watched */
};

/* Returns the number of reads that are answered at once; one more worker handles everything else. */
static size_t n_readers(void)
{
    if (pool_width() < MIN_READERS)
        return MIN_READERS;
    return pool_width() < MAX_READERS ? pool_width() : MAX_READERS;
}

static sigset_t awaited_signals(void)
{
    static const int awaited[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD};
    sigset_t signals;
    sigemptyset(&signals);
    for (size_t i = 0; i < sizeof awaited / sizeof *awaited; i++)
        sigaddset(&signals, awaited[i]);
    return signals;
}

static long nanoseconds_since(const struct timespec *start)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (now.tv_sec - start->tv_sec) * 1000000000L + now.tv_nsec - start->tv_nsec;
}

static bool has_replied(const struct serving *serving)
{
    return atomic_load_explicit(&serving->has_replied, memory_order_relaxed);
}

static ssize_t receive_request(int device, void *bytes, size_t size, void *userdata)
{
    struct pollfd request = {.fd = device, .events = POLLIN};
    struct timespec start;
    clock_gettime(CLOCK_MONOTONIC, &start);
    while (poll(&request, 1, 0) == 0 && nanoseconds_since(&start) < AWAKE_NANOSECONDS)
        sched_yield();
    ssize_t n_bytes = read(device, bytes, size);
    /* libfuse reports a failed read with perror(). If another worker ended the session meanwhile, libfuse would cancel
     * this one there, and stderr would stay locked. libfuse allows cancellation again before it reads once more. */
    if (n_bytes < 0)
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    if (n_bytes > 0 && !has_replied(userdata))
        negotiation_note_request(&((struct serving *)userdata)->negotiation, bytes, (size_t)n_bytes);
    return n_bytes;
}

static ssize_t send_reply(int device, struct iovec *iov, int count, void *userdata)
{
    struct serving *serving = userdata;
    if (!has_replied(serving))
        negotiation_edit_reply(&serving->negotiation, iov, count);
    ssize_t n_bytes = writev(device, iov, count);
    int reason = errno;
    if (!has_replied(serving) && !atomic_exchange(&serving->has_replied, true))
        sem_post(&serving->answering);
    errno = reason;
    return n_bytes;
}

#if FUSE_USE_VERSION >= 317
/* Opens a queue for one worker. Older versions of libfuse do this by themselves for custom I/O, too. */
static int clone_device(int device)
{
    int clone = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    uint32_t master = (uint32_t)device;
    if (clone < 0 || ioctl(clone, FUSE_DEV_IOC_CLONE, &master) == 0)
        return clone;
    close(clone);
    return -1;
}

static bool use_device_io(struct fuse_session *fuse)
{
    static const struct fuse_custom_io io = {.read = receive_request, .writev = send_reply, .clone_fd = clone_device};
    return fuse_session_custom_io(fuse, &io, sizeof io, fuse_session_fd(fuse)) == 0;
}
#else
static bool use_device_io(struct fuse_session *fuse)
{
    static const struct fuse_custom_io io = {.read = receive_request, .writev = send_reply};
    return fuse_session_custom_io(fuse, &io, fuse_session_fd(fuse)) == 0;
}
#endif

bool session_has_descriptors(struct error *error)
{
    enum { NEEDED = 24 };
    int taken[NEEDED], count = 0;
    struct rlimit limit;
    while (count < NEEDED && (taken[count] = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0)) >= 0)
        count++;
    bool has_all = count == NEEDED || errno != EMFILE;
    for (int i = 0; i < count; i++)
        close(taken[i]);
    getrlimit(RLIMIT_NOFILE, &limit);
    return has_all || error_set(error,
                                "a mount needs %d more descriptors than this model, and the limit of %llu leaves %d; "
                                "raise it ('ulimit -n')",
                                NEEDED, (unsigned long long)limit.rlim_cur, count);
}

/* Starts libfuse on a mounted device. Returns NULL with an error. */
static struct fuse_session *use_device(struct session *session, int device, const struct session_options *options,
                                       struct error *error)
{
    char path[32];
    struct session_options shown = *options;
    shown.auto_unmount = false; /* these are for the process that has mounted */
    shown.labels = (struct labels){0};
    char *text = device_options(&shown), *arguments[] = {"wfs", "-o", text, NULL};
    struct fuse_args args = FUSE_ARGS_INIT(3, arguments);
    struct fuse_session *fuse = fuse_session_new(&args, &fuse_ops, sizeof fuse_ops, &session->serving);
    fuse_opt_free_args(&args);
    free(text);
    snprintf(path, sizeof path, "/dev/fd/%d", device);
    bool has_device = fuse != NULL && fuse_session_mount(fuse, path) == 0;
    if (has_device && use_device_io(fuse))
        return fuse;
    if (!has_device)
        close(device); /* else the mount waits for an answer to its first request */
    error_set(error, "%s: cannot mount: %s", session->mountpoint,
              *device_words() ? device_words() : "libfuse gives no reason");
    if (fuse != NULL)
        fuse_session_destroy(fuse);
    return NULL;
}

static int give(void *mounter, int device, int file)
{
    return mounter_give(mounter, device, file);
}

static void take_back(void *mounter, int device, int number)
{
    mounter_take_back(mounter, device, number);
}

void session_block_signals(void)
{
    sigset_t signals = awaited_signals();
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
}

void session_load(void)
{
    dlopen("libgcc_s.so.1", RTLD_NOW); /* pthread_cancel() aborts if it cannot load it later */
}

struct session *session_new(const struct served *served, const struct session_mount *mount,
                            const struct session_options *options, struct error *error)
{
    device_keep_words();
    struct session *session = memory_alloc(sizeof *session);
    *session = (struct session){
        .served = *served, .mountpoint = mount->path, .mount = *mount, .raise_readahead = !options->no_readahead};
    session->served.allows_rdwr = options->allow_rdwr;
    session->fuse = use_device(session, mount->device, options, error);
    if (session->fuse == NULL) {
        free(session);
        return NULL;
    }
    session->served.watch = served->tree != NULL ? watch_new(served->tree) : NULL;
    bool may_pass = !options->no_passthrough && !options->allow_rdwr && mount->mounter != NULL;
    session->serving.negotiation.wants_idmapped = !mountpoint_is_descriptor(mount->path);
    session->serving.negotiation.wants_passthrough = may_pass && served->tree != NULL;
    const struct passthrough_kernel kernel = {fuse_session_fd(session->fuse), give, take_back, mount->mounter};
    session->served.passthrough = passthrough_new(served->tree, &kernel, &session->serving.negotiation);
    serving_begin(&session->serving, &session->served, n_readers());
    return session;
}

void session_free(struct session *session)
{
    serving_end(&session->serving);
    fuse_session_destroy(session->fuse);
    watch_free(session->served.watch);
    passthrough_free(session->served.passthrough);
    free(session);
}

/* Does what is possible once the kernel has the first reply. A mount with remote sources ends the waits of its readers
 * when it is detached. */
static void use_mount(struct session *session)
{
    const struct own_mount *made = session->mount.made;
    if (session->raise_readahead && session->mount.mounter != NULL)
        mounter_raise_readahead(session->mount.mounter, READAHEAD_KIB);
    if (made != NULL && made->number != 0 && source_any_remote())
        session->detachment = detachment_watch(made->device_major, made->device_minor, arrival_give_up);
}

/* Waits until the kernel has the first reply, then for signals, on a thread that is no worker. Sends no request to the
 * mount: a process that is killed while one of its own threads waits there never ends, nor does its mount. */
static void *attend(void *context)
{
    struct session *session = context;
    sigset_t signals = awaited_signals();
    siginfo_t info;
    while (sem_wait(&session->serving.answering) != 0)
        ;
    use_mount(session);
    session->events->ready(session->events->context);
    for (;;)
        if (sigwaitinfo(&signals, &info) > 0)
            session->events->signalled(session->events->context, &info);
    return NULL;
}

static void forget(void *context, node_id id)
{
    fuse_lowlevel_notify_inval_inode(context, id, 0, 0);
}

static struct fuse_loop_config *new_loop_config(void)
{
    struct fuse_loop_config *config = fuse_loop_cfg_create();
    if (config == NULL)
        return NULL;
    fuse_loop_cfg_set_clone_fd(config, 1); /* if /dev/fuse cannot be opened again, libfuse goes on without */
    fuse_loop_cfg_set_max_threads(config, (unsigned)n_readers() + 1);
    fuse_loop_cfg_set_idle_threads(config, (unsigned)n_readers() + 1);
    return config;
}

bool session_serve(struct session *session, const struct session_events *events, struct error *error)
{
    pthread_t attendant;
    struct fuse_loop_config *config = new_loop_config();
    if (config == NULL)
        return error_set_errno(error, ENOMEM, "%s: cannot be served", session->mountpoint);
    session->events = events;
    struct watch *watch = session->served.watch;
    device_forget_words();
    int result = 0, reason = watch != NULL ? watch_start(watch, forget, session->fuse) : 0;
    bool watching = watch != NULL && reason == 0;
    if (reason == 0)
        reason = pthread_create(&attendant, NULL, attend, session);
    if (reason == 0) {
        result = fuse_session_loop_mt(session->fuse, config);
        pthread_cancel(attendant);
        pthread_join(attendant, NULL);
        detachment_free(session->detachment);
    }
    if (watching)
        watch_stop(watch);
    fuse_loop_cfg_destroy(config);
    if (reason != 0)
        return error_set_errno(error, reason, "%s: cannot be served", session->mountpoint);
    return result == 0 || error_set(error, "%s: cannot be served: %s", session->mountpoint,
                                    *device_words() ? device_words() : "libfuse gives no reason");
}
