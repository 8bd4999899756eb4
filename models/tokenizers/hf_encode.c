#include "models/tokenizers/hf_encode.h"

#include "base/text.h"
#include "models/tokenizers/hf_split.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The merges that can matter: those that make a piece of one of the segments. There may be 300,000 of them, and a few thousand
 * pieces, so the merges are passed over once. */

struct pieces {
    struct piece {
        const char *text;
        size_t length;
    } * slots; /* open addressing */
    size_t n_slots, count;
};

struct rule {
    const char *left, *right;
    size_t left_length, right_length;
    uint32_t rank;
};

struct rules {
    struct rule *slots;
    size_t n_slots, count;
};

struct encoder {
    const struct hf_vocabulary *vocabulary;
    struct arena *arena;
    struct pieces pieces;
    struct rules rules;
    uint32_t *ids;
    size_t n_ids, capacity;
};

static uint64_t hash_bytes(uint64_t hash, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3;
    return hash;
}

enum { HASH_START = 0x4bf29ce4 };

static struct piece *piece_slot(const struct pieces *pieces, uint64_t hash, const char *text, size_t length)
{
    size_t i = (size_t)(hash ^ hash >> 29) & (pieces->n_slots - 1);
    while (pieces->slots[i].text != NULL &&
           !(pieces->slots[i].length == length && memcmp(pieces->slots[i].text, text, length) == 0))
        i = (i + 1) & (pieces->n_slots - 1);
    return &pieces->slots[i];
}

/* All pieces of two and more characters of a segment, as long as the limit allows. */
enum { MOST_PIECES = 1 << 17, LONGEST_PIECE = 256 };

static void add_pieces(struct pieces *pieces, const struct segment *segment)
{
    for (size_t start = 0; start < segment->length; start += text_character(segment->text + start, segment->length - start)) {
        uint64_t hash = HASH_START;
        for (size_t end = start; end < segment->length && end - start < LONGEST_PIECE;) {
            size_t taken = text_character(segment->text + end, segment->length - end);
            hash = hash_bytes(hash, segment->text + end, taken);
            end += taken;
            struct piece *slot = piece_slot(pieces, hash, segment->text + start, end - start);
            if (slot->text == NULL && pieces->count < MOST_PIECES) {
                *slot = (struct piece){segment->text + start, end - start};
                pieces->count++;
            }
        }
    }
}

static struct rule *rule_slot(const struct rules *rules, const char *left, size_t left_length, const char *right,
                              size_t right_length)
{
    uint64_t hash = hash_bytes(hash_bytes(HASH_START, left, left_length) + 1, right, right_length);
    size_t i = (size_t)(hash ^ hash >> 29) & (rules->n_slots - 1);
    for (;; i = (i + 1) & (rules->n_slots - 1)) {
        struct rule *rule = &rules->slots[i];
        if (rule->left == NULL || (rule->left_length == left_length && rule->right_length == right_length &&
                                   memcmp(rule->left, left, left_length) == 0 && memcmp(rule->right, right, right_length) == 0))
            return rule;
    }
}

static void add_rule(struct encoder *encoder, const char *left, size_t left_length, const char *right, size_t right_length,
                     uint32_t rank)
{
    char joined[2 * LONGEST_PIECE];
    if (left_length + right_length > LONGEST_PIECE || encoder->rules.count * 2 >= encoder->rules.n_slots)
        return;
    memcpy(joined, left, left_length);
    memcpy(joined + left_length, right, right_length);
    size_t length = left_length + right_length;
    if (piece_slot(&encoder->pieces, hash_bytes(HASH_START, joined, length), joined, length)->text == NULL)
        return;
    struct rule *rule = rule_slot(&encoder->rules, left, left_length, right, right_length);
    encoder->rules.count += rule->left == NULL;
    *rule = (struct rule){left, right, left_length, right_length, rank};
}

static void add_json_rules(struct encoder *encoder, const struct json *merges)
{
    uint32_t rank = 0;
    for (const struct json *merge = json_first(merges); merge != NULL; merge = json_next(merge), rank++) {
        size_t length, right_length;
        const char *left = json_string(merge, &length), *right;
        if (left != NULL) {
            const char *space = memchr(left, ' ', length);
            if (space != NULL)
                add_rule(encoder, left, (size_t)(space - left), space + 1, length - (size_t)(space - left) - 1, rank);
        } else if ((left = json_string(json_first(merge), &length)) != NULL &&
                   (right = json_string(json_at(merge, 1), &right_length)) != NULL) {
            add_rule(encoder, left, length, right, right_length, rank);
        }
    }
}

