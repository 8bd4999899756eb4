#include "models/relation/pattern.h"

#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Reads a number as Python writes it, without sign or leading zero. Returns its length, 0: none. */
static size_t read_number(const char *text, size_t length, uint64_t *ret_number)
{
    uint64_t number = 0;
    size_t n = 0;
    while (n < length && n < 9 && is_digit(text[n]))
        number = number * 10 + (uint64_t)(text[n++] - '0');
    if (n == 0 || (n > 1 && text[0] == '0'))
        return 0;
    *ret_number = number;
    return n;
}

/* Returns the length of the placeholder at `pattern`; 0: none. */
static size_t placeholder(const char *pattern)
{
    const char *end = *pattern == '{' ? strchr(pattern, '}') : NULL;
    return end != NULL ? (size_t)(end - pattern) + 1 : 0;
}

bool pattern_match(const char *pattern, const char *name, size_t name_length, uint64_t numbers[PATTERN_NUMBERS])
{
    size_t at = 0, length;
    unsigned n_numbers = 0;
    for (unsigned i = 0; i < PATTERN_NUMBERS; i++)
        numbers[i] = UINT64_MAX;
    while (*pattern != '\0') {
        if (pattern[0] == '*' && pattern[1] == '\0')
            return true;
        length = n_numbers < PATTERN_NUMBERS ? placeholder(pattern) : 0;
        if (length > 0) {
            size_t digits = read_number(name + at, name_length - at, &numbers[n_numbers++]);
            if (digits == 0)
                return false;
            at += digits;
            pattern += length;
        } else if (at == name_length || name[at++] != *pattern++) {
            return false;
        }
    }
    return at == name_length;
}

enum { MAX_DIGITS = 20 };

static size_t write_number(char *out, uint64_t number)
{
    char digits[MAX_DIGITS];
    size_t first = sizeof digits;
    do
        digits[--first] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    memcpy(out, digits + first, sizeof digits - first);
    return sizeof digits - first;
}

char *pattern_fill(struct arena *arena, const char *pattern, const uint64_t numbers[PATTERN_NUMBERS],
                   const char *suffix)
{
    char text[256];
    size_t used = 0, length;
    for (unsigned n = 0; *pattern != '\0' && used < sizeof text - MAX_DIGITS;) {
        length = n < PATTERN_NUMBERS ? placeholder(pattern) : 0;
        if (length > 0) {
            used += write_number(text + used, numbers[n++]);
            pattern += length;
        } else {
            text[used++] = *pattern++;
        }
    }
    size_t suffix_length = strlen(suffix);
    char *name = arena_alloc(arena, used + suffix_length + 1);
    memcpy(name, text, used);
    memcpy(name + used, suffix, suffix_length + 1);
    return name;
}

const char *pattern_number_name(const char *pattern, unsigned index, size_t *ret_length)
{
    while (*pattern != '\0') {
        size_t length = placeholder(pattern);
        if (length > 0 && index-- == 0) {
            *ret_length = length - 2;
            return pattern + 1;
        }
        pattern += length > 0 ? length : 1;
    }
    return NULL;
}

unsigned pattern_count(const char *pattern)
{
    unsigned n = 0;
    size_t length;
    while (pattern_number_name(pattern, n, &length) != NULL)
        n++;
    return n;
}

bool pattern_skeleton(const char *name, size_t length, char *out, size_t capacity)
{
    size_t used = 0;
    for (size_t at = 0; at < length;) {
        size_t number = placeholder(name + at);
        if (number == 0)
            while (at + number < length && is_digit(name[at + number]))
                number++;
        if (used + 2 > capacity)
            return false;
        out[used++] = number > 0 ? '#' : name[at];
        at += number > 0 ? number : 1;
    }
    out[used] = '\0';
    return true;
}
