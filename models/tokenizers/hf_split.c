#include "models/tokenizers/hf_encode.h"

#include "base/sort.h"
#include "base/text.h"
#include "models/tokenizers/byte_alphabet.h"
#include "text/regex.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

enum {
    MAX_DEPTH = 8,
    MAX_TEXT = 16384,       /* after each step; the text to encode has some hundred bytes */
    SEGMENT_WORK = 16,      /* steps for one more segment */
    FIRST_MATCH_LIMIT = 64, /* PCRE2's own steps, for a match that may need more */
};

static bool add_segment(struct segments *segments, const struct segment *segment, struct error *error)
{
    if (segment->length == 0 && !segment->is_token)
        return true;
    if (!work_spend(segments->work, SEGMENT_WORK, error))
        return false;
    segments->items = arena_grow(segments->arena, segments->items, segments->count, sizeof *segments->items);
    segments->items[segments->count++] = *segment;
    return true;
}

static bool add_text(struct segments *segments, const char *text, size_t length, struct error *error)
{
    return add_segment(segments, &(struct segment){.text = text, .length = length}, error);
}

/* Added tokens. */

static bool is_space(const char *text, size_t length)
{
    utf8proc_int32_t code_point = 0;
    if (text_character(text, length) == 0)
        return false;
    utf8proc_iterate((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)(length < 4 ? length : 4), &code_point);
    utf8proc_category_t category = utf8proc_category(code_point);
    return (code_point >= 9 && code_point <= 13) || code_point == 0x85 || category == UTF8PROC_CATEGORY_ZS ||
           category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP;
}

/* Returns the length in bytes of the space at the end of a text; 0: none. */
static size_t space_at_end(const char *text, size_t length)
{
    size_t taken = 1;
    while (taken < length && ((unsigned char)text[length - taken] & 0xc0) == 0x80)
        taken++;
    return length > 0 && is_space(text + length - taken, taken) ? taken : 0;
}

/* The added tokens to find before, or after, normalizing, sorted by their texts. */
struct token_order {
    const struct added_token **tokens;
    size_t count;
};

static int compare_tokens(const void *a, const void *b)
{
    const struct added_token *x = *(const struct added_token *const *)a, *y = *(const struct added_token *const *)b;
    return text_compare(x->text, x->length, y->text, y->length);
}

static struct token_order order_tokens(const struct hf_vocabulary *vocabulary, bool normalized)
{
    struct token_order order = {arena_array(vocabulary->arena, vocabulary->n_added, sizeof *order.tokens), 0};
    for (size_t i = 0; i < vocabulary->n_added; i++)
        if (vocabulary->added[i].normalized == normalized)
            order.tokens[order.count++] = &vocabulary->added[i];
    qsort(order.tokens, order.count, sizeof *order.tokens, compare_tokens);
    return order;
}

struct wanted_byte {
    const struct added_token *const *tokens;
    size_t depth;
    unsigned byte;
};

static bool byte_is_less(const void *context, size_t index)
{
    const struct wanted_byte *wanted = context;
    return (unsigned char)wanted->tokens[index]->text[wanted->depth] < wanted->byte;
}

/* Returns the first of the tokens from `low` to `high`, which share their first `depth` bytes, whose next byte is not
 * less than `byte`. */
static size_t first_not_less(const struct token_order *order, size_t low, size_t high, size_t depth, unsigned byte)
{
    const struct wanted_byte wanted = {order->tokens + low, depth, byte};
    return low + search_first(high - low, byte_is_less, &wanted);
}

/* Returns the longest added token at the start of the text, or NULL. Each byte of the text narrows the range of tokens.
 */
static const struct added_token *token_at(const struct token_order *order, const char *text, size_t length,
                                          size_t *ret_depth)
{
    const struct added_token *longest = NULL;
    size_t low = 0, high = order->count, depth = 0;
    while (low < high) {
        if (order->tokens[low]->length == depth)
            longest = order->tokens[low++];
        if (depth == length)
            break;
        unsigned byte = (unsigned char)text[depth];
        low = first_not_less(order, low, high, depth, byte);
        high = first_not_less(order, low, high, depth, byte + 1);
        depth++;
    }
    *ret_depth = depth;
    return longest;
}

