/* What llama.cpp does otherwise than transformers with the vocabulary of a tokenizer.json, since no key of a GGUF says
 * it. Source: llama-vocab.cpp of llama.cpp; normalizers, pre_tokenizers, processors and added_vocabulary.rs of
 * tokenizers. */
#include "base/text.h"
#include "models/tokenizers/hf_kind.h"
#include "models/tokenizers/rebuild.h"
#include "models/tokenizers/unigram.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char space[] = "\xe2\x96\x81";

struct review {
    const struct hf_vocabulary *vocabulary;
    const struct json *tokenizer;
    const struct gguf_kvs *kvs;
    enum hf_kind kind;
    const char *found[16]; /* what differs */
    size_t n_found;
};

/* Differences that most texts do not show. */
static const char nfc[] = "the normalizer NFC", blocks[] = "added tokens of U+2581";

/* Adds a difference once. */
static void find(struct review *review, const char *difference)
{
    for (size_t i = 0; i < review->n_found; i++)
        if (strcmp(review->found[i], difference) == 0)
            return;
    if (review->n_found < sizeof review->found / sizeof *review->found)
        review->found[review->n_found++] = difference;
}

static bool replaces(const struct json *step, const char *pattern, const char *text)
{
    return json_string_is(json_get(json_get(step, "pattern"), pattern), text);
}

/* Steps of normalizers and pre-tokenizers that llama.cpp follows: by its code for the kind, or by a key. */

static bool follows_pieces(const struct review *review, const struct json *step)
{
    const struct json *content = json_get(step, "content");
    return json_string_is(json_get(step, "prepend"), space) ||
           (replaces(step, "String", " ") && json_string_is(content, space)) ||
           (replaces(step, "Regex", "\\A\xe2\x96\x81") && json_string_is(content, "\xe2\x96\x81\xe2\x96\x81") &&
            hf_adds_prefix(review->tokenizer));
}

static bool follows_unigram(const struct review *review, const struct json *step)
{
    const struct json *type = json_get(step, "type");
    bool cuts_words = hf_has_step(json_get(review->tokenizer, "pre_tokenizer"), "pretokenizers", "WhitespaceSplit");
    bool strips = hf_has_step(json_get(review->tokenizer, "normalizer"), "normalizers", "Strip");
    bool joins = hf_unigram_removes_spaces(review->tokenizer); /* else "\r\n" is two spaces in llama.cpp */
    return (json_string_is(type, "Precompiled") && joins) ||
           (replaces(step, "Regex", " {2,}") && (cuts_words || strips)) ||
           (json_string_is(type, "Strip") && (cuts_words || joins)) ||
           (replaces(step, "String", " ") && json_string_is(json_get(step, "content"), space));
}

static bool follows_words(const struct review *review, const struct json *step)
{
    const struct json *type = json_get(step, "type");
    if (json_string_is(type, "BertNormalizer"))
        return json_bool(json_get(step, "clean_text"), true) && json_bool(json_get(step, "handle_chinese_chars"), true);
    return json_string_is(type, "NFD") || json_string_is(type, "Lowercase") || json_string_is(type, "StripAccents");
}

/* Reports whether a pattern lists names: added tokens, which llama.cpp finds, too. */
static bool is_names(const struct hf_vocabulary *vocabulary, const char *pattern)
{
    struct buffer name = {0};
    bool good = true, is_end = false;
    for (; good && !is_end; pattern++) {
        is_end = *pattern == '\0';
        if (is_end || *pattern == '|') {
            good = name.length > 0 && hf_added_token(vocabulary, (const char *)name.bytes, name.length) != NULL;
            name.length = 0;
            continue;
        }
        good = strchr(".*+?()[]{}^$", *pattern) == NULL;
        pattern += *pattern == '\\' && pattern[1] != '\0';
        buffer_append(&name, pattern, 1);
    }
    buffer_free(&name);
    return good;
}

static bool cuts_pieces(const struct review *review, const struct json *step)
{
    const char *pattern = json_string(json_get(json_get(step, "pattern"), "Regex"), NULL);
    return (json_string_is(json_get(step, "type"), "Metaspace") && !json_bool(json_get(step, "split"), true)) ||
           replaces(step, "String", " ") || (pattern != NULL && is_names(review->vocabulary, pattern));
}

