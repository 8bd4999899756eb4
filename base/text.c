#include "base/text.h"

#include "base/arena.h"
#include "base/buffer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <utf8proc.h>

size_t text_character(const char *text, size_t length)
{
    utf8proc_int32_t code_point;
    utf8proc_ssize_t taken =
        utf8proc_iterate((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)(length < 4 ? length : 4), &code_point);
    return taken > 0 ? (size_t)taken : 0;
}

size_t text_valid_prefix(const char *text, size_t length)
{
    size_t at = 0;
    while (at < length) {
        unsigned long long word;
        if (length - at >= sizeof word && (memcpy(&word, text + at, sizeof word), (word & 0x8080808080808080) == 0)) {
            at += sizeof word;
            continue;
        }
        size_t taken = text_character(text + at, length - at);
        if (taken == 0)
            return at;
        at += taken;
    }
    return length;
}

/* Reports whether some character begins with these 1 to 3 bytes: tries the least and the greatest continuation. */
static bool begins_character(const char *text, size_t length)
{
    char least[4] = {(char)0x80, (char)0x80, (char)0x80, (char)0x80}, largest[4];
    memset(largest, 0xbf, sizeof largest);
    memcpy(least, text, length);
    memcpy(largest, text, length);
    return text_character(least, sizeof least) > length || text_character(largest, sizeof largest) > length;
}

void text_append_valid(const char *text, size_t length, struct buffer *out)
{
    for (size_t at = 0; at < length;) {
        size_t taken = text_valid_prefix(text + at, length - at);
        buffer_append(out, text + at, taken);
        at += taken;
        if (at == length)
            return;
        size_t n = length - at < 3 ? length - at : 3;
        while (n > 1 && !begins_character(text + at, n))
            n--;
        buffer_append_text(out, "\xef\xbf\xbd");
        at += n;
    }
}

/* Reports controls (C0 and C1), line and paragraph separators, and characters that change the direction of writing:
 * U+202A-U+202E, U+2066-U+2069, U+200E, U+200F, U+061C. */
static bool commands_a_terminal(const char *text, size_t length)
{
    utf8proc_int32_t code_point;
    utf8proc_iterate((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)length, &code_point);
    utf8proc_category_t category = utf8proc_category(code_point);
    return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP ||
           (code_point >= 0x202a && code_point <= 0x202e) || (code_point >= 0x2066 && code_point <= 0x2069) ||
           code_point == 0x200e || code_point == 0x200f || code_point == 0x61c;
}

enum { SHOWN_BYTES = 4 }; /* an escaped byte, or the longest character */

/* Writes the next piece: a character, or its first byte escaped. Returns how many bytes of the text the piece stands
 * for. */
static size_t show(const char *text, size_t length, char out[SHOWN_BYTES + 1], size_t *ret_length)
{
    size_t taken = text_character(text, length);
    if (taken != 0 && !commands_a_terminal(text, taken)) {
        memcpy(out, text, taken);
        *ret_length = taken;
        return taken;
    }
    *ret_length = (size_t)snprintf(out, SHOWN_BYTES + 1, "\\x%02x", (unsigned char)*text);
    return 1;
}

void text_printable(const char *text, size_t length, char *out, size_t capacity)
{
    size_t used = 0;
    for (size_t at = 0; at < length;) {
        char shown[SHOWN_BYTES + 1];
        size_t shown_length, taken = show(text + at, length - at, shown, &shown_length);
        if (used + shown_length + 1 > capacity)
            break;
        memcpy(out + used, shown, shown_length);
        used += shown_length;
        at += taken;
    }
    out[used] = '\0';
}

void text_put_n(const char *text, size_t length, FILE *out)
{
    for (size_t at = 0; at < length;) {
        char shown[SHOWN_BYTES + 1];
        size_t shown_length;
        at += show(text + at, length - at, shown, &shown_length);
        fwrite(shown, 1, shown_length, out);
    }
}

void text_put(const char *text, FILE *out)
{
    text_put_n(text, strlen(text), out);
}

enum { LONGEST_GUESS = 40 };

static size_t smallest(size_t a, size_t b, size_t c)
{
    size_t least = a < b ? a : b;
    return least < c ? least : c;
}

/* The costs of changing a letter, of adding or dropping a letter, and of adding or dropping a mark between words. */
struct costs {
    size_t change, letter, mark;
};

static size_t cost_of(char c, const struct costs *costs)
{
    return c == '-' || c == '_' ? costs->mark : costs->letter;
}

/* Returns the least cost of turning one text into another, each of at most LONGEST_GUESS bytes; '-' equals '_', and
 * case does not count. */
