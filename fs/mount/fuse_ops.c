#include "fs/mount/fuse_ops.h"

#include "base/arrival.h"
#include "base/attempt.h"
#include "base/buffer.h"
#include "base/lock.h"
#include "base/report.h"
#include "base/text.h"
#include "sources/source.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { PAGE_BYTES = 4096, BLOCK_BYTES = 512, MAX_BACKGROUND = 64, MAX_REPORTED = 256 };

/* Reads that wait for a network at once, each on a thread of its own: as many as the kernel sends, since further ones
 * would wait for the stalled ones. */
enum { MAX_WAITING_READS = 1024 };

static const double forever = 1e9; /* seconds */

static const struct served *served_by(fuse_req_t req)
{
    return ((const struct serving *)fuse_req_userdata(req))->served;
}

/* Each thread has a buffer for its replies, as large as its largest request so far and aligned to pages, since the
 * kernel copies from it page by page. */

static pthread_key_t scratch_key;
static pthread_once_t scratch_once = PTHREAD_ONCE_INIT;

static void make_scratch_key(void)
{
    pthread_key_create(&scratch_key, free);
}

static void *scratch(size_t size)
{
    static _Thread_local size_t capacity;
    pthread_once(&scratch_once, make_scratch_key);
    void *bytes = pthread_getspecific(scratch_key);
    if (bytes == NULL || capacity < size) {
        free(bytes);
        pthread_setspecific(scratch_key, NULL);
        size_t wanted = (size + PAGE_BYTES) / PAGE_BYTES * PAGE_BYTES;
        bytes = memory_alloc_aligned(PAGE_BYTES, wanted);
        pthread_setspecific(scratch_key, bytes);
        capacity = wanted;
    }
    return bytes;
}

struct failed_read {
    struct tree *tree;
    node_id id;
    const struct error *error;
    bool last;
};

static void say_failed(void *context)
{
    const struct failed_read *failed = context;
    struct arena *arena = arena_new();
    const char *ending = failed->last ? " (further failures are not reported)" : "";
    if (failed->id == TREE_ROOT)
        report("files cannot be made now: %s%s", failed->error->message, ending);
    else
        report("%s: read failed: %s%s", tree_path(failed->tree, failed->id, arena), failed->error->message, ending);
    arena_free(arena);
}

/* Reports why a read failed or, for the root, why files cannot be made, since the application gets only EIO: once for
 * each node and reason, ignoring the digits of the reason, such as offsets. */
static void report_failed_read(struct tree *tree, node_id id, const struct error *error)
{
    static struct lock lock = LOCK_INITIALIZER;
    static uint64_t reported[MAX_REPORTED];
    static size_t n_reported;
    uint64_t hash = 0xcbf29ce484222325 ^ id; /* FNV-1a */
    for (const char *c = error->message; *c != '\0'; c++)
        if (*c < '0' || *c > '9')
            hash = (hash ^ (unsigned char)*c) * 0x100000001b3;

    lock_take(&lock);
    bool known = n_reported == MAX_REPORTED;
    for (size_t i = 0; i < n_reported && !known; i++)
        known = reported[i] == hash;
    if (!known)
        reported[n_reported++] = hash;
    bool last = !known && n_reported == MAX_REPORTED;
    lock_drop(&lock);
    if (known)
        return;
    struct failed_read failed = {tree, id, error, last};
    struct error unsaid;
    attempt(say_failed, &failed, &unsaid);
}

static mode_t type_of(const struct node_attributes *attributes)
{
    if (attributes->link != NULL)
        return S_IFLNK;
    return attributes->directory ? S_IFDIR : S_IFREG;
}

