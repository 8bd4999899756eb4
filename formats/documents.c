#include "formats/documents.h"

#include "base/attempt.h"
#include "base/lock.h"
#include "base/text.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

/* Limits in bytes of text. A parsed value takes 16 bytes of memory, and as few as 2 bytes of text. */
enum { DEFAULT_LIMIT = 1 << 20, LARGE = 256 << 20, SMALL = 64 << 10 };

/* Limits by the ending of the name; the first row that fits counts. */
static const struct {
    const char *ending;
    size_t limit;
} limits[] = {
    {".index.json", LARGE},
    {"tokenizer.json", LARGE},
    {"tokenizer.jsonl", LARGE},
    {"tekken.json", LARGE},
    {"tokenizer_config.json", LARGE},
    {"special_tokens_map.json", LARGE},
    {"added_tokens.json", LARGE},
    {"vocab.json", LARGE},
    {"chat_template.json", LARGE},
    {"config.json", 16 << 20}, /* generation_config.json too */
    {".txt", LARGE},
    {".jinja", LARGE},
    {".model", LARGE},
    {".tiktoken", LARGE},
};

/* Side files that models are made from, as patterns of fnmatch(3). */
static const char *const declared[] = {
    "README.md",
    "adapter_config.json",
    "added_tokens.json",
    "additional_chat_templates/*.jinja",
    "chat_template.jinja",
    "chat_template.json",
    "*/config.json",
    "*.tiktoken",
    "embedding_config.json",
    "generation_config.json",
    "merges.txt",
    "modules.json",
    "preprocessor_config.json",
    "processor_config.json",
    "rwkv_vocab_*.txt",
    "*.model",
    "special_tokens_map.json",
    "tekken.json",
    "tokenizer.json",
    "tokenizer.jsonl",
    "tokenizer.model.*",
    "tokenizer_config.json",
    "vocab.json",
    "vocab.txt",
};
static const char *const saying_packing[] = {
    "config.json",          "hf_quant_config.json",     "params.json",
    "quantize_config.json", "quantization_config.json", "quant_config.json",
};

struct document {
    struct documents *owner;
    struct document *next;
    char *name;
    struct json_document *json;
    size_t n_users;
    bool small;
};

struct documents {
    struct lock lock;
    struct document *first;
    size_t n_holders;
};

struct documents *documents_new(void)
{
    struct documents *documents = memory_alloc(sizeof *documents);
    *documents = (struct documents){.first = NULL};
    lock_init(&documents->lock);
    return documents;
}

static void forget(struct document *document)
{
    json_free(document->json);
    free(document->name);
    free(document);
}

void documents_free(struct documents *documents)
{
    while (documents->first != NULL) {
        struct document *document = documents->first;
        documents->first = document->next;
        forget(document);
    }
    lock_destroy(&documents->lock);
    free(documents);
}

/* Frees documents without users; the lock is held. */
static void forget_unused(struct documents *documents)
{
    bool large = false;
    for (struct document **link = &documents->first; *link != NULL && documents->n_holders == 0;) {
        struct document *document = *link;
        if (document->n_users > 0 || document->small) {
            link = &document->next;
            continue;
        }
        *link = document->next;
        forget(document);
        large = true;
    }
    if (large)
        memory_trim(); /* a tokenizer is by far the largest document */
}

static bool is_one_of(const char *name, const char *const *patterns, size_t n_patterns)
{
    for (size_t i = 0; i < n_patterns; i++)
        if (fnmatch(patterns[i], name, FNM_PATHNAME) == 0)
            return true;
    return false;
}

bool document_says_packing(const char *name)
{
    return is_one_of(name, saying_packing, sizeof saying_packing / sizeof *saying_packing);
}

bool document_is_declared(const char *name)
{
    return is_one_of(name, declared, sizeof declared / sizeof *declared) || document_says_packing(name);
}

size_t document_limit(const char *name)
{
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (text_ends_with(name, limits[i].ending))
            return limits[i].limit;
    return DEFAULT_LIMIT;
}

struct reading {
    const struct source *source;
    bool read; /* the text was read */
};

static bool read_text(void *context, char *to, size_t length, struct error *error)
{
    struct reading *reading = context;
    reading->read = source_read_whole(reading->source, to, error);
    return reading->read;
}

/* Like document_parse(); *ret_read tells whether the text was read. */
static struct json_document *read_and_parse(const struct source *source, bool *ret_read, struct error *error)
{
    const char *name = source_name(source);
    struct reading reading = {source, false};
    *ret_read = false;
    if (!source_check_size(source, document_limit(name), error))
        return NULL;
    struct json_document *json = json_read_python(read_text, &reading, (size_t)source_size(source), error);
    *ret_read = reading.read;
    if (json == NULL && reading.read)
        error_prefix(error, "%s", name);
    return json;
}

