#include "models/card/general.h"

#include "base/buffer.h"
#include "base/text.h"
#include "text/regex.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

typedef utf8proc_int32_t rune;

/* Returns the code point at `text`, which is well-formed UTF-8, and its length in bytes. */
static rune rune_at(const char *text, size_t *ret_length)
{
    rune code_point;
    *ret_length = (size_t)utf8proc_iterate((const utf8proc_uint8_t *)text, -1, &code_point);
    return code_point;
}

static void append_rune(struct buffer *out, rune code_point)
{
    utf8proc_uint8_t bytes[4];
    buffer_append(out, bytes, (size_t)utf8proc_encode_char(code_point, bytes));
}

/* Moves the text of a buffer into the arena. */
static char *take_text(struct arena *arena, struct buffer *buffer)
{
    char *text = arena_strndup(arena, (const char *)buffer->bytes, buffer->length);
    buffer_free(buffer);
    return text;
}

static char *valid_text(struct arena *arena, const char *text)
{
    struct buffer valid = {0};
    text_append_valid(text, strlen(text), &valid);
    return take_text(arena, &valid);
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

/* Reports whether Python counts `c` as lower case: a letter, an ordinal, or a symbol with an upper case. */
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

/* The patterns that metadata.py gives re.fullmatch(). Python's \\w is [\p{L}\p{N}_]; with re.IGNORECASE, its i also
 * matches the dotted capital and the dotless letter. Quantifiers are possessive: the next never needs their text. */
enum name_rule {
    IS_VERSION,
    IS_QUANTIZATION,
    IS_NUMBER,
    IS_SIZE,
    IS_FINETUNE,
    IS_ADAPTER,
    KEEPS_CASE,
    HAS_DIGIT,
    IS_LETTERS,
    BEGINS_WITH_LETTER,
    RULES,
};

#define ANY_I "[i\u0130\u0131]"

static const struct {
    const char *pattern;
    uint32_t options;
} rule_texts[RULES] = {
    [IS_VERSION] = {"(?:v|" ANY_I "ter)?\\d++(?:[.]\\d++)*+", PCRE2_CASELESS},
    [IS_QUANTIZATION] = {ANY_I "?q\\d(?:_[\\p{L}\\p{N}_])*+|b?fp?(?:16|32)", PCRE2_CASELESS},
    [IS_NUMBER] = {"(?<number>(?:a|\\d++x)?\\d++(?:[._]\\d++)?)(?<unit>[kmbt])(?<more>\\d?)", PCRE2_CASELESS},
    [IS_SIZE] = {"small|m" ANY_I "n" ANY_I "|med" ANY_I "um|large|x?xl", PCRE2_CASELESS},
    [IS_FINETUNE] = {"chat|" ANY_I "nstruct|v" ANY_I "s" ANY_I "on|lora", PCRE2_CASELESS},
    [IS_ADAPTER] = {"lora", PCRE2_CASELESS},
    [KEEPS_CASE] = {"v\\d++(?:[.]\\d++)*+|\\d.*+", PCRE2_DOTALL},
    [HAS_DIGIT] = {".*?\\d.*+", PCRE2_DOTALL},
    [IS_LETTERS] = {"\\p{L}*+", 0},
    [BEGINS_WITH_LETTER] = {"\\p{L}.*+", PCRE2_DOTALL},
};

enum { NUMBER = 1, UNIT, MORE, GROUPS }; /* of IS_NUMBER */

struct rules {
    pcre2_code *codes[RULES];
    pcre2_match_data *match;
};

static void rules_init(struct rules *rules)
{
    const uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_ANCHORED | PCRE2_ENDANCHORED | PCRE2_NO_AUTO_CAPTURE;
    for (size_t i = 0; i < RULES; i++)
        rules->codes[i] =
            regex_compile(rule_texts[i].pattern, PCRE2_ZERO_TERMINATED, options | rule_texts[i].options, NULL, NULL);
    rules->match = regex_match_data(GROUPS);
}

static void rules_free(struct rules *rules)
{
    for (size_t i = 0; i < RULES; i++)
        pcre2_code_free(rules->codes[i]);
    pcre2_match_data_free(rules->match);
}

static bool holds(const struct rules *rules, enum name_rule rule, const char *text, size_t length)
{
    return regex_match(rules->codes[rule], text, length, 0, 0, rules->match, NULL) >= 0;
}

enum { BASENAME = 1, SIZE_LABEL = 2, FINETUNE = 4, VERSION = 8, QUANTIZATION = 16 };

struct part {
    const char *text;
    unsigned types;
};

static bool part_holds(const struct rules *rules, enum name_rule rule, const struct part *part)
{
    return holds(rules, rule, part->text, strlen(part->text));
}

/* Reads "7" or "1.5"; fails for "8x7". */
static bool read_number(const char *text, double *ret_number)
{
    const char *point = strchr(text, '.');
    if (text[strspn(text, "0123456789.")] != '\0' || (point != NULL && strchr(point + 1, '.') != NULL))
        return false;
    *ret_number = strtod(text, NULL);
    return true;
}

/* Returns the factor of a size's unit; the converter takes an unknown letter for thousandths. */
static double unit_scale(char unit)
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

static bool is_context_length(const char *digits, char unit, int64_t n_parameters)
{
    double number;
    if (n_parameters == 0 || !read_number(digits, &number))
        return false;
    double scale = unit_scale(unit);
    if (n_parameters < 0)
        return number * scale < (double)(-n_parameters / 8);
    int64_t tolerance = n_parameters - n_parameters / 8 - (n_parameters % 8 != 0); /* 7/8 of it, rounded down */
    return (long double)fabs(number * scale - (double)n_parameters) > (long double)tolerance;
}

/* Spells a part that IS_NUMBER matched as labels do, "7b1" as "7.1B", and marks it as a size or a context length. */
static void read_size(const struct rules *rules, struct arena *arena, struct part *part, int64_t n_parameters)
{
    const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(rules->match);
    const char *more = part->text + ends[2 * MORE], *unit = part->text + ends[2 * UNIT];
    char *digits =
        arena_printf(arena, "%.*s%s%s", (int)ends[2 * NUMBER + 1], part->text, *more != '\0' ? "." : "", more);
    bool is_ascii = (unsigned char)*unit < 0x80; /* false for the kelvin sign, which also matches k */
    char upper = is_ascii ? (char)toupper(*unit) : '\0';
    for (char *at = digits; *at != '\0'; at++)
        *at = *at == '_' ? '.' : *at;
    if (is_context_length(digits, upper, n_parameters)) {
        part->types = FINETUNE;
        part->text = arena_printf(arena, "%s%c", digits, is_ascii ? tolower(*unit) : 'k');
        return;
    }
    part->types = SIZE_LABEL;
    part->text = is_ascii ? arena_printf(arena, "%s%c", digits, upper)
                          : arena_printf(arena, "%s%.*s", digits, (int)(more - unit), unit);
}

static void annotate(const struct rules *rules, struct arena *arena, struct part *part, bool first,
                     int64_t n_parameters)
{
    if (part_holds(rules, IS_VERSION, part))
        part->types = VERSION;
    else if (part_holds(rules, IS_QUANTIZATION, part))
        part->types = QUANTIZATION;
    else if (!first && part_holds(rules, IS_NUMBER, part))
        read_size(rules, arena, part, n_parameters);
    else if (!first && part_holds(rules, IS_SIZE, part))
        part->types = SIZE_LABEL;
    else if (!first && n_parameters < 0 && part_holds(rules, IS_ADAPTER, part))
        part->types = QUANTIZATION; /* ignored, like a quantization: the file is an adapter anyway */
    else if (!first && part_holds(rules, IS_FINETUNE, part))
        part->types = FINETUNE;
}

/* Drops the size label of words ("small") if a number gives the size. */
static void drop_words_beside_numbers(const struct rules *rules, struct part *parts, size_t n_parts)
{
    bool numbers = false;
    for (size_t i = 0; i < n_parts; i++)
        numbers |= (parts[i].types & SIZE_LABEL) != 0 && part_holds(rules, HAS_DIGIT, &parts[i]);
    for (size_t i = 0; numbers && i < n_parts; i++)
        if ((parts[i].types & SIZE_LABEL) != 0 && part_holds(rules, IS_LETTERS, &parts[i]))
            parts[i].types &= ~(unsigned)SIZE_LABEL;
}

/* Marks the basename: the parts before the first one with another type, without versions at their end. Later parts
 * without a type are the finetune. */
static void find_basename(const struct rules *rules, struct part *parts, size_t n_parts)
{
    bool at_start = true;
    for (size_t i = 0; i < n_parts; i++) {
        unsigned types = parts[i].types;
        at_start =
            at_start && ((types == 0 && part_holds(rules, BEGINS_WITH_LETTER, &parts[i])) || (types & VERSION) != 0);
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

/* Joins the parts of type `type`, but not `but_not`, with "-", a repeated size only once; NULL: there are none. */
static const char *join(struct arena *arena, const struct part *parts, size_t n_parts, unsigned type, unsigned but_not)
{
    struct buffer out = {0};
    for (size_t i = 0; i < n_parts; i++) {
        bool wanted = (parts[i].types & type) != 0 && (parts[i].types & but_not) == 0;
        for (size_t j = 0; type == SIZE_LABEL && j < i; j++)
            wanted = wanted && !((parts[j].types & type) != 0 && strcmp(parts[i].text, parts[j].text) == 0);
        if (!wanted)
            continue;
        if (out.length != 0)
            buffer_append_text(&out, "-");
        buffer_append_text(&out, parts[i].text);
    }
    return out.length == 0 ? NULL : take_text(arena, &out);
}

struct name_parts name_parts_read(struct arena *arena, const char *id, int64_t n_parameters)
{
    struct name_parts read = {.full_name = valid_text(arena, id)};
    if (strchr(id, ' ') != NULL)
        return read;
    const char *slash = strchr(read.full_name, '/');
    if (slash != NULL) {
        if (read.full_name[0] != '.')
            read.organization = arena_strndup(arena, read.full_name, (size_t)(slash - read.full_name));
        read.full_name = slash + 1;
    }
    struct part *parts = arena_array(arena, strlen(read.full_name) + 1, sizeof *parts);
    size_t n_parts = 0;
    struct rules rules;
    rules_init(&rules);
    char *left = arena_strdup(arena, read.full_name);
    for (char *part; (part = strsep(&left, "-")) != NULL;)
        if (*part != '\0') {
            parts[n_parts] = (struct part){.text = part};
            annotate(&rules, arena, &parts[n_parts], n_parts == 0, n_parameters);
            n_parts++;
        }
    drop_words_beside_numbers(&rules, parts, n_parts);
    find_basename(&rules, parts, n_parts);
    rules_free(&rules);
    read.finetune = join(arena, parts, n_parts, FINETUNE, 0);
    read.version = join(arena, parts, n_parts, VERSION, BASENAME);
    read.size_label = join(arena, parts, n_parts, SIZE_LABEL, 0);
    if (read.finetune != NULL || read.version != NULL || read.size_label != NULL)
        read.basename = join(arena, parts, n_parts, BASENAME, 0);
    return read;
}

static bool in_lower_case(const char *word, size_t length)
{
    bool any = false;
    for (size_t at = 0, n; at < length; at += n) {
        rune c = rune_at(word + at, &n);
        if (is_upper_or_title(c))
            return false;
        any |= is_lower(c);
    }
    return any;
}

static void append_capitalized(struct buffer *out, const char *word, size_t length)
{
    bool inside = false;
    for (size_t at = 0, n; at < length; at += n) {
        rune c = rune_at(word + at, &n);
        if (!inside && c == 0xdf)
            buffer_append_text(out, "Ss");
        else
            append_rune(out, inside ? c : utf8proc_totitle(c));
        inside = is_lower(c);
    }
}

static void append_word(const struct rules *rules, struct buffer *out, const char *word, size_t length)
{
    if (length > 0 && out->length != 0)
        buffer_append_text(out, " ");
    if (!holds(rules, KEEPS_CASE, word, length) && in_lower_case(word, length))
        append_capitalized(out, word, length);
    else
        buffer_append(out, word, length);
}

const char *name_title(struct arena *arena, const char *name)
{
    struct buffer out = {0};
    struct rules rules;
    const char *word = valid_text(arena, name), *at = word;
    rules_init(&rules);
    for (size_t n; *at != '\0'; at += n) {
        rune c = rune_at(at, &n);
        if (c != '-' && !is_space(c))
            continue;
        append_word(&rules, &out, word, (size_t)(at - word));
        word = at + n;
    }
    append_word(&rules, &out, word, (size_t)(at - word));
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
