/* Texts and their numbers: found by all of their bytes, the first number stays. */
#include "base/text_index.h"

#include "tests/unit/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* More texts than a first table holds, of all lengths up to that of a block of the hash and more. */
static void check_many(void)
{
    enum { N_TEXTS = 100000, LONGEST = 24 };
    struct text_index index = {0};
    char(*texts)[LONGEST + 1] = calloc(N_TEXTS, sizeof *texts);
    bool added = true, found = true, missing = true;
    for (size_t i = 0; i < N_TEXTS; i++) {
        size_t length = (size_t)sprintf(texts[i], "%0*zu", (int)(i % 20 + 5), i);
        added = added && text_index_add(&index, texts[i], length, i);
    }
    for (size_t i = 0; i < N_TEXTS; i++) {
        size_t number = 0, length = strlen(texts[i]);
        found = found && text_index_find(&index, texts[i], length, &number) && number == i;
        char other[LONGEST + 2];
        snprintf(other, sizeof other, "%.*sx", (int)length - 1, texts[i]);
        missing = missing && !text_index_find(&index, other, length, &number);
    }
    CHECK(added && found && missing);
    text_index_free(&index);
    free(texts);
}

int main(void)
{
    check_many();
    struct text_index index = {0};
    size_t number = 99;
    CHECK(!text_index_find(&index, "a", 1, &number));
    CHECK(text_index_add(&index, "a", 1, 7) && text_index_add(&index, "ab", 2, 8) &&
          text_index_add(&index, "a\0b", 3, 9));
    CHECK(text_index_add(&index, "", 0, 10));
    CHECK(!text_index_add(&index, "ab", 2, 11));
    CHECK(text_index_find(&index, "a", 1, &number) && number == 7);
    CHECK(text_index_find(&index, "ab", 2, &number) && number == 8);
    CHECK(text_index_find(&index, "a\0b", 3, &number) && number == 9);
    CHECK(text_index_find(&index, "", 0, &number) && number == 10);
    CHECK(!text_index_find(&index, "a\0c", 3, &number) && !text_index_find(&index, "b", 1, &number));
    text_index_set(&index, "ab", 2, 12);
    text_index_set(&index, "abc", 3, 13);
    CHECK(text_index_find(&index, "ab", 2, &number) && number == 12);
    CHECK(text_index_find(&index, "abc", 3, &number) && number == 13);
    text_index_free(&index);
    CHECK(!text_index_find(&index, "a", 1, &number));
    return check_done();
}
