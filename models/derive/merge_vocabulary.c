/* A resized vocabulary: config.json and the tokenizer of a merge whose adapter has an embedding of more or fewer rows,
 * as resize_token_embeddings() of transformers leaves the base. */
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

#define COUNT(array) (sizeof(array) / sizeof *(array))

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
static void write_config(const struct json *config, uint64_t n_rows, struct buffer *out)
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
    write_config(document_root(document), merging->n_rows, &out);
    document_close(document);
    checkpoint_change_side_file(merging->merged, "config.json", (const char *)out.bytes, out.length);
    buffer_free(&out);
    return true;
}

static bool has_vocabulary(const struct checkpoint *adapter)
{
    static const char *const files[] = {"spiece.model", "tekken.json", "tokenizer.json", "tokenizer.model",
                                        "vocab.json"};
    for (size_t i = 0; i < COUNT(files); i++)
        if (checkpoint_side_file(adapter, files[i]) != NULL)
            return true;
    return false;
}

/* Puts the adapter's tokenizer in place of the base's. */
static void take_tokenizer(const struct merging *merging)
{
    const struct checkpoint *adapter = merging->resized_by;
    for (size_t i = 0; i < COUNT(tokenizer_files); i++) {
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
