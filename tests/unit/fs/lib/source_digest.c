/* Stamps and digests of sources: equal for the same source, whatever its order, folder and time, and not for another.
 */
#include "fs/lib/source_digest.h"

#include "sources/paths.h"
#include "tests/unit/check.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LARGE = DIGEST_WHOLE + (1 << 20) };

/* Writes a sparse file with one byte that is not zero, and opens it. */
static struct source *make(const char *path, off_t size, off_t place, time_t mtime)
{
    struct error error;
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    const struct timespec times[2] = {{mtime, 0}, {mtime, 0}};
    bool made = fd >= 0 && ftruncate(fd, size) == 0 && pwrite(fd, "x", 1, place) == 1 && futimens(fd, times) == 0;
    close(fd);
    return made ? local_open_file(path, strrchr(path, '/') + 1, &error) : NULL;
}

static bool is_equal(void (*hash)(struct source *const *, size_t, char *), struct source *a, struct source *b)
{
    char first[SHA256_HEX + 1], second[SHA256_HEX + 1];
    hash(&a, 1, first);
    hash(&b, 1, second);
    return strcmp(first, second) == 0;
}

static void stamp(struct source *const *sources, size_t n, char *hex)
{
    source_stamp(sources, n, hex);
}

static void digest(struct source *const *sources, size_t n, char *hex)
{
    source_digest(sources, n, hex);
}

int main(void)
{
    char folder[] = "/tmp/wfs-digest-XXXXXX";
    CHECK(mkdtemp(folder) != NULL && chdir(folder) == 0);
    CHECK(mkdir("a", 0700) == 0 && mkdir("b", 0700) == 0 && mkdir("c", 0700) == 0 && mkdir("d", 0700) == 0);
    struct source *small[] = {make("./a/small", 5000, 4000, 1), make("./b/small", 5000, 4000, 2),
                              make("./c/small", 5000, 4001, 1), make("./d/small", 5001, 4000, 1)};
    CHECK(is_equal(digest, small[0], small[1]) && !is_equal(stamp, small[0], small[1]));
    CHECK(!is_equal(digest, small[0], small[2]) && !is_equal(digest, small[0], small[3]));
    CHECK(is_equal(stamp, small[0], small[0]));

    struct source *large[] = {make("./a/large", LARGE, 7, 1), make("./b/large", LARGE, 7, 2),
                              make("./c/large", LARGE, LARGE - 1, 1)};
    CHECK(is_equal(digest, large[0], large[1]));
    CHECK(!is_equal(digest, large[0], large[2]));
    CHECK(!is_equal(digest, large[0], small[0]));

    char hex[3][SHA256_HEX + 1];
    source_digest((struct source *[]){small[0], large[0]}, 2, hex[0]);
    source_digest((struct source *[]){large[0], small[0]}, 2, hex[1]);
    source_digest((struct source *[]){large[0], small[2]}, 2, hex[2]);
    CHECK_TEXT(hex[0], hex[1]);
    CHECK(strcmp(hex[0], hex[2]) != 0);
    source_digest(NULL, 0, hex[0]);
    CHECK(strlen(hex[0]) == SHA256_HEX);
    for (size_t i = 0; i < 4; i++)
        source_close(small[i]);
    for (size_t i = 0; i < 3; i++)
        source_close(large[i]);
    static const char *const names[] = {"a/small", "b/small", "c/small", "d/small", "a/large", "b/large", "c/large"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlink(names[i]);
    for (const char *name = "abcd"; *name != '\0'; name++)
        rmdir((char[]){*name, '\0'});
    rmdir(folder);
    return check_done();
}
