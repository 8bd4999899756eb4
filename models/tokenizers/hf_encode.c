#include "models/tokenizers/hf_encode.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

/* Keeps only merges that make a piece of a segment: there may be 300,000 merges and a few thousand pieces, so one pass
 * over the merges picks those that may make one. A bit of its hash marks a piece: hashes that collide, by chance or by
 * a file's design, keep more merges than matter. */
enum { LONGEST_PIECE = 256, PIECE_BITS = 1 << 22, PIECE_WORK = 16 };

/* Before that hash is computed, a bit of the first and last byte and the length passes over most merges. */
enum { ENDS_BITS_LOG = 18, ENDS_BITS = 1 << ENDS_BITS_LOG };

struct encoder {
    const struct hf_vocabulary *vocabulary;
    struct arena *arena;
    struct work *work;
    unsigned char *pieces;   /* PIECE_BITS bits */
    unsigned char *ends;     /* ENDS_BITS bits */
    struct text_index rules; /* "left\xffright" to the rank of the merge; 0xff is in no UTF-8 */
    size_t longest_segment;  /* in bytes: no merge makes more */
    size_t longest_rule;     /* in bytes, without the 0xff */
    char *key;               /* room for the text of a rule */
    uint32_t *ids;
    size_t n_ids;
};

static uint64_t hash_bytes(uint64_t hash, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3;
    return hash;
}

enum { HASH_START = 0x4bf29ce4 };

static size_t piece_bit(uint64_t hash)
{
    return (size_t)(hash ^ hash >> 29) % PIECE_BITS;
}

static size_t ends_bit(char first, char last, size_t length)
{
    uint32_t key = (uint32_t)(unsigned char)first | (uint32_t)(unsigned char)last << 8 | (uint32_t)length << 16;
    return key * 0x9e3779b1u >> (32 - ENDS_BITS_LOG);
}

static bool has_bit(const unsigned char *bits, size_t bit)
{
    return (bits[bit / 8] >> bit % 8 & 1) != 0;
}

static void set_bit(unsigned char *bits, size_t bit)
{
    bits[bit / 8] |= (unsigned char)(1 << bit % 8);
}

/* Marks all pieces of two and more characters of a segment, except long ones. */
static void add_pieces(struct encoder *encoder, const struct segment *segment)
{
    for (size_t start = 0; start < segment->length;
         start += text_character(segment->text + start, segment->length - start)) {
        uint64_t hash = HASH_START;
        for (size_t end = start; end < segment->length && end - start < LONGEST_PIECE; end++) {
            hash = hash_bytes(hash, segment->text + end, 1);
            set_bit(encoder->pieces, piece_bit(hash));
            set_bit(encoder->ends, ends_bit(segment->text[start], segment->text[end], end + 1 - start));
        }
    }
}

static bool may_be_piece(const struct encoder *encoder, const char *left, size_t left_length, const char *right,
                         size_t right_length)
{
    if (left_length + right_length > LONGEST_PIECE || left_length == 0 || right_length == 0)
        return true;
    if (!has_bit(encoder->ends, ends_bit(*left, right[right_length - 1], left_length + right_length)))
        return false;
    return has_bit(encoder->pieces,
                   piece_bit(hash_bytes(hash_bytes(HASH_START, left, left_length), right, right_length)));
}

static size_t write_key(char *key, const char *left, size_t left_length, const char *right, size_t right_length)
{
    memcpy(key, left, left_length);
    key[left_length] = '\xff';
    memcpy(key + left_length + 1, right, right_length);
    return left_length + 1 + right_length;
}

static void add_rule(struct encoder *encoder, const char *left, size_t left_length, const char *right,
                     size_t right_length, uint32_t rank)
{
    size_t length = left_length + right_length;
    if (length > encoder->longest_segment)
        return;
    if (!may_be_piece(encoder, left, left_length, right, right_length))
        return;
    char *key = arena_alloc(encoder->arena, length + 1);
    text_index_set(&encoder->rules, key, write_key(key, left, left_length, right, right_length), rank);
    encoder->longest_rule = length > encoder->longest_rule ? length : encoder->longest_rule;
}

static void add_json_rules(struct encoder *encoder, const struct json *merges)
{
    uint32_t rank = 0;
    for (const struct json *merge = json_first(merges); merge != NULL; merge = json_next(merge), rank++) {
        size_t length;
        struct json_text pair[2];
        const char *left = json_string(merge, &length);
        if (left != NULL) {
            const char *space = memchr(left, ' ', length);
            if (space != NULL)
                add_rule(encoder, left, (size_t)(space - left), space + 1, length - (size_t)(space - left) - 1, rank);
            continue;
        }
        json_string_pair(merge, pair);
        if (pair[0].bytes != NULL && pair[1].bytes != NULL)
            add_rule(encoder, pair[0].bytes, pair[0].length, pair[1].bytes, pair[1].length, rank);
    }
}