/* Cuts a text at added tokens. */
static bool cut_tokens(const struct token_order *order, const char *text, size_t length, struct segments *out,
                       struct error *error)
{
    size_t start = 0, depth;
    for (size_t at = 0; at < length;) {
        const struct added_token *token = token_at(order, text + at, length - at, &depth);
        if (!work_spend(out->work, depth + 1, error))
            return false;
        if (token == NULL) {
            at++;
            continue;
        }
        size_t end = at + token->length, before = at, space;
        while (token->left_strip && (space = space_at_end(text + start, before - start)) > 0)
            before -= space;
        while (token->right_strip && end < length && is_space(text + end, length - end))
            end += text_character(text + end, length - end);
        if (!add_text(out, text + start, before - start, error) ||
            !add_segment(out, &(struct segment){.is_token = true, .id = token->id}, error))
            return false;
        start = at = end;
    }
    return add_text(out, text + start, length - start, error);
}

/* Normalizers. */

/* A text between normalizers. */
struct normalizing {
    struct arena *arena;
    struct work *work;
    const char *text;
    size_t length;
};

/* Spends work for a text of that length; called before the text is built. */
static bool may_make(struct normalizing *normalizing, size_t length, struct error *error)
{
    if (length > MAX_TEXT) {
        work_exceed(normalizing->work);
        return error_set(error, "a normalizer makes the text longer than %d bytes", MAX_TEXT);
    }
    return work_spend(normalizing->work, length + 1, error);
}

/* Takes the text that utf8proc made, or sets an error. */
static bool take_mapped(struct normalizing *normalizing, utf8proc_uint8_t *mapped, utf8proc_ssize_t length,
                        struct error *error)
{
    bool made = length >= 0 ? may_make(normalizing, (size_t)length, error)
                            : error_set(error, "a normalizer fails: %s", utf8proc_errmsg(length));
    if (made) {
        normalizing->text = arena_copy(normalizing->arena, mapped, (size_t)length);
        normalizing->length = (size_t)length;
    }
    free(mapped);
    return made;
}

/* Spends work for runs of combining marks: putting a run in order takes the square of its length. */
static bool spend_on_marks(struct normalizing *normalizing, struct error *error)
{
    return work_spend(normalizing->work, normalizing->length * (normalizing->length / 1024), error);
}

static bool map_unicode(struct normalizing *normalizing, utf8proc_option_t options, struct error *error)
{
    utf8proc_uint8_t *mapped = NULL;
    if (!spend_on_marks(normalizing, error))
        return false;
    utf8proc_ssize_t length = utf8proc_map((const utf8proc_uint8_t *)normalizing->text,
                                           (utf8proc_ssize_t)normalizing->length, &mapped, options);
    return take_mapped(normalizing, mapped, length, error);
}

static utf8proc_int32_t lower(utf8proc_int32_t code_point, void *context)
{
    return utf8proc_tolower(code_point);
}

static bool lowercase(struct normalizing *normalizing, struct error *error)
{
    utf8proc_uint8_t *mapped = NULL;
    if (!spend_on_marks(normalizing, error))
        return false;
    utf8proc_ssize_t length =
        utf8proc_map_custom((const utf8proc_uint8_t *)normalizing->text, (utf8proc_ssize_t)normalizing->length, &mapped,
                            UTF8PROC_STABLE, lower, NULL);
    return take_mapped(normalizing, mapped, length, error);
}

/* BertNormalizer: removes control characters, sets CJK characters apart, removes accents, lowers case; a setting turns
 * off each step. */
