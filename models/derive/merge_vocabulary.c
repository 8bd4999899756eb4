/* A resized vocabulary: config.json and the tokenizer of a merge whose adapter has an embedding of more or fewer rows,
 * as resize_token_embeddings() of transformers leaves the base. */
#include "base/text.h"
#include "formats/documents.h"
#include "models/derive/merging.h"
#include "text/json_write.h"

#include <inttypes.h>
#include <string.h>

enum { DEEPEST = 2 }; /* text_config's members */

static const char size_name[] = "vocab_size";

static const char *const tokenizer_files[] = {
    "added_tokens.json", "chat_template.jinja", "merges.txt",      "special_tokens_map.json", "spiece.model",
    "tekken.json",       "tokenizer.json",      "tokenizer.model", "tokenizer_config.json",   "vocab.json",
};

#define MERGE_VOCABULARY_COUNT(array) (sizeof(array) / sizeof *(array))

struct sizing {
    uint64_t n_rows;
    bool is_done;
};

static bool put_size(void *context, struct json_writer *writer, const struct json_member *member, unsigned depth)
{
    struct sizing *sizing = context;
    if (depth > DEEPEST || strcmp(member->key, size_name) != 0)
        return false;
    json_put_number(writer, size_name, sizing->n_rows);
    sizing->is_done = true;
    return true;
}

/* Writes config.json with the new vocab_size, which is added if it is missing: the class may have a default. */
static void merge_vocabulary_write_config(const struct json *config, uint64_t n_rows, struct buffer *out)
{
    struct json_writer writer = {.out = out, .letters = JSON_ASCII};
    struct sizing sizing = {.n_rows = n_rows};
    json_begin_object(&writer, NULL);
    for (struct json_member member = {0}; json_next_member(config, &member);)
        if (!put_size(&sizing, &writer, &member, 1)) {
            json_put_key(&writer, member.key, member.key_length);
            json_put_edited(&writer, member.value, put_size, &sizing);
        }
    if (!sizing.is_done)
        json_put_number(&writer, size_name, n_rows);
    json_end(&writer);
    buffer_append_text(out, "\n");
}

static bool change_config(const struct merging *merging)
{
    struct document *document;
    struct buffer out = {0};
    if (!document_open(merging->base, "config.json", &document, merging->error))
        return false;
    if (document == NULL)
        return true;
    merge_vocabulary_write_config(document_root(document), merging->n_rows, &out);
    document_close(document);
    checkpoint_change_side_file(merging->merged, "config.json", (const char *)out.bytes, out.length);
    buffer_free(&out);
    return true;
}

static bool has_vocabulary(const struct checkpoint *adapter)
{
    static const char *const files[] = {"spiece.model", "tekken.json", "tokenizer.json", "tokenizer.model",
                                        "vocab.json"};
    for (size_t i = 0; i < MERGE_VOCABULARY_COUNT(files); i++)
        if (checkpoint_side_file(adapter, files[i]) != NULL)
            return true;
    return false;
}

/* Puts the adapter's tokenizer in place of the base's. */
static void take_tokenizer(const struct merging *merging)
{
    const struct checkpoint *adapter = merging->resized_by;
    for (size_t i = 0; i < MERGE_VOCABULARY_COUNT(tokenizer_files); i++) {
        const struct side_file *own = checkpoint_side_file(adapter, tokenizer_files[i]);
        if (own != NULL)
            checkpoint_share_side_file(merging->merged, own);
        else if (checkpoint_side_file(merging->merged, tokenizer_files[i]) != NULL)
            checkpoint_hide_side_file(merging->merged, tokenizer_files[i],
                                      "the base's, replaced by the adapter's tokenizer");
    }
}

/* Fails if a tensor that the adapter resizes and its counterpart, the embedding or the output, differ in rows. */
static bool check_rows(const struct merging *merging)
{
    const struct tensor_set *set = merging->merged->tensors;
    for (size_t i = 0; i < set->n_tensors; i++)
        if (merging_is_of_vocabulary(&set->tensors[i]) && set->tensors[i].shape[0] != merging->n_rows)
            return error_set(merging->error,
                             "%s resizes the vocabulary to %" PRIu64 " tokens, but tensor '%.200s' has %" PRIu64
                             " rows: it lacks a resized copy of that tensor",
                             merging->resized_by->path, merging->n_rows, set->tensors[i].name,
                             set->tensors[i].shape[0]);
    return true;
}

bool merge_vocabulary(const struct merging *merging)
{
    if (merging->n_rows == 0)
        return true;
    if (!check_rows(merging) || !change_config(merging))
        return false;
    bool has = has_vocabulary(merging->resized_by);
    if (has)
        take_tokenizer(merging);
    checkpoint_note(merging->merged, SUBJECT_SOURCE,
                    "%s resizes the vocabulary to %" PRIu64 " tokens: config.json has the new vocab_size, the "
                    "tokenizer is %s",
                    merging->resized_by->path, merging->n_rows,
                    has ? "the adapter's" : "the base's, as the adapter has none");
    return true;
}

/* A classifier trained on a language model: peft saves its new head (modules_to_save), the merge has the head instead
 * of the output, and config.json names the class and the labels as transformers saves them.
 *
 * Source: peft, save_and_load.py; transformers, LlamaForSequenceClassification, PretrainedConfig.num_labels. */

