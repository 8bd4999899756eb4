/* A mapping whose file becomes shorter: a copy of what is gone fails, and the process goes on. */
#include "base/guarded.h"

#include "base/process.h"

#include "tests/unit/check.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGES = 4 };

int main(void)
{
    char path[] = "/tmp/wfs-guarded-XXXXXX";
    size_t page = (size_t)sysconf(_SC_PAGESIZE), size = PAGES * page;
    int descriptor = mkstemp(path);
    struct sigaction before, handler;
    sigaction(SIGBUS, NULL, &before);
    unsigned char *bytes = malloc(size), out[64];
    for (size_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)(i * 7 + i / page);
    bool written = CHECK(descriptor >= 0 && write(descriptor, bytes, size) == (ssize_t)size);
    unsigned char *mapping = written ? mmap(NULL, size, PROT_READ, MAP_SHARED, descriptor, 0) : MAP_FAILED;
    if (CHECK(mapping != MAP_FAILED)) {
        CHECK_NAMED(!guarded_copy(out, mapping, 1, 8, page), "no copy without a handler");
        CHECK_NAMED(sigaction(SIGBUS, NULL, &handler) == 0 && handler.sa_handler == before.sa_handler,
                    "and no handler");
        process_allow(PROCESS_SIGBUS);
        for (size_t length = 1; length <= 16; length++) {
            bool same = guarded_copy(out, mapping + 3, 4, length, page);
            for (size_t i = 0; i < 4; i++)
                same &= memcmp(out + i * length, bytes + 3 + i * page, length) == 0;
            CHECK_NAMED(same, "runs in all pages");
        }
        CHECK(guarded_copy(out, mapping, 0, 8, page));
        CHECK(ftruncate(descriptor, (off_t)(2 * page)) == 0);
        CHECK_NAMED(!guarded_copy(out, mapping, 4, 8, page), "pages that are gone");
        CHECK_NAMED(!guarded_copy(out, mapping + 3 * page, 1, 40, 0), "again");
        CHECK_NAMED(guarded_copy(out, mapping, 2, 8, page) && memcmp(out + 8, bytes + page, 8) == 0,
                    "pages that are there");
        munmap(mapping, size);
    }
    close(descriptor);
    unlink(path);
    free(bytes);
    return check_done();
}