static bool cuts_unigram(const struct review *review, const struct json *step)
{
    const struct json *type = json_get(step, "type");
    bool has_charsmap = hf_has_step(json_get(review->tokenizer, "normalizer"), "normalizers", "Precompiled");
    return json_string_is(type, "Metaspace") || (json_string_is(type, "WhitespaceSplit") && has_charsmap);
}

static bool cuts_words(const struct review *review, const struct json *step)
{
    return json_string_is(json_get(step, "type"), "BertPreTokenizer");
}

static bool cuts_none(const struct review *review, const struct json *step)
{
    return false;
}

enum { MOST_DEPTH = 8 };

static void review_steps(struct review *review, const struct json *step, const char *list, const char *noun,
                         bool (*does)(const struct review *review, const struct json *step), int depth)
{
    const char *type = json_string(json_get(step, "type"), NULL);
    if (type == NULL)
        return;
    if (strcmp(type, "Sequence") != 0) {
        if (!does(review, step))
            find(review, arena_printf(review->vocabulary->arena, "%s %.40s", noun, type));
        return;
    }
    for (const struct json *each = json_first(json_get(step, list)); each != NULL && depth < MOST_DEPTH;
         each = json_next(each))
        review_steps(review, each, list, noun, does, depth + 1);
}

/* Names of llama.cpp whose published tokenizers all have the steps of pre_row_find(). Other steps may have the hash of
 * these: the converter's text does not show all that they do. */
static const char usual_names[] =
    "deepseek-v3 glm4 gpt-2 gpt-4o lfm2 llama-bpe qwen2 qwen35 roberta-bpe smollm starcoder tekken";

struct course {
    const struct pre_row *row;
    size_t n_splits, n_usual, n; /* splits of the row, its steps, and the steps found */
    const struct json *other;    /* the first step that is not the row's */
};

/* Takes the next character of a regular expression, an escaped one as a number of its own, but line ends and tabs as
 * what they are: tokenizers have either. */
static unsigned next_character(const char **regex)
{
    unsigned character = (unsigned char)*(*regex)++;
    if (character != '\\' || **regex == '\0')
        return character;
    character = (unsigned char)*(*regex)++;
    return character == 'n' ? '\n' : character == 'r' ? '\r' : character == 't' ? '\t' : character + 256;
}

static bool is_regex(const struct json *step, const char *published)
{
    const char *given = json_string(json_get(json_get(step, "pattern"), "Regex"), NULL);
    unsigned character = 1;
    while (given != NULL && character != '\0') {
        character = next_character(&given);
        if (character != next_character(&published))
            return false;
    }
    return given != NULL;
}

/* Reports whether the next step is the row's. Its one regular expression matches all of a text, so it may as well
 * remove what does not match. */
static bool is_usual(const struct course *course, const struct json *step)
{
    const struct json *type = json_get(step, "type"), *behavior = json_get(step, "behavior");
    bool inverts = json_bool(json_get(step, "invert"), false), alone = course->n_splits == 1;
    if (course->n < course->n_splits)
        return is_regex(step, course->row->splits[course->n]) &&
               ((json_string_is(behavior, "Isolated") && !inverts) ||
                (json_string_is(behavior, "Removed") && inverts && alone));
    if (course->n + 1 < course->n_usual)
        return json_string_is(type, "Digits") && json_bool(json_get(step, "individual_digits"), false);
    return json_string_is(type, "ByteLevel") && json_bool(json_get(step, "use_regex"), true) == (course->n_splits == 0);
}

static void walk_cuts(struct course *course, const struct json *step, int depth)
{
    const struct json *each = json_first(json_get(step, "pretokenizers"));
    if (json_string_is(json_get(step, "type"), "Sequence")) {
        for (; each != NULL && depth < MOST_DEPTH; each = json_next(each))
            walk_cuts(course, each, depth + 1);
    } else if (course->other == NULL && json_is(step, JSON_OBJECT)) {
        course->other = is_usual(course, step) ? NULL : step;
        course->n++;
    }
}

