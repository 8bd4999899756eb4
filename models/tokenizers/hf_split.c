#define PCRE2_CODE_UNIT_WIDTH 8

#include "models/tokenizers/hf_split.h"

#include "base/text.h"

#include <pcre2.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

enum { MATCH_LIMIT = 1000000, MAX_SEGMENTS = 100000, MAX_DEPTH = 8, MAX_TEXT = 1 << 20 };

static bool add_segment(struct segments *segments, const struct segment *segment)
{
    if (segment->length == 0 && !segment->is_token)
        return true;
    if (segments->count == MAX_SEGMENTS)
        return false;
    if (segments->count == segments->capacity) {
        segments->capacity = segments->capacity * 2 + 64;
        struct segment *larger = arena_array(segments->arena, segments->capacity, sizeof *larger);
        if (segments->count != 0)
            memcpy(larger, segments->items, segments->count * sizeof *larger);
        segments->items = larger;
    }
    segments->items[segments->count++] = *segment;
    return true;
}

static bool add_text(struct segments *segments, const char *text, size_t length)
{
    return add_segment(segments, &(struct segment){.text = text, .length = length});
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

/* The longest added token that stands at the start of the text, or NULL. */
static const struct added_token *token_at(const struct hf_vocabulary *vocabulary, bool normalized, const char *text,
                                          size_t length)
{
    const struct added_token *longest = NULL;
    for (size_t i = 0; i < vocabulary->n_added; i++) {
        const struct added_token *token = &vocabulary->added[i];
        if (token->normalized == normalized && token->length <= length && memcmp(token->text, text, token->length) == 0 &&
            (longest == NULL || token->length > longest->length))
            longest = token;
    }
    return longest;
}

/* Cuts a text at the added tokens that are (or are not) looked for after normalizing. */
static bool cut_tokens(const struct hf_vocabulary *vocabulary, bool normalized, const char *text, size_t length,
                       struct segments *out)
{
    size_t start = 0;
    for (size_t at = 0; at < length;) {
        const struct added_token *token = token_at(vocabulary, normalized, text + at, length - at);
        if (token == NULL) {
            at++;
            continue;
        }
        size_t end = at + token->length, before = at;
        while (token->left_strip && before > start && is_space(text + before - 1, 1))
            before--;
        while (token->right_strip && end < length && is_space(text + end, length - end))
            end += text_character(text + end, length - end);
        if (!add_text(out, text + start, before - start) ||
            !add_segment(out, &(struct segment){.is_token = true, .id = token->id}))
            return false;
        start = at = end;
    }
    return add_text(out, text + start, length - start);
}

/* Normalizers. */

static bool map_unicode(struct arena *arena, utf8proc_option_t options, const char **text, size_t *length, struct error *error)
{
    utf8proc_uint8_t *mapped = NULL;
    utf8proc_ssize_t mapped_length = utf8proc_map((const utf8proc_uint8_t *)*text, (utf8proc_ssize_t)*length, &mapped, options);
    if (mapped_length < 0)
        return error_set(error, "a normalizer fails: %s", utf8proc_errmsg(mapped_length));
    *text = arena_copy(arena, mapped, (size_t)mapped_length);
    *length = (size_t)mapped_length;
    free(mapped);
    return true;
}

static utf8proc_int32_t lower(utf8proc_int32_t code_point, void *context)
{
    (void)context;
    return utf8proc_tolower(code_point);
}

static bool lowercase(struct arena *arena, const char **text, size_t *length, struct error *error)
{
    utf8proc_uint8_t *mapped = NULL;
    utf8proc_ssize_t mapped_length =
        utf8proc_map_custom((const utf8proc_uint8_t *)*text, (utf8proc_ssize_t)*length, &mapped, UTF8PROC_STABLE, lower, NULL);
    if (mapped_length < 0)
        return error_set(error, "a normalizer fails: %s", utf8proc_errmsg(mapped_length));
    *text = arena_copy(arena, mapped, (size_t)mapped_length);
    *length = (size_t)mapped_length;
    free(mapped);
    return true;
}

/* BertNormalizer: control characters out, CJK characters apart, accents off, lower case. */
static bool normalize_bert(struct arena *arena, const struct json *normalizer, const char **text, size_t *length,
                           struct error *error)
{
    bool low = json_bool(json_get(normalizer, "lowercase"), true);
    bool strip = json_bool(json_get(normalizer, "strip_accents"), low);
    char *clean = arena_alloc(arena, *length * 3 + 1), *to = clean;
    for (size_t at = 0; at < *length;) {
        utf8proc_int32_t code_point;
        size_t taken = text_character(*text + at, *length - at);
        utf8proc_iterate((const utf8proc_uint8_t *)*text + at, (utf8proc_ssize_t)(*length - at), &code_point);
        utf8proc_category_t category = utf8proc_category(code_point);
        bool space = is_space(*text + at, *length - at);
        bool control = !space && (category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF || code_point == 0xfffd);
        bool cjk = (code_point >= 0x4e00 && code_point <= 0x9fff) || (code_point >= 0x3400 && code_point <= 0x4dbf) ||
                   (code_point >= 0xf900 && code_point <= 0xfaff) || (code_point >= 0x20000 && code_point <= 0x2fa1f);
        if (space) {
            *to++ = ' ';
        } else if (!control) {
            if (cjk)
                *to++ = ' ';
            memcpy(to, *text + at, taken);
            to += taken;
            if (cjk)
                *to++ = ' ';
        }
        at += taken;
    }
    *text = clean;
    *length = (size_t)(to - clean);
    if (strip && !map_unicode(arena, UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_STRIPMARK, text, length, error))
        return false;
    return !low || lowercase(arena, text, length, error);
}

static bool replace_all(struct arena *arena, const struct json *normalizer, const char **text, size_t *length,
                        struct error *error)
{
    size_t pattern_length, content_length;
    const char *pattern = json_string(json_get(json_get(normalizer, "pattern"), "String"), &pattern_length);
    const char *content = json_string(json_get(normalizer, "content"), &content_length);
    if (pattern == NULL || pattern_length == 0 || content == NULL || content_length > 64)
        return error_set(error, "a normalizer replaces in a way that is not known");
    char *replaced = arena_alloc(arena, *length * (content_length + 1) + 1), *to = replaced;
    for (size_t at = 0; at < *length;) {
        if (*length - at >= pattern_length && memcmp(*text + at, pattern, pattern_length) == 0) {
            memcpy(to, content, content_length);
            to += content_length;
            at += pattern_length;
        } else {
            *to++ = (*text)[at++];
        }
    }
    *text = replaced;
    *length = (size_t)(to - replaced);
    return true;
}

static bool prepend(struct arena *arena, const struct json *normalizer, const char **text, size_t *length)
{
    size_t added;
    const char *front = json_string(json_get(normalizer, "prepend"), &added);
    if (front == NULL || *length == 0)
        return true;
    char *joined = arena_alloc(arena, *length + added + 1);
    memcpy(joined, front, added);
    memcpy(joined + added, *text, *length);
    *text = joined;
    *length += added;
    return true;
}

static void strip(const struct json *normalizer, const char **text, size_t *length)
{
    while (json_bool(json_get(normalizer, "strip_left"), true) && *length > 0 && is_space(*text, *length)) {
        size_t taken = text_character(*text, *length);
        *text += taken;
        *length -= taken;
    }
    while (json_bool(json_get(normalizer, "strip_right"), true) && *length > 0 && is_space(*text + *length - 1, 1))
        --*length;
}

static bool normalize(struct arena *arena, const struct json *normalizer, const char **text, size_t *length, int depth,
                      struct error *error)
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
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (json_string_is(type, forms[i].type))
            return map_unicode(arena, (utf8proc_option_t)forms[i].options, text, length, error);
    if (json_string_is(type, "Lowercase"))
        return lowercase(arena, text, length, error);
    if (json_string_is(type, "BertNormalizer"))
        return normalize_bert(arena, normalizer, text, length, error);
    if (json_string_is(type, "Replace"))
        return replace_all(arena, normalizer, text, length, error);
    if (json_string_is(type, "Prepend"))
        return prepend(arena, normalizer, text, length);
    if (json_string_is(type, "Strip")) {
        strip(normalizer, text, length);
        return true;
    }
    if (!json_string_is(type, "Sequence") || depth == MAX_DEPTH)
        return error_set(error, "the normalizer '%s' is not known", json_string(type, NULL) ? json_string(type, NULL) : "");
    for (const struct json *each = json_first(json_get(normalizer, "normalizers")); each != NULL; each = json_next(each))
        if (!normalize(arena, each, text, length, depth + 1, error))
            return false;
    return *length <= MAX_TEXT || error_set(error, "a normalizer makes the text too long");
}