static bool normalize_bert(struct normalizing *normalizing, const struct json *settings, struct error *error)
{
    bool low = json_bool(json_get(settings, "lowercase"), true);
    bool strip = json_bool(json_get(settings, "strip_accents"), low);
    bool cleans = json_bool(json_get(settings, "clean_text"), true);
    bool parts = json_bool(json_get(settings, "handle_chinese_chars"), true);
    const char *text = normalizing->text;
    size_t length = normalizing->length;
    char *clean = arena_alloc(normalizing->arena, length * 3 + 1), *to = clean;
    for (size_t at = 0; at < length;) {
        utf8proc_int32_t code_point;
        size_t taken = text_character(text + at, length - at);
        utf8proc_iterate((const utf8proc_uint8_t *)text + at, (utf8proc_ssize_t)(length - at), &code_point);
        utf8proc_category_t category = utf8proc_category(code_point);
        bool space = cleans && is_space(text + at, length - at);
        bool control = cleans && !space &&
                       (category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF || code_point == 0xfffd);
        bool cjk = (code_point >= 0x4e00 && code_point <= 0x9fff) || (code_point >= 0x3400 && code_point <= 0x4dbf) ||
                   (code_point >= 0xf900 && code_point <= 0xfaff) || (code_point >= 0x20000 && code_point <= 0x2fa1f);
        if (space) {
            *to++ = ' ';
        } else if (!control) {
            if (parts && cjk)
                *to++ = ' ';
            memcpy(to, text + at, taken);
            to += taken;
            if (parts && cjk)
                *to++ = ' ';
        }
        at += taken;
    }
    normalizing->text = clean;
    normalizing->length = (size_t)(to - clean);
    if (!may_make(normalizing, normalizing->length, error))
        return false;
    if (strip && !map_unicode(normalizing, UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_STRIPMARK, error))
        return false;
    return !low || lowercase(normalizing, error);
}

/* Replaces every occurrence of a text; memmem takes linear time for any text. */
static bool replace_all(struct normalizing *normalizing, const struct json *settings, struct error *error)
{
    size_t pattern_length, content_length, count = 0;
    const char *pattern = json_string(json_get(json_get(settings, "pattern"), "String"), &pattern_length);
    const char *content = json_string(json_get(settings, "content"), &content_length);
    const char *from = normalizing->text, *end = from + normalizing->length, *found;
    if (pattern == NULL || pattern_length == 0 || content == NULL)
        return error_set(error, "a normalizer replaces in an unsupported way");
    if (content_length > MAX_TEXT)
        return may_make(normalizing, content_length, error);
    for (const char *at = from; (found = memmem(at, (size_t)(end - at), pattern, pattern_length)) != NULL; count++)
        at = found + pattern_length;
    size_t length = normalizing->length + count * content_length - count * pattern_length;
    if (!may_make(normalizing, length, error) || !work_spend(normalizing->work, normalizing->length, error))
        return false;
    char *replaced = arena_alloc(normalizing->arena, length + 1), *to = replaced;
    while ((found = memmem(from, (size_t)(end - from), pattern, pattern_length)) != NULL) {
        memcpy(to, from, (size_t)(found - from));
        to += found - from;
        memcpy(to, content, content_length);
        to += content_length;
        from = found + pattern_length;
    }
    memcpy(to, from, (size_t)(end - from));
    normalizing->text = replaced;
    normalizing->length = length;
    return true;
}

static bool prepend(struct normalizing *normalizing, const struct json *settings, struct error *error)
{
    size_t added;
    const char *front = json_string(json_get(settings, "prepend"), &added);
    if (front == NULL || normalizing->length == 0)
        return true;
    if (!may_make(normalizing, normalizing->length + added, error))
        return false;
    char *joined = arena_alloc(normalizing->arena, normalizing->length + added + 1);
    memcpy(joined, front, added);
    memcpy(joined + added, normalizing->text, normalizing->length);
    normalizing->text = joined;
    normalizing->length += added;
    return true;
}

static bool strip(struct normalizing *normalizing, const struct json *settings)
{
    const char **text = &normalizing->text;
    size_t *length = &normalizing->length, space;
    while (json_bool(json_get(settings, "strip_left"), true) && *length > 0 && is_space(*text, *length)) {
        size_t taken = text_character(*text, *length);
        *text += taken;
        *length -= taken;
    }
    while (json_bool(json_get(settings, "strip_right"), true) && (space = space_at_end(*text, *length)) > 0)
        *length -= space;
    return true;
}

