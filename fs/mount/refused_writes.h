/* The operations that would write, all answered with EROFS. The kernel refuses them by itself on a mount that is `ro`;
 * these refuse them on a mount that another process made, that root remounted, or that has -o allow_rdwr. The arguments
 * are those of struct fuse_lowlevel_ops. */
#pragma once

#include <fuse_lowlevel.h>

void refuse_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *status, int to_set, struct fuse_file_info *fi);
void refuse_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t device);
void refuse_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode);
void refuse_removal(fuse_req_t req, fuse_ino_t parent, const char *name);
void refuse_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name);
void refuse_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent, const char *new_name,
                   unsigned flags);
void refuse_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t new_parent, const char *new_name);
void refuse_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *fi);

/* The kernel has put the bytes of a write into its pages of the file already; it is told to forget them. */
void refuse_write(fuse_req_t req, fuse_ino_t ino, const char *bytes, size_t size, off_t offset,
                  struct fuse_file_info *fi);

void refuse_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value, size_t size, int flags);
void refuse_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name);
void refuse_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t length, struct fuse_file_info *fi);