static size_t distance_of(const char *a, const char *b, const struct costs *costs)
{
    size_t row[LONGEST_GUESS + 1], length = strlen(b);
    row[0] = 0;
    for (size_t j = 1; j <= length; j++)
        row[j] = row[j - 1] + cost_of(b[j - 1], costs);
    for (size_t i = 1; a[i - 1] != '\0'; i++) {
        size_t diagonal = row[0], dropped = cost_of(a[i - 1], costs);
        row[0] += dropped;
        for (size_t j = 1; j <= length; j++) {
            char from = a[i - 1] == '-' ? '_' : a[i - 1], to = b[j - 1] == '-' ? '_' : b[j - 1];
            bool same = strncasecmp(&from, &to, 1) == 0;
            size_t changed = diagonal + (same ? 0 : costs->change);
            diagonal = row[j];
            row[j] = smallest(row[j] + dropped, row[j - 1] + cost_of(b[j - 1], costs), changed);
        }
    }
    return row[length];
}

void text_guess_try(struct text_guess *guess, const char *word)
{
    static const struct costs letters = {1, 1, 0}, likeness = {4, 2, 1};
    size_t length = strlen(guess->typed);
    if (length > LONGEST_GUESS || strlen(word) > LONGEST_GUESS)
        return;
    size_t n_changes = distance_of(guess->typed, word, &letters);
    if (n_changes > (length + 2) / 3 || (n_changes > 0 && n_changes == length))
        return;
    size_t distance = distance_of(guess->typed, word, &likeness);
    if (guess->best != NULL && distance >= guess->distance)
        return;
    guess->best = word;
    guess->distance = distance;
}

const char *text_guess_question(const struct text_guess *guess, char out[TEXT_QUESTION])
{
    *out = '\0';
    if (guess->best != NULL)
        snprintf(out, TEXT_QUESTION, "; did you mean '%s'?", guess->best);
    return out;
}

size_t text_columns(const char *text)
{
    size_t columns = 0;
    for (size_t at = 0, length = strlen(text); at < length;) {
        utf8proc_int32_t code_point = 0;
        size_t taken = text_character(text + at, length - at);
        if (taken != 0)
            utf8proc_iterate((const utf8proc_uint8_t *)text + at, (utf8proc_ssize_t)taken, &code_point);
        columns += taken != 0 ? (size_t)utf8proc_charwidth(code_point) : 1;
        at += taken != 0 ? taken : 1;
    }
    return columns;
}

int text_compare(const char *a, size_t a_length, const char *b, size_t b_length)
{
    int order = memcmp(a, b, a_length < b_length ? a_length : b_length);
    return order != 0 ? order : (a_length > b_length) - (a_length < b_length);
}

int text_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    char letter = (char)(c | 0x20);
    return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

bool text_starts_with(const char *text, const char *beginning)
{
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

bool text_ends_with(const char *text, const char *ending)
{
    size_t length = strlen(text), ending_length = strlen(ending);
    return length >= ending_length && memcmp(text + length - ending_length, ending, ending_length) == 0;
}

bool text_is_one_of(const char *text, const char *const *texts, size_t n_texts)
{
    for (size_t i = 0; i < n_texts; i++)
        if (*texts[i] == *text && strcmp(texts[i], text) == 0) /* most calls are spared */
            return true;
    return false;
}

const char *text_last(const char *text, size_t length, char byte)
{
    while (length > 0 && text[length - 1] != byte)
        length--;
    return length > 0 ? text + length - 1 : NULL;
}

const char *text_last_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

const char *text_trimmed_name(struct arena *arena, const char *path)
{
    return text_last_name(arena_strndup(arena, path, text_trimmed_length(path)));
}

size_t text_trimmed_length(const char *path)
{
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    return length;
}

const char *shape_text(const uint64_t *shape, unsigned rank, char *out, size_t capacity)
{
    size_t used = (size_t)snprintf(out, capacity, "[");
    for (unsigned i = 0; i < rank && used < capacity; i++)
        used += (size_t)snprintf(out + used, capacity - used, "%s%" PRIu64, i ? ", " : "", shape[i]);
    if (used < capacity)
        snprintf(out + used, capacity - used, "]");
    return out;
}

bool text_has_word(const char *list, const char *word, size_t length)
{
    for (list += strspn(list, " "); *list != '\0'; list += strspn(list, " ")) {
        size_t n = strcspn(list, " ");
        if (n == length && strncmp(list, word, length) == 0)
            return true;
        list += n;
    }
    return false;
}
