/* A file that is being written. It gets its name when it is complete, so a partial file never has it. Several threads
 * may write files of one name: each file is complete, and the last stays. */
#pragma once

#include "base/buffer.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct output {
    int fd;
    bool is_file;     /* false for a pipe or a device, which is written in place */
    char *path;       /* the final name */
    char *temporary;  /* the name until the file is complete, which a process that is killed may leave */
    bool has_no_name; /* O_TMPFILE: the temporary name is not in use */
};

/* Opens an output, and reserves `size` bytes if the file system can: a full one fails at once. Follows links. A new
 * file has the mode, usually OUTPUT_MODE, without the bits of the umask. The error's code is the errno. */
enum { OUTPUT_MODE = 0666 };
bool output_open(struct output *output, const char *path, uint64_t size, mode_t mode, struct error *error);

/* Gives the file its name, replacing a file that has it. Frees the output, even on failure. */
bool output_finish(struct output *output, struct error *error);

/* Removes the file, unless it is written in place, and frees the output. */
void output_discard(struct output *output);

/* Small files that are on disk, and whole, once they have their name, also on network file systems and after a crash.
 *
 * Functions return 0 or an errno. Names are relative to the working directory. */

/* Writes a file under a temporary name in its directory, makes it durable, and gives it its name. `replace` is false:
 * a file that has the name stays, and EEXIST is returned; where there are no hard links, two writers at once may both
 * succeed, and the later one stays. */
int durable_write(const char *path, const void *bytes, size_t length, bool replace);

/* Makes new names in a directory durable. */
int durable_directory(const char *path);

/* Makes a directory; EEXIST if the name is taken. */
int durable_make_directory(const char *path);

/* Makes what was written to a descriptor durable and closes it: network file systems report a failed write or a full
 * disk only here. */
int durable_close(int fd);

/* Gives a file a second name, which must be free. Where there are no hard links, the file moves to that name. EEXIST:
 * another file has the name. */
int durable_link(const char *path, const char *name);

/* Renames a file or directory. */
int durable_rename(const char *path, const char *name);

/* Report what has a name: anything, also a dangling link; a directory; the same file as another name. */
bool durable_exists(const char *path);
bool durable_is_directory(const char *path);
bool durable_is_same(const char *path, const char *other);

/* Appends a whole file; EFBIG if it has more than `limit` bytes. */
int durable_read(const char *path, size_t limit, struct buffer *out);
