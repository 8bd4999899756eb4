/* libwfs: any model checkpoint as files and tensors.
 *
 * A model is opened once: wfs_open(). Its files are those of `wfs ls`, its tensors those of tensors/. Sizes are exact
 * before a weight is read, and a read touches only the stored bytes that its range is computed from.
 *
 * Objects are opaque. Any number of threads may use a model, a file or a list at once; a close function must be the
 * last use of its object. Texts are UTF-8 and end with a NUL unless a length is given. Structures that the caller
 * provides have room for later fields, and each call fills them in completely.
 *
 * Functions that can fail return false, NULL or -1, and then fill in *ret_error if that is not NULL. Running out of
 * memory is such a failure (ENOMEM); it may leak memory of the failed call.
 *
 * The library changes nothing of the process: it sets no signal handler, limit or allocator setting, writes nothing to
 * stdout or stderr and does not end the process, unless the program allows a change (wfs_allow()). What the process has
 * only once: tables that are computed when they are first needed; and, after the first use of a remote source or of
 * `keep=`, one thread for requests, one that writes kept bytes, and the store, with the options of the first call.
 * If memory runs out in the thread for requests, the process is aborted. The library stays loaded after dlclose(). */
#ifndef WFS_H
#define WFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WFS_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/* Why a call failed. Codes are of errno.h: EINVAL for a wrong argument or option, ENOENT for a source, path or tensor
 * that does not exist, EISDIR and ENOTDIR, EACCES for a source that may not be read, ENOMEM, ESTALE for a source that
 * has changed, ECANCELED for a call that was stopped, EIO for everything else. */
struct wfs_error {
    int code;
    char message[1020]; /* one line for a person, without a newline: "FILE: what is wrong: the facts; what to do" */
};

/* Returns the version of the library: "0.1.0". */
WFS_API const char *wfs_version(void);

/* Changes to the whole process that the library may make. */
enum wfs_change {
    WFS_SIGBUS = 1, /* handle SIGBUS, so that columns of mapped matrices are read faster; the handler passes on every
                       SIGBUS that is not its own */
    WFS_DESCRIPTORS = 2, /* raise the soft limit of open files to the hard one when a model has more files */
    WFS_ALLOCATOR = 4,   /* mallopt() and malloc_trim(), to return memory to the system after large plans */
};

/* Allows changes, a sum of enum wfs_change. Call it before opening a model. */
WFS_API void wfs_allow(unsigned changes);

/* A context: the threads that help with reads, and where messages go. */
typedef struct wfs_context wfs_context;

/* Takes a message that belongs to no failure, such as a note that the cache cannot be written. It is called on the
 * thread of the call that causes the message, and must not leave by longjmp() or an exception. */
typedef void wfs_log(void *user, const char *line);

/* Makes a context with `n_threads` threads, callers included; 0: one for each core that the process may use; the most
 * are 64. They start with the first read that is worth dividing. `log` may be NULL: messages are dropped. Returns NULL
 * if memory runs out. */
WFS_API wfs_context *wfs_context_new(unsigned n_threads, wfs_log *log, void *user);

/* Ends the threads. The context's models must be closed. NULL is allowed. */
WFS_API void wfs_context_free(wfs_context *context);

/* Makes later calls of the calling thread fail with ECANCELED soon after *flag is other than 0: within a second or so,
 * wherever they wait or read. Another thread or a signal handler may set it, and it must live until the next call of
 * this function; NULL: nothing stops calls. What a stopped call leaves is what it was: models can be used as before, a
 * copy leaves no file. Requests to servers that are under way end by themselves. Other threads' calls go on. */
WFS_API void wfs_stop_by(const volatile int *flag);

/* A model: an open source. */
typedef struct wfs_model wfs_model;

/* Opens a source: a file, a directory, ORG/NAME of the local hub cache, or a URL (wfs(1)). `options` is a list of
 * words as after -o, NULL at its end: "lora=DIR", "follow-links"; a comma is part of a value. NULL means no options.
 * With "library", the source is a directory of models, each shown as models/PUBLISHER/NAME/ and opened when a path
 * first leads there; their tensors are not counted. Options for mounts are refused; layout and shards need the path of
 * a layout's file, as names are looked up beside the program. cache, cache-size, cacert, timeout and offline hold for
 * the whole process: other values fail once they are in use. */
WFS_API wfs_model *wfs_open(wfs_context *context, const char *source, const char *const *options,
                            struct wfs_error *ret_error);

/* Closes a model. Its files and lists must be closed; mapped tensors stay. NULL is allowed. */
WFS_API void wfs_close(wfs_model *model);

/* Returns the number of notes so far: assumptions and omissions, as `wfs info` prints them. Opening files adds some. */
WFS_API size_t wfs_note_count(wfs_model *model);

/* Returns a note, which lives as long as the model; NULL if `index` is too large. */
WFS_API const char *wfs_note(wfs_model *model, size_t index);

