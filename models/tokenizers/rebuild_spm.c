/* tokenizer.json and tokenizer.model of SentencePiece vocabularies. */
#include "base/encodings.h"
#include "base/text_index.h"
#include "models/sentencepiece_model.pb-c.h"
#include "models/tokenizers/rebuild.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* tokenizer.json and tokenizer.model of SentencePiece vocabularies, and tokenizer.json of Gemma 4.
 *
 * Like transformers, takes as merges all pairs of pieces that make a piece: cuts each piece at every place and looks
 * both halves up. A piece of n bytes takes n * n steps. Gemma 4 has its merges in a key. */

enum { MODEL_UNIGRAM = 1, MODEL_BPE = 2 };

static bool is_unigram(const struct stored_vocab *vocab)
{
    return strcmp(vocab->model, "t5") == 0;
}

/* Returns the id of the one unknown token. */
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

struct merge {
    uint32_t left, right, order;
    float score;
    uint32_t left_characters, right_characters;
};

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
    size_t n_merges;
};

static void add_merge(const struct stored_vocab *vocab, uint32_t left, uint32_t right, float score,
                      struct merges *merges)
{
    merges->merges = memory_grow(merges->merges, merges->n_merges, sizeof *merges->merges);
    merges->merges[merges->n_merges++] = (struct merge){
        left, right, 0, score, count_characters(&vocab->tokens[left]), count_characters(&vocab->tokens[right])};
}

/* Adds all pairs of pieces that make this piece, in the order of their ids. */
static void add_pairs(const struct stored_vocab *vocab, const struct text_index *ids, uint32_t id, float score,
                      struct merges *merges)
{
    const struct token *token = &vocab->tokens[id];
    size_t first = merges->n_merges, left, right;
    for (size_t at = 1; at < token->length; at++)
        if (text_index_find(ids, token->text, at, &left) &&
            text_index_find(ids, token->text + at, token->length - at, &right))
            add_merge(vocab, (uint32_t)left, (uint32_t)right, score, merges);
    if (merges->n_merges > first + 1)
        qsort(merges->merges + first, merges->n_merges - first, sizeof *merges->merges, compare_pairs);
}

/* Reports whether an added token replaced a piece, whose score is lost. An ordinary piece may have that score as its
 * own. */
static bool is_filled(const struct token *token)
{
    return (token->type == TOKEN_CONTROL || token->type == TOKEN_USER_DEFINED) && token->score == TOKEN_NO_PIECE;
}

/* Returns the sort key of a piece: its score, 0 if the score is lost; without scores, its place. */
static float piece_score(const struct stored_vocab *vocab, uint64_t id)
{
    if (!vocab->has_scores)
        return -(float)id;
    return is_filled(&vocab->tokens[id]) ? 0 : vocab->tokens[id].score;
}

/* The limit of steps for all pieces, for each of their bytes. The pieces of Llama 2 and Gemma take less than 20. */
enum { STEPS_A_BYTE = 64, SMALL_VOCABULARY = 64 << 10 };

static bool check_lengths(const struct stored_vocab *vocab, struct error *error)
{
    uint64_t n_bytes = SMALL_VOCABULARY, n_steps = 0;
    for (uint64_t i = 0; i < vocab->n_tokens; i++) {
        n_bytes += vocab->tokens[i].length;
        n_steps += (uint64_t)vocab->tokens[i].length * vocab->tokens[i].length;
    }
    return n_steps <= STEPS_A_BYTE * n_bytes ||
           error_set(error,
                     "tokenizer.ggml.tokens: long pieces: the squares of their lengths make %" PRIu64
                     ", more than %d for each of their bytes",
                     n_steps, STEPS_A_BYTE);
}

static bool find_merges(const struct stored_vocab *vocab, struct merges *ret_merges, struct error *error)
{
    uint64_t unknown = unknown_id(vocab);
    struct text_index ids = {0};
    *ret_merges = (struct merges){0};
    if (!check_lengths(vocab, error))
        return false;
    for (uint64_t i = 0; i < vocab->n_tokens; i++)
        if (vocab->tokens[i].length > 0)
            text_index_set(&ids, vocab->tokens[i].text, vocab->tokens[i].length, i);
    for (uint64_t i = 0; i < vocab->n_tokens; i++) {
        const struct token *token = &vocab->tokens[i];
        bool is_piece = token->type == TOKEN_NORMAL || token->type == TOKEN_USER_DEFINED || token->type == TOKEN_UNUSED;
        if (is_piece && i != unknown)
            add_pairs(vocab, &ids, (uint32_t)i, piece_score(vocab, i), ret_merges);
    }
    text_index_free(&ids);
    for (size_t i = 0; i < ret_merges->n_merges; i++)
        ret_merges->merges[i].order = (uint32_t)i;
    if (ret_merges->n_merges > 0)
        qsort(ret_merges->merges, ret_merges->n_merges, sizeof *ret_merges->merges, compare_merges);
    return true;
}

/* tokenizer.json. */

/* Spaces become part of the pieces; with a prefix, texts begin with a space. */
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

/* Writes the merges, Gemma 4's from its keys. */
static bool write_merges(const struct stored_vocab *vocab, struct json_writer *writer, struct error *error)
{
    if (strcmp(vocab->model, "gemma4") == 0)
        return rebuild_merges(vocab, writer, error);
    return write_found_merges(vocab, writer, error);
}

static bool rebuild_spm_write_model(const struct stored_vocab *vocab, struct json_writer *writer, struct error *error)
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
    bool written = rebuild_spm_write_model(vocab, &writer, error);
    json_end(&writer);
    return written;
}

