/* tokenizer.json and tokenizer.model of SentencePiece vocabularies, and tokenizer.json of Gemma 4.
 *
 * The merges of the former are all pairs of pieces that make a piece, as transformers finds them. Pairs are found by
 * length: of each piece, the pieces that it begins with and those that it ends with are chains, each the longest of the
 * one before, which sorting the pieces gives, forwards and backwards. So n pieces of N bytes cost O(N log n), whatever
 * they are. */
#include "base/text.h"
#include "models/sentencepiece_model.pb-c.h"
#include "models/tokenizers/rebuild.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MODEL_UNIGRAM = 1, MODEL_BPE = 2 };

static bool is_unigram(const struct stored_vocab *vocab)
{
    return strcmp(vocab->model, "t5") == 0;
}

/* The id of the one unknown token. */
static uint64_t unknown_id(const struct stored_vocab *vocab)
{
    if (vocab->ids[SPECIAL_UNKNOWN] != NO_TOKEN)
        return (uint64_t)vocab->ids[SPECIAL_UNKNOWN];
    for (uint64_t i = 0; i < vocab->n_tokens; i++)
        if (vocab->tokens[i].type == TOKEN_UNKNOWN)
            return i;
    for (uint64_t i = 0; i < vocab->n_tokens; i++)
        if (vocab->tokens[i].length == 5 && memcmp(vocab->tokens[i].text, "<unk>", 5) == 0)
            return i;
    return 0;
}

/* Merges. */

static const uint32_t NONE = UINT32_MAX;

struct merge {
    uint32_t left, right, order;
    float score;
    uint32_t left_characters, right_characters;
};

struct chains {
    uint32_t *shorter[2]; /* by id: the longest piece that it begins with, and that it ends with */
    uint32_t *ends;       /* room for the second chain of any piece */
};

struct sorted_piece {
    const char *text;
    uint32_t length, id;
};

static int compare_forwards(const void *a, const void *b)
{
    const struct sorted_piece *x = a, *y = b;
    int order = text_compare(x->text, x->length, y->text, y->length);
    return order != 0 ? order : (x->id > y->id) - (x->id < y->id);
}