/* A file or directory. */
struct wfs_entry {
    const char *name; /* in lists, as long as the list; from wfs_stat() NULL */
    uint64_t size;    /* bytes; 0 for a directory, and in lists of names */
    int64_t mtime;    /* seconds since 1970; 0 in lists of names */
    uint32_t mtime_nanoseconds;
    uint32_t mode; /* as st_mode: S_IFREG or S_IFDIR, and who may read it */
    uint64_t unused[4];
};

/* Describes a path such as "gguf/model-Q4_K.gguf"; "" is the root. Fails with ENOENT if it does not exist: the message
 * names the missing part and why wfs does not make it. */
WFS_API bool wfs_stat(wfs_model *model, const char *path, struct wfs_entry *ret_entry, struct wfs_error *ret_error);

/* The entries of a directory. */
typedef struct wfs_list wfs_list;

/* Lists a directory. With `only_names`, files that take long to plan are listed without their sizes. */
WFS_API wfs_list *wfs_list_open(wfs_model *model, const char *path, bool only_names, struct wfs_error *ret_error);
WFS_API size_t wfs_list_count(const wfs_list *list);

/* Returns an entry, which lives as long as the list; NULL if `index` is too large. */
WFS_API const struct wfs_entry *wfs_list_entry(const wfs_list *list, size_t index);
WFS_API void wfs_list_close(wfs_list *list); /* NULL is allowed */

/* An open file. It keeps no position. */
typedef struct wfs_file wfs_file;

/* Opens a file. "DIRECTORY.tar", unless there is a file of that name, is an archive of the directory. */
WFS_API wfs_file *wfs_file_open(wfs_model *model, const char *path, struct wfs_error *ret_error);
WFS_API uint64_t wfs_file_size(const wfs_file *file);

/* Reads up to `length` bytes from `offset` on, fewer only at the end of the file. Returns their number, or -1. */
WFS_API int64_t wfs_file_read(wfs_file *file, uint64_t offset, void *out, size_t length, struct wfs_error *ret_error);

/* Writes the whole file to a descriptor, with all threads of the context: the fastest way to copy a file. */
WFS_API bool wfs_file_write(wfs_file *file, int descriptor, struct wfs_error *ret_error);

/* Like wfs_file_write(), for up to `length` bytes from `offset` on; fewer are written only at the end of the file. */
WFS_API bool wfs_file_write_range(wfs_file *file, uint64_t offset, uint64_t length, int descriptor,
                                  struct wfs_error *ret_error);

/* Divides a file into `n_parts` parts that take about equal time to compute, for as many workers: sets ret_ends[i] to
 * the offset at which part i ends. Part 0 begins at 0, the last part ends at the end of the file, and some may be
 * empty. The offsets are multiples of 64 KiB; `wfs cp --part` uses the same ones. Fails with EINVAL unless there are 1
 * to 100,000 parts. */
WFS_API bool wfs_file_parts(wfs_file *file, size_t n_parts, uint64_t *ret_ends, struct wfs_error *ret_error);

/* Copies the whole file like `wfs cp`: a new or regular file gets its name when it is complete, and a link's target is
 * written; what is no regular file, such as a pipe or a device, is written in place. Opening a FIFO waits for its
 * reader. Several threads may copy to one path. */
WFS_API bool wfs_file_copy(wfs_file *file, const char *path, struct wfs_error *ret_error);

/* Takes the number of bytes that a copy has written; returns false to stop it. It is called from any thread, one at a
 * time, while others wait, and must not leave by longjmp() or an exception. */
typedef bool wfs_watch(void *user, uint64_t n_written);

/* Like wfs_file_copy(), and calls `watch` after each piece of the file; it may be NULL. A copy that is stopped fails
 * with ECANCELED, and leaves nothing but what was written in place. */
WFS_API bool wfs_file_copy_watched(wfs_file *file, const char *path, wfs_watch *watch, void *user,
                                   struct wfs_error *ret_error);

WFS_API void wfs_file_close(wfs_file *file); /* NULL is allowed */

/* A tensor, under the name that tensors/ shows. */
struct wfs_tensor {
    const char *name;      /* any bytes, with a NUL at the end */
    size_t name_length;    /* bytes */
    const char *dtype;     /* of its values: "BF16", "Q4_K"; packed weights have the type that they unpack to */
    const uint64_t *shape; /* `rank` dimensions, the outermost first */
    uint64_t n_elements;
    const char *refusal; /* why its values cannot be read; NULL: they can */
    uint32_t rank;
    uint32_t unused32;
    uint64_t unused[4];
};

/* Returns the number of tensors. The components of a pipeline are models of their own, and their tensors not counted.
 */
WFS_API size_t wfs_tensor_count(wfs_model *model);

/* Describes tensor `index`, below wfs_tensor_count(), in the order of the source. Texts and shape live as long as the
 * model. */
