/* How often documents are read, and when they are forgotten. */
#include "formats/documents.h"

#include "base/text.h"
#include "formats/checkpoint_builder.h"
#include "sources/location.h"
#include "tests/unit/check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* A side file that counts how often it is read. */
struct counted {
    char *text;
    _Atomic int n_reads;
};

static bool counted_read(void *context, uint64_t offset, size_t length, void *out, struct error *error)
{
    struct counted *counted = context;
    (void)error;
    counted->n_reads++;
    memcpy(out, counted->text + offset, length);
    return true;
}

static void counted_release(void *context)
{
    free(((struct counted *)context)->text);
}

/* Adds `{"a": 1` and as many spaces as it takes. */
static void add(struct checkpoint *checkpoint, struct counted *counted, const char *name, const char *begin,
                size_t length)
{
    static const struct source_ops ops = {counted_read, counted_release};
    const struct source *base = checkpoint->sources[0];
    *counted = (struct counted){.text = malloc(length)};
    memset(counted->text, ' ', length);
    memcpy(counted->text, begin, strlen(begin));
    checkpoint_add_side_file(checkpoint, name, source_new(base, name, length, &ops, counted));
}

static bool has_one(const struct document *document)
{
    uint64_t number;
    return json_u64(json_get(document_root(document), "a"), &number) && number == 1;
}

static void open_and_close(const struct checkpoint *checkpoint, const char *name)
{
    struct document *document;
    struct error error;
    CHECK(document_open(checkpoint, name, &document, &error) && has_one(document));
    document_close(document);
}

static void forgotten(const struct checkpoint *checkpoint, const struct counted *small, const struct counted *large)
{
    struct document *first, *second;
    struct error error;
    open_and_close(checkpoint, "config.json");
    open_and_close(checkpoint, "config.json");
    CHECK_NAMED(small->n_reads == 1, "a small document stays");
    open_and_close(checkpoint, "tokenizer.json");
    open_and_close(checkpoint, "tokenizer.json");
    CHECK_NAMED(large->n_reads == 2, "a large one is forgotten");
    documents_hold(checkpoint);
    documents_hold(checkpoint);
    open_and_close(checkpoint, "tokenizer.json");
    documents_release(checkpoint);
    open_and_close(checkpoint, "tokenizer.json");
    CHECK_NAMED(large->n_reads == 3, "but not while somebody holds the documents");
    documents_release(checkpoint);
    CHECK(document_open(checkpoint, "tokenizer.json", &first, &error) && large->n_reads == 4);
    CHECK(document_open(checkpoint, "tokenizer.json", &second, &error) && first == second);
    document_close(first);
    CHECK_NAMED(has_one(second) && large->n_reads == 4, "nor while somebody has it open");
    document_close(second);
}

static void *opener(void *context)
{
    struct document *document;
    struct error error;
    bool good = document_open(context, "vocab.json", &document, &error) && has_one(document);
    document_close(document);
    return good ? context : NULL;
}

static void threads(struct checkpoint *checkpoint, const struct counted *counted)
{
    enum { THREADS = 8 };
    pthread_t ids[THREADS];
    bool good = true;
    documents_hold(checkpoint);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&ids[i], NULL, opener, checkpoint);
    for (int i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(ids[i], &result);
        good &= result != NULL;
    }
    documents_release(checkpoint);
    CHECK_NAMED(good && counted->n_reads == 1, "threads that want the same one parse it once");
}

static void errors(const struct checkpoint *checkpoint)
{
    struct document *document;
    struct error error;
    size_t length;
    bool absent;
    CHECK(document_open(checkpoint, "absent.json", &document, &error) && document == NULL &&
          document_root(document) == NULL);
    CHECK(!document_open(checkpoint, "merges.txt", &document, &error) && document == NULL);
    CHECK_NAMED(text_starts_with(error.message, "merges.txt: "), "an error names the file");
    CHECK(!document_open(checkpoint, "params.json", &document, &error));
    CHECK_TEXT(error.message, "params.json: too large: 1048577 bytes, the limit is 1048576");
    CHECK(document_open_if_valid(checkpoint, "merges.txt", &document, &error) && document == NULL &&
          checkpoint_notes(checkpoint) == 1);
    CHECK(text_starts_with(checkpoint_note_at(checkpoint, 0).text, "merges.txt: ") &&
          text_ends_with(checkpoint_note_at(checkpoint, 0).text, "; it is not used"));
    CHECK(!document_open_if_valid(checkpoint, "params.json", &document, &error));
    CHECK(document_open_if_valid(checkpoint, "absent.json", &document, &error) && document == NULL);
    CHECK(document_text(checkpoint, "absent.txt", &length, &absent, &error) == NULL && absent);
    CHECK(document_text(checkpoint, "params.json", &length, &absent, &error) == NULL && !absent);
    char *text = document_text(checkpoint, "merges.txt", &length, &absent, &error);
    CHECK(text != NULL && length == 4 && strcmp(text, "{,  ") == 0);
    free(text);
}

int main(void)
{
    struct counted small, large, shared, bad, limited;
    struct error error;
    struct checkpoint *checkpoint = checkpoint_new(".");
    checkpoint_add_source(checkpoint, location_open_file("/proc/self/exe", &error));
    add(checkpoint, &small, "config.json", "{\"a\": 1}", 64);
    add(checkpoint, &large, "tokenizer.json", "{\"a\": 1}", 1 << 17);
    add(checkpoint, &shared, "vocab.json", "{\"a\": 1}", 1 << 17);
    add(checkpoint, &bad, "merges.txt", "{,", 4);
    add(checkpoint, &limited, "params.json", "{\"a\": 1}", (1 << 20) + 1);
    forgotten(checkpoint, &small, &large);
    threads(checkpoint, &shared);
    errors(checkpoint);
    CHECK(document_limit("1_Pooling/config.json") == 16 << 20 && document_limit("tokenizer.json") == 256 << 20);
    CHECK(document_limit("qwen.tiktoken") == 256 << 20);
    CHECK(document_limit("x.safetensors.index.json") == 256 << 20 && document_limit("modules.json") == 1 << 20);
    checkpoint_close(checkpoint);
    return check_done();
}
