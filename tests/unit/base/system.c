/* What the system does in its own way, on the one that the test runs on. */
#include "base/system.h"

#include "tests/unit/check.h"
#include "tests/unit/files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

static bool is_inherited(int fd)
{
    return (fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0;
}

static void descriptors(void)
{
    int ends[2], found = open("file", system_find_flags | O_CLOEXEC), socket = system_socket(AF_UNIX, SOCK_STREAM, 0);
    char bytes[4] = "", path[PATH_MAX];
    int file = system_reopen(found);
    CHECK(file >= 0 && read(file, bytes, sizeof bytes) == 4 && memcmp(bytes, "text", 4) == 0 && !is_inherited(file));
    CHECK(system_path_of(file, path) && strcmp(strrchr(path, '/'), "/file") == 0);
    CHECK(!system_path_of(-1, path) && system_reopen(-1) < 0);
    CHECK(system_program_path(path) && strstr(path, "unit_base_system") != NULL);
    CHECK(socket >= 0 && !is_inherited(socket));
    CHECK(system_pipe(ends) && !is_inherited(ends[0]) && !is_inherited(ends[1]));
    system_read_ahead(file, 0, 4);
}

/* Not every file system has files without a name. */
static void new_files(void)
{
    struct stat status;
    int fd = system_open_unnamed(".", 0666);
    if (fd < 0) {
        check_skip("a file without a name", "the file system has none");
        return;
    }
    CHECK(!system_link_unnamed(fd, "file") && errno == EEXIST);
    CHECK(system_link_unnamed(fd, "new") && stat("new", &status) == 0);
    if (system_reserve(fd, 1 << 20))
        CHECK(fstat(fd, &status) == 0 && status.st_size == 1 << 20 && status.st_blocks > 0);
    struct timespec modified = system_modified(&status), changed = system_changed(&status);
    CHECK(modified.tv_sec > 0 && changed.tv_sec >= modified.tv_sec);
}

static void conditions(void)
{
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t condition;
    struct timespec soon, before, after;
    system_condition_init(&condition);
    clock_gettime(CLOCK_MONOTONIC, &before);
    soon = (struct timespec){before.tv_sec + (before.tv_nsec >= 900000000), (before.tv_nsec + 100000000) % 1000000000};
    pthread_mutex_lock(&lock);
    int result;
    while ((result = system_wait_until(&condition, &lock, &soon)) == 0)
        ;
    pthread_mutex_unlock(&lock);
    clock_gettime(CLOCK_MONOTONIC, &after);
    CHECK(result == ETIMEDOUT);
    CHECK(after.tv_sec > soon.tv_sec || (after.tv_sec == soon.tv_sec && after.tv_nsec >= soon.tv_nsec));
}

static int compare_by(const void *a, const void *b, void *sign)
{
    return (*(const int *)a - *(const int *)b) * *(int *)sign;
}

static void sorting(void)
{
    int numbers[] = {3, 1, 2}, sign = -1;
    system_sort(numbers, 3, sizeof *numbers, compare_by, &sign);
    CHECK(numbers[0] == 3 && numbers[1] == 2 && numbers[2] == 1);
}

static void count_bytes(void *context, const void *bytes, size_t length)
{
    *(size_t *)context += length;
}

int main(void)
{
    size_t n_bytes = 0;
    files_begin();
    files_write_text("file", "text");
    descriptors();
    new_files();
    conditions();
    sorting();
    system_build_id(count_bytes, &n_bytes);
    CHECK_NAMED(n_bytes >= 16, "an identity of the build");
    files_remove();
    return check_done();
}