/* Pre-tokenizers: each cuts every segment that is no token. */

enum behavior { REMOVED, ISOLATED, MERGED_WITH_PREVIOUS, MERGED_WITH_NEXT, CONTIGUOUS };

struct cut {
    pcre2_code *pattern;
    enum behavior behavior;
    bool invert; /* what matches is what is kept */
};

/* Stretches of one segment, matches and what is between them, on their way to segments. */
struct cutter {
    const struct cut *cut;
    struct segments *out;
    const char *pending; /* a stretch that the next may join */
    size_t pending_length;
    bool pending_match;
};

static bool flush(struct cutter *cutter)
{
    size_t length = cutter->pending_length;
    cutter->pending_length = 0;
    return add_text(cutter->out, cutter->pending, length);
}

static bool emit_stretch(struct cutter *cutter, const char *text, size_t length, bool match)
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
    if (!flush(cutter))
        return false;
    if (behavior == REMOVED && match)
        return true;
    cutter->pending = text;
    cutter->pending_length = length;
    cutter->pending_match = match;
    return true;
}

static bool cut_segment(const struct cut *cut, pcre2_match_data *match, pcre2_match_context *limits,
                        const struct segment *segment, struct segments *out, struct error *error)
{
    struct cutter cutter = {.cut = cut, .out = out};
    size_t done = 0, from = 0;
    while (from <= segment->length) {
        int found =
            pcre2_match(cut->pattern, (PCRE2_SPTR)segment->text, segment->length, from, PCRE2_NO_UTF_CHECK, match, limits);
        if (found == PCRE2_ERROR_NOMATCH)
            break;
        if (found < 0)
            return error_set(error, "a pattern of the pre-tokenizer takes too long");
        const PCRE2_SIZE *range = pcre2_get_ovector_pointer(match);
        if (range[1] <= range[0]) { /* an empty match moves on by a character */
            from = range[1] +
                   (range[1] < segment->length ? text_character(segment->text + range[1], segment->length - range[1]) : 1);
            continue;
        }
        if (!emit_stretch(&cutter, segment->text + done, range[0] - done, false) ||
            !emit_stretch(&cutter, segment->text + range[0], range[1] - range[0], true))
            return error_set(error, "the pre-tokenizer makes too many segments");
        done = from = range[1];
    }
    if (!emit_stretch(&cutter, segment->text + done, segment->length - done, false) || !flush(&cutter))
        return error_set(error, "the pre-tokenizer makes too many segments");
    return true;
}

