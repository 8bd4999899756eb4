/* Reading ahead in virtual files whose sources are remote.
 *
 * The window follows the virtual file, not its sources: what the next reads need may lie in other tensors and other
 * files. It is counted in bytes of sources, since a block of output may need many times its own size. The reads of a
 * file are told apart by where they are, not by who makes them: programs read a file with several threads, and share
 * handles. Local sources are left to the kernel. */
#pragma once

#include "fs/tree/vfile.h"

struct read_ahead;

struct read_ahead *read_ahead_new(void);
void read_ahead_free(struct read_ahead *ahead);

/* Notes a read of [offset, offset + length), inside the file that `key` stands for. If it continues earlier reads, the
 * bytes that the next reads need are named as bytes that will be wanted (source_want()): READ_AHEAD_FIRST at first, up
 * to twice as many with each read, READ_AHEAD_MOST of all files together. Never waits. Call it after vfile_want() of
 * the range itself. */
enum { READ_AHEAD_FIRST = 4 << 20, READ_AHEAD_MOST = 64 << 20 };
void read_ahead_follow(struct read_ahead *ahead, uint64_t key, const struct vfile *file, uint64_t offset,
                       size_t length);
