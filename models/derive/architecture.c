/* Derivations that change config.json alone. */
#include "formats/documents.h"
#include "models/derive/derive.h"
#include "models/families/families.h"
#include "models/relation/pattern.h"
#include "text/json_write.h"

#include <inttypes.h>
#include <string.h>

/* Treats a checkpoint as one of another class: config.json as if its `architectures` named that class, for a model of a
 * known architecture that was saved under a new name. */

/* Reports whether a family or a projector has the class. */
static bool is_known(const char *class_name)
{
    for (const struct family *const *family = families; *family != NULL; family++)
        for (const struct family_name *hf = (*family)->hf; hf->name != NULL; hf++)
            if (strcmp(hf->name, class_name) == 0)
                return true;
    return false;
}

static void put_class(struct json_writer *writer, const char *class_name)
{
    json_begin_array(writer, "architectures");
    json_put_text(writer, NULL, class_name);
    json_end(writer);
}

/* Replaces the outermost list of classes; config.json of a part keeps its own. */
static bool replace(void *context, struct json_writer *writer, const struct json_member *member, unsigned depth)
{
    bool is_list = depth == 1 && strcmp(member->key, "architectures") == 0;
    if (is_list)
        put_class(writer, *(const char *const *)context);
    return is_list;
}

/* Writes config.json with the class; without a list of classes, at its end. */
static bool architecture_write_config(const struct json *config, const char *class_name, struct buffer *out,
                                      struct error *error)
{
    struct json_writer writer = {.out = out, .letters = JSON_ASCII};
    struct buffer more = {0};
    if (json_get(config, "architectures") != NULL) {
        json_put_edited(&writer, config, replace, &class_name);
        return true;
    }
    struct json_writer alone = {.out = &more, .letters = JSON_ASCII};
    json_begin_object(&alone, NULL);
    put_class(&alone, class_name);
    json_end(&alone);
    struct json_document *document = json_parse((const char *)more.bytes, more.length, error);
    if (document != NULL)
        json_put_sorted(&writer, config, json_root(document));
    json_free(document);
    buffer_free(&more);
    return document != NULL;
}

static bool architecture_apply(const struct checkpoint *from, const struct derive_options *options,
                               struct checkpoint **ret_derived, struct error *error)
{
    struct document *config;
    struct buffer text = {0};
    const char *class_name = options->architecture;
    if (class_name == NULL)
        return true;
    if (!is_known(class_name))
        return error_set(error, "%s is not a class that wfs knows; wfs info --architectures lists families",
                         class_name);
    if (!document_open(from, "config.json", &config, error))
        return false;
    if (config == NULL)
        return error_set(error, "%s has no config.json, which names the class", from->path);
    const char *own = json_string(json_first(json_get(document_root(config), "architectures")), NULL);
    *ret_derived = checkpoint_derive(from);
    if (own == NULL || strcmp(own, class_name) != 0)
        checkpoint_note(*ret_derived, SUBJECT_GGUF,
                        "config.json names %s; -o architecture treats the model as a %s, which may compute otherwise",
                        own != NULL ? own : "no class", class_name);
    bool is_written = architecture_write_config(document_root(config), class_name, &text, error);
    if (is_written)
        checkpoint_change_side_file(*ret_derived, "config.json", (const char *)text.bytes, text.length);
    buffer_free(&text);
    document_close(config);
    return is_written;
}

const struct derivation architecture_derivation = {.option = "architecture", .apply = architecture_apply};

/* Makes the config.json that Pocket TTS lacks, of the shapes of its tensors, as the converter reads them.
 *
 * Source: conversion/pockettts.py, _load_hparams(). */

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

static bool shapes_write_config(const struct tensor_set *set, struct buffer *out, struct error *error)
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

static bool shapes_apply(const struct checkpoint *from, const struct derive_options *options,
                         struct checkpoint **ret_derived, struct error *error)
{
    static const char name[] = "config.json";
    struct buffer text = {0};
    if (from->kind != CHECKPOINT_WEIGHTS || from->tensors == NULL || from->n_sources == 0 ||
        checkpoint_side_file(from, name) != NULL || tensor_set_find_text(from->tensors, "flow_lm.bos_emb") == NULL)
        return true;
    if (!shapes_write_config(from->tensors, &text, error)) {
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

const struct derivation shapes_derivation = {.apply = shapes_apply};