static bool prepare_merges(struct encoder *encoder, const struct segments *segments, struct error *error)
{
    encoder->pieces = arena_alloc(encoder->arena, PIECE_BITS / 8);
    encoder->ends = arena_alloc(encoder->arena, ENDS_BITS / 8);
    for (size_t i = 0; i < segments->count; i++) {
        if (segments->items[i].is_token)
            continue;
        if (!work_spend(encoder->work, PIECE_WORK * segments->items[i].length, error))
            return false;
        if (segments->items[i].length > encoder->longest_segment)
            encoder->longest_segment = segments->items[i].length;
        add_pieces(encoder, &segments->items[i]);
    }
    add_json_rules(encoder, json_get(encoder->vocabulary->model, "merges"));
    encoder->key = arena_alloc(encoder->arena, encoder->longest_rule + 1);
    return true;
}

/* Adds an id. Callers spend work if a file sets the number of ids; a text has at most as many ids as bytes. */
static void add_id(struct encoder *encoder, uint64_t id)
{
    encoder->ids = arena_grow(encoder->arena, encoder->ids, encoder->n_ids, sizeof *encoder->ids);
    encoder->ids[encoder->n_ids++] = (uint32_t)id;
}

static bool add_ids(struct encoder *encoder, const uint32_t *ids, size_t count, struct error *error)
{
    if (!work_spend(encoder->work, count, error))
        return false;
    for (size_t i = 0; i < count; i++)
        add_id(encoder, ids[i]);
    return true;
}

static void add_unknown(struct encoder *encoder)
{
    size_t length;
    uint64_t id;
    const char *unknown = json_string(json_get(encoder->vocabulary->model, "unk_token"), &length);
    if (unknown != NULL && hf_token_id(encoder->vocabulary, unknown, length, &id))
        add_id(encoder, id);
}

static void add_symbol(struct encoder *encoder, const char *text, size_t length)
{
    uint64_t id;
    bool byte_fallback = json_bool(json_get(encoder->vocabulary->model, "byte_fallback"), false);
    if (hf_model_id(encoder->vocabulary, text, length, &id)) {
        add_id(encoder, id);
        return;
    }
    if (!byte_fallback) {
        add_unknown(encoder);
        return;
    }
    for (size_t i = 0; i < length; i++) {
        char byte[8];
        snprintf(byte, sizeof byte, "<0x%02X>", (unsigned char)text[i]);
        if (hf_model_id(encoder->vocabulary, byte, 6, &id))
            add_id(encoder, id);
    }
}

/* A symbol of a segment: a character, or several joined. */
struct symbol {
    const char *text;
    size_t length;
    uint32_t next; /* NOWHERE: the last one */
    uint32_t rank; /* the rank of the merge that joins it to the next; NO_MERGE: none */
};

static const uint32_t NOWHERE = UINT32_MAX, NO_MERGE = UINT32_MAX;

static uint32_t rank_of(const struct encoder *encoder, const struct symbol *symbols, uint32_t place)
{
    size_t rank;
    const struct symbol *left = &symbols[place];
    if (left->next == NOWHERE || left->length + symbols[left->next].length > encoder->longest_rule)
        return NO_MERGE;
    const struct symbol *right = &symbols[left->next];
    size_t length = write_key(encoder->key, left->text, left->length, right->text, right->length);
    return text_index_find(&encoder->rules, encoder->key, length, &rank) ? (uint32_t)rank : NO_MERGE;
}

/* Joins neighbours, the lowest rank first, the leftmost among equals, until no merge fits. Each search passes over the
 * whole segment, and spends work for it. */
static bool join_all(const struct encoder *encoder, struct symbol *symbols, uint32_t n_symbols, struct error *error)
{
    enum { SYMBOLS_A_STEP = 64 };
    for (uint32_t i = 0; i < n_symbols; i++)
        symbols[i].rank = rank_of(encoder, symbols, i);
    while (work_spend(encoder->work, n_symbols / SYMBOLS_A_STEP + 1, error)) {
        uint32_t best = 0, before_best = NOWHERE, before = NOWHERE;
        for (uint32_t i = 0; i != NOWHERE; before = i, i = symbols[i].next)
            if (symbols[i].rank < symbols[best].rank) {
                best = i;
                before_best = before;
            }
        struct symbol *left = &symbols[best];
        if (left->rank == NO_MERGE)
            return true;
        left->length += symbols[left->next].length;
        left->next = symbols[left->next].next;
        left->rank = rank_of(encoder, symbols, best);
        if (before_best != NOWHERE)
            symbols[before_best].rank = rank_of(encoder, symbols, before_best);
    }
    return false;
}

