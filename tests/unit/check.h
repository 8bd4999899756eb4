/* Unit tests in TAP: each check is one line of the plan's output, and main ends with `return check_done();`.
 * A check that fails says where and goes on; the program's status tells whether all passed. */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static int check_count, check_failed;

static inline bool check_report(bool passed, const char *file, int line, const char *what)
{
    check_count++;
    if (passed) {
        printf("ok %d - %s\n", check_count, what);
    } else {
        check_failed++;
        printf("not ok %d - %s\n# %s:%d\n", check_count, what, file, line);
    }
    return passed;
}

/* One test of the plan, named by its own text or by `name`. */
#define CHECK(condition)             check_report((condition), __FILE__, __LINE__, #condition)
#define CHECK_NAMED(condition, name) check_report((condition), __FILE__, __LINE__, (name))

/* One test of the plan that cannot be made here, and why. */
static inline void check_skip(const char *name, const char *reason)
{
    printf("ok %d - %s # SKIP %s\n", ++check_count, name, reason);
}

/* Two texts that must be equal; shows both where they differ. */
static inline bool check_text_report(const char *actual, const char *expected, const char *file, int line,
                                     const char *name)
{
    bool passed = actual != NULL && expected != NULL && strcmp(actual, expected) == 0;
    check_report(passed, file, line, name);
    if (!passed)
        printf("# actual:   %s\n# expected: %s\n", actual ? actual : "(null)", expected ? expected : "(null)");
    return passed;
}
#define CHECK_TEXT(actual, expected) check_text_report((actual), (expected), __FILE__, __LINE__, #actual)

static inline int check_done(void)
{
    printf("1..%d\n", check_count);
    return check_failed != 0;
}