static void review_cuts(struct review *review)
{
    struct arena *arena = review->vocabulary->arena;
    const char *name = gguf_get_text(review->kvs, "tokenizer.ggml.pre", arena);
    bool known;
    if (name == NULL || !text_has_word(usual_names, name, strlen(name)))
        return;
    struct course course = {pre_row_find(name, &known)};
    while (course.row->splits != NULL && course.row->splits[course.n_splits] != NULL)
        course.n_splits++;
    course.n_usual = course.n_splits + 1 + (course.row->form == DIGITS_BYTES);
    walk_cuts(&course, json_get(review->tokenizer, "pre_tokenizer"), 0);
    const char *type = json_string(json_get(course.other, "type"), NULL);
    if (type != NULL && strcmp(type, "Split") != 0 && strcmp(type, "ByteLevel") != 0)
        find(review, arena_printf(arena, "the pre-tokenizer %.40s", type));
    else if (course.other != NULL || course.n != course.n_usual)
        find(review, arena_printf(arena, "another pre-tokenizer than %s", name));
}

static void review_text_steps(struct review *review)
{
    static bool (*const normalizes[])(const struct review *,
                                      const struct json *) = {[HF_BYTE_LEVEL] = cuts_none,
                                                              [HF_BYTE_FALLBACK] = follows_pieces,
                                                              [HF_UNIGRAM] = follows_unigram,
                                                              [HF_WORDPIECE] = follows_words};
    static bool (*const cuts[])(const struct review *, const struct json *) = {
        [HF_BYTE_FALLBACK] = cuts_pieces, [HF_UNIGRAM] = cuts_unigram, [HF_WORDPIECE] = cuts_words};
    const struct json *pre_tokenizer = json_get(review->tokenizer, "pre_tokenizer");
    review_steps(review, json_get(review->tokenizer, "normalizer"), "normalizers", "the normalizer",
                 normalizes[review->kind], 0);
    if (cuts[review->kind] != NULL)
        review_steps(review, pre_tokenizer, "pretokenizers", "the pre-tokenizer", cuts[review->kind], 0);
    else
        review_cuts(review);
    const struct json *bytes = hf_find_step(pre_tokenizer, "pretokenizers", "ByteLevel");
    if (json_bool(json_get(bytes, "add_prefix_space"), false))
        find(review, "add_prefix_space");
    if (review->kind == HF_UNIGRAM && !hf_has_step(pre_tokenizer, "pretokenizers", "Metaspace"))
        find(review, "spaces that are not U+2581");
}

static bool has_text(const struct json *model, const char *member)
{
    const struct json *text = json_get(model, member);
    return json_string(text, NULL) != NULL && !json_string_is(text, "");
}

static bool has_all_bytes(const struct hf_vocabulary *vocabulary)
{
    char text[8];
    uint64_t id;
    for (unsigned byte = 0; byte < 256; byte++) {
        snprintf(text, sizeof text, "<0x%02X>", byte);
        if (!hf_model_id(vocabulary, text, 6, &id))
            return false;
    }
    return true;
}

bool hf_is_usable(const struct hf_vocabulary *vocabulary, struct error *error)
{
    static const char cannot[] = "tokenizer.json: llama.cpp has no vocabularies";
    const struct json *tokenizer = vocabulary->files->tokenizer, *model = vocabulary->model;
    enum hf_kind kind = hf_kind_of(tokenizer);
    if (kind == HF_OTHER)
        return error_set(error, "%s with neither a ByteLevel step nor tokens of bytes, such as <0x00>", cannot);
    if (kind == HF_BYTE_FALLBACK && !has_all_bytes(vocabulary))
        return error_set(error, "%s of pieces without a token for each byte, <0x00> to <0xFF>", cannot);
    if (kind != HF_WORDPIECE && (has_text(model, "end_of_word_suffix") || has_text(model, "continuing_subword_prefix")))
        return error_set(error, "%s of pairs with end_of_word_suffix or continuing_subword_prefix", cannot);
    return true;
}

