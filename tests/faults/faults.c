/* Faults of the machine, for programs that load this with LD_PRELOAD; scripts/faults does.
 *
 *     FAULTS_ALLOCATION=N    the Nth allocation fails
 *     FAULTS_ALLOCATIONS=N   the Nth and all later ones fail
 *     FAULTS_LEAST=BYTES     only allocations of so many bytes count
 *     FAULTS_BEGIN=PATH      allocations count from when there is a file of that name
 *     FAULTS_SHORT_READS=1   reads of files return half of what they could
 *     FAULTS_CLOCK=1         the time of day jumps back or ahead by up to a day, at every look
 *     FAULTS_REACHED=PATH    a file that gets a byte when the Nth allocation fails
 *
 * Allocations are calls of malloc, calloc, realloc and aligned_alloc by anybody in the process but the loader, and but
 * libseccomp 2.5, which does not look whether they fail. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#pragma GCC visibility push(default) /* what is below replaces functions of libraries */

/* glibc's own, without which malloc could not be replaced by what calls it. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
ssize_t __read(int file, void *out, size_t size); /* libfuse cancels threads that read */
ssize_t __pread64(int file, void *out, size_t size, off_t offset);

enum { FIRST_NUMBER = 500 }; /* of our descriptor, beyond those of wfs */

/* What is asked for, read at the start: wfs forgets its environment, and may open few paths. */
static long one_allocation, all_allocations, least, short_reads, jumping_clock;
static char begin[PATH_MAX]; /* "": at once */
static int reached = -1;

static long number(const char *name)
{
    const char *text = getenv(name);
    return text != NULL ? strtol(text, NULL, 10) : 0;
}

__attribute__((constructor)) static void read_environment(void)
{
    const char *path = getenv("FAULTS_REACHED");
    one_allocation = number("FAULTS_ALLOCATION");
    all_allocations = number("FAULTS_ALLOCATIONS");
    least = number("FAULTS_LEAST");
    short_reads = number("FAULTS_SHORT_READS");
    jumping_clock = number("FAULTS_CLOCK");
    const char *wanted = getenv("FAULTS_BEGIN");
    if (wanted != NULL && strlen(wanted) < sizeof begin)
        strcpy(begin, wanted);
    int file = path != NULL ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
    if (file < 0)
        return;
    reached = fcntl(file, F_DUPFD_CLOEXEC, FIRST_NUMBER);
    close(file);
}

static void mark_reached(void)
{
    ssize_t unused = reached >= 0 ? write(reached, "!", 1) : 0;
    (void)unused;
}

static bool is_of_libseccomp(const void *caller)
{
    Dl_info info;
    return dladdr(caller, &info) != 0 && strstr(info.dli_fname, "libseccomp") != NULL;
}

static bool has_begun(void)
{
    static atomic_bool begun;
    int before = errno;
    if (!begun && (*begin == '\0' || access(begin, F_OK) == 0))
        begun = true;
    errno = before;
    return begun;
}

/* Reports whether this allocation is to fail. */
static bool fails(const void *caller, size_t size)
{
    static atomic_long n_allocations;
    if (size < (size_t)least || !has_begun())
        return false;
    long n = atomic_fetch_add(&n_allocations, 1) + 1;
    if (n != one_allocation && (all_allocations == 0 || n < all_allocations))
        return false;
    if (n == one_allocation || n == all_allocations)
        mark_reached();
    errno = ENOMEM;
    return !is_of_libseccomp(caller);
}

void *malloc(size_t size)
{
    return fails(__builtin_return_address(0), size) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return fails(__builtin_return_address(0), count * size) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
    return fails(__builtin_return_address(0), size) ? NULL : __libc_realloc(memory, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return fails(__builtin_return_address(0), size) ? NULL : __libc_memalign(alignment, size);
}

static size_t shortened(size_t size)
{
    return size > 1 && short_reads ? size / 2 : size;
}

ssize_t read(int file, void *out, size_t size)
{
    return __read(file, out, shortened(size));
}

ssize_t pread(int file, void *out, size_t size, off_t offset) /* pread64, as everything here is compiled */
{
    return __pread64(file, out, shortened(size), offset);
}

int clock_gettime(clockid_t clock, struct timespec *ret_time)
{
    enum { DAY = 24 * 60 * 60 };
    static atomic_uint n_looks;
    int status = (int)syscall(SYS_clock_gettime, clock, ret_time);
    if (status == 0 && clock == CLOCK_REALTIME && jumping_clock)
        ret_time->tv_sec += (time_t)((atomic_fetch_add(&n_looks, 1) * 2654435761u >> 8) % (2 * DAY)) - DAY;
    return status;
}