/* Fills in a node's status. A file has blocks, because tar -S would take it for a hole without and store nothing. */
static void fill_stat(const struct served *served, const struct node_attributes *attributes, struct stat *status)
{
    gid_t group = served->gid != (gid_t)NO_GROUP ? served->gid : getgid();
    mode_t permissions = attributes->permissions;
    if (served->gid == (gid_t)NO_GROUP && attributes->group != group)
        permissions &= 0707 | (permissions & 07) << 3;
    if (served->allows_rdwr)
        permissions |= S_IWUSR;
    *status = (struct stat){
        .st_ino = attributes->id,
        .st_mode = type_of(attributes) | (permissions & ~served->umask),
        .st_nlink = attributes->n_links,
        .st_uid = served->uid,
        .st_gid = group,
        .st_size = (off_t)attributes->size,
        .st_blocks = (blkcnt_t)(attributes->size / BLOCK_BYTES + (attributes->size % BLOCK_BYTES != 0)),
        .st_blksize = PAGE_BYTES,
        .st_atim = attributes->mtime,
        .st_mtim = attributes->mtime,
        .st_ctim = attributes->mtime,
    };
}

static void fill_entry(const struct served *served, const struct node_attributes *attributes,
                       struct fuse_entry_param *entry)
{
    *entry = (struct fuse_entry_param){
        .ino = attributes->id, .generation = attributes->generation, .attr_timeout = forever, .entry_timeout = forever};
    fill_stat(served, attributes, &entry->attr);
}

static void op_init(void *userdata, struct fuse_conn_info *conn)
{
    /* Replies are vectors of pointers, which a splice through a pipe would slow down. */
    conn->want &=
        ~(unsigned)(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE | FUSE_CAP_AUTO_INVAL_DATA);
    if (source_any_remote()) /* an interrupted reader must not wait for all parts of a direct read */
        conn->want &= ~(unsigned)FUSE_CAP_ASYNC_DIO;
    conn->want |= conn->capable & FUSE_CAP_EXPORT_SUPPORT;
    conn->max_background = source_any_remote() ? MAX_WAITING_READS : MAX_BACKGROUND;
    conn->congestion_threshold = conn->max_background / 4 * 3;
}

/* Replies to a request about files that cannot be planned now. */
static void fail_unreached(fuse_req_t req)
{
    struct tree *tree = served_by(req)->tree;
    const struct error outage = tree_outage(tree);
    if (outage.message[0] != '\0')
        report_failed_read(tree, TREE_ROOT, &outage);
    fuse_reply_err(req, EIO);
}

static void look_up(const struct waiting_request *request)
{
    const struct served *served = served_by(request->req);
    node_id parent = request->directory;
    struct node_attributes attributes = {.unreached = false};
    struct fuse_entry_param entry = {.entry_timeout = forever}; /* ino 0: no such name, now or ever */
    bool found;
    if (strcmp(request->name, ".") == 0)
        found = tree_attributes(served->tree, parent, &attributes);
    else if (strcmp(request->name, "..") == 0)
        found = tree_attributes(served->tree, tree_parent(served->tree, parent), &attributes);
    else
        found = tree_lookup(served->tree, parent, request->name, &attributes);
    if (found)
        fill_entry(served, &attributes, &entry);
    if (!found && attributes.unreached)
        fail_unreached(request->req);
    else
        fuse_reply_entry(request->req, &entry);
}

/* A request about one node, for ask(). */
struct question {
    fuse_req_t req;
    node_id id;
    const char *name; /* of an extended attribute */
    size_t size;
    struct fuse_file_info *fi; /* of an open */
};

static void ask(void (*answer)(void *question), struct question question)
{
    struct error error;
    if (!attempt(answer, &question, &error))
        fuse_reply_err(question.req, ENOMEM);
}

static void answer_getattr(void *context)
{
    const struct question *question = context;
    const struct served *served = served_by(question->req);
    struct node_attributes attributes;
    struct stat status;
    if (!tree_attributes(served->tree, question->id, &attributes)) {
        fuse_reply_err(question->req, ENOENT);
        return;
    }
    fill_stat(served, &attributes, &status);
    fuse_reply_attr(question->req, &status, forever);
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    ask(answer_getattr, (struct question){.req = req, .id = ino});
}

