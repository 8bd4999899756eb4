/* Vocabularies that are made of a few side files, and what their keys are. The files lie in the working directory
 * (files.h). */
#pragma once

#include "formats/checkpoint_builder.h"
#include "models/tokenizers/vocab.h"
#include "sources/location.h"

#include "tests/unit/check.h"
#include "tests/unit/files.h"

/* Reports whether the vocabulary of the side files, up to a NULL, is made as by a build; `*error` says why not. */
static inline bool kinds_add_by(unsigned build, const struct vocab *vocab, const char *const *files, const char *config,
                                struct gguf_kvs *kvs, struct error *error)
{
    struct checkpoint *checkpoint = checkpoint_new(".");
    files_write_text("config.json", config);
    for (; *files != NULL; files++)
        checkpoint_add_side_file(checkpoint, *files, location_open_file(*files, error));
    struct hparams *hparams = hparams_parse(config, strlen(config), error);
    struct vocab_input input = {
        checkpoint, hparams, "llama", "LlamaForCausalLM", 16, hparams, &(const struct references){build}};
    bool added = vocab_add(vocab, kvs, &input, error) == VOCAB_ADDED;
    hparams_free(hparams);
    checkpoint_close(checkpoint);
    return added;
}

static inline bool kinds_add(const struct vocab *vocab, const char *const *files, const char *config,
                             struct gguf_kvs *kvs, struct error *error)
{
    return kinds_add_by(0, vocab, files, config, kvs, error);
}

/* Texts and numbers of an array, a bar after each. */
static inline void kinds_check_array(const struct gguf_kvs *kvs, const char *key, const char *expected)
{
    struct arena *arena = arena_new();
    struct gguf_array array = {0};
    struct error error;
    struct buffer out = {0};
    CHECK_NAMED(gguf_get_array(kvs, key, arena, &array, &error), key);
    for (uint64_t i = 0; i < array.count; i++) {
        size_t length;
        double number;
        int64_t whole;
        const char *text = gguf_array_string(&array, i, &length);
        if (text != NULL)
            buffer_append(&out, text, length);
        else if (gguf_array_i64(&array, i, &whole))
            buffer_printf(&out, "%d", (int)whole);
        else if (gguf_array_f64(&array, i, &number))
            buffer_printf(&out, "%g", number);
        buffer_append_text(&out, "|");
    }
    buffer_append(&out, "", 1);
    CHECK_TEXT((const char *)out.bytes, expected);
    buffer_free(&out);
    arena_free(arena);
}

static inline void kinds_check_id(const struct gguf_kvs *kvs, const char *key, uint64_t expected)
{
    uint64_t id = 0;
    CHECK_NAMED(gguf_get_u64(kvs, key, &id) && id == expected, key);
}