static void review_model(struct review *review)
{
    const struct json *model = review->vocabulary->model, *prefix = json_get(model, "continuing_subword_prefix");
    bool has_bytes = json_bool(json_get(model, "byte_fallback"), false);
    double dropout;
    const char *given = gguf_get_text(review->kvs, "tokenizer.ggml.model", review->vocabulary->arena);
    if (given != NULL && strcmp(given, "bert") == 0 && review->kind != HF_WORDPIECE)
        find(review, "no WordPiece vocabulary");
    if (review->kind == HF_BYTE_FALLBACK && !has_bytes)
        find(review, "no byte_fallback");
    if (review->kind == HF_BYTE_FALLBACK && !has_all_bytes(review->vocabulary))
        find(review, "no token for some bytes");
    if (review->kind == HF_UNIGRAM && has_bytes && has_all_bytes(review->vocabulary))
        find(review, "byte_fallback");
    if (review->kind == HF_WORDPIECE && prefix != NULL && !json_string_is(prefix, "##"))
        find(review, "another continuing_subword_prefix than ##");
    if (review->kind != HF_WORDPIECE && has_text(model, "continuing_subword_prefix"))
        find(review, "continuing_subword_prefix");
    if (has_text(model, "end_of_word_suffix"))
        find(review, "end_of_word_suffix");
    if (json_double(json_get(model, "dropout"), &dropout) && dropout > 0)
        find(review, "dropout");
}

/* The mask is no token of texts, and strips spaces in most models that have one. */
static bool is_mask(const struct review *review, const struct added_token *added)
{
    size_t length;
    const char *mask = hf_special_token(review->vocabulary, "mask_token", &length);
    return mask != NULL && length == added->length && memcmp(mask, added->text, length) == 0;
}

static bool is_ascii(const struct added_token *added)
{
    size_t n = 0;
    while (n < added->length && (added->text[n] & 0x80) == 0)
        n++;
    return n == added->length;
}

/* Reports whether an added token that is found after normalizing is found otherwise than before it. NFC, which models
 * of bytes may have, changes no ASCII. */
static bool normalizes_around(const struct review *review, const struct added_token *added)
{
    const struct json *normalizer = json_get(review->tokenizer, "normalizer");
    if (review->kind == HF_BYTE_FALLBACK)
        return hf_adds_prefix(review->tokenizer);
    return (review->kind != HF_BYTE_LEVEL || !is_ascii(added)) && json_is(normalizer, JSON_OBJECT);
}

/* Finds an added token that the converter decodes to another text: as letters that stand for bytes, "\xc4\xa0the". */
static void review_spelling(struct review *review)
{
    struct gguf_array tokens;
    struct error error;
    if (review->kind != HF_BYTE_LEVEL ||
        !gguf_get_array(review->kvs, "tokenizer.ggml.tokens", review->vocabulary->arena, &tokens, &error))
        return;
    for (size_t i = 0; i < review->vocabulary->n_added; i++) {
        const struct added_token *added = &review->vocabulary->added[i];
        size_t length;
        const char *text = added->id < tokens.count ? gguf_array_string(&tokens, added->id, &length) : NULL;
        if (text == NULL || (length == added->length && memcmp(text, added->text, length) == 0))
            continue;
        find(review, arena_printf(review->vocabulary->arena, "added tokens of letters that stand for bytes (%.*s)",
                                  added->length < 40 ? (int)added->length : 40, added->text));
        return;
    }
}

static void review_added(struct review *review)
{
    for (size_t i = 0; i < review->vocabulary->n_added; i++) {
        const struct added_token *added = &review->vocabulary->added[i];
        struct arena *arena = review->vocabulary->arena;
        int length = added->length < 40 ? (int)added->length : 40;
        if (is_mask(review, added))
            continue;
        if (review->kind == HF_BYTE_FALLBACK && !token_looks_special(added->text, added->length) &&
            memmem(added->text, added->length, space, 3) != NULL)
            find(review, blocks);
        if (added->left_strip || added->right_strip)
            find(review,
                 arena_printf(arena, "added tokens that take the spaces beside them (%.*s)", length, added->text));
        else if (added->single_word)
            find(review, arena_printf(arena, "added tokens that are whole words (%.*s)", length, added->text));
        else if (added->normalized && normalizes_around(review, added))
            find(review, arena_printf(arena, "added tokens of normalized text (%.*s)", length, added->text));
        else
            continue;
        return; /* one is enough to know */
    }
}

