/* Sorting of indices against the C library, of sequences that are in order, in runs and in none; equal ones stay in
 * their order. */
#include "base/sort.h"
#include "tests/unit/check.h"

#include <stdlib.h>

enum { MOST = 300 };

static uint64_t state = 5;

static uint32_t below(uint32_t limit)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % limit;
}

static int compare_values(const void *context, uint32_t a, uint32_t b)
{
    const uint32_t *values = context;
    return (values[a] > values[b]) - (values[a] < values[b]);
}

static const uint32_t *compared;

static int compare_stably(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    int order = compare_values(compared, *x, *y);
    return order != 0 ? order : (*x > *y) - (*x < *y);
}

static bool is_sorted_as_expected(const uint32_t *values, size_t n)
{
    uint32_t sorted[MOST + 1], expected[MOST + 1];
    for (uint32_t i = 0; i < n; i++)
        sorted[i] = expected[i] = i;
    sorted[n] = expected[n] = 77;
    sort_indices(sorted, n, compare_values, values);
    compared = values;
    qsort(expected, n, sizeof *expected, compare_stably);
    return memcmp(sorted, expected, (n + 1) * sizeof *sorted) == 0;
}

/* Texts. */

struct text {
    char bytes[40];
    size_t length;
};

static const char *text_of(const void *context, uint32_t index, size_t *ret_length)
{
    const struct text *texts = context;
    *ret_length = texts[index].length;
    return texts[index].bytes;
}

static const struct text *texts_compared;
static uint32_t places[MOST]; /* of each before they are sorted */

static int compare_texts(const void *a, const void *b)
{
    uint32_t first = *(const uint32_t *)a, second = *(const uint32_t *)b;
    const struct text *x = &texts_compared[first], *y = &texts_compared[second];
    size_t n = x->length < y->length ? x->length : y->length;
    int order = memcmp(x->bytes, y->bytes, n);
    if (order == 0)
        order = (x->length > y->length) - (x->length < y->length);
    return order != 0 ? order : (places[first] > places[second]) - (places[first] < places[second]);
}

/* Texts of a few letters, NUL and 0xFF among them, that begin as the one before does, and end anywhere. */
static void make_texts(struct text *texts, size_t n, uint32_t n_letters)
{
    static const char letters[] = {'b', '\0', 'a', '\xff', '.', '7'};
    for (size_t i = 0; i < n; i++) {
        struct text *text = &texts[i];
        size_t kept = i > 0 ? below((uint32_t)texts[i - 1].length + 1) : 0;
        text->length = kept + below(i % 3 == 0 ? 30 : 4);
        text->length = text->length < sizeof text->bytes ? text->length : sizeof text->bytes;
        if (kept > 0)
            memcpy(text->bytes, texts[i - 1].bytes, kept);
        for (size_t j = kept; j < text->length; j++)
            text->bytes[j] = letters[below(n_letters)];
    }
}

static bool texts_are_sorted(size_t n, uint32_t n_letters)
{
    struct text texts[MOST];
    uint32_t sorted[MOST + 1], expected[MOST + 1];
    make_texts(texts, n, n_letters);
    for (uint32_t i = 0; i < n; i++)
        places[sorted[i] = expected[i] = (uint32_t)n - 1 - i] = i;
    sorted[n] = expected[n] = 77;
    sort_texts(sorted, n, text_of, texts);
    texts_compared = texts;
    qsort(expected, n, sizeof *expected, compare_texts);
    return memcmp(sorted, expected, (n + 1) * sizeof *sorted) == 0;
}

int main(void)
{
    static const uint32_t lengths[] = {1, 2, 3, 7, 40, MOST};
    bool good = true;
    for (size_t n = 0; n <= MOST && good; n++)
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths && good; i++) {
            uint32_t values[MOST + 1], value = 0;
            for (size_t j = 0; j < n; j++)
                values[j] = value = j % lengths[i] == 0 ? below(50) : value + below(3);
            good = is_sorted_as_expected(values, n);
        }
    CHECK(good);
    for (size_t n = 0; n <= MOST && good; n++)
        for (uint32_t n_letters = 1; n_letters <= 6 && good; n_letters++)
            good = texts_are_sorted(n, n_letters);
    CHECK(good);
    return check_done();
}