static bool prepare_merges(struct encoder *encoder, const struct segments *segments)
{
    encoder->pieces.n_slots = 2 * MOST_PIECES;
    encoder->pieces.slots = arena_array(encoder->arena, encoder->pieces.n_slots, sizeof *encoder->pieces.slots);
    encoder->rules.n_slots = 1 << 16;
    encoder->rules.slots = arena_array(encoder->arena, encoder->rules.n_slots, sizeof *encoder->rules.slots);
    for (size_t i = 0; i < segments->count; i++)
        if (!segments->items[i].is_token)
            add_pieces(&encoder->pieces, &segments->items[i]);
    add_json_rules(encoder, json_get(encoder->vocabulary->model, "merges"));
    return true;
}

static void add_id(struct encoder *encoder, uint64_t id)
{
    if (encoder->n_ids == encoder->capacity) {
        encoder->capacity = encoder->capacity * 2 + 256;
        uint32_t *larger = arena_array(encoder->arena, encoder->capacity, sizeof *larger);
        if (encoder->n_ids != 0)
            memcpy(larger, encoder->ids, encoder->n_ids * sizeof *larger);
        encoder->ids = larger;
    }
    encoder->ids[encoder->n_ids++] = (uint32_t)id;
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

/* Byte pair encoding: the neighbours of the lowest rank are joined, the leftmost first, until no rule fits. */
static void encode_bpe(struct encoder *encoder, const struct segment *segment)
{
    uint64_t id;
    if (json_bool(json_get(encoder->vocabulary->model, "ignore_merges"), false) &&
        hf_model_id(encoder->vocabulary, segment->text, segment->length, &id)) {
        add_id(encoder, id);
        return;
    }
    size_t *ends = arena_array(encoder->arena, segment->length + 1, sizeof *ends), n_symbols = 0;
    for (size_t at = 0; at < segment->length;)
        ends[n_symbols++] = at += text_character(segment->text + at, segment->length - at);
    for (;;) {
        size_t best = n_symbols;
        uint32_t best_rank = UINT32_MAX;
        for (size_t i = 0; i + 1 < n_symbols; i++) {
            size_t start = i == 0 ? 0 : ends[i - 1];
            const struct rule *rule = rule_slot(&encoder->rules, segment->text + start, ends[i] - start, segment->text + ends[i],
                                                ends[i + 1] - ends[i]);
            if (rule->left != NULL && rule->rank < best_rank) {
                best_rank = rule->rank;
                best = i;
            }
        }
        if (best == n_symbols)
            break;
        memmove(&ends[best], &ends[best + 1], (n_symbols - best - 1) * sizeof *ends);
        n_symbols--;
    }
    for (size_t i = 0; i < n_symbols; i++) {
        size_t start = i == 0 ? 0 : ends[i - 1];
        add_symbol(encoder, segment->text + start, ends[i] - start);
    }
}

/* WordPiece: the longest token that fits, again and again; a word that does not come out is unknown as a whole. */
static void encode_word(struct encoder *encoder, const struct segment *segment)
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
}

/* Post-processors. */

static void add_special(struct encoder *encoder, const char *text, size_t length)
{
    uint64_t id;
    if (text != NULL && hf_token_id(encoder->vocabulary, text, length, &id))
        add_id(encoder, id);
}

/* The sequence goes where the template has it; its ids are there already, from `first` on. */
static void apply_template(struct encoder *encoder, const struct json *processor, const uint32_t *sequence, size_t count)
{
    for (const struct json *item = json_first(json_get(processor, "single")); item != NULL; item = json_next(item)) {
        const struct json *special = json_get(item, "SpecialToken");
        for (size_t i = 0; special == NULL && i < count; i++)
            add_id(encoder, sequence[i]);
        size_t length;
        const char *name = json_string(json_get(special, "id"), &length);
        if (name == NULL)
            continue;
        const struct json *ids = json_get(json_get_n(json_get(processor, "special_tokens"), name, length), "ids");
        uint64_t id;
        for (const struct json *each = json_first(ids); each != NULL; each = json_next(each))
            if (json_u64(each, &id) && id <= UINT32_MAX)
                add_id(encoder, id);
    }
}