/* The tasks of peft, and the ends of their classes' names. */
static const struct task {
    const char *type, *ending;
} tasks[] = {{"SEQ_CLS", "ForSequenceClassification"}, {"TOKEN_CLS", "ForTokenClassification"}};

/* Ends of the names of the classes that such a class can be trained on. */
static const char *const language_models[] = {"ForCausalLM", "ForMaskedLM", "LMHeadModel", "Model"};

/* Members of config.json that the labels replace. */
static const char labels_name[] = "id2label", ids_name[] = "label2id", number_name[] = "num_labels";

enum { MAX_LABELS = 1 << 16, LABEL_TEXT = 32 };

#define MERGE_CLASSIFIER_COUNT(array) (sizeof(array) / sizeof *(array))

static const struct task *task_of(const struct adapter *adapter)
{
    for (size_t i = 0; i < MERGE_CLASSIFIER_COUNT(tasks); i++)
        if (json_string_is(json_get(adapter->config, "task_type"), tasks[i].type))
            return &tasks[i];
    return NULL;
}

bool merging_is_saved_module(const struct merging *merging, const char *name)
{
    const char *dot = strrchr(name, '.');
    size_t length = dot != NULL ? (size_t)(dot - name) : 0;
    const struct json *saved = json_get(merging->adapter->config, "modules_to_save");
    for (const struct json *item = json_first(saved); item != NULL; item = json_next(item)) {
        const char *module = json_string(item, NULL);
        size_t wanted = module != NULL ? strlen(module) : 0;
        if (wanted > 0 && wanted <= length && memcmp(name + length - wanted, module, wanted) == 0 &&
            (wanted == length || name[length - wanted - 1] == '.'))
            return true;
    }
    return false;
}

void merging_note_classifier(struct merging *merging, const struct tensor *head)
{
    if (task_of(merging->adapter) == NULL || head->rank != 2 || head->shape[0] > MAX_LABELS)
        return;
    merging->classified_by = merging->adapter;
    merging->n_labels = head->shape[0];
}

bool merging_drops(const struct merging *merging, const struct tensor *tensor)
{
    return merging->classified_by != NULL && merging_is_output(tensor->name);
}

static void put_classes(struct json_writer *writer, const struct json *classes, const struct task *task)
{
    char name[128];
    json_begin_array(writer, NULL);
    for (const struct json *item = json_first(classes); item != NULL; item = json_next(item)) {
        const char *class = json_string(item, NULL);
        if (class == NULL)
            continue;
        size_t length = strlen(class);
        for (size_t i = 0; i < MERGE_CLASSIFIER_COUNT(language_models) && length == strlen(class); i++)
            if (text_ends_with(class, language_models[i]))
                length -= strlen(language_models[i]);
        snprintf(name, sizeof name, "%.*s%s", (int)(length < 64 ? length : 64), class, task->ending);
        json_put_text(writer, NULL, length < strlen(class) ? name : class);
    }
    json_end(writer);
}

static void put_labels(struct json_writer *writer, uint64_t n_labels)
{
    char label[LABEL_TEXT], id[LABEL_TEXT];
    json_begin_object(writer, labels_name);
    for (uint64_t i = 0; i < n_labels; i++) {
        snprintf(label, sizeof label, "LABEL_%" PRIu64, i);
        snprintf(id, sizeof id, "%" PRIu64, i);
        json_put_text(writer, id, label);
    }
    json_end(writer);
    json_begin_object(writer, ids_name);
    for (uint64_t i = 0; i < n_labels; i++) {
        snprintf(label, sizeof label, "LABEL_%" PRIu64, i);
        json_put_number(writer, label, i);
    }
    json_end(writer);
}

/* Writes config.json of the class, with labels unless it has as many. */
static void merge_classifier_write_config(const struct merging *merging, const struct json *config, struct buffer *out)
{
    struct json_writer writer = {.out = out, .letters = JSON_ASCII};
    bool is_right = json_count_members(json_get(config, labels_name)) == merging->n_labels;
    json_begin_object(&writer, NULL);
    for (struct json_member member = {0}; json_next_member(config, &member);) {
        bool is_label = strcmp(member.key, labels_name) == 0 || strcmp(member.key, ids_name) == 0 ||
                        strcmp(member.key, number_name) == 0;
        if (is_label && !is_right)
            continue;
        json_put_key(&writer, member.key, member.key_length);
        if (strcmp(member.key, "architectures") == 0)
            put_classes(&writer, member.value, task_of(merging->classified_by));
        else
            json_put_edited(&writer, member.value, NULL, NULL);
    }
    if (!is_right)
        put_labels(&writer, merging->n_labels);
    json_end(&writer);
    buffer_append_text(out, "\n");
}

bool merge_classifier(const struct merging *merging)
{
    struct document *document = NULL;
    struct buffer out = {0};
    if (merging->classified_by == NULL)
        return true;
    if (!document_open(merging->merged, "config.json", &document, merging->error))
        return false;
    if (document != NULL) {
        merge_classifier_write_config(merging, document_root(document), &out);
        document_close(document);
        checkpoint_change_side_file(merging->merged, "config.json", (const char *)out.bytes, out.length);
        buffer_free(&out);
    }
    checkpoint_note(merging->merged, SUBJECT_SOURCE,
                    "the merge is a classifier of %" PRIu64 " labels: config.json names its class, and it has no "
                    "output of a language model",
                    merging->n_labels);
    return true;
}