/* Finds a token of tokenizer_config.json, a text or an object, that the vocabulary lacks: transformers 5 adds it. */
static void review_named(struct review *review, const struct json *token)
{
    size_t length;
    uint64_t id;
    const char *text = token_content(token, &length);
    if (text != NULL && length > 0 && !hf_token_id(review->vocabulary, text, length, &id))
        find(review, arena_printf(review->vocabulary->arena, "a special token that tokenizer.json lacks (%.*s)",
                                  length < 40 ? (int)length : 40, text));
}

static void review_config(struct review *review)
{
    const struct json *config = review->vocabulary->files->config,
                      *named = json_get(config, "model_specific_special_tokens");
    const char *class_name = review->vocabulary->class_name;
    bool keeps_steps = strcmp(class_name, "TokenizersBackend") == 0 || strcmp(class_name, "PreTrainedTokenizer") == 0;
    if (review->kind == HF_BYTE_LEVEL && !keeps_steps && json_bool(json_get(config, "add_prefix_space"), false))
        find(review, "add_prefix_space");
    if (json_bool(json_get(config, "split_special_tokens"), false))
        find(review, "split_special_tokens");
    for (struct json_member member = {0}; json_next_member(config, &member);)
        if (text_ends_with(member.key, "_token"))
            review_named(review, member.value);
    for (struct json_member member = {0}; json_next_member(named, &member);)
        review_named(review, member.value);
}

/* Special tokens around a text. */

enum { MOST_ENDS = 8 };
struct ends {
    uint64_t before[MOST_ENDS], after[MOST_ENDS];
    size_t n_before, n_after;
    unsigned n_steps; /* that add tokens: the second puts its own after those of the first */
};

static void add_end(struct ends *ends, bool is_after, uint64_t id)
{
    size_t *count = is_after ? &ends->n_after : &ends->n_before;
    if (*count < MOST_ENDS)
        (is_after ? ends->after : ends->before)[(*count)++] = id;
}

static void read_template(const struct json *processor, struct ends *ends)
{
    bool is_after = false;
    for (const struct json *item = json_first(json_get(processor, "single")); item != NULL; item = json_next(item)) {
        uint64_t id;
        const char *name = json_string(json_get(json_get(item, "SpecialToken"), "id"), NULL);
        is_after |= json_get(item, "Sequence") != NULL;
        const struct json *ids =
            name == NULL ? NULL : json_get(json_get(json_get(processor, "special_tokens"), name), "ids");
        for (const struct json *each = json_first(ids); each != NULL; each = json_next(each))
            if (json_u64(each, &id))
                add_end(ends, is_after, id);
    }
}

static void read_ends(const struct json *processor, struct ends *ends)
{
    uint64_t id;
    size_t n = ends->n_before + ends->n_after;
    if (json_u64(json_at(json_get(processor, "cls"), 1), &id))
        add_end(ends, false, id);
    if (json_u64(json_at(json_get(processor, "sep"), 1), &id))
        add_end(ends, true, id);
    read_template(processor, ends);
    ends->n_steps += ends->n_before + ends->n_after > n;
    for (const struct json *each = json_first(json_get(processor, "processors")); each != NULL; each = json_next(each))
        if (json_get(each, "processors") == NULL)
            read_ends(each, ends);
}

static const char bos_key[] = "tokenizer.ggml.bos_token_id", eos_key[] = "tokenizer.ggml.eos_token_id";
static const char add_bos_key[] = "tokenizer.ggml.add_bos_token", add_eos_key[] = "tokenizer.ggml.add_eos_token";

/* What llama.cpp takes where a key is absent. */
static const struct defaults {
    const char *model;
    bool adds_bos, adds_eos;
    uint64_t bos, eos;
} defaults[] = {{"llama", true, false, 1, 2},
                {"gpt2", false, false, 11, 11},
                {"t5", false, true, 0, 1},
                {"gemma4", true, false, 0, 0}};

/* Pre-tokenizers of "gpt2" with a beginning token by default. */
static const char begun[] =
    "chameleon falcon-h1 falcon3 jina-v5-nano lfm2 llama-bpe llama-v3 llama3 midm-2.0 pixtral tekken";