/* tokenizer.model. */

static ProtobufCBinaryData bytes_of(const struct stored_vocab *vocab, const void *text, size_t length)
{
    return (ProtobufCBinaryData){.len = length, .data = length > 0 ? arena_copy(vocab->arena, text, length) : NULL};
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
        pieces[i].piece = bytes_of(vocab, token->text, token->length);
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
        *ret_piece = bytes_of(vocab, vocab->tokens[id].text, vocab->tokens[id].length);
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
    made.unk_surface = bytes_of(vocab, surface, sizeof surface - 1);
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
        return error_set(error, "no piece has a score of its own, as in a GGUF made from tokenizer.json alone; use "
                                "tokenizer.json");
    if (gguf_kvs_find(vocab->kvs, "tokenizer.ggml.precompiled_charsmap") != NULL &&
        !gguf_get_array(vocab->kvs, "tokenizer.ggml.precompiled_charsmap", vocab->arena, &charsmap, error))
        return false;
    normalizer.has_name = normalizer.has_precompiled_charsmap = normalizer.has_add_dummy_prefix =
        normalizer.has_remove_extra_whitespaces = normalizer.has_escape_whitespaces = true;
    normalizer.name = is_unigram(vocab) ? bytes_of(vocab, "nmt_nfkc", 8) : bytes_of(vocab, "identity", 8);
    normalizer.precompiled_charsmap = bytes_of(vocab, charsmap.elements, charsmap.count);
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

/* tokenizer.json of Unigram vocabularies, as T5's converter in transformers makes it. */

static const char metaspace[] =
    "{'type': 'Metaspace', 'replacement': '\xe2\x96\x81', 'prepend_scheme': 'always', 'split': true}";

static bool put_precompiled(const struct stored_vocab *vocab, struct json_writer *writer, struct error *error)
{
    struct gguf_array charsmap;
    if (gguf_kvs_find(vocab->kvs, "tokenizer.ggml.precompiled_charsmap") == NULL)
        return true;
    if (!gguf_get_array(vocab->kvs, "tokenizer.ggml.precompiled_charsmap", vocab->arena, &charsmap, error))
        return false;
    if (charsmap.type != GGUF_U8 && charsmap.type != GGUF_I8)
        return error_set(error, "tokenizer.ggml.precompiled_charsmap is not an array of bytes");
    json_put_template(writer, "{'type': 'Precompiled', 'precompiled_charsmap': %s}",
                      base64_encode(vocab->arena, charsmap.elements, charsmap.count));
    return true;
}

enum { SCORE_TEXT = 32 };

/* Writes a score as Python writes a float: every F32 is exact as a double. */
static const char *score_text(float score, char out[SCORE_TEXT])
{
    snprintf(out, SCORE_TEXT, "%.17g", isfinite(score) ? (double)score : 0.0);
    return out;
}

static void rebuild_unigram_write_model(const struct stored_vocab *vocab, struct json_writer *writer)
{
    char text[SCORE_TEXT];
    uint64_t unknown = vocab->ids[SPECIAL_UNKNOWN] != NO_TOKEN ? (uint64_t)vocab->ids[SPECIAL_UNKNOWN] : 0;
    for (uint64_t i = 0; vocab->ids[SPECIAL_UNKNOWN] == NO_TOKEN && i < vocab->n_tokens; i++)
        if (vocab->tokens[i].type == TOKEN_UNKNOWN) {
            unknown = i;
            break;
        }
    json_put_template(writer, "'model': {'type': 'Unigram', 'unk_id': %u, 'vocab': [", unknown);
    for (uint64_t i = 0; i < vocab->n_tokens; i++) {
        const struct token *token = &vocab->tokens[i];
        json_put_template(writer, "[%t, %r]", token->text, token->length, score_text(token->score, text));
    }
    json_put_template(writer, "], 'byte_fallback': false}");
}

/* Reads the template; without its keys, T5's A </s> and, for a second text, B </s>; or XLM-R's <s> A </s></s> B </s> if
 * there is a first token. All tokens have type 0. */
static void read_template(const struct stored_vocab *vocab, struct template *ret_template)
{
    rebuild_usual_template(vocab, true, ret_template);
    if (ret_template->after != NO_TOKEN || !rebuild_flag(vocab, "tokenizer.ggml.add_eos_token", true))
        return;
    ret_template->after = vocab->ids[SPECIAL_EOS];
    ret_template->n_between = ret_template->before != NO_TOKEN ? 2 : 1;
    ret_template->second_type = 0;
}

bool rebuild_unigram_json(const struct stored_vocab *vocab, struct buffer *out, struct error *error)
{
    struct json_writer writer = {.out = out, .letters = JSON_UTF8};
    struct template template;
    rebuild_begin(vocab, &writer);
    json_put_template(&writer, "'normalizer': {'type': 'Sequence', 'normalizers': [");
    if (!put_precompiled(vocab, &writer, error))
        return false;
    json_put_template(&writer, "{'type': 'Strip', 'strip_left': false, 'strip_right': true},"
                               "{'type': 'Replace', 'pattern': {'Regex': ' {2,}'}, 'content': '\xe2\x96\x81'}]}");
    json_put_template(&writer, "'pre_tokenizer': ");
    json_put_template(&writer, metaspace);
    read_template(vocab, &template);
    rebuild_template(vocab, &template, "post_processor", &writer);
    json_put_template(&writer, "'decoder': ");
    json_put_template(&writer, metaspace);
    rebuild_unigram_write_model(vocab, &writer);
    json_end(&writer);
    return true;
}
