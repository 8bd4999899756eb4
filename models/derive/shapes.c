/* Makes the config.json that Pocket TTS lacks, of the shapes of its tensors, as the converter reads them.
 *
 * Source: conversion/pockettts.py, _load_hparams(). */
#include "models/derive/derive.h"
#include "models/relation/pattern.h"

#include <inttypes.h>

#define EMBEDDING "flow_lm.conditioner.embed.weight"
#define ENCODER   "mimi.encoder_transformer.transformer.layers."
#define LAYERS    "flow_lm.transformer.layers."

static uint64_t count_layers(const struct tensor_set *set, const char *pattern)
{
    uint64_t n = 0, numbers[PATTERN_NUMBERS];
    for (size_t i = 0; i < set->n_tensors; i++)
        n += pattern_match(pattern, set->tensors[i].name, set->tensors[i].name_length, numbers);
    return n;
}

/* Gets the first size of a tensor, and its second, if it has one. */
static bool sizes_of(const struct tensor_set *set, const char *name, unsigned rank, const uint64_t **ret_sizes,
                     struct error *error)
{
    const struct tensor *tensor = tensor_set_find_text(set, name);
    if (tensor == NULL || tensor->rank != rank)
        return error_set(error, "Pocket TTS has no config.json, and tensor '%s' is missing, or has not %u dimension%s",
                         name, rank, rank == 1 ? "" : "s");
    *ret_sizes = tensor->shape;
    return true;
}

enum { HEAD = 64 }; /* the size of a head in all released models */

static bool write_config(const struct tensor_set *set, struct buffer *out, struct error *error)
{
    const uint64_t *table = NULL, *inner = NULL, *audio = NULL, *audio_inner = NULL;
    if (!sizes_of(set, EMBEDDING, 2, &table, error) || !sizes_of(set, LAYERS "0.linear1.weight", 2, &inner, error) ||
        !sizes_of(set, ENCODER "0.norm1.weight", 1, &audio, error) ||
        !sizes_of(set, ENCODER "0.linear1.weight", 2, &audio_inner, error))
        return false;
    unsigned n_vectors = tensor_set_find_text(set, "flow_lm.bos_before_voice") != NULL ? 2 : 1;
    buffer_printf(out,
                  "{\"architectures\": [\"PocketTTSModel\"], \"model_type\": \"pockettts\", \"num_hidden_layers\": "
                  "%" PRIu64 ", \"hidden_size\": %" PRIu64 ", \"intermediate_size\": %" PRIu64
                  ", \"max_position_embeddings\": 4096, \"num_attention_heads\": %" PRIu64 ", \"vocab_size\": %" PRIu64
                  ", \"rope_theta\": 10000.0, \"layer_norm_eps\": 1e-05, ",
                  count_layers(set, LAYERS "{}.norm1.weight"), table[1], inner[0], table[1] / HEAD,
                  table[0] + n_vectors);
    buffer_printf(out,
                  "\"audio_config\": {\"num_hidden_layers\": %" PRIu64 ", \"hidden_size\": %" PRIu64
                  ", \"intermediate_size\": %" PRIu64 ", \"num_attention_heads\": %" PRIu64 "}}\n",
                  count_layers(set, ENCODER "{}.norm1.weight"), audio[0], audio_inner[0], audio[0] / HEAD);
    return true;
}

static bool apply(const struct checkpoint *from, const struct derive_options *options, struct checkpoint **ret_derived,
                  struct error *error)
{
    static const char name[] = "config.json";
    struct buffer text = {0};
    if (from->kind != CHECKPOINT_WEIGHTS || from->tensors == NULL || from->n_sources == 0 ||
        checkpoint_side_file(from, name) != NULL || tensor_set_find_text(from->tensors, "flow_lm.bos_emb") == NULL)
        return true;
    if (!write_config(from->tensors, &text, error)) {
        checkpoint_note(from, SUBJECT_GGUF, "%s", error->message);
        buffer_free(&text);
        return true;
    }
    *ret_derived = checkpoint_derive(from);
    checkpoint_add_side_file(*ret_derived, name,
                             source_of_text(from->sources[0], name, (const char *)text.bytes, text.length));
    checkpoint_note(*ret_derived, SUBJECT_SOURCE, "%s is made of the shapes of the tensors", name);
    buffer_free(&text);
    return true;
}

const struct derivation shapes_derivation = {.apply = apply};