static void answer_readlink(void *context)
{
    const struct question *question = context;
    struct node_attributes attributes;
    if (!tree_attributes(served_by(question->req)->tree, question->id, &attributes))
        fuse_reply_err(question->req, ENOENT);
    else if (attributes.link == NULL)
        fuse_reply_err(question->req, EINVAL);
    else
        fuse_reply_readlink(question->req, attributes.link);
}

static void op_readlink(fuse_req_t req, fuse_ino_t ino)
{
    ask(answer_readlink, (struct question){.req = req, .id = ino});
}

/* Answers ENOSYS once; the kernel then opens directories by itself, and keeps its caches. */
static void op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    fuse_reply_err(req, ENOSYS);
}

/* Lets the kernel read a file by itself, unless its inputs have changed or the kernel would write to it. */
static void open_whole(fuse_req_t req, const struct origin *origin, int backing, int flags)
{
    const struct passthrough_reply reply = passthrough_reply(backing, flags);
    if ((flags & O_ACCMODE) != O_RDONLY)
        fuse_reply_err(req, EROFS);
    else if (!watch_intact(served_by(req)->watch, origin))
        fuse_reply_err(req, EIO);
    else
        fuse_reply_buf(req, (const char *)&reply, sizeof reply);
}

/* Replies to an open for reads through the kernel's cache, which are of this opening alone if nothing else tells of
 * changes. */
static void open_cached(fuse_req_t req, struct fuse_file_info *fi)
{
    fi->keep_cache = !watch_is_blind(served_by(req)->watch);
    fi->noflush = true;
    fuse_reply_open(req, fi);
}

/* As for a directory, in a mount without files that the kernel may read by itself. */
static void answer_open(void *context)
{
    const struct question *question = context;
    fuse_req_t req = question->req;
    struct origin origin;
    int backing;
    switch (passthrough_open(served_by(req)->passthrough, question->id, &origin, &backing)) {
    case OPENED_BY_KERNEL:
        if (watch_is_blind(served_by(req)->watch))
            open_cached(req, question->fi);
        else
            fuse_reply_err(req, ENOSYS);
        break;
    case OPENED_CACHED:
        open_cached(req, question->fi);
        break;
    case OPENED_WHOLE:
        open_whole(req, &origin, backing, question->fi->flags);
        break;
    }
}

static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    ask(answer_open, (struct question){.req = req, .id = ino, .fi = fi});
}

/* Replies with an error and reports the reason, unless that has been reported or the reader or the mount has ended. */
static void fail_read(fuse_req_t req, node_id id, bool is_explained, const struct error *error)
{
    if (!is_explained && error->code != EINTR && error->code != ECANCELED)
        report_failed_read(served_by(req)->tree, id, error);
    fuse_reply_err(req, error->code == EINTR || error->code == ESTALE ? error->code : EIO);
}

struct reading {
    struct queued_read request;
    bool replied;
};

static void read_node(struct reading *reading, struct arena *arena)
{
    fuse_req_t req = reading->request.req;
    node_id id = reading->request.ino;
    struct vfile file;
    struct error error;
    struct iovec iov[VFILE_MAX_IOV];
    size_t count = 0, size = reading->request.size;
    uint64_t offset = (uint64_t)reading->request.offset;
    struct tree *tree = served_by(req)->tree;
    struct watch *watch = served_by(req)->watch;
    watch_reading(watch, id);
    if (!tree_file(tree, id, arena, &file, &error)) {
        fail_read(req, id, false, &error);
        return;
    }
    uint64_t left = offset < file.size ? file.size - offset : 0;
    size = left < size ? (size_t)left : size;
    unsigned char *bytes = scratch(size);
    if (size != 0 && !vfile_iov(&file, offset, size, iov, &count, bytes, &error)) {
        fail_read(req, id, watch_explains(watch, &file.origin), &error); /* the watch reports changed sources */
        return;
    }
    reading->replied = true;
    if (!watch_intact(watch, &file.origin)) {
        fuse_reply_err(req, EIO);
        return;
    }
    /* If the source was truncated, the kernel's copy from the mapping fails, and the reader has got EIO. */
    if (fuse_reply_iov(req, iov, (int)count) == -EFAULT && !vfile_read(&file, offset, size, bytes, &error) &&
        !watch_explains(watch, &file.origin))
        report_failed_read(tree, id, &error);
}

