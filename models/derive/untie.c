/* Separates the output of a model from the embedding that it is tied to.
 *
 * An adapter that trained a copy of one of them (modules_to_save) does not change the other: one tensor becomes two,
 * and config.json no longer ties them, as after peft's merge_and_unload(). */
#include "models/derive/derive.h"

#include "base/text.h"
#include "formats/documents.h"
#include "models/facts.h"
#include "text/json_write.h"

#include <string.h>

/* The name of an embedding, and of the output that may be tied to it. */
static const struct {
    const char *embedding, *output;
} names[] = {
    {"language_model.model.embed_tokens.weight", "language_model.lm_head.weight"},
    {"model.language_model.embed_tokens.weight", "lm_head.weight"},
    {"model.embed_tokens.weight", "lm_head.weight"},
    {"transformer.wte.weight", "lm_head.weight"},
    {"transformer.word_embeddings.weight", "lm_head.weight"},
};

/* Reports whether an adapter_config.json separates the output of a model from its embedding. */
static bool is_wanted_by(const struct json *adapter_config)
{
    static const char *const modules[] = {"embed_tokens", "lm_head", "wte", "word_embeddings"};
    const struct json *saved = json_get(adapter_config, "modules_to_save");
    if (json_bool(json_get(adapter_config, "ensure_weight_tying"), false))
        return false;
    for (const struct json *name = json_first(saved); name != NULL; name = json_next(name))
        for (size_t i = 0; i < sizeof modules / sizeof *modules; i++) {
            const char *text = json_string(name, NULL);
            if (text != NULL && text_ends_with(text, modules[i]))
                return true;
        }
    return false;
}

/* Reports whether the model's class has an output. */
static bool has_output(const struct checkpoint *checkpoint)
{
    static const char *const ends[] = {"ForCausalLM", "LMHeadModel", "ForConditionalGeneration"};
    bool found = false;
    struct error unused;
    const struct config_facts *config = config_facts_of(checkpoint, &unused);
    const char *class_name = config != NULL ? config->class_name : NULL;
    for (size_t i = 0; i < sizeof ends / sizeof *ends && class_name != NULL; i++)
        found |= text_ends_with(class_name, ends[i]);
    return found;
}

static const char tie[] = "tie_word_embeddings";

/* Writes a "tie_word_embeddings" that is true as false. */
static bool part_embeddings(void *context, struct json_writer *writer, const struct json_member *member, unsigned depth)
{
    if (strcmp(member->key, tie) != 0)
        return false;
    *(bool *)context = true;
    if (json_is(member->value, JSON_TRUE))
        json_put_bool(writer, tie, false);
    return json_is(member->value, JSON_TRUE);
}

/* Writes config.json without tied embeddings; a missing member is added, because the class may tie them by default. */
static void write_config(const struct json *config, struct buffer *out)
{
    struct json_writer writer = {.out = out, .letters = JSON_ASCII};
    bool is_said = false;
    json_begin_object(&writer, NULL);
    for (struct json_member member = {0}; json_next_member(config, &member);)
        if (!part_embeddings(&is_said, &writer, &member, 1)) {
            json_put_key(&writer, member.key, member.key_length);
            json_put_edited(&writer, member.value, part_embeddings, &is_said);
        }
    if (!is_said)
        json_put_bool(&writer, tie, false);
    json_end(&writer);
    buffer_append_text(out, "\n");
}

static bool change_config(struct checkpoint *derived, const struct checkpoint *from, struct error *error)
{
    struct document *document;
    struct buffer out = {0};
    if (!document_open(from, "config.json", &document, error))
        return false;
    if (document == NULL)
        return true;
    write_config(document_root(document), &out);
    checkpoint_change_side_file(derived, "config.json", (const char *)out.bytes, out.length);
    buffer_free(&out);
    document_close(document);
    return true;
}

/* Finds the output that a checkpoint shares with its embedding; false if it has an output, or no known embedding. */
static bool find_shared_output(const struct checkpoint *checkpoint, struct tensor *ret_output)
{
    const struct tensor *embedding = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && embedding == NULL; i++) {
        embedding = tensor_set_find_text(checkpoint->tensors, names[i].embedding);
        if (embedding == NULL)
            continue;
        if (tensor_set_find_text(checkpoint->tensors, names[i].output) != NULL)
            return false;
        *ret_output = *embedding;
        ret_output->name = names[i].output;
        ret_output->name_length = (uint32_t)strlen(names[i].output);
    }
    return embedding != NULL && has_output(checkpoint);
}

/* Reports whether one of the adapters asks for it. An invalid adapter is reported when it is merged. */
static bool is_wanted_by_any(const struct lora_requests *requests, const struct checkpoint *from)
{
    bool is_wanted = false;
    for (size_t i = 0; i < requests->count && !is_wanted; i++) {
        struct error unused;
        struct document *document = NULL;
        const struct checkpoint *adapter =
            checkpoint_open_side_files(requests->items[i].path, from->formats, from->follows_links, &unused);
        if (adapter != NULL && document_open(adapter, "adapter_config.json", &document, &unused))
            is_wanted = is_wanted_by(document_root(document));
        document_close(document);
        checkpoint_close(adapter);
    }
    return is_wanted;
}

static bool apply(const struct checkpoint *from, const struct derive_options *options, struct checkpoint **ret_derived,
                  struct error *error)
{
    struct tensor output;
    if (!lora_adapts(from, &options->loras) || !is_wanted_by_any(&options->loras, from) ||
        !find_shared_output(from, &output))
        return true;
    struct checkpoint *derived = *ret_derived = checkpoint_derive(from);
    struct tensor_set *set = tensor_set_new(derived->arena);
    for (size_t i = 0; i < from->tensors->n_tensors; i++)
        tensor_set_add(set, &from->tensors->tensors[i]);
    tensor_set_add(set, &output);
    derived->tensors = set;
    checkpoint_note(derived, SUBJECT_SOURCE,
                    "%s, which was the embedding, is a tensor of its own: an adapter has a copy of one of "
                    "both (modules_to_save)",
                    output.name);
    return tensor_set_seal(set, error) && change_config(derived, from, error);
}

const struct derivation untie_derivation = {.option = "lora", .apply = apply};
