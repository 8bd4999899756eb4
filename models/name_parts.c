#include "models/name_parts.h"

#include "base/buffer.h"
#include "base/text.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

typedef utf8proc_int32_t rune;

struct runes {
    rune *at;
    size_t length;
};

/* Code points of a text; an invalid byte is U+FFFD. */
static struct runes decode(struct arena *arena, const char *text)
{
    size_t n_bytes = strlen(text);
    struct runes runes = {arena_array(arena, n_bytes + 1, sizeof(rune)), 0};
    for (size_t at = 0; at < n_bytes;) {
        rune *next = &runes.at[runes.length++];
        utf8proc_ssize_t taken =
            utf8proc_iterate((const utf8proc_uint8_t *)text + at, (utf8proc_ssize_t)(n_bytes - at), next);
        if (taken <= 0)
            *next = 0xfffd;
        at += taken > 0 ? (size_t)taken : 1;
    }
    return runes;
}

static void append_runes(struct buffer *out, const rune *runes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        utf8proc_uint8_t bytes[4];
        buffer_append(out, bytes, (size_t)utf8proc_encode_char(runes[i], bytes));
    }
}

/* The text of a buffer, moved into the arena. */
static char *take_text(struct arena *arena, struct buffer *buffer)
{
    char *text = arena_strndup(arena, (const char *)buffer->bytes, buffer->length);
    buffer_free(buffer);
    return text;
}

static bool is_digit(rune c)
{
    return utf8proc_category(c) == UTF8PROC_CATEGORY_ND;
}