static void apply_pair(struct encoder *encoder, const struct json *pair)
{
    uint64_t id;
    if (json_u64(json_at(pair, 1), &id) && id <= UINT32_MAX)
        add_id(encoder, id);
}

static void post_process(struct encoder *encoder, const struct json *processor, int depth)
{
    const struct json *type = json_get(processor, "type");
    const uint32_t *sequence = encoder->ids;
    size_t count = encoder->n_ids;
    bool is_template = json_string_is(type, "TemplateProcessing");
    bool is_pair = json_string_is(type, "RobertaProcessing") || json_string_is(type, "BertProcessing");
    if (is_template || is_pair) {
        encoder->ids = NULL;
        encoder->n_ids = encoder->capacity = 0;
    }
    if (is_template)
        apply_template(encoder, processor, sequence, count);
    if (is_pair) {
        apply_pair(encoder, json_get(processor, "cls"));
        for (size_t i = 0; i < count; i++)
            add_id(encoder, sequence[i]);
        apply_pair(encoder, json_get(processor, "sep"));
    }
    for (const struct json *each = json_first(json_get(processor, "processors")); each != NULL && depth < 4;
         each = json_next(each))
        post_process(encoder, each, depth + 1);
}

/* Classes that put their own post-processor in place of the file's: bos in front, eos behind, as the config says. */
static bool class_post_processes(const struct hf_vocabulary *vocabulary)
{
    static const char *const classes[] = {"LlamaTokenizer", "CodeLlamaTokenizer", "GemmaTokenizer", "CohereTokenizer"};
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (strcmp(vocabulary->class_name, classes[i]) == 0)
            return true;
    return false;
}

static void post_process_as_class(struct encoder *encoder)
{
    const struct hf_vocabulary *vocabulary = encoder->vocabulary;
    const uint32_t *sequence = encoder->ids;
    size_t count = encoder->n_ids, length;
    encoder->ids = NULL;
    encoder->n_ids = encoder->capacity = 0;
    if (json_bool(json_get(vocabulary->files->config, "add_bos_token"), true)) {
        const char *bos = hf_special_token(vocabulary, "bos_token", &length);
        add_special(encoder, bos, length);
    }
    for (size_t i = 0; i < count; i++)
        add_id(encoder, sequence[i]);
    if (json_bool(json_get(vocabulary->files->config, "add_eos_token"), false)) {
        const char *eos = hf_special_token(vocabulary, "eos_token", &length);
        add_special(encoder, eos, length);
    }
}

bool hf_encode(const struct hf_vocabulary *vocabulary, const char *text, size_t length, uint32_t **ret_ids, size_t *ret_count,
               struct error *error)
{
    struct encoder encoder = {.vocabulary = vocabulary, .arena = vocabulary->arena};
    struct segments segments = {.arena = vocabulary->arena};
    const struct json *type = json_get(vocabulary->model, "type");
    bool words = json_string_is(type, "WordPiece");
    if (length > ENCODE_MAX_TEXT)
        return error_set(error, "a text of %zu bytes is too long", length);
    if (json_string_is(type, "Unigram") || json_string_is(type, "WordLevel"))
        return error_set(error, "a %s model is not encoded", json_string(type, NULL));
    if (!hf_split(vocabulary, text, length, &segments, error) || (!words && !prepare_merges(&encoder, &segments)))
        return false;
    for (size_t i = 0; i < segments.count; i++) {
        if (segments.items[i].is_token)
            add_id(&encoder, segments.items[i].id);
        else if (words)
            encode_word(&encoder, &segments.items[i]);
        else
            encode_bpe(&encoder, &segments.items[i]);
    }
    if (class_post_processes(vocabulary))
        post_process_as_class(&encoder);
    else
        post_process(&encoder, json_get(vocabulary->files->tokenizer, "post_processor"), 0);
    *ret_ids = encoder.ids;
    *ret_count = encoder.n_ids;
    return true;
}