struct json_document *document_parse(const struct source *source, struct error *error)
{
    bool unused;
    return read_and_parse(source, &unused, error);
}

static bool is_small(const struct side_file *file)
{
    return source_size(file->source) <= SMALL;
}

bool document_stays(const struct checkpoint *checkpoint, const char *name)
{
    const struct side_file *file = checkpoint_side_file(checkpoint, name);
    return file != NULL && is_small(file);
}

struct parsing {
    struct documents *documents;
    const struct side_file *file;
    struct error *error;
    struct document *parsed;
    bool read;
};

static void parse(void *context)
{
    struct parsing *parsing = context;
    const struct side_file *file = parsing->file;
    struct json_document *json = read_and_parse(file->source, &parsing->read, parsing->error);
    if (json == NULL)
        return;
    struct document *document = memory_alloc(sizeof *document);
    *document = (struct document){
        .owner = parsing->documents,
        .next = parsing->documents->first,
        .name = memory_strdup(file->name),
        .json = json,
        .small = is_small(file),
    };
    parsing->parsed = parsing->documents->first = document;
}

/* Returns the document of that file, parsed if it has not been; the lock is held. An attempt of its own lets the
 * document survive a failure of the caller's work. */
static struct document *find_or_parse(struct documents *documents, const struct side_file *file, bool *ret_invalid,
                                      struct error *error)
{
    struct parsing parsing = {documents, file, error, NULL, false};
    for (struct document *document = documents->first; document != NULL; document = document->next)
        if (strcmp(document->name, file->name) == 0)
            return document;
    bool done = attempt(parse, &parsing, error);
    if (!done)
        error_prefix(error, "%s", file->name);
    *ret_invalid = done && parsing.read;
    return parsing.parsed;
}

/* Finds a side file; *ret_file is NULL if there is none. Fails if its name is not declared. */
static bool find_declared(const struct checkpoint *checkpoint, const char *name, const struct side_file **ret_file,
                          struct error *error)
{
    *ret_file = checkpoint_side_file(checkpoint, name);
    return *ret_file == NULL || document_is_declared(name) ||
           error_set(error, "%s: models are not made from files of this name", name);
}

/* Opens a document; after a failure, *ret_invalid tells whether the text was read but is invalid. */
static bool open_document(const struct checkpoint *checkpoint, const char *name, struct document **ret_document,
                          bool *ret_invalid, struct error *error)
{
    struct documents *documents = checkpoint->documents;
    const struct side_file *file;
    *ret_document = NULL;
    *ret_invalid = false;
    if (!find_declared(checkpoint, name, &file, error))
        return false;
    if (file == NULL)
        return true;
    attempt_lock(&documents->lock);
    struct document *document = find_or_parse(documents, file, ret_invalid, error);
    if (document != NULL)
        document->n_users++;
    attempt_unlock(&documents->lock);
    *ret_document = document;
    return document != NULL;
}

bool document_open(const struct checkpoint *checkpoint, const char *name, struct document **ret_document,
                   struct error *error)
{
    bool unused;
    return open_document(checkpoint, name, ret_document, &unused, error);
}

bool document_open_if_valid(const struct checkpoint *checkpoint, const char *name, struct document **ret_document,
                            struct error *error)
{
    bool is_invalid = false;
    if (open_document(checkpoint, name, ret_document, &is_invalid, error))
        return true;
    if (is_invalid)
        checkpoint_note(checkpoint, SUBJECT_SOURCE, "%s; it is not used", error->message);
    return is_invalid;
}

void document_close(struct document *document)
{
    if (document == NULL)
        return;
    struct documents *documents = document->owner;
    attempt_lock(&documents->lock);
    document->n_users--;
    forget_unused(documents);
    attempt_unlock(&documents->lock);
}

const struct json *document_root(const struct document *document)
{
    return document != NULL ? json_root(document->json) : NULL;
}

void documents_hold(const struct checkpoint *checkpoint)
{
    attempt_lock(&checkpoint->documents->lock);
    checkpoint->documents->n_holders++;
    attempt_unlock(&checkpoint->documents->lock);
}

void documents_release(const struct checkpoint *checkpoint)
{
    attempt_lock(&checkpoint->documents->lock);
    checkpoint->documents->n_holders--;
    forget_unused(checkpoint->documents);
    attempt_unlock(&checkpoint->documents->lock);
}

char *document_text(const struct checkpoint *checkpoint, const char *name, size_t *ret_length, bool *ret_absent,
                    struct error *error)
{
    const struct side_file *file;
    *ret_absent = false;
    if (!find_declared(checkpoint, name, &file, error))
        return NULL;
    *ret_absent = file == NULL;
    return file != NULL ? source_read_text(file->source, document_limit(name), ret_length, error) : NULL;
}
