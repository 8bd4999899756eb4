#include "models/tokenizers/hf_kind.h"

#include <stdlib.h>
#include <string.h>

static const uint32_t never_made = UINT32_MAX;

struct scoring {
    struct token_list *list;
    uint32_t *ranks; /* of the ids: which piece, in the order of merges, was made how early */
    uint32_t n_ranks;
    bool is_apart; /* merges that make one piece do not stand next to each other */
};

/* Gets the two halves of a merge: ["a", "b"], or "a b". */
static bool read_halves(const struct json *merge, const char *halves[2], size_t lengths[2])
{
    const char *text = json_string(merge, &lengths[0]), *space = NULL;
    if (text == NULL) {
        halves[0] = json_string(json_at(merge, 0), &lengths[0]);
        halves[1] = json_string(json_at(merge, 1), &lengths[1]);
        return halves[0] != NULL && halves[1] != NULL;
    }
    if (lengths[0] > 1)
        space = memchr(text + 1, ' ', lengths[0] - 1);
    if (space == NULL)
        return false;
    lengths[1] = lengths[0] - (size_t)(space + 1 - text);
    lengths[0] = (size_t)(space - text);
    halves[0] = text;
    halves[1] = space + 1;
    return true;
}

static void rank_pieces(struct scoring *scoring, const struct hf_vocabulary *vocabulary)
{
    struct buffer piece = {0};
    const struct json *merge = json_first(json_get(vocabulary->model, "merges"));
    for (; merge != NULL; merge = json_next(merge)) {
        const char *halves[2];
        size_t lengths[2];
        uint64_t id;
        if (!read_halves(merge, halves, lengths))
            continue;
        piece.length = 0;
        buffer_append(&piece, halves[0], lengths[0]);
        buffer_append(&piece, halves[1], lengths[1]);
        if (!hf_model_id(vocabulary, (const char *)piece.bytes, piece.length, &id) || id >= scoring->list->n_tokens)
            continue;
        if (scoring->ranks[id] == never_made)
            scoring->ranks[id] = scoring->n_ranks++;
        else
            scoring->is_apart |= scoring->ranks[id] + 1 != scoring->n_ranks;
    }
    buffer_free(&piece);
}

static bool is_spaces(const struct token *token)
{
    static const char space[] = "\xe2\x96\x81";
    size_t at = 0;
    while (token->length - at >= 3 && memcmp(token->text + at, space, 3) == 0)
        at += 3;
    return token->length > 0 && at == token->length;
}

static bool is_character(const struct token *token)
{
    size_t length = 1;
    while (length < token->length && ((unsigned char)token->text[length] & 0xc0) == 0x80)
        length++;
    return length == token->length;
}

/* How the ranks of pieces that merges make agree with their ids. */
struct agreement {
    bool with_spaces,
        without_spaces;   /* ranks rise with the ids, of all pieces, or of those that are not U+2581 alone */
    bool spaces_are_last; /* pieces of U+2581 alone are made after all others */
};

static struct agreement compare_ids(const struct scoring *scoring)
{
    struct agreement agreement = {true, true, true};
    uint32_t last = 0, last_other = 0, first_spaces = never_made;
    for (uint64_t id = 0; id < scoring->list->n_tokens; id++) {
        const struct token *token = &scoring->list->tokens[id];
        uint32_t rank = scoring->ranks[id];
        if (token->type != TOKEN_NORMAL || rank == never_made)
            continue;
        agreement.with_spaces &= rank >= last;
        last = rank;
        if (is_spaces(token)) {
            first_spaces = rank < first_spaces ? rank : first_spaces;
            continue;
        }
        agreement.without_spaces &= rank >= last_other;
        last_other = rank > last_other ? rank : last_other;
    }
    agreement.spaces_are_last = first_spaces > last_other;
    return agreement;
}

