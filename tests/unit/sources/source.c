#include "sources/source.h"

#include "base/process.h"
#include "base/text.h"
#include "formats/checkpoint.h"
#include "sources/location.h"

#include "tests/unit/check.h"
#include "tests/unit/files.h"
#include "tests/unit/formats/readers_table.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

static const struct open_options usual = {.format = NULL};

/* What is no regular file is refused at once: opening a FIFO must not wait for its writer. */
static void kinds(void)
{
    static const struct {
        const char *path, *error;
    } paths[] = {
        {"fifo", "fifo: neither a file nor a directory"},
        {"socket", "socket: neither a file nor a directory"}, /* not tried: opening a socket is an error of its own */
        {"/dev/null", "/dev/null: neither a file nor a directory"},
        {"/dev/tty", "/dev/tty: "},
        {".", ".: not a regular file"},
        {"absent", "absent: No such file or directory"},
        {"dangling", "dangling: No such file or directory"},
        {"loop", "loop: "}, /* the C libraries have different words */
        {"file/below", "file/below: Not a directory"},
    };
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket"};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    files_must(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0, "socket");
    close(fd);
    files_must(mkfifo("fifo", 0644) == 0, "fifo");
    files_link("dangling", "nothing");
    files_link("loop", "loop");
    files_write_text("file", "text");
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        struct error error = {""};
        struct source *source = location_open_file(paths[i].path, &error);
        CHECK_NAMED(source == NULL && text_starts_with(error.message, paths[i].error), paths[i].path);
        source_close(source);
    }
}

static void checkpoints_of_other_kinds(void)
{
    struct error error = {""};
    CHECK(checkpoint_open("fifo", readers, &usual, &error) == NULL);
    CHECK_TEXT(error.message, "fifo: neither a file nor a directory");
    CHECK(checkpoint_open("/dev/zero", readers, &usual, &error) == NULL);
    CHECK_TEXT(error.message, "/dev/zero: neither a file nor a directory");
    files_write_text("empty", "");
    CHECK(checkpoint_open("empty", readers, &usual, &error) == NULL);
    CHECK_TEXT(error.message, "empty: the file is empty; an interrupted download?");
    CHECK(checkpoint_open("/proc/self/maps", readers, &usual, &error) == NULL); /* has a size of 0 and content */
    CHECK_TEXT(error.message, "/proc/self/maps: the file is empty; an interrupted download?");
}

static void reading(void)
{
    struct error error = {""};
    char out[8] = "";
    struct source *source = location_open_file("file", &error);
    CHECK(source != NULL && source_size(source) == 4);
    CHECK(source_read(source, 1, 3, out, &error) && strcmp(out, "ext") == 0);
    CHECK(source_read(source, 4, 0, out, &error));
    CHECK(!source_read(source, 1, 4, out, &error));
    CHECK_TEXT(error.message, "file: bytes [1, +4) are past the end of its 4 bytes");
    CHECK(!source_read(source, 5, 0, out, &error));
    CHECK(!source_read(source, UINT64_MAX, 1, out, &error));

    /* A file replaced by rename is served as it was; one that is cut says so. */
    CHECK(!source_changed(source));
    files_write_text("new", "other");
    files_must(rename("new", "file") == 0, "rename");
    CHECK(source_read(source, 0, 4, out, &error) && memcmp(out, "text", 4) == 0 && !source_changed(source));
    source_close(source);
    source = location_open_file("file", &error);
    files_must(truncate("file", 2) == 0, "truncate");
    CHECK(!source_read(source, 0, 4, out, &error));
    CHECK_TEXT(error.message, "file: ends at offset 2, was 5 bytes long when it was opened");
    source_close(source);
}

/* What is still the same file, and what is not; a source that has changed cannot be read any more. */

static void do_nothing(void)
{
}

static void give_permissions(void)
{
    files_must(chmod("file", 0600) == 0, "chmod");
}

static void link_and_rename(void)
{
    files_must(link("file", "link") == 0 && rename("file", "moved") == 0 && remove("link") == 0, "link");
}

static void unlink_it(void)
{
    files_must(remove("file") == 0, "remove");
}

static void replace(void)
{
    files_write_text("new", "other");
    files_must(rename("new", "file") == 0, "rename");
}

