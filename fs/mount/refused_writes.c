#include "fs/mount/fuse_ops.h"

#include <errno.h>

void refuse_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *status, int to_set, struct fuse_file_info *fi)
{
    fuse_reply_err(req, EROFS);
}

void refuse_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t device)
{
    fuse_reply_err(req, EROFS);
}

void refuse_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
    fuse_reply_err(req, EROFS);
}

void refuse_removal(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    fuse_reply_err(req, EROFS);
}

void refuse_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
    fuse_reply_err(req, EROFS);
}

void refuse_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent, const char *new_name,
                   unsigned flags)
{
    fuse_reply_err(req, EROFS);
}

void refuse_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t new_parent, const char *new_name)
{
    fuse_reply_err(req, EROFS);
}

void refuse_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *fi)
{
    fuse_reply_err(req, EROFS);
}

void refuse_write(fuse_req_t req, fuse_ino_t ino, const char *bytes, size_t size, off_t offset,
                  struct fuse_file_info *fi)
{
    struct watch *watch = ((const struct serving *)fuse_req_userdata(req))->served->watch;
    fuse_reply_err(req, EROFS);
    watch_refused_write(watch, ino);
}

void refuse_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value, size_t size, int flags)
{
    fuse_reply_err(req, EROFS);
}

void refuse_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
    fuse_reply_err(req, EROFS);
}

void refuse_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t length, struct fuse_file_info *fi)
{
    fuse_reply_err(req, EROFS);
}
