#include "base/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static bool is_kept(int fd, const int *kept)
{
    for (; kept != NULL && *kept >= 0; kept++)
        if (*kept == fd)
            return true;
    return false;
}

/* Gives up everything of the parent's but the socket and the descriptors to keep. Returns the socket. */
static int let_go(int socket, const int *kept)
{
    int null = open("/dev/null", O_RDWR), highest = STDERR_FILENO;
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        dup2(null, fd);
    for (const int *fd = kept; fd != NULL && *fd >= 0; fd++)
        highest = *fd > highest ? *fd : highest;
    int above = fcntl(socket, F_DUPFD_CLOEXEC, highest + 1);
    for (int fd = STDERR_FILENO + 1; fd < above; fd++)
        if (!is_kept(fd, kept))
            close(fd);
    syscall(SYS_close_range, above + 1, ~0U, 0); /* musl has no close_range() */
    setsid();
    for (int number = 1; number < NSIG; number++)
        if (number != SIGCHLD)
            signal(number, SIG_IGN);
    return above;
}

bool helper_start(struct helper *helper, void (*attend)(int socket, void *context), void *context, const int *kept)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return false;
    pid_t process = fork();
    if (process == 0) {
        attend(let_go(ends[1], kept), context);
        _exit(EXIT_SUCCESS);
    }
    int reason = errno;
    close(ends[1]);
    if (process < 0)
        close(ends[0]);
    else
        *helper = (struct helper){process, ends[0], PTHREAD_MUTEX_INITIALIZER};
    errno = reason;
    return process > 0;
}

union control {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(HELPER_DESCRIPTORS * sizeof(int))];
};

static bool send_message(int socket, const struct helper_message *message)
{
    union control control = {0};
    struct iovec bytes = {message->bytes, message->length};
    struct msghdr header = {.msg_iov = &bytes, .msg_iovlen = 1};
    size_t count = 0;
    while (count < HELPER_DESCRIPTORS && message->descriptors[count] >= 0)
        count++;
    if (count > 0) {
        header.msg_control = control.bytes;
        header.msg_controllen = CMSG_SPACE(count * sizeof(int));
        control.header = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(count * sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.header), message->descriptors, count * sizeof(int));
    }
    ssize_t sent;
    while ((sent = sendmsg(socket, &header, MSG_NOSIGNAL)) < 0 && errno == EINTR)
        ;
    return sent == (ssize_t)message->length;
}

static void take_descriptors(struct msghdr *header, struct helper_message *message)
{
    for (size_t i = 0; i < HELPER_DESCRIPTORS; i++)
        message->descriptors[i] = -1;
    const struct cmsghdr *control = CMSG_FIRSTHDR(header);
    if (control == NULL || control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS)
        return;
    size_t length = control->cmsg_len - CMSG_LEN(0), most = sizeof message->descriptors;
    memcpy(message->descriptors, CMSG_DATA(control), length < most ? length : most);
}

bool helper_receive(int socket, struct helper_message *message)
{
    union control control = {0};
    struct iovec bytes = {message->bytes, message->length};
    struct msghdr header = {
        .msg_iov = &bytes, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    ssize_t received;
    while ((received = recvmsg(socket, &header, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
        ;
    if (received < 0)
        return false;
    take_descriptors(&header, message);
    if (received == (ssize_t)message->length && (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0)
        return true;
    helper_close(message);
    errno = (header.msg_flags & MSG_CTRUNC) != 0 ? EMFILE : EPIPE;
    return false;
}

bool helper_answer(int socket, const struct helper_message *message)
{
    return send_message(socket, message);
}

void helper_close(const struct helper_message *message)
{
    for (size_t i = 0; i < HELPER_DESCRIPTORS; i++)
        if (message->descriptors[i] >= 0)
            close(message->descriptors[i]);
}

bool helper_ask(struct helper *helper, const struct helper_message *message, struct helper_message *answer)
{
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before); /* a thread that ends here would keep the lock */
    pthread_mutex_lock(&helper->lock);
    bool answered = send_message(helper->socket, message) && helper_receive(helper->socket, answer);
    int reason = errno;
    pthread_mutex_unlock(&helper->lock);
    pthread_setcancelstate(before, NULL);
    errno = reason;
    return answered;
}

void helper_end(struct helper *helper)
{
    send(helper->socket, "", 0, MSG_NOSIGNAL); /* ends it even if a child of this process has a copy of the socket */
    close(helper->socket);
    while (waitpid(helper->process, NULL, 0) < 0 && errno == EINTR)
        ;
}