/* Finds the defaults of the keys' vocabulary; false for others. */
static bool find_defaults(const struct gguf_kvs *kvs, struct arena *arena, struct defaults *ret_defaults)
{
    const char *model = gguf_get_text(kvs, "tokenizer.ggml.model", arena);
    const char *pre = gguf_get_text(kvs, "tokenizer.ggml.pre", arena);
    for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++)
        if (model != NULL && strcmp(model, defaults[i].model) == 0) {
            *ret_defaults = defaults[i];
            ret_defaults->adds_bos |=
                strcmp(model, "gpt2") == 0 && pre != NULL && text_has_word(begun, pre, strlen(pre));
            return true;
        }
    return false;
}

static uint64_t id_of(const struct gguf_kvs *kvs, const char *key, uint64_t otherwise)
{
    uint64_t id;
    return gguf_get_u64(kvs, key, &id) ? id : otherwise;
}

void hf_deny_ends(struct gguf_kvs *kvs, const struct hf_vocabulary *vocabulary)
{
    struct ends wanted = {0};
    struct defaults otherwise;
    if (!find_defaults(kvs, vocabulary->arena, &otherwise))
        return;
    read_ends(json_get(vocabulary->files->tokenizer, "post_processor"), &wanted);
    if (otherwise.adds_bos && wanted.n_before == 0 && gguf_kvs_find(kvs, add_bos_key) == NULL)
        gguf_set_bool(kvs, add_bos_key, false);
    if (otherwise.adds_eos && wanted.n_after == 0 && gguf_kvs_find(kvs, add_eos_key) == NULL)
        gguf_set_bool(kvs, add_eos_key, false);
}

/* Sets the special tokens that llama.cpp adds, always one at each end for "bert". */
static bool ends_of_keys(const struct review *review, struct ends *ends)
{
    struct defaults otherwise;
    const struct gguf_kvs *kvs = review->kvs;
    if (review->kind == HF_WORDPIECE) {
        add_end(ends, false, id_of(kvs, bos_key, 101));
        add_end(ends, true, id_of(kvs, "tokenizer.ggml.seperator_token_id", 102));
        return true;
    }
    if (!find_defaults(kvs, review->vocabulary->arena, &otherwise))
        return false;
    gguf_get_bool(kvs, add_bos_key, &otherwise.adds_bos);
    gguf_get_bool(kvs, add_eos_key, &otherwise.adds_eos);
    if (otherwise.adds_bos)
        add_end(ends, false, id_of(kvs, bos_key, otherwise.bos));
    if (otherwise.adds_eos)
        add_end(ends, true, id_of(kvs, eos_key, otherwise.eos));
    return true;
}

static void review_ends(struct review *review)
{
    struct ends wanted = {0}, given = {0};
    read_ends(json_get(review->tokenizer, "post_processor"), &wanted);
    if (!ends_of_keys(review, &given))
        return;
    if (wanted.n_steps > 1 || wanted.n_before != given.n_before || wanted.n_after != given.n_after ||
        memcmp(wanted.before, given.before, sizeof wanted.before) != 0 ||
        memcmp(wanted.after, given.after, sizeof wanted.after) != 0)
        find(review, "other special tokens around a text");
}

/* Hints at texts to which llama.cpp adds a space and transformers none: those that begin with a space, and those after
 * a special token. */
static void hint_prefix(const struct review *review, const struct checkpoint *checkpoint)
{
    const struct json *pre_tokenizer = json_get(review->tokenizer, "pre_tokenizer");
    const struct json *metaspace = hf_find_step(pre_tokenizer, "pretokenizers", "Metaspace");
    const struct json *doubles = hf_find_step(json_get(review->tokenizer, "normalizer"), "normalizers", "Replace");
    bool is_pieces = review->kind == HF_BYTE_FALLBACK, is_unigram = review->kind == HF_UNIGRAM;
    if (metaspace == NULL || !hf_adds_prefix(review->tokenizer) || !(is_pieces || is_unigram) ||
        (is_pieces && doubles != NULL && !json_string_is(json_get(metaspace, "prepend_scheme"), "first")) ||
        (is_unigram && hf_unigram_removes_spaces(review->tokenizer)))
        return;
    checkpoint_hint(checkpoint, SUBJECT_GGUF,
                    "transformers adds no space before a text that begins with one, or after a special token within a "
                    "text; llama.cpp does, as the models of SentencePiece were trained");
}