/* Cuts all segments by a pattern, a regular expression or a text. */
static bool cut_all(struct segments *segments, const char *pattern, size_t pattern_length, bool is_text, enum behavior behavior,
                    bool invert, struct error *error)
{
    int code;
    PCRE2_SIZE place;
    uint32_t options = PCRE2_UTF | (is_text ? PCRE2_LITERAL : PCRE2_UCP);
    struct cut cut = {pcre2_compile((PCRE2_SPTR)pattern, pattern_length, options, &code, &place, NULL), behavior, invert};
    if (cut.pattern == NULL)
        return error_set(error, "a pattern of the pre-tokenizer is not understood: %.200s", pattern);
    pcre2_match_data *match = pcre2_match_data_create_from_pattern(cut.pattern, NULL);
    pcre2_match_context *limits = pcre2_match_context_create(NULL);
    pcre2_set_match_limit(limits, MATCH_LIMIT);
    struct segments out = {.arena = segments->arena};
    bool done = true;
    for (size_t i = 0; i < segments->count && done; i++)
        if (segments->items[i].is_token)
            done = add_segment(&out, &segments->items[i]);
        else
            done = cut_segment(&cut, match, limits, &segments->items[i], &out, error);
    pcre2_match_context_free(limits);
    pcre2_match_data_free(match);
    pcre2_code_free(cut.pattern);
    *segments = out;
    return done;
}