static int compare_backwards(const void *a, const void *b)
{
    const struct sorted_piece *x = a, *y = b;
    uint32_t shorter = x->length < y->length ? x->length : y->length;
    for (uint32_t i = 1; i <= shorter; i++) {
        unsigned char of_x = (unsigned char)x->text[x->length - i], of_y = (unsigned char)y->text[y->length - i];
        if (of_x != of_y)
            return of_x < of_y ? -1 : 1;
    }
    if (x->length != y->length)
        return x->length < y->length ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

static bool is_part(const struct sorted_piece *part, const struct sorted_piece *whole, bool at_end)
{
    return part->length < whole->length &&
           memcmp(part->text, whole->text + (at_end ? whole->length - part->length : 0), part->length) == 0;
}

/* In sorted order a piece comes after those that it begins with: the last one of them is the one before it, or that
 * one's, and so on. */
static void find_chains(struct sorted_piece *pieces, size_t n_pieces, bool at_end, uint32_t *shorter)
{
    qsort(pieces, n_pieces, sizeof *pieces, at_end ? compare_backwards : compare_forwards);
    size_t *above = memory_alloc((n_pieces + 1) * sizeof *above), depth = 0;
    for (size_t i = 0; i < n_pieces; i++) {
        while (depth > 0 && !is_part(&pieces[above[depth - 1]], &pieces[i], at_end))
            depth--;
        shorter[pieces[i].id] = depth > 0 ? pieces[above[depth - 1]].id : NONE;
        above[depth++] = i;
    }
    free(above);
}

static struct chains make_chains(const struct stored_vocab *vocab)
{
    struct chains chains;
    struct sorted_piece *pieces = memory_alloc((vocab->n_tokens + 1) * sizeof *pieces);
    size_t n_pieces = 0, longest = 0;
    for (uint64_t i = 0; i < vocab->n_tokens; i++) {
        const struct token *token = &vocab->tokens[i];
        longest = token->length > longest ? token->length : longest;
        if (token->length > 0)
            pieces[n_pieces++] = (struct sorted_piece){token->text, (uint32_t)token->length, (uint32_t)i};
    }
    chains.ends = arena_array(vocab->arena, longest + 1, sizeof *chains.ends);
    for (int side = 0; side < 2; side++) {
        chains.shorter[side] = arena_array(vocab->arena, vocab->n_tokens + 1, sizeof(uint32_t));
        find_chains(pieces, n_pieces, side == 1, chains.shorter[side]);
    }
    free(pieces);
    return chains;
}

static uint32_t count_characters(const struct token *token)
{
    uint32_t count = 0;
    for (size_t at = 0; at < token->length; at++)
        count += (token->text[at] & 0xc0) != 0x80;
    return count;
}

static int compare_pairs(const void *a, const void *b)
{
    const struct merge *x = a, *y = b;
    if (x->left != y->left)
        return x->left < y->left ? -1 : 1;
    return (x->right > y->right) - (x->right < y->right);
}

static int compare_merges(const void *a, const void *b)
{
    const struct merge *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    if (x->left_characters != y->left_characters)
        return x->left_characters > y->left_characters ? -1 : 1;
    if (x->right_characters != y->right_characters)
        return x->right_characters > y->right_characters ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

struct merges {
    struct merge *merges;
    size_t n_merges, capacity;
    uint64_t n_bytes, most_bytes; /* of the texts of all of them */
};

static void add_merge(const struct stored_vocab *vocab, uint32_t left, uint32_t right, float score,
                      struct merges *merges)
{
    if (merges->n_merges == merges->capacity) {
        merges->capacity = merges->capacity * 2 + 1024;
        merges->merges = memory_resize(merges->merges, merges->capacity * sizeof *merges->merges);
    }
    merges->merges[merges->n_merges++] = (struct merge){
        left, right, 0, score, count_characters(&vocab->tokens[left]), count_characters(&vocab->tokens[right])};
}

/* All pairs of pieces that make this one, in the order of their ids; false where that are too many. */
static bool add_pairs(const struct stored_vocab *vocab, const struct chains *chains, uint32_t id, float score,
                      struct merges *merges)
{
    size_t first = merges->n_merges, length = vocab->tokens[id].length, n_ends = 0;
    uint32_t *ends = chains->ends; /* turned around: while beginnings get shorter, ends get longer */
    for (uint32_t end = chains->shorter[1][id]; end != NONE; end = chains->shorter[1][end])
        ends[n_ends++] = end;
    for (uint32_t left = chains->shorter[0][id]; left != NONE && n_ends > 0; left = chains->shorter[0][left]) {
        size_t rest = length - vocab->tokens[left].length;
        while (n_ends > 0 && vocab->tokens[ends[n_ends - 1]].length < rest)
            n_ends--;
        if (n_ends == 0 || vocab->tokens[ends[n_ends - 1]].length != rest)
            continue;
        merges->n_bytes += length;
        if (merges->n_bytes > merges->most_bytes)
            return false;
        add_merge(vocab, left, ends[n_ends - 1], score, merges);
    }
    if (merges->n_merges > first + 1)
        qsort(merges->merges + first, merges->n_merges - first, sizeof *merges->merges, compare_pairs);
    return true;
}

/* Reports whether an added token has taken the place of a piece, whose score is lost. A piece that is nothing else may
 * have that score for its own. */
static bool is_filled(const struct token *token)
{
    return (token->type == TOKEN_CONTROL || token->type == TOKEN_USER_DEFINED) && token->score == TOKEN_NO_PIECE;
}

/* Returns the sort key of a piece: its score, 0 if that is lost; without scores, its place. */
static float piece_score(const struct stored_vocab *vocab, uint64_t id)
{
    if (!vocab->has_scores)
        return -(float)id;
    return is_filled(&vocab->tokens[id]) ? 0 : vocab->tokens[id].score;
}

/* Pieces that are all parts of each other make merges of as many bytes as the square of theirs: what is more than this
 * for each byte of the pieces is no tokenizer's. Those of Llama 2 and Gemma have less than 3. */
enum { MERGED_BYTES = 64, SMALL_VOCABULARY = 64 << 10 };

static uint64_t bytes_of_pieces(const struct stored_vocab *vocab)
{
    uint64_t n_bytes = 0;
    for (uint64_t i = 0; i < vocab->n_tokens; i++)
        n_bytes += vocab->tokens[i].length;
    return n_bytes;
}

static bool find_merges(const struct stored_vocab *vocab, struct merges *ret_merges, struct error *error)
{
    uint64_t n_bytes = bytes_of_pieces(vocab), unknown = unknown_id(vocab);
    struct merges merges = {.most_bytes = MERGED_BYTES * (n_bytes + SMALL_VOCABULARY)};
    struct chains chains = make_chains(vocab);
    bool found = true;
    for (uint64_t i = 0; i < vocab->n_tokens && found; i++) {
        const struct token *token = &vocab->tokens[i];
        bool is_piece = token->type == TOKEN_NORMAL || token->type == TOKEN_USER_DEFINED || token->type == TOKEN_UNUSED;
        if (is_piece && i != unknown && token->length > 0)
            found = add_pairs(vocab, &chains, (uint32_t)i, piece_score(vocab, i), &merges);
    }
    for (size_t i = 0; i < merges.n_merges; i++)
        merges.merges[i].order = (uint32_t)i;
    if (merges.n_merges > 0)
        qsort(merges.merges, merges.n_merges, sizeof *merges.merges, compare_merges);
    *ret_merges = merges;
    return found ||
           error_set(error,
                     "tokenizer.ggml.tokens: pieces of %" PRIu64 " bytes need merges of more than %" PRIu64 " bytes",
                     n_bytes, merges.most_bytes);
}

/* tokenizer.json. */

/* Spaces become part of the pieces; with a prefix, a text is taken to begin with a space. */
static const char with_prefix[] =
    "'normalizer': {'type': 'Sequence', 'normalizers': [{'type': 'Prepend', 'prepend': '\xe2\x96\x81'},"
    " {'type': 'Replace', 'pattern': {'String': ' '}, 'content': '\xe2\x96\x81'}]}, 'pre_tokenizer': null";
static const char without_prefix[] =
    "'normalizer': {'type': 'Replace', 'pattern': {'String': ' '}, 'content': '\xe2\x96\x81'},"
    "'pre_tokenizer': {'type': 'Split', 'pattern': {'String': ' '}, 'behavior': 'MergedWithPrevious', 'invert': false}";

static void write_decoder(bool adds_prefix, struct json_writer *writer)
{
    json_put_template(writer, "'decoder': {'type': 'Sequence', 'decoders': ["
                              "{'type': 'Replace', 'pattern': {'String': '\xe2\x96\x81'}, 'content': ' '},"
                              "{'type': 'ByteFallback'}, {'type': 'Fuse'}");
    if (adds_prefix)
        json_put_template(writer, "{'type': 'Strip', 'content': ' ', 'start': 1, 'stop': 0}");
    json_put_template(writer, "]}");
}

static bool write_found_merges(const struct stored_vocab *vocab, struct json_writer *writer, struct error *error)
{
    struct merges merges;
    bool found = find_merges(vocab, &merges, error);
    json_begin_array(writer, "merges");
    for (size_t i = 0; found && i < merges.n_merges; i++) {
        const struct token *left = &vocab->tokens[merges.merges[i].left],
                           *right = &vocab->tokens[merges.merges[i].right];
        json_put_template(writer, "[%t, %t]", left->text, left->length, right->text, right->length);
    }
    json_end(writer);
    free(merges.merges);
    return found;
}

/* Gemma 4's are among its keys. */
static bool write_merges(const struct stored_vocab *vocab, struct json_writer *writer, struct error *error)
{
    if (strcmp(vocab->model, "gemma4") == 0)
        return rebuild_merges(vocab, writer, error);
    return write_found_merges(vocab, writer, error);
}

static bool write_model(const struct stored_vocab *vocab, struct json_writer *writer, struct error *error)
{
    uint64_t unknown = unknown_id(vocab);
    json_put_template(writer, "'model': {'type': 'BPE', 'dropout': null");
    if (vocab->n_tokens > 0)
        json_put_text_n(writer, "unk_token", vocab->tokens[unknown].text, vocab->tokens[unknown].length);
    json_put_template(writer, "'continuing_subword_prefix': null, 'end_of_word_suffix': null, 'fuse_unk': true,"
                              " 'byte_fallback': true, 'ignore_merges': false, 'vocab': {");
    for (uint64_t i = 0; i < vocab->n_tokens; i++)
        rebuild_put_token(vocab, i, writer);
    json_end(writer);
    bool written = write_merges(vocab, writer, error);
    json_end(writer);
    return written;
}

bool rebuild_spm_json(const struct stored_vocab *vocab, struct buffer *out, struct error *error)
{
    struct json_writer writer = {.out = out, .letters = JSON_UTF8};
    struct template template;
    bool adds_prefix = rebuild_flag(vocab, "tokenizer.ggml.add_space_prefix", true);
    rebuild_begin(vocab, &writer);
    json_put_template(&writer, adds_prefix ? with_prefix : without_prefix);
    if (rebuild_usual_template(vocab, true, &template))
        rebuild_template(vocab, &template, "post_processor", &writer);
    else
        json_put_null(&writer, "post_processor");
    write_decoder(adds_prefix, &writer);
    bool written = write_model(vocab, &writer, error);
    json_end(&writer);
    return written;
}

/* tokenizer.model. */

static ProtobufCBinaryData bytes_of(const char *text, size_t length)
{
    return (ProtobufCBinaryData){.len = length, .data = (uint8_t *)text};
}

static int32_t piece_type(const struct stored_vocab *vocab, uint64_t id, uint64_t unknown)
{
    enum token_type type = vocab->tokens[id].type;
    if (id == unknown)
        return TOKEN_UNKNOWN;
    if (type == TOKEN_UNKNOWN || type < TOKEN_NORMAL || type > TOKEN_BYTE)
        return TOKEN_NORMAL;
    return type;
}

typedef Wfs__Sentencepiece__Model__Piece piece;
typedef Wfs__Sentencepiece__Model__Trainer trainer;

static piece **make_pieces(const struct stored_vocab *vocab, uint64_t unknown)
{
    piece *pieces = arena_array(vocab->arena, vocab->n_tokens, sizeof *pieces);
    piece **pointers = arena_array(vocab->arena, vocab->n_tokens, sizeof *pointers);
    for (uint64_t i = 0; i < vocab->n_tokens; i++) {
        const struct token *token = &vocab->tokens[i];
        wfs__sentencepiece__model__piece__init(&pieces[i]);
        pieces[i].has_piece = pieces[i].has_score = true;
        pieces[i].piece = bytes_of(token->text, token->length);
        pieces[i].score = is_filled(token) ? 0 : token->score;
        pieces[i].type = piece_type(vocab, i, unknown);
        pieces[i].has_type = pieces[i].type != TOKEN_NORMAL;
        pointers[i] = &pieces[i];
    }
    return pointers;
}

static bool has_bytes(const struct stored_vocab *vocab)
{
    for (uint64_t i = 0; i < vocab->n_tokens; i++)
        if (vocab->tokens[i].type == TOKEN_BYTE)
            return true;
    return false;
}

static void set_special(const struct stored_vocab *vocab, int64_t id, int32_t *ret_id, protobuf_c_boolean *ret_has,
                        ProtobufCBinaryData *ret_piece)
{
    *ret_id = (int32_t)id;
    *ret_has = id != NO_TOKEN;
    if (id != NO_TOKEN)
        *ret_piece = bytes_of(vocab->tokens[id].text, vocab->tokens[id].length);
}

static trainer make_trainer(const struct stored_vocab *vocab, uint64_t unknown)
{
    static const char surface[] = " \xe2\x81\x87 ";
    trainer made;
    wfs__sentencepiece__model__trainer__init(&made);
    made.has_model_type = made.has_vocab_size = made.has_byte_fallback = made.has_unk_id = made.has_bos_id =
        made.has_eos_id = made.has_pad_id = made.has_unk_surface = true;
    made.model_type = is_unigram(vocab) ? MODEL_UNIGRAM : MODEL_BPE;
    made.vocab_size = (int32_t)vocab->n_tokens;
    made.byte_fallback = has_bytes(vocab);
    made.unk_surface = bytes_of(surface, sizeof surface - 1);
    set_special(vocab, (int64_t)unknown, &made.unk_id, &made.has_unk_piece, &made.unk_piece);
    set_special(vocab, vocab->ids[SPECIAL_BOS], &made.bos_id, &made.has_bos_piece, &made.bos_piece);
    set_special(vocab, vocab->ids[SPECIAL_EOS], &made.eos_id, &made.has_eos_piece, &made.eos_piece);
    set_special(vocab, vocab->ids[SPECIAL_PADDING], &made.pad_id, &made.has_pad_piece, &made.pad_piece);
    return made;
}

bool rebuild_spm_model(const struct stored_vocab *vocab, struct buffer *out, struct error *error)
{
    Wfs__Sentencepiece__Model model = WFS__SENTENCEPIECE__MODEL__INIT;
    Wfs__Sentencepiece__Model__Normalizer normalizer = WFS__SENTENCEPIECE__MODEL__NORMALIZER__INIT;
    struct gguf_array charsmap = {0};
    uint64_t unknown = unknown_id(vocab);
    trainer made = make_trainer(vocab, unknown);
    if (!is_unigram(vocab) && !vocab->has_scores)
        return error_set(error, "%s",
                         ""); /* it comes from a tokenizer.json alone, and a SentencePiece model is another one */
    if (gguf_kvs_find(vocab->kvs, "tokenizer.ggml.precompiled_charsmap") != NULL &&
        !gguf_get_array(vocab->kvs, "tokenizer.ggml.precompiled_charsmap", vocab->arena, &charsmap, error))
        return false;
    normalizer.has_name = normalizer.has_precompiled_charsmap = normalizer.has_add_dummy_prefix =
        normalizer.has_remove_extra_whitespaces = normalizer.has_escape_whitespaces = true;
    normalizer.name = is_unigram(vocab) ? bytes_of("nmt_nfkc", 8) : bytes_of("identity", 8);
    normalizer.precompiled_charsmap = bytes_of((const char *)charsmap.elements, charsmap.count);
    normalizer.add_dummy_prefix = rebuild_flag(vocab, "tokenizer.ggml.add_space_prefix", true);
    normalizer.remove_extra_whitespaces =
        rebuild_flag(vocab, "tokenizer.ggml.remove_extra_whitespaces", is_unigram(vocab));
    normalizer.escape_whitespaces = true;
    model.n_pieces = vocab->n_tokens;
    model.pieces = make_pieces(vocab, unknown);
    model.trainer = &made;
    model.normalizer = &normalizer;
    unsigned char *packed = memory_alloc(wfs__sentencepiece__model__get_packed_size(&model) + 1);
    buffer_append(out, packed, wfs__sentencepiece__model__pack(&model, packed));
    free(packed);
    return true;
}

bool rebuild_xlmr_model(const struct stored_vocab *vocab, struct buffer *out, struct error *error)
{
    enum { BEGIN, PADDING, END, UNKNOWN, FRONT, MODEL_FRONT = 3 };
    if (!vocab->is_xlmr)
        return error_set(error, "the order of this vocabulary's pieces is unknown");
    struct stored_vocab pieces = *vocab;
    pieces.n_tokens = vocab->n_tokens - (vocab->ids[SPECIAL_MASK] != NO_TOKEN) - FRONT + MODEL_FRONT;
    pieces.tokens = arena_array(vocab->arena, pieces.n_tokens, sizeof *pieces.tokens);
    pieces.tokens[0] = vocab->tokens[UNKNOWN];
    pieces.tokens[1] = vocab->tokens[BEGIN];
    pieces.tokens[2] = vocab->tokens[END];
    memcpy(pieces.tokens + MODEL_FRONT, vocab->tokens + FRONT,
           (size_t)(pieces.n_tokens - MODEL_FRONT) * sizeof *pieces.tokens);
    pieces.ids[SPECIAL_UNKNOWN] = 0;
    pieces.ids[SPECIAL_BOS] = 1;
    pieces.ids[SPECIAL_EOS] = 2;
    pieces.ids[SPECIAL_PADDING] = NO_TOKEN;
    return rebuild_spm_model(&pieces, out, error);
}