/* Byte pair encoding. */
static bool encode_bpe(struct encoder *encoder, const struct segment *segment, struct error *error)
{
    uint64_t id;
    if (json_bool(json_get(encoder->vocabulary->model, "ignore_merges"), false) &&
        hf_model_id(encoder->vocabulary, segment->text, segment->length, &id)) {
        add_id(encoder, id);
        return true;
    }
    struct symbol *symbols = arena_array(encoder->arena, segment->length, sizeof *symbols);
    uint32_t n_symbols = 0;
    for (size_t at = 0; at < segment->length; at += symbols[n_symbols++].length)
        symbols[n_symbols] = (struct symbol){
            segment->text + at, text_character(segment->text + at, segment->length - at), n_symbols + 1, NO_MERGE};
    symbols[n_symbols - 1].next = NOWHERE;
    if (!join_all(encoder, symbols, n_symbols, error))
        return false;
    for (uint32_t place = 0; place != NOWHERE; place = symbols[place].next)
        add_symbol(encoder, symbols[place].text, symbols[place].length);
    return true;
}

/* WordPiece: takes the longest token that fits, repeatedly; a word that cannot be cut up like that is one unknown
 * token. */
static bool encode_word(struct encoder *encoder, const struct segment *segment, struct error *error)
{
    size_t first = encoder->n_ids, prefix_length;
    uint64_t most = 100, id = 0, n_characters = 0;
    const char *prefix = json_string(json_get(encoder->vocabulary->model, "continuing_subword_prefix"), &prefix_length);
    json_u64(json_get(encoder->vocabulary->model, "max_input_chars_per_word"), &most);
    if (prefix == NULL || prefix_length > 16) {
        prefix = "##";
        prefix_length = 2;
    }
    for (size_t at = 0; at < segment->length; n_characters++)
        at += text_character(segment->text + at, segment->length - at);
    char *word = arena_alloc(encoder->arena, segment->length + prefix_length + 1);
    for (size_t start = 0; start < segment->length && n_characters <= most;) {
        if (!work_spend(encoder->work, (segment->length - start) * (segment->length / 256 + 1), error))
            return false;
        size_t offset = start == 0 ? 0 : prefix_length, end = segment->length;
        memcpy(word, prefix, offset);
        memcpy(word + offset, segment->text + start, segment->length - start);
        while (end > start && !hf_model_id(encoder->vocabulary, word, offset + end - start, &id))
            do
                end--;
            while (end > start && ((unsigned char)segment->text[end] & 0xc0) == 0x80);
        if (end == start) {
            n_characters = most + 1;
            break;
        }
        add_id(encoder, id);
        start = end;
    }
    if (n_characters > most) {
        encoder->n_ids = first;
        add_unknown(encoder);
    }
    return true;
}

/* Post-processors. */

static void add_special(struct encoder *encoder, const char *text, size_t length)
{
    uint64_t id;
    if (text != NULL && hf_token_id(encoder->vocabulary, text, length, &id))
        add_id(encoder, id);
}

static bool add_json_ids(struct encoder *encoder, const struct json *ids, struct error *error)
{
    uint64_t id;
    if (!work_spend(encoder->work, json_count(ids), error))
        return false;
    for (const struct json *each = json_first(ids); each != NULL; each = json_next(each))
        if (json_u64(each, &id) && id <= UINT32_MAX)
            add_id(encoder, id);
    return true;
}

/* Applies a template: the sequence, whose ids begin at `first`, moves to the template's place for it. */
static bool apply_template(struct encoder *encoder, const struct json *processor, const uint32_t *sequence,
                           size_t count, struct error *error)
{
    for (const struct json *item = json_first(json_get(processor, "single")); item != NULL; item = json_next(item)) {
        const struct json *special = json_get(item, "SpecialToken");
        if (special == NULL && !add_ids(encoder, sequence, count, error))
            return false;
        size_t length;
        const char *name = json_string(json_get(special, "id"), &length);
        if (name == NULL)
            continue;
        const struct json *token = json_get_n(json_get(processor, "special_tokens"), name, length);
        if (!add_json_ids(encoder, json_get(token, "ids"), error))
            return false;
    }
    return true;
}