static bool normalize(struct normalizing *normalizing, const struct json *normalizer, int depth, struct error *error)
{
    static const struct {
        const char *type;
        int options;
    } forms[] = {
        {"NFC", UTF8PROC_STABLE | UTF8PROC_COMPOSE},
        {"NFD", UTF8PROC_STABLE | UTF8PROC_DECOMPOSE},
        {"NFKC", UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT},
        {"NFKD", UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT},
        {"StripAccents", UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_STRIPMARK},
    };
    const struct json *type = json_get(normalizer, "type");
    if (normalizer == NULL || json_is(normalizer, JSON_NULL))
        return true;
    if (!work_spend(normalizing->work, 1, error))
        return false;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (json_string_is(type, forms[i].type))
            return map_unicode(normalizing, (utf8proc_option_t)forms[i].options, error);
    if (json_string_is(type, "Lowercase"))
        return lowercase(normalizing, error);
    if (json_string_is(type, "BertNormalizer"))
        return normalize_bert(normalizing, normalizer, error);
    if (json_string_is(type, "Replace"))
        return replace_all(normalizing, normalizer, error);
    if (json_string_is(type, "Prepend"))
        return prepend(normalizing, normalizer, error);
    if (json_string_is(type, "Strip"))
        return strip(normalizing, normalizer);
    if (!json_string_is(type, "Sequence") || depth == MAX_DEPTH)
        return error_set(error, "unknown normalizer '%s'", json_string(type, NULL) ? json_string(type, NULL) : "");
    for (const struct json *each = json_first(json_get(normalizer, "normalizers")); each != NULL;
         each = json_next(each))
        if (!normalize(normalizing, each, depth + 1, error))
            return false;
    return true;
}

/* Pre-tokenizers: each cuts every segment that is not a token. */

enum behavior { REMOVED, ISOLATED, MERGED_WITH_PREVIOUS, MERGED_WITH_NEXT, CONTIGUOUS };

struct cut {
    pcre2_code *pattern;
    pcre2_match_data *match;
    pcre2_match_context *limits;
    enum behavior behavior;
    bool invert; /* keep the matches */
};

/* Stretches of one segment, matches and the text between them, before they become segments. */
struct cutter {
    const struct cut *cut;
    struct segments *out;
    const char *pending; /* a stretch that may join the next one */
    size_t pending_length;
    bool pending_match;
};

static bool flush(struct cutter *cutter, struct error *error)
{
    size_t length = cutter->pending_length;
    cutter->pending_length = 0;
    return add_text(cutter->out, cutter->pending, length, error);
}

static bool emit_stretch(struct cutter *cutter, const char *text, size_t length, bool match, struct error *error)
{
    enum behavior behavior = cutter->cut->behavior;
    if (length == 0)
        return true;
    match ^= cutter->cut->invert;
    bool joins = (behavior == CONTIGUOUS && match == cutter->pending_match) ||
                 (behavior == MERGED_WITH_PREVIOUS && match && !cutter->pending_match) ||
                 (behavior == MERGED_WITH_NEXT && !match && cutter->pending_match);
    if (cutter->pending_length != 0 && joins) {
        cutter->pending_length += length;
        cutter->pending_match = match;
        return true;
    }
    if (!flush(cutter, error))
        return false;
    if (behavior == REMOVED && match)
        return true;
    cutter->pending = text;
    cutter->pending_length = length;
    cutter->pending_match = match;
    return true;
}

/* Finds one match within the remaining work. PCRE2 does not report a match's steps, so a match starts with a low limit,
 * four times higher after each failure. A step may look at the rest of the segment. */
static bool match_once(const struct cutter *cutter, const struct segment *segment, size_t from, int *ret_found,
                       struct error *error)
{
    const struct cut *cut = cutter->cut;
    uint32_t limit = FIRST_MATCH_LIMIT;
    do {
        if (!work_spend(cutter->out->work, limit * (segment->length / 256 + 1), error))
            return error_prefix(error, "a pattern of the pre-tokenizer takes too long");
        pcre2_set_match_limit(cut->limits, limit);
        *ret_found = regex_match(cut->pattern, segment->text, segment->length, from, PCRE2_NO_UTF_CHECK, cut->match,
                                 cut->limits);
        limit *= 4;
    } while (*ret_found == PCRE2_ERROR_MATCHLIMIT);
    if (*ret_found >= 0 || *ret_found == PCRE2_ERROR_NOMATCH)
        return true;
    work_exceed(cutter->out->work);
    return error_set(error, "a pattern of the pre-tokenizer takes too much memory");
}