static bool is_letter(rune c)
{
    utf8proc_category_t category = utf8proc_category(c);
    return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

static bool is_word(rune c)
{
    utf8proc_category_t category = utf8proc_category(c);
    return c == '_' || is_letter(c) || (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO);
}

static bool is_space(rune c)
{
    return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0x2028 || c == 0x2029 ||
           utf8proc_category(c) == UTF8PROC_CATEGORY_ZS;
}

/* Beyond the letters of the cased categories: numerals and circled letters, which come in two cases, and ordinals. */
static bool is_lower(rune c)
{
    return utf8proc_category(c) == UTF8PROC_CATEGORY_LL || (!is_letter(c) && utf8proc_toupper(c) != c) || c == 0xaa ||
           c == 0xba;
}

static bool is_upper_or_title(rune c)
{
    utf8proc_category_t category = utf8proc_category(c);
    return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LT ||
           (!is_letter(c) && utf8proc_tolower(c) != c);
}

/* Lower case as the reference's case-blind matching has it: dotted, dotless and long letters match plain ones. */
static rune fold(rune c)
{
    switch (c) {
    case 0x131:
        return 'i';
    case 0x17f:
        return 's';
    default:
        return utf8proc_tolower(c);
    }
}

/* What is left to match of a part of a name. */
struct cursor {
    const rune *at, *end;
};

static bool skip_any_of(struct cursor *cursor, const char *characters)
{
    if (cursor->at == cursor->end)
        return false;
    rune c = fold(*cursor->at);
    if (c <= 0 || c > 0x7f || strchr(characters, (char)c) == NULL)
        return false;
    cursor->at++;
    return true;
}

static bool skip_text(struct cursor *cursor, const char *text)
{
    struct cursor ahead = *cursor;
    for (; *text != 0; text++) {
        const char one[] = {*text, 0};
        if (!skip_any_of(&ahead, one))
            return false;
    }
    *cursor = ahead;
    return true;
}

static size_t skip_digits(struct cursor *cursor)
{
    const rune *start = cursor->at;
    while (cursor->at < cursor->end && is_digit(*cursor->at))
        cursor->at++;
    return (size_t)(cursor->at - start);
}

/* All of the part is one of the words, which end with NULL. */
static bool is_one_of(struct cursor part, const char *const *words)
{
    for (; *words != NULL; words++) {
        struct cursor rest = part;
        if (skip_text(&rest, *words) && rest.at == rest.end)
            return true;
    }
    return false;
}

/* (v|iter)?\d+([.]\d+)* */
static bool is_version(struct cursor part)
{
    if (!skip_text(&part, "v"))
        skip_text(&part, "iter");
    do {
        if (skip_digits(&part) == 0)
            return false;
    } while (skip_text(&part, "."));
    return part.at == part.end;
}

/* i?q\d(_\w)*|b?fp?(16|32) */
static bool is_quantization(struct cursor part)
{
    static const char *const floats[] = {"f16", "f32", "fp16", "fp32", "bf16", "bf32", "bfp16", "bfp32", NULL};
    if (is_one_of(part, floats))
        return true;
    skip_text(&part, "i");
    if (!skip_text(&part, "q") || part.at == part.end || !is_digit(*part.at))
        return false;
    part.at++;
    while (part.end - part.at >= 2 && part.at[0] == '_' && is_word(part.at[1]))
        part.at += 2;
    return part.at == part.end;
}

/* ([A]|\d+[x])?\d+([._]\d+)?[KMBT][\d]? */
static bool is_number_of_parameters(struct cursor part)
{
    bool active = skip_text(&part, "a");
    if (skip_digits(&part) == 0)
        return false;
    if (!active && skip_text(&part, "x") && skip_digits(&part) == 0)
        return false;
    if (skip_any_of(&part, "._") && skip_digits(&part) == 0)
        return false;
    if (!skip_any_of(&part, "kmbt"))
        return false;
    if (part.at < part.end && is_digit(*part.at))
        part.at++;
    return part.at == part.end;
}

enum { BASENAME = 1, SIZE_LABEL = 2, FINETUNE = 4, VERSION = 8, QUANTIZATION = 16 };

struct part {
    struct runes text;
    unsigned types;
};

/* The number that a size without its last letter is, where it is one: "7" and "1.5", not "8x7". */
static bool read_number(struct runes text, double *ret_number)
{
    char digits[64];
    size_t n_points = 0;
    if (text.length >= sizeof digits)
        return false;
    for (size_t i = 0; i < text.length; i++) {
        n_points += text.at[i] == '.';
        if (text.at[i] != '.' && (text.at[i] < '0' || text.at[i] > '9'))
            return false;
        digits[i] = (char)text.at[i];
    }
    if (n_points > 1)
        return false;
    digits[text.length] = 0;
    *ret_number = strtod(digits, NULL);
    return true;
}

static bool is_context_length(struct runes text, uint64_t n_parameters)
{
    double number;
    if (n_parameters == 0 || !read_number((struct runes){text.at, text.length - 1}, &number))
        return false;
    rune unit = text.at[text.length - 1];
    double scale = unit == 'K' ? 1e3 : unit == 'M' ? 1e6 : unit == 'B' ? 1e9 : unit == 'T' ? 1e12 : 1e-3;
    uint64_t tolerance = n_parameters - n_parameters / 8 - (n_parameters % 8 != 0); /* 7/8 of it, rounded down */
    return (long double)fabs(number * scale - (double)n_parameters) > (long double)tolerance;
}

/* Spells a size as labels do, "7b1" as "7.1B", and tells it from a context length. */
static void read_size(struct arena *arena, struct part *part, uint64_t n_parameters)
{
    size_t length = part->text.length;
    rune *text = arena_array(arena, length + 1, sizeof *text);
    for (size_t i = 0; i < length; i++)
        text[i] = part->text.at[i] == '_' ? '.' : part->text.at[i];
    if (is_digit(text[length - 1])) {
        rune unit = text[length - 2], digit = text[length - 1];
        text[length - 2] = '.';
        text[length - 1] = digit;
        text[length++] = unit;
    }
    rune *last = &text[length - 1];
    if (length > 1 && is_digit(last[-1]) && *last < 0x80)
        *last = utf8proc_toupper(*last);
    part->text = (struct runes){text, length};
    if (is_context_length(part->text, n_parameters)) {
        part->types = FINETUNE;
        *last = utf8proc_tolower(*last);
    } else {
        part->types = SIZE_LABEL;
    }
}

static void annotate(struct arena *arena, struct part *part, bool first, uint64_t n_parameters)
{
    static const char *const sizes[] = {"small", "mini", "medium", "large", "xl", "xxl", NULL};
    static const char *const finetunes[] = {"chat", "instruct", "vision", "lora", NULL};
    struct cursor all = {part->text.at, part->text.at + part->text.length};
    if (is_version(all))
        part->types = VERSION;
    else if (is_quantization(all))
        part->types = QUANTIZATION;
    else if (!first && (is_number_of_parameters(all) || is_one_of(all, sizes)))
        read_size(arena, part, n_parameters);
    else if (!first && is_one_of(all, finetunes))
        part->types = FINETUNE;
}

static bool has_digit(const struct part *part)
{
    for (size_t i = 0; i < part->text.length; i++)
        if (is_digit(part->text.at[i]))
            return true;
    return false;
}

static bool all_letters(const struct part *part)
{
    for (size_t i = 0; i < part->text.length; i++)
        if (!is_letter(part->text.at[i]))
            return false;
    return true;
}

/* "small" is not a size where a number says it. */
static void drop_words_beside_numbers(struct part *parts, size_t n_parts)
{
    bool numbers = false;
    for (size_t i = 0; i < n_parts; i++)
        numbers |= (parts[i].types & SIZE_LABEL) != 0 && has_digit(&parts[i]);
    for (size_t i = 0; numbers && i < n_parts; i++)
        if ((parts[i].types & SIZE_LABEL) != 0 && all_letters(&parts[i]))
            parts[i].types &= ~(unsigned)SIZE_LABEL;
}

/* The basename is what the name begins with, up to the first part that is something else; versions at its end are no
 * part of it. What is left unexplained after it is the finetune. */
static void find_basename(struct part *parts, size_t n_parts)
{
    bool at_start = true;
    for (size_t i = 0; i < n_parts; i++) {
        unsigned types = parts[i].types;
        at_start = at_start && ((types == 0 && is_letter(parts[i].text.at[0])) || (types & VERSION) != 0);
        if (at_start)
            parts[i].types |= BASENAME;
        else if (types == 0)
            parts[i].types = FINETUNE;
    }
    for (size_t i = n_parts; i-- > 0;) {
        if ((parts[i].types & BASENAME) == 0 || parts[i].types == BASENAME)
            break;
        parts[i].types &= ~(unsigned)BASENAME;
    }
}

static bool same_text(const struct part *a, const struct part *b)
{
    return a->text.length == b->text.length && memcmp(a->text.at, b->text.at, a->text.length * sizeof(rune)) == 0;
}

/* The parts of one type and not of another, joined with "-", a size named twice only once; NULL where there are none.
 */
static const char *join(struct arena *arena, const struct part *parts, size_t n_parts, unsigned type, unsigned but_not)
{
    struct buffer out = {0};
    for (size_t i = 0; i < n_parts; i++) {
        bool wanted = (parts[i].types & type) != 0 && (parts[i].types & but_not) == 0;
        for (size_t j = 0; type == SIZE_LABEL && j < i; j++)
            wanted = wanted && !((parts[j].types & type) != 0 && same_text(&parts[i], &parts[j]));
        if (!wanted)
            continue;
        if (out.length != 0)
            buffer_append_text(&out, "-");
        append_runes(&out, parts[i].text.at, parts[i].text.length);
    }
    return out.length == 0 ? NULL : take_text(arena, &out);
}

/* Cuts at every "-", leaving out what is empty. */
static size_t split(struct runes name, struct part *parts)
{
    size_t n_parts = 0;
    for (size_t start = 0, at = 0; at <= name.length; at++) {
        if (at < name.length && name.at[at] != '-')
            continue;
        if (at > start)
            parts[n_parts++] = (struct part){.text = {name.at + start, at - start}};
        start = at + 1;
    }
    return n_parts;
}

struct name_parts name_parts_read(struct arena *arena, const char *id, uint64_t n_parameters)
{
    struct runes all = decode(arena, id);
    struct buffer clean = {0};
    append_runes(&clean, all.at, all.length);
    struct name_parts read = {.full_name = take_text(arena, &clean)};
    if (strchr(id, ' ') != NULL)
        return read;
    const char *slash = strchr(read.full_name, '/');
    if (slash != NULL) {
        if (read.full_name[0] != '.')
            read.organization = arena_strndup(arena, read.full_name, (size_t)(slash - read.full_name));
        read.full_name = slash + 1;
        while (*all.at++ != '/')
            all.length--;
        all.length--;
    }
    struct part *parts = arena_array(arena, all.length + 1, sizeof *parts);
    size_t n_parts = split(all, parts);
    for (size_t i = 0; i < n_parts; i++)
        annotate(arena, &parts[i], i == 0, n_parameters);
    drop_words_beside_numbers(parts, n_parts);
    find_basename(parts, n_parts);
    read.finetune = join(arena, parts, n_parts, FINETUNE, 0);
    read.version = join(arena, parts, n_parts, VERSION, BASENAME);
    read.size_label = join(arena, parts, n_parts, SIZE_LABEL, 0);
    if (read.finetune != NULL || read.version != NULL || read.size_label != NULL)
        read.basename = join(arena, parts, n_parts, BASENAME, 0);
    return read;
}

/* v\d+(\.\d+)* or anything that begins with a digit; case counts. */
static bool keeps_case(struct runes word)
{
    return is_digit(word.at[0]) || (word.at[0] == 'v' && is_version((struct cursor){word.at, word.at + word.length}));
}

static bool in_lower_case(struct runes word)
{
    bool any = false;
    for (size_t i = 0; i < word.length; i++) {
        if (is_upper_or_title(word.at[i]))
            return false;
        any |= is_lower(word.at[i]);
    }
    return any;
}

static void append_capitalized(struct buffer *out, struct runes word)
{
    bool inside = false;
    for (size_t i = 0; i < word.length; i++) {
        rune c = word.at[i], title = utf8proc_totitle(c);
        if (inside)
            append_runes(out, &c, 1);
        else if (c == 0xdf)
            buffer_append_text(out, "Ss");
        else
            append_runes(out, &title, 1);
        inside = is_lower(c);
    }
}

const char *name_title(struct arena *arena, const char *name)
{
    struct runes all = decode(arena, name);
    struct buffer out = {0};
    for (size_t start = 0, at = 0; at <= all.length; at++) {
        if (at < all.length && !is_space(all.at[at]) && all.at[at] != '-')
            continue;
        struct runes word = {all.at + start, at - start};
        start = at + 1;
        if (word.length == 0)
            continue;
        if (out.length != 0)
            buffer_append_text(&out, " ");
        if (!keeps_case(word) && in_lower_case(word))
            append_capitalized(&out, word);
        else
            append_runes(&out, word.at, word.length);
    }
    return take_text(arena, &out);
}

const char *size_label(struct arena *arena, const struct parameter_count *count)
{
    uint64_t n_experts = count->expert_tensors == 0 ? 0 : count->expert_sum / count->expert_tensors;
    double n = n_experts == 0 ? (double)count->total : (double)(count->shared + count->expert);
    static const struct {
        double above, scale;
        char suffix;
    } units[] = {{1e12, 1e-12, 'T'}, {1e9, 1e-9, 'B'}, {1e6, 1e-6, 'M'}, {-1, 1e-3, 'K'}};
    size_t i = 0;
    while (n <= units[i].above)
        i++;
    double scaled = n * units[i].scale, rounded = nearbyint(scaled);
    int decimals = rounded >= 10 ? 0 : rounded >= 1 ? 1 : 2;
    if (n_experts == 0)
        return arena_printf(arena, "%.*f%c", decimals, scaled, units[i].suffix);
    return arena_printf(arena, "%llux%.*f%c", (unsigned long long)n_experts, decimals, scaled, units[i].suffix);
}