static void cut(void)
{
    files_must(truncate("file", 2) == 0, "truncate");
}

static void lengthen(void)
{
    files_must(truncate("file", 5) == 0, "truncate");
}

static void overwrite(void)
{
    int fd = open("file", O_WRONLY | O_CLOEXEC);
    files_must(fd >= 0 && pwrite(fd, "T", 1, 0) == 1 && close(fd) == 0, "write");
}

static void changes(void)
{
    static const struct {
        const char *name;
        void (*make)(void);
        const char *change; /* NULL: it is none */
    } acts[] = {
        {"nothing", do_nothing},
        {"chmod", give_permissions},
        {"link, rename", link_and_rename},
        {"unlink", unlink_it},
        {"replace", replace},
        {"cut", cut, ": it has 2 bytes, and had 4"},
        {"lengthen", lengthen, ": it has 5 bytes, and had 4"},
        {"overwrite", overwrite, ""},
    };
    for (size_t i = 0; i < sizeof acts / sizeof *acts; i++) {
        struct error error = {""};
        char out[4] = "", message[100];
        bool changes = acts[i].change != NULL;
        static const struct timespec long_ago[] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
        files_write_text("file", "text");
        files_must(utimensat(AT_FDCWD, "file", long_ago, 0) == 0, "utimensat");
        struct source *source = location_open_file("file", &error);
        struct source *member = source_of_text(source, "member", "text", 4);
        CHECK(!source_verify(source) && source_mapping(source, 0, 4) != NULL && source_read(source, 0, 4, out, &error));
        acts[i].make();
        CHECK_NAMED(source_verify(source) == changes, acts[i].name);
        CHECK_NAMED(source_changed(source) == changes && source_changed(member) == changes, acts[i].name);
        CHECK_NAMED((source_mapping(source, 0, 4) == NULL) == changes, acts[i].name);
        CHECK_NAMED(source_read(source, 0, 1, out, &error) == !changes, acts[i].name);
        if (changes) {
            snprintf(message, sizeof message, "file: changed since it was opened%s", acts[i].change);
            CHECK_TEXT(error.message, message);
        }
        source_close(member);
        source_close(source);
    }
}

/* A writer who puts the time back is seen by the watch, whatever name he wrote to; reading and renaming are not. */
static void watch(void)
{
    struct error error = {""};
    char out[64];
    files_write_text("file", "text");
    struct source *source = location_open_file("file", &error);
    int inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    CHECK(inotify >= 0 && source_watch(source, inotify) >= 0);
    CHECK(source_read(source, 0, 4, out, &error) && link("file", "other name") == 0);
    replace();
    CHECK(read(inotify, out, sizeof out) < 0);
    int fd = open("other name", O_WRONLY | O_CLOEXEC);
    files_must(fd >= 0 && pwrite(fd, "T", 1, 0) == 1 && close(fd) == 0, "write");
    CHECK(read(inotify, out, sizeof out) > 0);
    close(inotify);
    source_close(source);
}

static void texts(void)
{
    struct error error = {""};
    size_t length = 0;
    files_write_text("file", "text");
    struct source *source = location_open_file("file", &error);
    char *text = source_read_text(source, 4, &length, &error);
    CHECK(text != NULL && strcmp(text, "text") == 0 && length == 4);
    free(text);
    CHECK(source_read_text(source, 3, &length, &error) == NULL);
    CHECK_TEXT(error.message, "file: too large: 4 bytes, the limit is 3");
    source_close(source);
}

/* Writes to a file's beginning, later than its time of modification by more than the clock's step. */
static void write_inside(const char *name, const char *text)
{
    usleep(20 * 1000);
    int fd = open(name, O_WRONLY);
    files_must(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && close(fd) == 0, name);
}