static bool cut_segment(const struct cut *cut, const struct segment *segment, struct segments *out, struct error *error)
{
    struct cutter cutter = {.cut = cut, .out = out};
    size_t done = 0, from = 0;
    while (from <= segment->length) {
        int found;
        if (!match_once(&cutter, segment, from, &found, error))
            return false;
        if (found == PCRE2_ERROR_NOMATCH)
            break;
        const PCRE2_SIZE *range = pcre2_get_ovector_pointer(cut->match);
        if (range[0] < done)
            return error_set(error, "a pattern of the pre-tokenizer looks back before its match");
        if (range[1] <= range[0]) { /* skip one character after an empty match */
            from =
                range[1] +
                (range[1] < segment->length ? text_character(segment->text + range[1], segment->length - range[1]) : 1);
            continue;
        }
        if (!emit_stretch(&cutter, segment->text + done, range[0] - done, false, error) ||
            !emit_stretch(&cutter, segment->text + range[0], range[1] - range[0], true, error))
            return false;
        done = from = range[1];
    }
    return emit_stretch(&cutter, segment->text + done, segment->length - done, false, error) && flush(&cutter, error);
}

/* Cuts all segments by a pattern, a regular expression or a text. */
static bool cut_all(struct segments *segments, const char *pattern, size_t pattern_length, bool is_text,
                    enum behavior behavior, bool invert, struct error *error)
{
    /* NEVER_BACKSLASH_C: matches end at whole characters */
    uint32_t options = PCRE2_UTF | (is_text ? PCRE2_LITERAL : PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C);
    struct cut cut = {.behavior = behavior, .invert = invert};
    cut.pattern = regex_compile(pattern, pattern_length, options, NULL, NULL);
    if (cut.pattern == NULL)
        return error_set(error, "invalid pattern in the pre-tokenizer: %.200s", pattern);
    cut.match = regex_match_data(1);
    cut.limits = regex_match_context();
    struct segments out = {.arena = segments->arena, .work = segments->work};
    bool done = true;
    for (size_t i = 0; i < segments->count && done; i++)
        if (segments->items[i].is_token)
            done = add_segment(&out, &segments->items[i], error);
        else
            done = cut_segment(&cut, &segments->items[i], &out, error);
    pcre2_match_context_free(cut.limits);
    pcre2_match_data_free(cut.match);
    pcre2_code_free(cut.pattern);
    *segments = out;
    return done;
}

static bool cut_by(struct segments *segments, const char *pattern, enum behavior behavior, bool invert,
                   struct error *error)
{
    return cut_all(segments, pattern, strlen(pattern), false, behavior, invert, error);
}

