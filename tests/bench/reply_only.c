/* The fastest server there can be: the session of `wfs mount` around a file of 1 GiB whose reads are all answered from
 * one buffer. Where wfs is slower, that is its own work; what is lost here is lost in the kernel.
 *
 *     reply_only MOUNTPOINT        in the foreground, until it is unmounted */
#include "fs/mount/device.h"
#include "fs/mount/fuse_session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FILE_INODE = 2, LARGEST_REQUEST = 1 << 20, FILE_BYTES = 1 << 30 };

static const double forever = 1e9; /* seconds */
static char bytes[LARGEST_REQUEST];

static struct stat status_of(fuse_ino_t ino)
{
    if (ino == FILE_INODE)
        return (struct stat){.st_ino = ino, .st_mode = S_IFREG | 0444, .st_nlink = 1, .st_size = FILE_BYTES};
    return (struct stat){.st_ino = ino, .st_mode = S_IFDIR | 0555, .st_nlink = 2};
}

static void op_init(void *userdata, struct fuse_conn_info *conn)
{
    sem_post(&((struct serving *)userdata)->answering);
    conn->want &=
        ~(unsigned)(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE | FUSE_CAP_AUTO_INVAL_DATA);
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    (void)parent, (void)name;
    const struct fuse_entry_param entry = {
        .ino = FILE_INODE, .attr = status_of(FILE_INODE), .attr_timeout = forever, .entry_timeout = forever};
    fuse_reply_entry(req, &entry);
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)fi;
    const struct stat status = status_of(ino);
    fuse_reply_attr(req, &status, forever);
}

static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)ino, (void)fi;
    fuse_reply_err(req, ENOSYS);
}

static void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
    (void)ino, (void)fi;
    size_t left = offset < FILE_BYTES ? (size_t)(FILE_BYTES - offset) : 0;
    fuse_reply_buf(req, bytes, size < left ? size : left);
}

const struct fuse_lowlevel_ops fuse_ops = {
    .init = op_init, .lookup = op_lookup, .getattr = op_getattr, .open = op_open, .opendir = op_open, .read = op_read};

void serving_begin(struct serving *serving, const struct served *served, size_t n_readers)
{
    (void)n_readers;
    serving->served = served;
    sem_init(&serving->answering, 0, 0);
}

void serving_end(struct serving *serving)
{
    sem_destroy(&serving->answering);
}

static void ready(void *context)
{
    (void)context;
    puts("ready");
    fflush(stdout);
}

static void signalled(void *context, const siginfo_t *info)
{
    (void)context, (void)info;
    exit(1);
}

int main(int argc, char **argv)
{
    const struct session_options options = {.source = "reply_only"};
    const struct session_events events = {ready, signalled, NULL};
    const struct served nothing = {0};
    struct error error;
    if (argc != 2) {
        fprintf(stderr, "usage: reply_only MOUNTPOINT\n");
        return 2;
    }
    memset(bytes, 1, sizeof bytes); /* untouched, all of it would be the one page of zeros */
    int device = device_mount(argv[1], &options, &error);
    session_block_signals();
    const struct session_mount mount = {.device = device, .path = argv[1]};
    struct session *session = device >= 0 ? session_new(&nothing, &mount, &options, &error) : NULL;
    bool served = session != NULL && session_serve(session, &events, &error);
    if (!served)
        fprintf(stderr, "reply_only: %s\n", error.message);
    if (session != NULL)
        session_free(session);
    return served ? 0 : 1;
}