static void answer_read(void *context)
{
    struct arena *arena = arena_new();
    read_node(context, arena);
    arena_free(arena);
}

/* Answers a read. If memory runs out, only this read fails. */
static void try_to_read(const struct queued_read *request)
{
    struct error error;
    struct reading reading = {.request = *request};
    if (!attempt(answer_read, &reading, &error) && !reading.replied) {
        report_failed_read(served_by(request->req)->tree, request->ino, &error);
        fuse_reply_err(request->req, ENOMEM);
    }
}

/* Answers the read and the reads that queue meanwhile, or queues it. */
static void read_in_turn(struct queued_read read)
{
    struct read_queue *reads = ((const struct serving *)fuse_req_userdata(read.req))->reads;
    if (!read_queue_enter(reads, &read))
        return;
    do {
        try_to_read(&read);
    } while (read_queue_next(reads, &read));
}

/* A read that may wait for a network. */
struct awaiting {
    const struct queued_read *read;
    atomic_bool interrupted;
    bool has_failed;
    struct error error;
};

/* Waits for the bytes of a read. Other failures appear again when the read is answered. */
static void await_bytes(void *context)
{
    struct awaiting *awaiting = context;
    const struct queued_read *read = awaiting->read;
    const struct serving *serving = fuse_req_userdata(read->req);
    uint64_t offset = (uint64_t)read->offset;
    struct arena *arena = arena_new();
    struct vfile file;
    if (tree_file(serving->served->tree, read->ino, arena, &file, &awaiting->error) && offset < file.size) {
        size_t size = file.size - offset < read->size ? (size_t)(file.size - offset) : read->size;
        vfile_want(&file, offset, size, true);
        read_ahead_follow(serving->ahead, read->ino, &file, offset, size);
        arrival_set_reader(&awaiting->interrupted);
        awaiting->has_failed = !vfile_wait(&file, offset, size, &awaiting->error);
    }
    arena_free(arena);
}

static void interrupt_reader(fuse_req_t req, void *interrupted)
{
    atomic_store((atomic_bool *)interrupted, true);
    arrival_announce();
}

/* Waits for a read's bytes and answers it. Ends the watch for interrupts before the reply, which frees the request. */
static void read_when_here(void *unused, void *item)
{
    struct queued_read *read = item;
    struct awaiting awaiting = {.read = read};
    struct error unsaid;
    fuse_req_interrupt_func(read->req, interrupt_reader, &awaiting.interrupted);
    attempt(await_bytes, &awaiting, &unsaid);
    arrival_set_reader(NULL);
    fuse_req_interrupt_func(read->req, NULL, NULL);
    if (awaiting.has_failed)
        fail_read(read->req, read->ino, false, &awaiting.error);
    else
        read_in_turn(*read);
    free(read);
}

/* Hands a read to a thread that waits for its bytes. Returns false if there is none. */
static bool read_later(const struct serving *serving, const struct queued_read *read)
{
    struct queued_read *copy = malloc(sizeof *copy);
    if (copy == NULL)
        return false;
    *copy = *read;
    if (waits_add(serving->remote_reads, read_when_here, NULL, copy))
        return true;
    free(copy);
    return false;
}

static void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
    const struct serving *serving = fuse_req_userdata(req);
    const struct queued_read read = {req, ino, size, offset};
    if (!source_any_remote() || !read_later(serving, &read))
        read_in_turn(read);
}

/* Directories. Offsets: 0 is before ".", 1 before "..", 2 + i before entry i. */

struct filling {
    fuse_req_t req;
    node_id directory;
    bool plus;
    char *bytes;
    size_t size, used;
};