/* Returns the id after the tokens of bytes, or that of the first piece if that is lower. */
static uint64_t first_piece(const struct scoring *scoring)
{
    uint64_t first = UINT64_MAX, after_bytes = 0;
    for (uint64_t id = 0; id < scoring->list->n_tokens; id++) {
        const struct token *token = &scoring->list->tokens[id];
        if (token->type == TOKEN_BYTE)
            after_bytes = id + 1;
        else if (token->type == TOKEN_NORMAL && first == UINT64_MAX &&
                 (scoring->ranks[id] != never_made || is_character(token)))
            first = id;
    }
    return first < after_bytes ? first : after_bytes;
}

static void score_by_id(struct scoring *scoring, bool counts_all, bool spaces_last)
{
    static const float last = -1e9f;
    uint64_t first = counts_all ? 0 : first_piece(scoring);
    for (uint64_t id = 0; id < scoring->list->n_tokens; id++) {
        struct token *token = &scoring->list->tokens[id];
        bool is_made = scoring->ranks[id] != never_made || is_character(token);
        if (token->type != TOKEN_NORMAL)
            continue;
        if (spaces_last && is_spaces(token))
            token->score = last;
        else if (!counts_all && !is_made) /* given by the trainer's user */
            token->score = 0;
        else /* the trainer's own first piece has -0; lists in which spaces come last were numbered anew, from 0 */
            token->score = spaces_last && id == first ? 0 : -(float)(id - first);
    }
}

/* Scores by the ranks; the rest after these, in the order of ids. */
static void score_by_rank(struct scoring *scoring)
{
    uint32_t next = scoring->n_ranks;
    for (uint64_t id = 0; id < scoring->list->n_tokens; id++) {
        struct token *token = &scoring->list->tokens[id];
        if (token->type == TOKEN_NORMAL)
            token->score = -(float)(scoring->ranks[id] != never_made ? scoring->ranks[id] : next++);
    }
}

/* Reports whether two pieces make that one, in llama.cpp. */
static bool can_be_made(const struct hf_vocabulary *vocabulary, const struct token *token)
{
    uint64_t id;
    for (size_t i = 1; i < token->length; i++)
        if (hf_model_id(vocabulary, token->text, i, &id) &&
            hf_model_id(vocabulary, token->text + i, token->length - i, &id))
            return true;
    return false;
}

static bool has_unmade(const struct scoring *scoring, const struct hf_vocabulary *vocabulary)
{
    enum { LONGEST = 64 };
    for (uint64_t id = 0; id < scoring->list->n_tokens; id++) {
        const struct token *token = &scoring->list->tokens[id];
        if (token->type == TOKEN_NORMAL && scoring->ranks[id] == never_made && token->length <= LONGEST &&
            can_be_made(vocabulary, token))
            return true;
    }
    return false;
}

const char *merge_scores_set(struct token_list *list, const struct hf_vocabulary *vocabulary, bool counts_all,
                             bool spaces_last)
{
    struct scoring scoring = {.list = list, .ranks = arena_array(list->arena, list->n_tokens, sizeof(uint32_t))};
    for (uint64_t id = 0; id < list->n_tokens; id++)
        scoring.ranks[id] = never_made;
    rank_pieces(&scoring, vocabulary);
    struct agreement agreement = compare_ids(&scoring);
    bool moves_spaces = agreement.with_spaces && spaces_last && !agreement.spaces_are_last;
    if (agreement.with_spaces)
        score_by_id(&scoring, counts_all, spaces_last);
    else if (agreement.without_spaces && agreement.spaces_are_last)
        score_by_id(&scoring, counts_all, true);
    else
        score_by_rank(&scoring);
    if (has_unmade(&scoring, vocabulary))
        return "pieces that no merge makes";
    if (scoring.is_apart)
        return "merges of one piece in different places";
    return moves_spaces ? "merges of spaces before all others, where the model was trained with them as the last"
                        : NULL;
}
