/* Mount points before anything is mounted: which directories will do, whose they are, and what becomes of them. */
#include "fs/mount/mountpoint.h"

#include "fs/mount/device.h"
#include "tests/unit/check.h"
#include "tests/unit/files.h"

#include <errno.h>
#include <sys/xattr.h>

static char here[1024];

static const char *within(const char *path)
{
    static char whole[2048];
    snprintf(whole, sizeof whole, "%s%s%s", here, *path != '\0' ? "/" : "", path);
    return whole;
}

/* A path, and where it leads or why it will not do. */
static const struct {
    const char *path, *resolved, *message;
    bool nonempty;
} rows[] = {
    {"empty", "empty", NULL},
    {"empty///", "empty", NULL},
    {"./empty/.", "empty", NULL},
    {"full/../empty", "empty", NULL},
    {"new", "new", NULL},
    {"full/inner/new/", "full/inner/new", NULL},
    {"link", "empty", NULL},
    {"link/", "empty", NULL},
    {"full/link", "empty", NULL}, /* ../empty, from where the link is */
    {"to-new", "new", NULL},
    {"/dev/fd/7", "/dev/fd/7", NULL},
    {"full", "full", NULL, .nonempty = true},
    {"full", NULL, "not empty; -o nonempty mounts over its contents"},
    {"full/file", NULL, "full/file: not a directory", .nonempty = true},
    {"none/new", NULL, "none/new: cannot be created: none does not exist; 'mkdir -p none' creates it"},
    {"full/file/new", NULL, "full/file/new: cannot be created: Not a directory"},
    {"", NULL, "the mount point is empty; is a variable unset?"},
};

static void prepared(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct error error = {""};
        struct mountpoint mountpoint;
        const struct mountpoint_options options = {.nonempty = rows[i].nonempty};
        bool done = mountpoint_prepare(&mountpoint, rows[i].path, &options, &error);
        CHECK_NAMED(done == (rows[i].resolved != NULL), rows[i].path);
        if (done && rows[i].resolved != NULL)
            CHECK_TEXT(mountpoint.path, *rows[i].resolved == '/' ? rows[i].resolved : within(rows[i].resolved));
        else if (!CHECK_NAMED(rows[i].message != NULL && strstr(error.message, rows[i].message) != NULL, rows[i].path))
            fprintf(stderr, "  %s\n", error.message);
        mountpoint_release(&mountpoint);
        CHECK(mountpoint.path == NULL && access("new", F_OK) != 0 && access("empty", F_OK) == 0);
    }
}

static void in_a_loop(void)
{
    char expected[256];
    struct error error = {""};
    struct mountpoint mountpoint;
    snprintf(expected, sizeof expected, "loop: %s", strerror(ELOOP)); /* which libraries of C word differently */
    CHECK(!mountpoint_prepare(&mountpoint, "loop", &(struct mountpoint_options){0}, &error));
    CHECK_TEXT(error.message, expected);
    mountpoint_release(&mountpoint);
}

/* What we made we remove: not what was there before, and not what somebody else made in its place. */
static void made(void)
{
    struct error error;
    struct mountpoint mountpoint, again;
    const struct mountpoint_options options = {0};
    CHECK(mountpoint_prepare(&mountpoint, "new", &options, &error) && mountpoint.made && mountpoint.hold >= 0);
    CHECK(hold_take_over("new", 0) < 0 && !mountpoint_vanished(&mountpoint));
    CHECK(mkdir("other", 0777) == 0 && rmdir("new") == 0 && mountpoint_vanished(&mountpoint));
    CHECK(rename("other", "new") == 0);
    char pid[16];
    setxattr("new", "user.wfs.made", pid, (size_t)sprintf(pid, "%d", (int)getpid()), 0); /* by ours, later */
    mountpoint_release(&mountpoint);
    CHECK_NAMED(rmdir("new") == 0, "a directory in place of the one that was made stays");

    CHECK(mountpoint_prepare(&mountpoint, "new", &options, &error));
    files_write_text("new/file", "");
    mountpoint_release(&mountpoint);
    CHECK_NAMED(unlink("new/file") == 0 && rmdir("new") == 0, "so does one with something in it");

    CHECK(mountpoint_prepare(&mountpoint, "new", &options, &error));
    if (!mountpoint.marked)
        check_skip("a mark", "the file system of /tmp has no extended attributes");
    else if (CHECK(setxattr("new", "user.wfs.made", "1", 1, 0) == 0)) { /* by another wfs, that replaces ours */
        mountpoint_release(&mountpoint);
        CHECK_NAMED(access("new", F_OK) == 0, "what another wfs has made its own stays");
        CHECK(mountpoint_prepare(&again, "new", &options, &error) && again.made); /* which was killed */
        mountpoint_release(&again);
    }
    mountpoint_release(&mountpoint);
    CHECK(access("new", F_OK) != 0);
}

static void temporary(void)
{
    struct error error = {""};
    struct mountpoint first, second;
    CHECK(mkdir("parent", 0777) == 0 && mkdir("parent/wfs-exec-killed", 0700) == 0 && mkdir("parent/mine", 0700) == 0);
    CHECK(mountpoint_make_temporary(&first, within("parent"), &error) && first.made);
    CHECK(access("parent/wfs-exec-killed", F_OK) != 0 && access("parent/mine", F_OK) == 0);
    CHECK(mountpoint_make_temporary(&second, within("parent"), &error) && strcmp(first.path, second.path) != 0);
    CHECK_NAMED(access(first.path, F_OK) == 0, "one that is held is not left over");
    mountpoint_release(&first);
    mountpoint_release(&second);
    CHECK(rmdir("parent/mine") == 0 && rmdir("parent") == 0);
    CHECK(!mountpoint_make_temporary(&first, within("none"), &error));
    CHECK(strstr(error.message, "set TMPDIR to another directory") != NULL);
}

static void not_mounted(void)
{
    struct error error = {""};
    CHECK(!mountpoint_clear("empty", DETACH_IDLE, &error));
    CHECK_TEXT(error.message, "empty: no wfs is mounted here");
    CHECK(access("empty", F_OK) == 0);
}

static void obstacles(void)
{
    struct error error = {""};
    CHECK(mountpoint_is_descriptor("/dev/fd/3") && !mountpoint_is_descriptor("/dev/fdx"));
    CHECK(!obstacle_explain("/dev/fd/3", "words", &error));
    CHECK_TEXT(error.message, "/dev/fd/3: cannot mount: words");
    if (geteuid() != 0 || access("/dev/fuse", R_OK | W_OK) != 0) {
        check_skip("an obstacle that is not known", "something that is known is in the way of mounts here");
        return;
    }
    CHECK(!obstacle_explain("empty", "words", &error));
    CHECK_TEXT(error.message, "empty: cannot mount: words");
}

int main(void)
{
    files_begin();
    files_must(getcwd(here, sizeof here) != NULL && mkdir("empty", 0777) == 0, "empty");
    files_write_text("full/file", "");
    files_must(mkdir("full/inner", 0777) == 0, "full/inner");
    files_link("link", "empty");
    files_link("full/link", "../empty");
    files_link("to-new", "new");
    files_link("loop", "loop");
    prepared();
    in_a_loop();
    made();
    temporary();
    not_mounted();
    obstacles();
    files_remove();
    return check_done();
}