WFS_API bool wfs_tensor_at(wfs_model *model, size_t index, struct wfs_tensor *ret_tensor, struct wfs_error *ret_error);

/* Finds a tensor by its name, of `length` bytes. */
WFS_API bool wfs_tensor_find(wfs_model *model, const char *name, size_t length, size_t *ret_index,
                             struct wfs_error *ret_error);

/* Indices along one axis: start, start + step, ... */
struct wfs_slice {
    uint64_t start, count;
    uint64_t step; /* at least 1 */
};

/* Return the bytes of a tensor in a type: "f32", "bf16", "q4_k"; "raw" is the stored one. `slices` has one element for
 * each axis; NULL: the whole tensor. Fail if the tensor has no such type, with the reason. A slice in a type of blocks,
 * such as Q4_K, must be elements that follow each other, and whole blocks. */
WFS_API bool wfs_tensor_size(wfs_model *model, size_t index, const char *dtype, const struct wfs_slice *slices,
                             uint64_t *ret_size, struct wfs_error *ret_error);

/* Reads values into `out`, row-major, of exactly wfs_tensor_size() bytes: those of the file tensors/NAME/DTYPE, which
 * are little-endian on every machine. */
WFS_API bool wfs_tensor_read(wfs_model *model, size_t index, const char *dtype, const struct wfs_slice *slices,
                             void *out, uint64_t size, struct wfs_error *ret_error);

/* Maps the bytes that wfs_tensor_read() would copy, where a local file stores them one after the other in that type;
 * NULL if no file does, or if memory for the mapping is lacking: then read them. The caller owns the mapping, which
 * needs the model no more. Writing to it changes neither the file nor what others see. The bytes need not be aligned.
 * If the file is shortened while it is mapped, touching what is gone raises SIGBUS. */
WFS_API void *wfs_tensor_map(wfs_model *model, size_t index, const char *dtype, const struct wfs_slice *slices,
                             uint64_t *ret_size);

/* Ends a mapping of wfs_tensor_map(), of the size it returned. */
WFS_API void wfs_unmap(void *bytes, uint64_t size);

/* Describes a model: its class, family, tokenizer, parameters, files and notes. The result is the JSON object that
 * `wfs info --json` prints, without its members "wfs" and "schema": docs/metadata.md. Plans all files and opens all
 * components. wfs_text_free() frees it. */
WFS_API char *wfs_info_json(wfs_model *model, struct wfs_error *ret_error);

/* Lists the architectures of models that GGUF files are made of. The result is the JSON object that `wfs info
 * --architectures --json` prints, without its members "wfs" and "schema": docs/metadata.md. wfs_text_free() frees it.
 */
WFS_API char *wfs_architectures_json(wfs_context *context, struct wfs_error *ret_error);

/* Measures the size and error of each quantization of a model, of a sample of its weights or of all: to choose one. The
 * result is the JSON array that `wfs info --quantization --json` prints: docs/metadata.md. Fails for adapters,
 * diffusion models and unknown families. wfs_text_free() frees it. */
WFS_API char *wfs_quantizations_json(wfs_model *model, bool all, struct wfs_error *ret_error);

/* Compares a GGUF with what wfs makes of a source, opened with `options` as by wfs_open(): whether it was made from
 * that source, by which build, and what differs. The result is the JSON object that `wfs verify --json` prints, without
 * its members "wfs" and "schema": docs/trust.md. wfs_text_free() frees it. */
WFS_API char *wfs_compare(wfs_context *context, const char *file, const char *source, const char *const *options,
                          struct wfs_error *ret_error);

/* Compares the tensors and metadata of two sources of any format, each opened with `options` as by wfs_open(); options
 * that are not for opening a source are refused. The result is the JSON object that `wfs diff --json` prints, without
 * its members "wfs" and "schema": docs/metadata.md. wfs_text_free() frees it. */
WFS_API char *wfs_diff(wfs_context *context, const char *a, const char *b, const char *const *options,
                       struct wfs_error *ret_error);

/* Returns the in-toto statement that `wfs attest` prints for the files and directories of a model at `n_paths` paths,
 * which it reads, with all that they are made from. wfs_text_free() frees it. */
WFS_API char *wfs_attest(wfs_model *model, const char *const *paths, size_t n_paths, struct wfs_error *ret_error);

/* Makes the statement of wfs_attest() in a file again from a source, and compares. `options` are those of the source,
 * as for wfs_open(), and count before the options of the statement, except those that name files, which are never taken
 * from a statement. The result is the JSON object that `wfs verify --attestation --json` prints, without its members
 * "wfs" and "schema". wfs_text_free() frees it. */
WFS_API char *wfs_compare_attestation(wfs_context *context, const char *statement, const char *source,
                                      const char *const *options, struct wfs_error *ret_error);

WFS_API void wfs_text_free(char *text); /* NULL is allowed */

#ifdef __cplusplus
}
#endif

#endif