static void apply_pair(struct encoder *encoder, const struct json *pair)
{
    uint64_t id;
    if (json_u64(json_at(pair, 1), &id) && id <= UINT32_MAX)
        add_id(encoder, id);
}

static bool post_process(struct encoder *encoder, const struct json *processor, int depth, struct error *error)
{
    const struct json *type = json_get(processor, "type");
    const uint32_t *sequence = encoder->ids;
    size_t count = encoder->n_ids;
    bool is_template = json_string_is(type, "TemplateProcessing");
    bool is_pair = json_string_is(type, "RobertaProcessing") || json_string_is(type, "BertProcessing");
    if (is_template || is_pair) {
        encoder->ids = NULL;
        encoder->n_ids = 0;
    }
    if (is_template && !apply_template(encoder, processor, sequence, count, error))
        return false;
    if (is_pair) {
        apply_pair(encoder, json_get(processor, "cls"));
        if (!add_ids(encoder, sequence, count, error))
            return false;
        apply_pair(encoder, json_get(processor, "sep"));
    }
    for (const struct json *each = json_first(json_get(processor, "processors")); each != NULL && depth < 4;
         each = json_next(each))
        if (!post_process(encoder, each, depth + 1, error))
            return false;
    return true;
}

/* Reports whether the class replaces the file's post-processor by add_bos_token and add_eos_token of the config. */
static bool class_post_processes(const struct hf_vocabulary *vocabulary)
{
    static const char *const classes[] = {"LlamaTokenizer", "CodeLlamaTokenizer", "GemmaTokenizer", "CohereTokenizer"};
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (strcmp(vocabulary->class_name, classes[i]) == 0)
            return true;
    return false;
}

static bool post_process_as_class(struct encoder *encoder, struct error *error)
{
    const struct hf_vocabulary *vocabulary = encoder->vocabulary;
    const uint32_t *sequence = encoder->ids;
    size_t count = encoder->n_ids, length;
    encoder->ids = NULL;
    encoder->n_ids = 0;
    if (json_bool(json_get(vocabulary->files->config, "add_bos_token"), true)) {
        const char *bos = hf_special_token(vocabulary, "bos_token", &length);
        add_special(encoder, bos, length);
    }
    if (!add_ids(encoder, sequence, count, error))
        return false;
    if (json_bool(json_get(vocabulary->files->config, "add_eos_token"), false)) {
        const char *eos = hf_special_token(vocabulary, "eos_token", &length);
        add_special(encoder, eos, length);
    }
    return true;
}

static bool encode_segments(struct encoder *encoder, const struct segments *segments, bool words, struct error *error)
{
    for (size_t i = 0; i < segments->count; i++) {
        const struct segment *segment = &segments->items[i];
        if (segment->is_token)
            add_id(encoder, segment->id);
        else if (words ? !encode_word(encoder, segment, error) : !encode_bpe(encoder, segment, error))
            return false;
    }
    return true;
}

static bool encode(struct encoder *encoder, const char *text, size_t length, struct error *error)
{
    const struct hf_vocabulary *vocabulary = encoder->vocabulary;
    const struct json *type = json_get(vocabulary->model, "type");
    struct segments segments = {.arena = encoder->arena, .work = encoder->work};
    bool words = json_string_is(type, "WordPiece");
    if (length > ENCODE_MAX_TEXT)
        return error_set(error, "a text of %zu bytes is too long", length);
    if (json_string_is(type, "Unigram") || json_string_is(type, "WordLevel"))
        return error_set(error, "a %s model is not encoded", json_string(type, NULL));
    if (!hf_split(vocabulary, text, length, &segments, error) ||
        (!words && !prepare_merges(encoder, &segments, error)) || !encode_segments(encoder, &segments, words, error))
        return false;
    if (class_post_processes(vocabulary))
        return post_process_as_class(encoder, error);
    return post_process(encoder, json_get(vocabulary->steps, "post_processor"), 0, error);
}

bool hf_encode(const struct hf_vocabulary *vocabulary, const char *text, size_t length, struct work *work,
               uint32_t **ret_ids, size_t *ret_count, struct error *error)
{
    struct encoder encoder = {.vocabulary = vocabulary, .arena = vocabulary->arena, .work = work};
    bool encoded = encode(&encoder, text, length, error);
    text_index_free(&encoder.rules);
    if (!encoded)
        return false;
    *ret_ids = encoder.ids;
    *ret_count = encoder.n_ids;
    return true;
}