/* Notes a space before texts that transformers 5 does not add: its class makes its steps without tokenizer.json. */
static void note_prefix(const struct review *review, const struct checkpoint *checkpoint)
{
    bool adds = true;
    gguf_get_bool(review->kvs, "tokenizer.ggml.add_space_prefix", &adds);
    if (adds && review->kind == HF_BYTE_FALLBACK && hf_adds_prefix(review->tokenizer) &&
        strcmp(review->vocabulary->class_name, "GemmaTokenizer") == 0)
        checkpoint_note(checkpoint, SUBJECT_GGUF,
                        "tokenizer.json puts a space before texts, as llama.cpp does; GemmaTokenizer of transformers 5 "
                        "puts none, so it splits them otherwise");
}

/* Hints at an added token that has no row: the converter ignores the added tokens of SentencePiece there. */
static void hint_beyond(const struct review *review, const struct checkpoint *checkpoint)
{
    struct gguf_array tokens;
    struct error error;
    if (!gguf_get_array(review->kvs, "tokenizer.ggml.tokens", review->vocabulary->arena, &tokens, &error))
        return;
    for (size_t i = 0; i < review->vocabulary->n_added; i++) {
        const struct added_token *added = &review->vocabulary->added[i];
        if (added->id < tokens.count)
            continue;
        checkpoint_hint(checkpoint, SUBJECT_GGUF,
                        "the added token %" PRIu64 " (%.*s) is beyond vocab_size, %" PRIu64
                        ": the file lacks it, and llama.cpp splits its text as others",
                        added->id, added->length < 40 ? (int)added->length : 40, added->text, (uint64_t)tokens.count);
        return;
    }
}

/* Notes two tokens of one text, which may differ in tokenizer.json. */
static void note_duplicate(const struct review *review, const struct checkpoint *checkpoint)
{
    struct text_index index = {0};
    struct gguf_array tokens;
    struct error error;
    size_t length, first;
    if (!gguf_get_array(review->kvs, "tokenizer.ggml.tokens", review->vocabulary->arena, &tokens, &error))
        return;
    for (uint64_t id = 0; id < tokens.count; id++) {
        const char *text = gguf_array_string(&tokens, id, &length);
        if (text == NULL || length == 0 || text_index_add(&index, text, length, id))
            continue;
        text_index_find(&index, text, length, &first);
        checkpoint_note(checkpoint, SUBJECT_GGUF,
                        "the tokens %zu and %" PRIu64 " are both '%.*s': llama.cpp refuses the file, as it does the "
                        "converter's",
                        first, id, length < 40 ? (int)length : 40, text);
        break;
    }
    text_index_free(&index);
}

void hf_unlike_note(const struct vocab_input *input, const struct hf_vocabulary *vocabulary, const struct gguf_kvs *kvs)
{
    struct review review = {vocabulary, vocabulary->files->tokenizer, kvs, hf_kind_of(vocabulary->files->tokenizer)};
    struct buffer list = {0};
    if (review.kind == HF_OTHER)
        return;
    review_text_steps(&review);
    review_model(&review);
    review_added(&review);
    review_spelling(&review);
    review_config(&review);
    review_ends(&review);
    hint_prefix(&review, input->checkpoint);
    note_prefix(&review, input->checkpoint);
    hint_beyond(&review, input->checkpoint);
    if (review.kind != HF_BYTE_LEVEL) /* whose texts are the file's */
        note_duplicate(&review, input->checkpoint);
    bool is_minor = true;
    for (size_t i = 0; i < review.n_found; i++) {
        is_minor &= strcmp(review.found[i], nfc) == 0 || strcmp(review.found[i], blocks) == 0;
        buffer_printf(&list, "%s%s", i == 0 ? "" : i + 1 < review.n_found ? ", " : " and ", review.found[i]);
    }
    if (review.n_found > 0)
        (is_minor ? checkpoint_hint : checkpoint_note)(
            input->checkpoint, SUBJECT_GGUF,
            "the tokenizer has %.*s, which llama.cpp does not follow, so it splits some texts otherwise than "
            "transformers",
            (int)list.length, (const char *)list.bytes);
    buffer_free(&list);
}
