#include "models/tensors.h"

#include <inttypes.h>
#include <stdio.h>

/* A number as Python writes it: no sign, no leading zero. */
static size_t read_number(const char *text, size_t length, uint64_t *ret_number)
{
    uint64_t number = 0;
    size_t n = 0;
    while (n < length && n < 9 && text[n] >= '0' && text[n] <= '9')
        number = number * 10 + (uint64_t)(text[n++] - '0');
    if (n == 0 || (n > 1 && text[0] == '0'))
        return 0;
    *ret_number = number;
    return n;
}

bool pattern_match(const char *pattern, const char *name, size_t name_length, uint64_t numbers[2])
{
    size_t at = 0;
    unsigned n_numbers = 0;
    numbers[0] = numbers[1] = UINT64_MAX;
    for (; *pattern != '\0'; pattern++) {
        if (pattern[0] == '*' && pattern[1] == '\0')
            return true;
        if (pattern[0] == '{' && pattern[1] == '}' && n_numbers < 2) {
            size_t digits = read_number(name + at, name_length - at, &numbers[n_numbers++]);
            if (digits == 0)
                return false;
            at += digits;
            pattern++;
        } else if (at == name_length || name[at++] != *pattern) {
            return false;
        }
    }
    return at == name_length;
}

char *pattern_fill(struct arena *arena, const char *pattern, const uint64_t numbers[2], const char *suffix)
{
    char text[256];
    size_t used = 0;
    for (unsigned n = 0; *pattern != '\0' && used < sizeof text - 24; pattern++) {
        if (pattern[0] == '{' && pattern[1] == '}' && n < 2) {
            used += (size_t)snprintf(text + used, sizeof text - used, "%" PRIu64, numbers[n++]);
            pattern++;
        } else {
            text[used++] = *pattern;
        }
    }
    return arena_printf(arena, "%.*s%s", (int)used, text, suffix);
}