/* Columns of a matrix of 3000 rows of 40 bytes, which are gathered, and of long rows, which are read one by one. */
static void runs(void)
{
    enum { ROWS = 3000, ROW = 40 };
    static unsigned char bytes[ROWS * ROW], out[ROWS * ROW];
    struct error error = {""};
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 2654435761u >> 13);
    files_write("matrix", bytes, sizeof bytes);
    struct source *source = location_open_file("matrix", &error);
    static const size_t lengths[] = {1, 7, ROW};
    for (size_t i = 0; i < 3; i++) {
        bool same = source_read_runs(source, ROW - lengths[i], ROWS, lengths[i], ROW, out, &error);
        for (size_t row = 0; row < ROWS; row++)
            same = same && memcmp(out + row * lengths[i], bytes + (row + 1) * ROW - lengths[i], lengths[i]) == 0;
        CHECK_NAMED(same, "a column");
    }
    CHECK(source_read_runs(source, 0, 3, 20000, 40000, out, &error) && memcmp(out + 20000, bytes + 40000, 20000) == 0);
    CHECK(source_read_runs(source, 0, 0, 5, 5, out, &error));
    CHECK(!source_read_runs(source, 1, ROWS, ROW, ROW, out, &error));
    CHECK(!source_read_runs(source, 0, 3, 8, UINT64_MAX / 2, out, &error));
    struct source *changed = location_open_file("matrix", &error);
    source_mark_changed(changed);
    CHECK_NAMED(!source_read_runs(changed, 0, ROWS, 4, ROW, out, &error), "a file that has changed is not gathered");
    source_close(changed);
    struct source *written = location_open_file("matrix", &error), *gathered = location_open_file("matrix", &error);
    CHECK(source_read(written, 0, ROW, out, &error) && source_read_runs(gathered, 0, ROWS, 4, ROW, out, &error));
    write_inside("matrix", "new");
    CHECK_NAMED(!source_read(written, 0, ROW, out, &error), "a read right after a write to the file fails");
    CHECK_NAMED(!source_read_runs(gathered, 0, ROWS, 4, ROW, out, &error), "and so do columns");
    source_close(written);
    source_close(gathered);
    source_close(source);
    source = location_open_file("matrix", &error);
    CHECK(truncate("matrix", ROWS * ROW / 2) == 0);
    CHECK_NAMED(!source_read_runs(source, 0, ROWS, 4, ROW, out, &error), "rows that are gone are an error");
    CHECK(strstr(error.message, "matrix: changed since it was opened: it has 60000 bytes, and had 120000") != NULL);
    source_close(source);
}

/* What a kind leaves out is nothing, and read runs are read one by one. */
static void text(void)
{
    struct error error = {""};
    char out[4] = "";
    files_write_text("file", "content");
    struct source *base = location_open_file("file", &error);
    struct source *source = source_of_text(base, "text", "abcdef", 6);
    CHECK(source_size(source) == 6 && source_mapping(source, 0, 6) == NULL && source_watch(source, 0) == -1);
    CHECK(source_same_file(source, base) && !source_changed(source));
    source_want(source, 0, 7, true);
    CHECK(!source_is_remote(source) && source_wait(source, 0, 6, &error));
    CHECK(source_read_runs(source, 1, 3, 1, 2, out, &error) && strcmp(out, "bdf") == 0);
    CHECK(!source_read_runs(source, 2, 3, 1, 2, out, &error));
    source_close(source);
    source_close(base);
}

static void many(bool is_allowed)
{
    enum { SOFT_LIMIT = 64, N_FILES = 80 };
    struct rlimit limit;
    struct source *sources[N_FILES];
    struct error error;
    size_t n_open = 0;
    files_must(getrlimit(RLIMIT_NOFILE, &limit) == 0, "getrlimit");
    limit.rlim_cur = SOFT_LIMIT;
    files_must(limit.rlim_max >= 2 * N_FILES && setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
    while (n_open < N_FILES && (sources[n_open] = location_open_file("file", &error)) != NULL)
        n_open++;
    CHECK_NAMED(getrlimit(RLIMIT_NOFILE, &limit) == 0 && (limit.rlim_cur > SOFT_LIMIT) == is_allowed, "the soft limit");
    CHECK_NAMED((n_open == N_FILES) == is_allowed, "more files than the soft limit");
    while (n_open > 0)
        source_close(sources[--n_open]);
}

int main(void)
{
    files_begin();
    kinds();
    checkpoints_of_other_kinds();
    reading();
    changes();
    watch();
    texts();
    runs();
    process_allow(PROCESS_SIGBUS);
    runs();
    text();
    many(false);
    process_allow(PROCESS_DESCRIPTORS);
    many(true);
    files_remove();
    return check_done();
}
