/* The opener, asked by a process in the sandbox: each test runs in a child that starts one. */
#include "base/opener.h"

#include "base/record_file.h"
#include "base/sandbox.h"
#include "base/system.h"
#include "tests/unit/check.h"
#include "tests/unit/files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/wait.h>

static char here[PATH_MAX];

static bool closes(int fd)
{
    return fd >= 0 && close(fd) == 0;
}

static bool refused(int fd)
{
    return fd < 0 && errno == EXDEV;
}

/* Returns the text of a file that is found and then opened, or "". */
static const char *text_of(int directory, const char *path)
{
    static char text[16];
    memset(text, 0, sizeof text);
    int found = opener_open_at(directory, path, system_find_flags), fd = found >= 0 ? opener_reopen(found) : -1;
    ssize_t length = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (found >= 0)
        close(found);
    if (fd >= 0)
        close(fd);
    return length >= 0 ? text : "";
}

/* Starts an opener with the directory `model` and the file `single` as its roots, and enters a server's sandbox. */
static void confine(bool anywhere)
{
    static char model[PATH_MAX + 8], single[PATH_MAX + 8];
    snprintf(model, sizeof model, "%s/model", here);
    snprintf(single, sizeof single, "%s/single", here);
    const char *const paths[] = {model, single, NULL};
    files_must(opener_start(&(struct opener_roots){.paths = paths, .anywhere = anywhere}), "an opener");
    int rules = sandbox_open_paths(&(struct sandbox_paths){0});
    sandbox_enter(&(struct sandbox){.paths = rules});
}

static void check_names(void)
{
    confine(false);
    int model = opener_open_at(AT_FDCWD, "model", system_find_flags | O_DIRECTORY);
    CHECK(strcmp(text_of(AT_FDCWD, "model/weights"), "weights") == 0 &&
          strcmp(text_of(model, "weights"), "weights") == 0);
    CHECK(strcmp(text_of(AT_FDCWD, "single"), "single") == 0);
    CHECK_NAMED(strcmp(text_of(model, "inside"), "weights") == 0, "a link to a file below the roots");
    CHECK_NAMED(strcmp(text_of(model, "absolute"), "weights") == 0, "also by its absolute path");
    CHECK(strcmp(text_of(model, "later"), "") == 0 && errno == ENOENT);
    CHECK(closes(opener_open_at(model, ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW)));
    CHECK(opener_open_at(model, "inside", O_RDONLY | O_DIRECTORY | O_NOFOLLOW) < 0);
}

static void check_elsewhere(void)
{
    struct stat status;
    char real[PATH_MAX], secret[PATH_MAX + 8];
    confine(false);
    int model = opener_open_at(AT_FDCWD, "model", system_find_flags | O_DIRECTORY);
    snprintf(secret, sizeof secret, "%s/secret", here);
    CHECK(refused(opener_open_at(AT_FDCWD, "secret", system_find_flags)));
    CHECK(refused(opener_open_at(model, "outside", system_find_flags)));
    CHECK(refused(opener_open_at(model, "../secret", system_find_flags)));
    CHECK(refused(opener_open_at(model, "../modelled/file", system_find_flags)));
    CHECK(refused(opener_open_at(AT_FDCWD, "/etc", O_RDONLY | O_DIRECTORY)));
    CHECK(refused(opener_open_at(AT_FDCWD, "/proc/self/fd/0", system_find_flags)));
    CHECK(refused(opener_open_at(model, "device", system_find_flags)));
    CHECK_NAMED(opener_stat_at(model, "outside", &status, 0) && S_ISREG(status.st_mode), "what is elsewhere is told");
    CHECK(opener_stat_at(model, "outside", &status, AT_SYMLINK_NOFOLLOW) && S_ISLNK(status.st_mode));
    CHECK(opener_real_path(model, "outside", real) && strcmp(real, secret) == 0);
    CHECK(!opener_stat_at(model, "nothing", &status, 0) && errno == ENOENT);
}

/* The root directory's names, where a root is a file in it. */
static void check_top(void)
{
    const char *const paths[] = {"/nonexistent", NULL};
    files_must(opener_start(&(struct opener_roots){.paths = paths, .lists_top = true}), "an opener");
    sandbox_enter(&(struct sandbox){.paths = sandbox_open_paths(&(struct sandbox_paths){0})});
    CHECK(closes(opener_open_at(AT_FDCWD, "/", O_RDONLY | O_DIRECTORY)));
    CHECK(refused(opener_open_at(AT_FDCWD, "/etc", O_RDONLY | O_DIRECTORY)));
    CHECK(refused(opener_open_at(AT_FDCWD, "/etc/passwd", system_find_flags)));
}