static bool cut_by(struct segments *segments, const char *pattern, enum behavior behavior, bool invert, struct error *error)
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

/* What stands in the words of a byte-level model for a byte: itself if it is printable Latin-1, else a character from U+0100 on.
 */
static size_t byte_character(unsigned char byte, char out[2])
{
    unsigned code_point = byte;
    bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    if (!printable)
        code_point = 256 + (byte <= 32 ? byte : byte <= 160 ? byte - 127u + 33u : 67u);
    if (code_point < 0x80) {
        out[0] = (char)code_point;
        return 1;
    }
    out[0] = (char)(0xc0 | code_point >> 6);
    out[1] = (char)(0x80 | (code_point & 0x3f));
    return 2;
}

static bool pre_byte_level(const struct hf_vocabulary *vocabulary, struct segments *segments, const struct json *settings,
                           bool alone, struct error *error)
{
    static const char pattern[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
    bool prefix = json_bool(json_get(settings, "add_prefix_space"), true);
    if (alone) /* transformers sets it anew where the pre-tokenizer is nothing else */
        prefix = json_bool(json_get(vocabulary->files->config, "add_prefix_space"), false);
    for (size_t i = 0; i < segments->count && prefix; i++) {
        struct segment *segment = &segments->items[i];
        if (segment->is_token || is_space(segment->text, segment->length))
            continue;
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
    if (json_string_is(type, "Split"))
        return pre_split(segments, settings, error);
    if (json_string_is(type, "ByteLevel"))
        return pre_byte_level(vocabulary, segments, settings, depth == 0, error);
    if (json_string_is(type, "Digits"))
        return cut_by(segments, json_bool(json_get(settings, "individual_digits"), false) ? "\\p{N}" : "\\p{N}+", ISOLATED, false,
                      error);
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
        return error_set(error, "the pre-tokenizer '%s' is not known", json_string(type, NULL) ? json_string(type, NULL) : "");
    for (const struct json *each = json_first(json_get(settings, "pretokenizers")); each != NULL; each = json_next(each))
        if (!pre_tokenize(vocabulary, each, depth + 1, segments, error))
            return false;
    return true;
}

/* What a tokenizer without tokenizer.json has: GPT-2's pre-tokenizer. */
static bool plain_byte_level(const struct hf_vocabulary *vocabulary, struct segments *segments, struct error *error)
{
    return pre_byte_level(vocabulary, segments, NULL, true, error);
}

bool hf_split(const struct hf_vocabulary *vocabulary, const char *text, size_t length, struct segments *segments,
              struct error *error)
{
    const struct json *tokenizer = vocabulary->files->tokenizer, *normalizer = json_get(tokenizer, "normalizer");
    struct segments raw = {.arena = segments->arena};
    if (!cut_tokens(vocabulary, false, text, length, &raw))
        return error_set(error, "too many added tokens in the text");
    for (size_t i = 0; i < raw.count; i++) {
        struct segment *segment = &raw.items[i];
        if (segment->is_token) {
            add_segment(segments, segment);
            continue;
        }
        if (!normalize(segments->arena, normalizer, &segment->text, &segment->length, 0, error))
            return false;
        if (!cut_tokens(vocabulary, true, segment->text, segment->length, segments))
            return error_set(error, "too many added tokens in the text");
    }
    if (tokenizer == NULL)
        return plain_byte_level(vocabulary, segments, error);
    return pre_tokenize(vocabulary, json_get(tokenizer, "pre_tokenizer"), 0, segments, error);
}