static bool add_entry(struct filling *filling, const char *name, const struct fuse_entry_param *entry, uint64_t next)
{
    char *place = filling->bytes + filling->used;
    size_t left = filling->size - filling->used;
    size_t length = filling->plus ? fuse_add_direntry_plus(filling->req, place, left, name, entry, (off_t)next)
                                  : fuse_add_direntry(filling->req, place, left, name, &entry->attr, (off_t)next);
    if (length > left)
        return false;
    filling->used += length;
    return true;
}

static bool is_listed(const struct filling *filling, const char *name, const struct node_attributes *attributes)
{
    const struct served *served = served_by(filling->req);
    bool listed = true;
    if (served->only.n_patterns != 0) {
        struct arena *arena = arena_new();
        const char *directory = tree_path(served->tree, filling->directory, arena);
        listed = only_lists(&served->only, arena_printf(arena, "%s/%s", directory, name), attributes->directory);
        arena_free(arena);
    }
    return listed;
}

static bool add_node(void *context, uint64_t index, const char *name, const struct node_attributes *attributes)
{
    struct filling *filling = context;
    if (!is_listed(filling, name, attributes))
        return true;
    /* An ino of 0 makes the kernel look the name up when it is needed. */
    struct fuse_entry_param entry = {.attr = {.st_ino = attributes->id, .st_mode = S_IFREG}};
    if (!attributes->pending)
        fill_entry(served_by(filling->req), attributes, &entry);
    return add_entry(filling, name, &entry, index + 3);
}

/* Adds "." and "..", with an ino of 0, which tells the kernel to remember no node for them. */
static bool add_dots(struct filling *filling, node_id directory, uint64_t from)
{
    struct tree *tree = served_by(filling->req)->tree;
    const node_id nodes[] = {directory, tree_parent(tree, directory)};
    for (uint64_t i = from; i < 2; i++) {
        struct fuse_entry_param entry = {.attr = {.st_ino = nodes[i], .st_mode = S_IFDIR}};
        if (!add_entry(filling, i == 0 ? "." : "..", &entry, i + 1))
            return false;
    }
    return true;
}

static void list(const struct waiting_request *request)
{
    struct filling filling = {.req = request->req,
                              .directory = request->directory,
                              .plus = request->plus,
                              .bytes = scratch(request->size),
                              .size = request->size};
    uint64_t from = (uint64_t)request->offset;
    if (tree_is_unreached(served_by(request->req)->tree, request->directory)) {
        fail_unreached(request->req);
        return;
    }
    if (add_dots(&filling, request->directory, from))
        tree_list_prepared(served_by(request->req)->tree, request->directory, from > 2 ? from - 2 : 0, add_node,
                           &filling);
    fuse_reply_buf(request->req, filling.bytes, filling.used);
}

static void answer(void *context)
{
    const struct waiting_request *const *request = context, *asked = *request;
    if (asked->name != NULL)
        look_up(asked);
    else
        list(asked);
}

static void answer_prepared(const struct waiting_request *request)
{
    struct error error;
    if (!attempt(answer, &request, &error))
        fuse_reply_err(request->req, ENOMEM);
}

/* Answers a request at once, or hands it to the waiting room until its files are planned. */
static void answer_when_prepared(const struct waiting_request *request)
{
    const struct serving *serving = fuse_req_userdata(request->req);
    if (tree_prepare(serving->served->tree, request->directory, request->name) ||
        !waiting_room_add(serving->waiting, request))
        answer_prepared(request);
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    answer_when_prepared(&(struct waiting_request){.req = req, .directory = parent, .name = name});
}

static void list_directory(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, bool plus)
{
    answer_when_prepared(
        &(struct waiting_request){.req = req, .directory = ino, .size = size, .offset = offset, .plus = plus});
}

static void op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
    list_directory(req, ino, size, offset, false);
}

static void op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
    list_directory(req, ino, size, offset, true);
}

