#include "fs/mount/unmounter.h"

#include "base/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct unmounter {
    pid_t process;
    int socket;
};

/* Messages keep their bounds: the socket is one of packets. */
struct request {
    enum detach how;
    struct own_mount own;
};

struct reply {
    bool detached;
    struct error error;
};

/* Gives up everything of the server's but the socket. */
static void let_go(int socket)
{
    int null = open("/dev/null", O_RDWR);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        dup2(null, fd);
    dup2(socket, STDERR_FILENO + 1);
    syscall(SYS_close_range, STDERR_FILENO + 2, ~0U, 0); /* musl has no close_range() */
    setsid();
    if (chdir("/") != 0)
        _exit(EXIT_FAILURE);
    for (int number = 1; number < NSIG; number++)
        if (number != SIGCHLD)
            signal(number, SIG_IGN);
}

static _Noreturn void serve(int socket)
{
    let_go(socket);
    for (socket = STDERR_FILENO + 1;;) {
        struct request request;
        struct reply reply = {0};
        if (recv(socket, &request, sizeof request, 0) != (ssize_t)sizeof request)
            _exit(EXIT_SUCCESS);
        request.own.path[sizeof request.own.path - 1] = '\0';
        reply.detached = own_mount_detach(&request.own, request.how, &reply.error);
        if (send(socket, &reply, sizeof reply, MSG_NOSIGNAL) < 0)
            _exit(EXIT_SUCCESS);
    }
}

struct unmounter *unmounter_start(void)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return NULL;
    pid_t process = fork();
    if (process == 0)
        serve(ends[1]);
    close(ends[1]);
    if (process < 0) {
        close(ends[0]);
        return NULL;
    }
    struct unmounter *unmounter = memory_alloc(sizeof *unmounter);
    *unmounter = (struct unmounter){process, ends[0]};
    return unmounter;
}

bool unmounter_detach(struct unmounter *unmounter, const struct own_mount *own, enum detach how, struct error *error)
{
    const struct request request = {how, *own};
    struct reply reply;
    if (unmounter == NULL)
        return own_mount_detach(own, how, error);
    if (send(unmounter->socket, &request, sizeof request, MSG_NOSIGNAL) < 0 ||
        recv(unmounter->socket, &reply, sizeof reply, 0) != (ssize_t)sizeof reply)
        return error_set_errno(error, errno, "%s: cannot be unmounted; 'wfs umount' unmounts it", own->path);
    if (!reply.detached)
        *error = reply.error;
    return reply.detached;
}

void unmounter_free(struct unmounter *unmounter)
{
    if (unmounter == NULL)
        return;
    send(unmounter->socket, "", 0, MSG_NOSIGNAL); /* ends it even if a child of the server has a copy of the socket */
    close(unmounter->socket);
    while (waitpid(unmounter->process, NULL, 0) < 0 && errno == EINTR)
        ;
    free(unmounter);
}
