/* Texts and their numbers: found by all of their bytes, the first number stays. */
#include "base/text_index.h"

#include "tests/unit/check.h"

int main(void)
{
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
