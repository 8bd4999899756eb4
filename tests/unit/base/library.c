/* A library that every system has, one that none has, and a function that the library does not have. */
#include "base/library.h"

#include "tests/unit/check.h"

int main(void)
{
#ifndef __GLIBC__
    check_skip("libm.so.6", "the C library is another one");
    return check_done();
#endif
    double (*cosine)(double) = NULL;
    void *other = NULL;
    const struct library_function functions[] = {{"cos", (void **)&cosine}, {"no_such_function", &other}};
    struct error error;
    CHECK(library_load("libm.so.6", "this test needs libc6", functions, 1, &error) && cosine != NULL);
    CHECK(cosine != NULL && cosine(0) == 1);
    CHECK(!library_load("libm.so.6", "this test needs libc6", functions, 2, &error));
    CHECK(strncmp(error.message, "this test needs libc6: ", strlen("this test needs libc6: ")) == 0);
    CHECK(strstr(error.message, "no_such_function") != NULL);
    CHECK(!library_load("libno-such.so.1", "this test needs libno-such1", functions, 1, &error));
    CHECK(strstr(error.message, "libno-such.so.1: cannot open shared object file") != NULL);
    return check_done();
}
