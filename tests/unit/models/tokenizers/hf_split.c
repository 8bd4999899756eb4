/* From a text to what the model encodes piece by piece: every kind of normalizer and pre-tokenizer against
 * huggingface/tokenizers. */
#include "models/tokenizers/hf_encode.h"

#include "base/buffer.h"
#include "tests/unit/check.h"

#include <stdlib.h>

#include "tests/unit/models/tokenizers/hf_split.inc"

#define MODEL "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]}"

/* The pieces with a '|' between them, tokens in brackets; in the arena. NULL with an error where it fails. */
static const char *pieces_of(struct arena *arena, const char *members, const char *text, struct error *error)
{
    const char *json = arena_printf(arena, "{" MODEL ",%s}", members), *pieces = NULL;
    struct json_document *document = json_parse(json, strlen(json), error);
    struct hparams *hparams = hparams_parse("{}", 2, error);
    struct tokenizer_files files = {.tokenizer = document != NULL ? json_root(document) : NULL};
    const struct vocab_input input = {.hparams = hparams, .owner = hparams};
    struct hf_vocabulary vocabulary;
    struct work work = {ENCODE_WORK};
    struct segments segments = {.arena = arena, .work = &work};
    struct buffer joined = {0};
    CHECK_NAMED(document != NULL && hf_vocabulary_load(&input, &files, &vocabulary, error) == VOCAB_ADDED, members);
    if (hf_split(&vocabulary, text, strlen(text), &segments, error)) {
        for (size_t i = 0; i < segments.count; i++) {
            const struct segment *segment = &segments.items[i];
            buffer_append_text(&joined, i > 0 ? "|" : "");
            buffer_append_text(&joined, segment->is_token ? "[" : "");
            buffer_append(&joined, segment->text, segment->length);
            buffer_append_text(&joined, segment->is_token ? "]" : "");
        }
        pieces = arena_strndup(arena, (const char *)joined.bytes, joined.length);
    }
    buffer_free(&joined);
    hf_vocabulary_free(&vocabulary);
    hparams_free(hparams);
    json_free(document);
    return pieces;
}

static void test_cases(struct arena *arena)
{
    struct error error;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
            if (!CHECK_TEXT(pieces_of(arena, cases[i].json, texts[k], &error), cases[i].pieces[k]))
                fprintf(stderr, "  %s\n", cases[i].name);
}

/* Spaces of several bytes, stripped by a normalizer and by added tokens: what tokenizers 0.22.2 makes of them. */
static void test_wide_spaces(struct arena *arena)
{
#define STRIP(right) "\"normalizer\":{\"type\":\"Strip\",\"strip_left\":true,\"strip_right\":" right "}"
#define TOKEN(side)  "\"added_tokens\":[{\"id\":1,\"content\":\"<m>\",\"" side "\":true,\"normalized\":false}]"
    static const struct {
        const char *json, *text, *pieces;
    } rows[] = {
        {STRIP("true"), "\u3000 x\u2003", "x"},
        {STRIP("true"), "\u00a0y\u2028 \u3000", "y"},
        {STRIP("true"), "\u2003\u3000", ""},
        {STRIP("true"), "z\u200b\u00a0", "z\u200b"},
        {STRIP("false"), "\u00a0y\u2028 \u3000", "y\u2028 \u3000"},
        {TOKEN("lstrip"), "x\u3000\u00a0<m>y", "x|[]|y"},
        {TOKEN("lstrip"), "x \u2003<m> y", "x|[]| y"},
        {TOKEN("rstrip"), "x\u3000<m>\u3000\u2003y", "x\u3000|[]|y"},
    };
    struct error error;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK_TEXT(pieces_of(arena, rows[i].json, rows[i].text, &error), rows[i].pieces);
}

int main(void)
{
    struct arena *arena = arena_new();
    test_cases(arena);
    test_wide_spaces(arena);
    arena_free(arena);
    return check_done();
}
