#include "models/card/name_parts.h"

#include "base/buffer.h"
#include "base/text.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <math.h>
#include <pcre2.h>
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

/* Python's re.fullmatch(), with re.IGNORECASE where it is not said otherwise. Its \\w is [\p{L}\p{N}_], and its i,
 * where case does not count, also the dotted capital and the dotless letter. Possessive, since nothing that one has
 * taken may be what the next needs. */
enum rule { IS_VERSION, IS_QUANTIZATION, IS_NUMBER, IS_SIZE, IS_FINETUNE, IS_ADAPTER, KEEPS_CASE, RULES };

#define ANY_I "[i\u0130\u0131]"

static const struct {
    const char *pattern;
    uint32_t options;
} rule_texts[RULES] = {
    [IS_VERSION] = {"(?:v|" ANY_I "ter)?\\d++(?:[.]\\d++)*+", PCRE2_CASELESS},
    [IS_QUANTIZATION] = {ANY_I "?q\\d(?:_[\\p{L}\\p{N}_])*+|b?fp?(?:16|32)", PCRE2_CASELESS},
    [IS_NUMBER] = {"(?:a|\\d++x)?\\d++(?:[._]\\d++)?[kmbt]\\d?", PCRE2_CASELESS},
    [IS_SIZE] = {"small|m" ANY_I "n" ANY_I "|med" ANY_I "um|large|x?xl", PCRE2_CASELESS},
    [IS_FINETUNE] = {"chat|" ANY_I "nstruct|v" ANY_I "s" ANY_I "on|lora", PCRE2_CASELESS},
    [IS_ADAPTER] = {"lora", PCRE2_CASELESS},
    [KEEPS_CASE] = {"v\\d++(?:[.]\\d++)*+|\\d.*+", PCRE2_DOTALL},
};

struct rules {
    pcre2_code *codes[RULES];
    pcre2_match_data *match;
};

static void rules_init(struct rules *rules)
{
    const uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_ANCHORED | PCRE2_ENDANCHORED | PCRE2_NO_AUTO_CAPTURE;
    int code;
    size_t place;
    for (size_t i = 0; i < RULES; i++)
        rules->codes[i] = pcre2_compile((PCRE2_SPTR)rule_texts[i].pattern, PCRE2_ZERO_TERMINATED,
                                        options | rule_texts[i].options, &code, &place, NULL);
    rules->match = pcre2_match_data_create(1, NULL);
}

static void rules_free(struct rules *rules)
{
    for (size_t i = 0; i < RULES; i++)
        pcre2_code_free(rules->codes[i]);
    pcre2_match_data_free(rules->match);
}

static bool holds(const struct rules *rules, enum rule rule, struct runes text)
{
    struct buffer bytes = {0};
    append_runes(&bytes, text.at, text.length);
    int result = pcre2_match(rules->codes[rule], bytes.bytes, bytes.length, 0, 0, rules->match, NULL);
    buffer_free(&bytes);
    return result >= 0;
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

/* The converter takes other letters for thousandths. */
static double unit_scale(rune unit)
{
    switch (unit) {
    case 'K':
        return 1e3;
    case 'M':
        return 1e6;
    case 'B':
        return 1e9;
    case 'T':
        return 1e12;
    default:
        return 1e-3;
    }
}

static bool is_context_length(struct runes text, int64_t n_parameters)
{
    double number;
    if (n_parameters == 0 || !read_number((struct runes){text.at, text.length - 1}, &number))
        return false;
    double scale = unit_scale(text.at[text.length - 1]);
    if (n_parameters < 0)
        return number * scale < (double)(-n_parameters / 8);
    int64_t tolerance = n_parameters - n_parameters / 8 - (n_parameters % 8 != 0); /* 7/8 of it, rounded down */
    return (long double)fabs(number * scale - (double)n_parameters) > (long double)tolerance;
}

/* Spells a size as labels do, "7b1" as "7.1B", and tells it from a context length. */
static void read_size(struct arena *arena, struct part *part, int64_t n_parameters)
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

static void annotate(const struct rules *rules, struct arena *arena, struct part *part, bool first,
                     int64_t n_parameters)
{
    if (holds(rules, IS_VERSION, part->text))
        part->types = VERSION;
    else if (holds(rules, IS_QUANTIZATION, part->text))
        part->types = QUANTIZATION;
    else if (!first && (holds(rules, IS_NUMBER, part->text) || holds(rules, IS_SIZE, part->text)))
        read_size(arena, part, n_parameters);
    else if (!first && n_parameters < 0 && holds(rules, IS_ADAPTER, part->text))
        part->types = QUANTIZATION; /* says no more than what the file is */
    else if (!first && holds(rules, IS_FINETUNE, part->text))
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

/* The basename is what the name begins with, up to the first part that is something else; versions at its end are not
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

struct name_parts name_parts_read(struct arena *arena, const char *id, int64_t n_parameters)
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
    struct rules rules;
    rules_init(&rules);
    for (size_t i = 0; i < n_parts; i++)
        annotate(&rules, arena, &parts[i], i == 0, n_parameters);
    rules_free(&rules);
    drop_words_beside_numbers(parts, n_parts);
    find_basename(parts, n_parts);
    read.finetune = join(arena, parts, n_parts, FINETUNE, 0);
    read.version = join(arena, parts, n_parts, VERSION, BASENAME);
    read.size_label = join(arena, parts, n_parts, SIZE_LABEL, 0);
    if (read.finetune != NULL || read.version != NULL || read.size_label != NULL)
        read.basename = join(arena, parts, n_parts, BASENAME, 0);
    return read;
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
    struct rules rules;
    rules_init(&rules);
    for (size_t start = 0, at = 0; at <= all.length; at++) {
        if (at < all.length && !is_space(all.at[at]) && all.at[at] != '-')
            continue;
        struct runes word = {all.at + start, at - start};
        start = at + 1;
        if (word.length == 0)
            continue;
        if (out.length != 0)
            buffer_append_text(&out, " ");
        if (!holds(&rules, KEEPS_CASE, word) && in_lower_case(word))
            append_capitalized(&out, word);
        else
            append_runes(&out, word.at, word.length);
    }
    rules_free(&rules);
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
    int decimals = (rounded < 10) + (rounded < 1);
    if (n_experts == 0)
        return arena_printf(arena, "%.*f%c", decimals, scaled, units[i].suffix);
    return arena_printf(arena, "%llux%.*f%c", (unsigned long long)n_experts, decimals, scaled, units[i].suffix);
}
