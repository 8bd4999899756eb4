#include "models/untie.h"

#include "base/text.h"
#include "formats/documents.h"
#include "models/hparams.h"

#include <stdlib.h>
#include <string.h>

/* The end of the name of an embedding, and what the output is called. */
static const struct {
    const char *embedding, *output;
} names[] = {
    {"language_model.model.embed_tokens.weight", "language_model.lm_head.weight"},
    {"model.language_model.embed_tokens.weight", "lm_head.weight"},
    {"model.embed_tokens.weight", "lm_head.weight"},
    {"transformer.wte.weight", "lm_head.weight"},
    {"transformer.word_embeddings.weight", "lm_head.weight"},
};

bool untie_is_wanted(const struct json *adapter_config)
{
    static const char *const modules[] = {"embed_tokens", "lm_head", "wte", "word_embeddings"};
    const struct json *saved = json_get(adapter_config, "modules_to_save");
    if (json_bool(json_get(adapter_config, "ensure_weight_tying"), false))
        return false;
    for (const struct json *name = json_count(saved) > 0 ? json_first(saved) : NULL; name != NULL;
         name = json_next(name))
        for (size_t i = 0; i < sizeof modules / sizeof *modules; i++) {
            const char *text = json_string(name, NULL);
            if (text != NULL && text_ends_with(text, modules[i]))
                return true;
        }
    return false;
}

/* Whether models of that architecture have an output. */
static bool has_output(const struct checkpoint *checkpoint)
{
    static const char *const ends[] = {"ForCausalLM", "LMHeadModel", "ForConditionalGeneration"};
    bool absent, found = false;
    struct error unused;
    struct hparams *hparams = hparams_load(checkpoint, &absent, &unused);
    const char *architecture = hparams != NULL ? hparams_architecture(hparams) : NULL;
    for (size_t i = 0; i < sizeof ends / sizeof *ends && architecture != NULL; i++)
        found |= text_ends_with(architecture, ends[i]);
    hparams_free(hparams);
    return found;
}

/* Writes the text of config.json with every "tie_word_embeddings" false, and with one where it has none. Nothing but a
 * key is that name in quotes that are not escaped, and then a colon. */
static void write_config(const char *text, struct buffer *out)
{
    static const char key[] = "\"tie_word_embeddings\"";
    const char *at = text, *found;
    if (strstr(text, key) == NULL && (found = strchr(text, '{')) != NULL) {
        buffer_append(out, text, (size_t)(found + 1 - text));
        buffer_append(out, "\n  \"tie_word_embeddings\": false,", strlen("\n  \"tie_word_embeddings\": false,"));
        at = found + 1;
    }
    while ((found = strstr(at, key)) != NULL) {
        const char *value = found + strlen(key);
        value += strspn(value, " \t\r\n:");
        buffer_append(out, at, (size_t)(value - at));
        at = value;
        if (strncmp(value, "true", strlen("true")) != 0)
            continue;
        buffer_append(out, "false", strlen("false"));
        at += strlen("true");
    }
    buffer_append(out, at, strlen(at));
}

static bool change_config(struct checkpoint *checkpoint, struct error *error)
{
    size_t length;
    bool absent;
    struct buffer out = {0};
    char *text = document_text(checkpoint, "config.json", &length, &absent, error);
    if (text == NULL)
        return absent;
    write_config(text, &out);
    checkpoint_change_side_file(checkpoint, "config.json", (const char *)out.bytes, out.length);
    buffer_free(&out);
    free(text);
    return true;
}

bool untie(struct checkpoint *checkpoint, struct error *error)
{
    const struct tensor *embedding = NULL;
    struct tensor output;
    for (size_t i = 0; i < sizeof names / sizeof *names && embedding == NULL; i++) {
        embedding = tensor_set_find_text(checkpoint->tensors, names[i].embedding);
        if (embedding == NULL)
            continue;
        if (tensor_set_find_text(checkpoint->tensors, names[i].output) != NULL)
            return true;
        output = *embedding;
        output.name = names[i].output;
        output.name_length = (uint32_t)strlen(output.name);
    }
    if (embedding == NULL || !has_output(checkpoint))
        return true;
    struct tensor_set *set = tensor_set_new(checkpoint->arena);
    for (size_t i = 0; i < checkpoint->tensors->n_tensors; i++)
        tensor_set_add(set, &checkpoint->tensors->tensors[i]);
    tensor_set_add(set, &output);
    checkpoint->tensors = set;
    checkpoint_note(checkpoint,
                    "%s, which was the embedding, is a tensor of its own: an adapter has a copy of one of "
                    "both (modules_to_save)",
                    output.name);
    return tensor_set_seal(set, error) && change_config(checkpoint, error);
}