static void op_statfs(fuse_req_t req, fuse_ino_t ino)
{
    const struct checkpoint *checkpoint = tree_checkpoint(served_by(req)->tree);
    uint64_t n_bytes = checkpoint_bytes(checkpoint);
    struct statvfs status = {
        .f_bsize = PAGE_BYTES,
        .f_frsize = PAGE_BYTES,
        .f_blocks = (n_bytes + PAGE_BYTES - 1) / PAGE_BYTES,
        .f_namemax = TREE_MAX_NAME,
    };
    fuse_reply_statfs(req, &status);
}

/* Extended attributes. */

struct wanted_xattr {
    const char *name;
    struct buffer value;
    bool found;
};

static void match_xattr(void *context, const char *name, const char *value, size_t length)
{
    struct wanted_xattr *wanted = context;
    if (wanted->found || strcmp(name, wanted->name) != 0)
        return;
    buffer_append(&wanted->value, value, length);
    wanted->found = true;
}

static void name_xattr(void *context, const char *name, const char *value, size_t length)
{
    buffer_append(context, name, strlen(name) + 1);
}

/* Replies with the value, or with its length if `size` is 0. */
static void reply_xattr(fuse_req_t req, const struct buffer *value, size_t size)
{
    if (size == 0)
        fuse_reply_xattr(req, value->length);
    else if (value->length > size)
        fuse_reply_err(req, ERANGE);
    else
        fuse_reply_buf(req, (const char *)value->bytes, value->length);
}

static void answer_getxattr(void *context)
{
    const struct question *question = context;
    struct wanted_xattr wanted = {.name = question->name};
    tree_xattrs(served_by(question->req)->tree, question->id, match_xattr, &wanted);
    if (wanted.found)
        reply_xattr(question->req, &wanted.value, question->size);
    else
        fuse_reply_err(question->req, ENODATA);
    buffer_free(&wanted.value);
}

static void op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
    if (text_starts_with(name, "user."))
        ask(answer_getxattr, (struct question){req, ino, name, size});
    else /* ls and cp do not ask again after this error */
        fuse_reply_err(req, ENOTSUP);
}

static void answer_listxattr(void *context)
{
    const struct question *question = context;
    struct buffer names = {0};
    tree_xattrs(served_by(question->req)->tree, question->id, name_xattr, &names);
    reply_xattr(question->req, &names, question->size);
    buffer_free(&names);
}

static void op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
    ask(answer_listxattr, (struct question){.req = req, .id = ino, .size = size});
}

/* Operations without a row get ENOSYS, and then the kernel handles them by itself: flush, locks, lseek. */
const struct fuse_lowlevel_ops fuse_ops = {
    .init = op_init,
    .lookup = op_lookup,
    .getattr = op_getattr,
    .readlink = op_readlink,
    .open = op_open,
    .opendir = op_opendir,
    .read = op_read,
    .readdir = op_readdir,
    .readdirplus = op_readdirplus,
    .statfs = op_statfs,
    .getxattr = op_getxattr,
    .listxattr = op_listxattr,
    .setattr = refuse_setattr,
    .mknod = refuse_mknod,
    .mkdir = refuse_mkdir,
    .unlink = refuse_removal,
    .rmdir = refuse_removal,
    .symlink = refuse_symlink,
    .rename = refuse_rename,
    .link = refuse_link,
    .create = refuse_create,
    .write = refuse_write,
    .setxattr = refuse_setxattr,
    .removexattr = refuse_removexattr,
    .fallocate = refuse_fallocate,
};

void serving_begin(struct serving *serving, const struct served *served, size_t n_readers)
{
    serving->served = served;
    serving->waiting = waiting_room_new(served->tree, answer_prepared);
    serving->reads = read_queue_new(n_readers);
    serving->remote_reads = waits_new(MAX_WAITING_READS, WAITS_IDLE);
    serving->ahead = read_ahead_new();
    sem_init(&serving->answering, 0, 0);
}

void serving_end(struct serving *serving)
{
    arrival_give_up();
    waits_end(serving->remote_reads);
    waits_free(serving->remote_reads);
    read_ahead_free(serving->ahead);
    waiting_room_free(serving->waiting);
    read_queue_free(serving->reads);
    sem_destroy(&serving->answering);
}
