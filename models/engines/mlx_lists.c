#include "models/engines/mlx_families.h"

#include <string.h>

/* Calls `fits` for the words of a list. */
static bool any_word(const char *list, const char *word, bool (*fits)(const char *word, size_t length, const char *of))
{
    while (list != NULL && *(list += strspn(list, " ")) != '\0') {
        size_t length = strcspn(list, " ");
        if (fits(list, length, word))
            return true;
        list += length;
    }
    return false;
}

static bool is_equal(const char *word, size_t length, const char *of)
{
    return strlen(of) == length && memcmp(word, of, length) == 0;
}

static bool is_ending(const char *word, size_t length, const char *of)
{
    size_t of_length = strlen(of);
    return of_length >= length && memcmp(word, of + of_length - length, length) == 0;
}

static bool is_within(const char *word, size_t length, const char *of)
{
    return memmem(of, strlen(of), word, length) != NULL;
}

bool mlx_list_has(const char *list, const char *word)
{
    return any_word(list, word, is_equal);
}

bool mlx_list_ends(const char *list, const char *word)
{
    return any_word(list, word, is_ending);
}

bool mlx_list_within(const char *list, const char *word)
{
    return any_word(list, word, is_within);
}
