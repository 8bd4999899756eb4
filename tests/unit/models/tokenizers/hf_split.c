/* From a text to what the model encodes piece by piece: every kind of normalizer and pre-tokenizer against
 * huggingface/tokenizers. */
#include "models/tokenizers/hf_split.h"

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

int main(void)
{
    struct arena *arena = arena_new();
    test_cases(arena);
    arena_free(arena);
    return check_done();
}