static bool read_behavior(const struct json *value, enum behavior *ret_behavior)
{
    static const char *const names[] = {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (json_string_is(value, names[i])) {
            *ret_behavior = (enum behavior)i;
            return true;
        }
    return false;
}

static bool pre_split(struct segments *segments, const struct json *settings, struct error *error)
{
    const struct json *pattern = json_get(settings, "pattern");
    size_t length;
    const char *text = json_string(json_get(pattern, "String"), &length);
    bool is_text = text != NULL;
    enum behavior behavior;
    if (!is_text)
        text = json_string(json_get(pattern, "Regex"), &length);
    if (text == NULL || !read_behavior(json_get(settings, "behavior"), &behavior))
        return error_set(error, "a Split of the pre-tokenizer has no pattern or behavior");
    return cut_all(segments, text, length, is_text, behavior, json_bool(json_get(settings, "invert"), false), error);
}

static bool pre_byte_level(const struct hf_vocabulary *vocabulary, struct segments *segments,
                           const struct json *settings, bool alone, struct error *error)
{
    static const char pattern[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
    bool prefix = json_bool(json_get(settings, "add_prefix_space"), true);
    if (alone) /* transformers replaces a ByteLevel that stands alone */
        prefix = json_bool(json_get(vocabulary->files->config, "add_prefix_space"), false);
    for (size_t i = 0; i < segments->count && prefix; i++) {
        struct segment *segment = &segments->items[i];
        if (segment->is_token || is_space(segment->text, segment->length))
            continue;
        if (!work_spend(segments->work, segment->length + 1, error))
            return false;
        char *spaced = arena_alloc(segments->arena, segment->length + 2);
        spaced[0] = ' ';
        memcpy(spaced + 1, segment->text, segment->length);
        segment->text = spaced;
        segment->length++;
    }
    if (json_bool(json_get(settings, "use_regex"), true) && !cut_by(segments, pattern, ISOLATED, false, error))
        return false;
    for (size_t i = 0; i < segments->count; i++) {
        struct segment *segment = &segments->items[i];
        if (segment->is_token)
            continue;
        if (!work_spend(segments->work, 2 * segment->length + 1, error))
            return false;
        char *mapped = arena_alloc(segments->arena, 2 * segment->length + 1), *to = mapped;
        for (size_t j = 0; j < segment->length; j++)
            to += byte_character((unsigned char)segment->text[j], to);
        segment->text = mapped;
        segment->length = (size_t)(to - mapped);
    }
    return true;
}

/* The punctuation of tokenizers: ASCII's, symbols included, and Unicode's. */
#define PUNCTUATION "[!-/:-@\\[-`{-~\\p{P}]"

static bool pre_tokenize(const struct hf_vocabulary *vocabulary, const struct json *settings, int depth,
                         struct segments *segments, struct error *error)
{
    const struct json *type = json_get(settings, "type");
    enum behavior behavior = ISOLATED;
    if (settings == NULL || json_is(settings, JSON_NULL))
        return true;
    if (!work_spend(segments->work, segments->count + 1, error))
        return false;
    if (json_string_is(type, "Split"))
        return pre_split(segments, settings, error);
    if (json_string_is(type, "ByteLevel"))
        return pre_byte_level(vocabulary, segments, settings, depth == 0, error);
    if (json_string_is(type, "Digits"))
        return cut_by(segments, json_bool(json_get(settings, "individual_digits"), false) ? "\\p{N}" : "\\p{N}+",
                      ISOLATED, false, error);
    if (json_string_is(type, "Punctuation")) {
        read_behavior(json_get(settings, "behavior"), &behavior);
        return cut_by(segments, PUNCTUATION, behavior, false, error);
    }
    if (json_string_is(type, "Whitespace"))
        return cut_by(segments, "\\w+|[^\\w\\s]+", REMOVED, true, error);
    if (json_string_is(type, "WhitespaceSplit"))
        return cut_by(segments, "\\s", REMOVED, false, error);
    if (json_string_is(type, "BertPreTokenizer"))
        return cut_by(segments, "\\s", REMOVED, false, error) && cut_by(segments, PUNCTUATION, ISOLATED, false, error);
    if (!json_string_is(type, "Sequence") || depth == MAX_DEPTH)
        return error_set(error, "unknown pre-tokenizer '%s'", json_string(type, NULL) ? json_string(type, NULL) : "");
    for (const struct json *each = json_first(json_get(settings, "pretokenizers")); each != NULL;
         each = json_next(each))
        if (!pre_tokenize(vocabulary, each, depth + 1, segments, error))
            return false;
    return true;
}

/* Runs GPT-2's pre-tokenizer, for tokenizers without tokenizer.json. */
static bool plain_byte_level(const struct hf_vocabulary *vocabulary, struct segments *segments, struct error *error)
{
    return pre_byte_level(vocabulary, segments, NULL, true, error);
}

/* Normalizes the text between the added tokens found first, and cuts it at those to find in normalized text. */
static bool normalize_all(const struct hf_vocabulary *vocabulary, const struct segments *raw, struct segments *out,
                          struct error *error)
{
    const struct json *normalizer = json_get(vocabulary->steps, "normalizer");
    struct token_order normalized = order_tokens(vocabulary, true);
    for (size_t i = 0; i < raw->count; i++) {
        const struct segment *segment = &raw->items[i];
        struct normalizing normalizing = {out->arena, out->work, segment->text, segment->length};
        if (segment->is_token) {
            if (!add_segment(out, segment, error))
                return false;
        } else if (!normalize(&normalizing, normalizer, 0, error) ||
                   !cut_tokens(&normalized, normalizing.text, normalizing.length, out, error)) {
            return false;
        }
    }
    return true;
}

bool hf_split(const struct hf_vocabulary *vocabulary, const char *text, size_t length, struct segments *segments,
              struct error *error)
{
    struct segments raw = {.arena = segments->arena, .work = segments->work};
    struct token_order as_written = order_tokens(vocabulary, false);
    if (!cut_tokens(&as_written, text, length, &raw, error) || !normalize_all(vocabulary, &raw, segments, error))
        return false;
    if (vocabulary->steps == NULL)
        return plain_byte_level(vocabulary, segments, error);
    return pre_tokenize(vocabulary, json_get(vocabulary->steps, "pre_tokenizer"), 0, segments, error);
}