/* What this process finds itself is refused like a name, and a FIFO is not waited for. */
static void check_descriptors(void)
{
    confine(false);
    int secret = open("secret", O_PATH | O_CLOEXEC);
    CHECK(secret >= 0 && refused(opener_reopen(secret)));
    int fifo = opener_open_at(AT_FDCWD, "model/fifo", system_find_flags);
    CHECK(fifo >= 0 && refused(opener_reopen(fifo)));
    CHECK(closes(fifo) && opener_reopen(-1) < 0);
}

static void check_anywhere(void)
{
    confine(true);
    CHECK(strcmp(text_of(AT_FDCWD, "secret"), "secret") == 0 &&
          strcmp(text_of(AT_FDCWD, "model/outside"), "secret") == 0);
}

static void check_leaving(void)
{
    char path[PATH_MAX + 16];
    confine(false);
    opener_leave_directory();
    snprintf(path, sizeof path, "%s/model/weights", here);
    CHECK(strcmp(text_of(AT_FDCWD, path), "weights") == 0 && strcmp(text_of(AT_FDCWD, "model/weights"), "") == 0);
}

static void check_watch(void)
{
    char event[256];
    confine(false);
    int found = opener_open_at(AT_FDCWD, "model/weights", system_find_flags), fd = opener_reopen(found);
    int inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    CHECK(opener_watch(fd, inotify) > 0 && read(inotify, event, sizeof event) < 0);
    CHECK(opener_watch(open("secret", O_PATH | O_CLOEXEC), inotify) != 0);
}

/* What a server can do with the file of records: nothing but to let the opener write records of its scope. */
static void check_records(void)
{
    const char *const paths[] = {here, NULL};
    const struct record_file written = {open("records", O_WRONLY | O_CREAT | O_CLOEXEC, 0600), {1}};
    const struct record_file read_here = {open("records", O_RDONLY | O_CLOEXEC), {1}};
    const struct record_file other_scope = {read_here.descriptor, {2}};
    struct record record = {.key = {7}, .length = 3, .bytes = "abc"}, found = {.key = {7}};
    files_must(opener_start(&(struct opener_roots){.paths = paths, .records = &written}), "an opener");
    close(written.descriptor);
    records_use(&read_here, false);
    sandbox_enter(&(struct sandbox){.paths = sandbox_open_paths(&(struct sandbox_paths){0})});
    CHECK(!record_find(&found));
    record_keep(&record);
    CHECK(record_find(&found) && found.length == 3 && memcmp(found.bytes, "abc", 3) == 0);
    CHECK_NAMED(!record_read(&other_scope, &found), "in no other scope");
    CHECK_NAMED(!record_write(&read_here, &record, 0), "the server itself cannot write");
    int again = opener_reopen(opener_open_at(AT_FDCWD, "records", system_find_flags));
    CHECK_NAMED(again >= 0 && write(again, "x", 1) < 0, "nor through a descriptor of the opener's");
    record.length = 2;
    opener_keep(&record, RECORD_WAYS);
    CHECK_NAMED(record_find(&found) && found.length == 3, "a place outside of the set is refused");
}

static void check_end(void)
{
    confine(false);
    CHECK(strcmp(text_of(AT_FDCWD, "single"), "single") == 0);
    opener_end();
    CHECK(waitpid(-1, NULL, 0) < 0 && errno == ECHILD);
    CHECK(text_of(AT_FDCWD, "single")[0] == '\0');
    opener_end();
}

static void in_child(void (*check)(void), const char *name)
{
    int status = -1;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO); /* the child's checks are one of the plan */
        check();
        _exit(check_failed != 0);
    }
    waitpid(child, &status, 0);
    CHECK_NAMED(status == 0, name);
}

int main(void)
{
    files_begin();
    files_must(getcwd(here, sizeof here) != NULL, "here");
    files_must(mkdir("model", 0700) == 0 && mkdir("modelled", 0700) == 0, "folders");
    files_write_text("model/weights", "weights");
    files_write_text("modelled/file", "file");
    files_write_text("single", "single");
    files_write_text("secret", "secret");
    char absolute[PATH_MAX + 16];
    snprintf(absolute, sizeof absolute, "%s/model/weights", here);
    files_must(symlink("weights", "model/inside") == 0 && symlink("../secret", "model/outside") == 0 &&
                   symlink(absolute, "model/absolute") == 0 && symlink("/dev/null", "model/device") == 0 &&
                   mkfifo("model/fifo", 0600) == 0,
               "links");
    in_child(check_names, "what lies below the roots");
    in_child(check_elsewhere, "what lies elsewhere");
    in_child(check_top, "the root directory");
    in_child(check_descriptors, "descriptors");
    in_child(check_anywhere, "an opener for links that lead anywhere");
    in_child(check_leaving, "an opener that leaves its directory");
    in_child(check_watch, "a watch");
    in_child(check_records, "records");
    in_child(check_end, "an end that leaves no process");
    files_remove();
    return check_done();
}
