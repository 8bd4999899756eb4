/* Unit tests in TAP: each check is one line of the plan's output, and main ends with `return check_done();`.
 * A check that fails says where on stderr, which meson shows, and goes on; the program's status tells whether all
 * passed. */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static int check_count, check_failed;

/* A name may be a text of several lines, a result of TAP is one. */
static inline void check_result(bool passed, const char *name)
{
    printf("%sok %d - ", passed ? "" : "not ", ++check_count);
    for (; *name != '\0'; name++)
        putchar(*name == '\n' ? ' ' : *name);
}

static inline bool check_report(bool passed, const char *file, int line, const char *what)
{
    check_result(passed, what);
    putchar('\n');
    if (!passed) {
        check_failed++;
        fprintf(stderr, "%s:%d: %s\n", file, line, what);
    }
    return passed;
}

/* One test of the plan, named by its own text or by `name`. */
#define CHECK(condition)             check_report((condition), __FILE__, __LINE__, #condition)
#define CHECK_NAMED(condition, name) check_report((condition), __FILE__, __LINE__, (name))

/* One test of the plan that cannot be made here, and why. */
static inline void check_skip(const char *name, const char *reason)
{
    check_result(true, name);
    printf(" # SKIP %s\n", reason);
}

/* Two texts that must be equal; shows both where they differ. */
static inline bool check_text_report(const char *actual, const char *expected, const char *file, int line,
                                     const char *name)
{
    bool passed = actual != NULL && expected != NULL && strcmp(actual, expected) == 0;
    check_report(passed, file, line, name);
    if (!passed)
        fprintf(stderr, "  actual:   %s\n  expected: %s\n", actual ? actual : "(null)", expected ? expected : "(null)");
    return passed;
}
#define CHECK_TEXT(actual, expected) check_text_report((actual), (expected), __FILE__, __LINE__, #actual)

static inline int check_done(void)
{
    printf("1..%d\n", check_count);
    return check_failed != 0;
}
