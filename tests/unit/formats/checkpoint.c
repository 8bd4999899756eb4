/* Checkpoints that are put together by hand: notes, what is made once, side files, metadata, who owns what (the
 * sanitizers tell). */
#include "formats/checkpoint.h"

#include "formats/documents.h"
#include "formats/open.h"
#include "tests/unit/check.h"
#include "tests/unit/files.h"
#include "tests/unit/notes.h"

#include <fcntl.h>
#include <pthread.h>

static struct source *open_source(const char *name, const char *text)
{
    struct error error;
    files_write_text(name, text);
    struct source *source = source_open(AT_FDCWD, name, name, &error);
    files_must(source != NULL, name);
    return source;
}

/* Each line counts once, and of more than 256 the others are dropped. */
static void test_notes(void)
{
    struct checkpoint *checkpoint = checkpoint_new("here");
    CHECK(checkpoint_notes(checkpoint) == 0);
    checkpoint_note(checkpoint, "%s: %d", "a", 1);
    checkpoint_note(checkpoint, "a: 2");
    checkpoint_note(checkpoint, "a: 1");
    CHECK(checkpoint_notes(checkpoint) == 2);
    CHECK_TEXT(checkpoint_note_text(checkpoint, 0), "a: 1");
    CHECK_TEXT(checkpoint_note_text(checkpoint, 1), "a: 2");
    for (int i = 0; i < 300; i++)
        checkpoint_note(checkpoint, "number %d", i);
    CHECK(checkpoint_notes(checkpoint) == 256);
    CHECK(has_note(checkpoint, "number 253") && !has_note(checkpoint, "number 254"));
    CHECK_TEXT(checkpoint->path, "here");
    checkpoint_close(checkpoint);
    checkpoint_close(NULL);
}

static int n_made;

static const void *make_one(const struct checkpoint *checkpoint, struct arena *arena)
{
    n_made++;
    return arena_printf(arena, "one of %s", checkpoint->path);
}

static const void *make_nothing(const struct checkpoint *checkpoint, struct arena *arena)
{
    (void)checkpoint, (void)arena;
    n_made++;
    return NULL;
}

static void *ask(void *checkpoint)
{
    return (void *)checkpoint_once(checkpoint, make_one);
}

static void test_once(void)
{
    enum { N_THREADS = 8 };
    pthread_t threads[N_THREADS];
    struct checkpoint *checkpoint = checkpoint_new("here");
    bool same = true;
    for (size_t i = 0; i < N_THREADS; i++)
        files_must(pthread_create(&threads[i], NULL, ask, checkpoint) == 0, "thread");
    for (size_t i = 0; i < N_THREADS; i++) {
        void *made;
        pthread_join(threads[i], &made);
        same = same && made == checkpoint_once(checkpoint, make_one);
    }
    CHECK(same && n_made == 1);
    CHECK_TEXT(checkpoint_once(checkpoint, make_one), "one of here");
    CHECK(checkpoint_once(checkpoint, make_nothing) == NULL && checkpoint_once(checkpoint, make_nothing) == NULL);
    CHECK(n_made == 2);
    checkpoint_close(checkpoint);
}

static void test_side_files(void)
{
    struct checkpoint *checkpoint = checkpoint_new("here");
    struct document *document;
    struct error error;
    uint64_t number = 0;
    checkpoint_add_side_file(checkpoint, "a.json", open_source("a.json", "{\"a\": 1}"));
    checkpoint_add_side_file(checkpoint, "b", open_source("b", "b"));
    checkpoint_add_side_file(checkpoint, "c", open_source("c", "c"));
    CHECK(checkpoint_side_file(checkpoint, "b") == &checkpoint->side_files[1]);
    CHECK(checkpoint_side_file(checkpoint, "d") == NULL);
    checkpoint_hide_side_file(checkpoint, "b", "for a reason");
    CHECK(checkpoint->n_side_files == 2 && checkpoint_side_file(checkpoint, "b") == NULL);
    CHECK_TEXT(checkpoint->side_files[1].name, "c");
    CHECK(checkpoint->n_hidden == 1);
    CHECK_TEXT(checkpoint->hidden[0].name, "b");
    CHECK_TEXT(checkpoint->hidden[0].reason, "for a reason");
    CHECK(document_open(checkpoint, "a.json", &document, &error));
    CHECK(json_u64(json_get(document_root(document), "a"), &number) && number == 1);
    document_close(document);
    checkpoint_change_side_file(checkpoint, "a.json", "{\"a\": 22}", 9);
    CHECK(checkpoint->n_sources == 0 && checkpoint->n_guides == 1);
    CHECK(source_size(checkpoint_side_file(checkpoint, "a.json")->source) == 9);
    CHECK(document_open(checkpoint, "a.json", &document, &error)); /* it is not the one that was parsed before */
    CHECK(json_u64(json_get(document_root(document), "a"), &number) && number == 22);
    document_close(document);
    checkpoint_close(checkpoint);
}

/* Weights come first, and only they count; those of a checkpoint that is kept are guides. */
static void test_sources(void)
{
    struct checkpoint *checkpoint = checkpoint_new("here"), *other = checkpoint_new("there");
    struct source *guide = open_source("guide", "12345"), *first = open_source("first", "123"),
                  *second = open_source("second", "1234"), *kept = open_source("kept", "1");
    checkpoint_add_guide(checkpoint, guide);
    checkpoint_add_source(checkpoint, first);
    checkpoint_add_source(checkpoint, second);
    CHECK(checkpoint->n_sources == 2 && checkpoint->n_guides == 1);
    CHECK(checkpoint->sources[0] == first && checkpoint->sources[1] == second && checkpoint->sources[2] == guide);
    CHECK(checkpoint_bytes(checkpoint) == 7);
    checkpoint_add_source(other, kept);
    checkpoint_keep(checkpoint, other);
    CHECK(checkpoint->n_sources == 2 && checkpoint->n_guides == 2 && checkpoint->sources[3] == kept);
    CHECK(checkpoint_bytes(checkpoint) == 7 && other->n_sources == 0);
    checkpoint_keep(checkpoint, checkpoint_new("elsewhere"));
    checkpoint_close(checkpoint);
}

/* Of a key the first value stays; where another one is different the key is among the differing. */
static void test_metadata(void)
{
    struct checkpoint *checkpoint = checkpoint_new("here");
    struct error error;
    size_t length;
    checkpoint_add_metadata(checkpoint, "format", "pt");
    checkpoint_add_metadata(checkpoint, "same", "x");
    checkpoint_add_metadata(checkpoint, "format", "tf");
    checkpoint_add_metadata(checkpoint, "same", "x");
    CHECK_TEXT(gguf_get_string(&checkpoint->metadata, "format", checkpoint->arena, &length, &error), "pt");
    CHECK(gguf_kvs_find(&checkpoint->differing, "format") != NULL);
    CHECK(gguf_kvs_find(&checkpoint->differing, "same") == NULL);
    checkpoint_close(checkpoint);
}

int main(void)
{
    files_begin();
    test_notes();
    test_once();
    test_side_files();
    test_sources();
    test_metadata();
    files_remove();
    return check_done();
}
