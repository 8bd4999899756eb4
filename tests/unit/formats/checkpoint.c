/* Checkpoints that are put together by hand: notes, what is made once, side files, metadata, who owns what (the
 * sanitizers tell). */
#include "formats/checkpoint_builder.h"

#include "base/attempt.h"
#include "formats/documents.h"
#include "sources/location.h"
#include "tests/unit/check.h"
#include "tests/unit/failing_memory.h"
#include "tests/unit/files.h"
#include "tests/unit/notes.h"

#include <pthread.h>

static struct source *open_source(const char *name, const char *text)
{
    struct error error;
    files_write_text(name, text);
    struct source *source = location_open_file(name, &error);
    files_must(source != NULL, name);
    return source;
}

/* Each line counts once, and of more than 256 the others are dropped. */
static void test_notes(void)
{
    struct checkpoint *checkpoint = checkpoint_new("here");
    CHECK(checkpoint_notes(checkpoint) == 0);
    checkpoint_note(checkpoint, SUBJECT_SOURCE, "%s: %d", "a", 1);
    checkpoint_note(checkpoint, SUBJECT_SOURCE, "a: 2");
    checkpoint_note(checkpoint, SUBJECT_SOURCE, "a: 1");
    CHECK(checkpoint_notes(checkpoint) == 2);
    checkpoint_hint(checkpoint, SUBJECT_SOURCE, "a: %d", 1); /* a note already */
    CHECK(checkpoint_notes(checkpoint) == 2 && !checkpoint_note_at(checkpoint, 0).is_hint);
    CHECK_TEXT(checkpoint_note_at(checkpoint, 0).text, "a: 1");
    CHECK_TEXT(checkpoint_note_at(checkpoint, 1).text, "a: 2");
    checkpoint_hint(checkpoint, SUBJECT_SOURCE, "a: %d", 3);
    CHECK(checkpoint_notes(checkpoint) == 3 && checkpoint_note_at(checkpoint, 2).is_hint);
    for (int i = 0; i < 300; i++)
        checkpoint_note(checkpoint, SUBJECT_SOURCE, "number %d", i);
    CHECK(checkpoint_notes(checkpoint) == 256);
    CHECK(has_note(checkpoint, "number 252") && !has_note(checkpoint, "number 253"));
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

struct asking {
    const struct checkpoint *checkpoint;
    const void *made;
};

static void *ask(void *context)
{
    struct asking *asking = context;
    asking->made = checkpoint_once(asking->checkpoint, make_one);
    return NULL;
}

static void test_once(void)
{
    enum { N_THREADS = 8 };
    pthread_t threads[N_THREADS];
    struct asking asking[N_THREADS];
    struct checkpoint *checkpoint = checkpoint_new("here");
    bool same = true;
    for (size_t i = 0; i < N_THREADS; i++) {
        asking[i].checkpoint = checkpoint;
        files_must(pthread_create(&threads[i], NULL, ask, &asking[i]) == 0, "thread");
    }
    for (size_t i = 0; i < N_THREADS; i++) {
        pthread_join(threads[i], NULL);
        same = same && asking[i].made == checkpoint_once(checkpoint, make_one);
    }
    CHECK(same && n_made == 1);
    CHECK_TEXT(checkpoint_once(checkpoint, make_one), "one of here");
    CHECK(checkpoint_once(checkpoint, make_nothing) == NULL && checkpoint_once(checkpoint, make_nothing) == NULL);
    CHECK(n_made == 2);
    checkpoint_close(checkpoint);
}

/* Fails, and while a source cannot be reached makes what is not kept. */
static bool is_unreached;

static const void *try_one(const struct checkpoint *checkpoint, struct arena *arena, struct error *error)
{
    if (is_unreached)
        source_count_unreached();
    error_set(error, "try %d", ++n_made);
    return is_unreached ? checkpoint_once(checkpoint, make_one) : NULL;
}

static void test_try(void)
{
    struct checkpoint *checkpoint = checkpoint_new("here");
    struct error error;
    n_made = 0;
    is_unreached = true;
    CHECK(checkpoint_try(checkpoint, try_one, &error) == NULL);
    CHECK_TEXT(error.message, "a source could not be read");
    CHECK(n_made == 2); /* and one object that another maker made */
    is_unreached = false;
    for (int i = 0; i < 2; i++) {
        CHECK(checkpoint_try(checkpoint, try_one, &error) == NULL);
        CHECK_TEXT(error.message, "try 3");
    }
    checkpoint_close(checkpoint);
}

static void test_side_files(void)
{
    struct checkpoint *checkpoint = checkpoint_new("here");
    checkpoint_add_side_file(checkpoint, "a", open_source("a", "a"));
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
    checkpoint_close(checkpoint);
}

static uint64_t number_in(const struct checkpoint *checkpoint)
{
    struct document *document;
    struct error error;
    uint64_t number = 0;
    CHECK(document_open(checkpoint, "config.json", &document, &error));
    CHECK(json_u64(json_get(document_root(document), "a"), &number));
    document_close(document);
    return number;
}

/* What is derived has changes that its origin has not; they share the rest, and their notes. */
static void test_derived(void)
{
    struct checkpoint *origin = checkpoint_new("here");
    struct source *weights = open_source("weights", "1234");
    checkpoint_add_source(origin, weights);
    checkpoint_add_side_file(origin, "config.json", open_source("config.json", "{\"a\": 1}"));
    checkpoint_add_side_file(origin, "b", open_source("b", "b"));
    checkpoint_add_metadata(origin, "key", "value");
    CHECK(number_in(origin) == 1);
    struct checkpoint *derived = checkpoint_derive(origin);
    checkpoint_change_side_file(derived, "config.json", "{\"a\": 22}", 9);
    checkpoint_hide_side_file(derived, "b", "for a reason");
    gguf_set_u32(&derived->metadata, "key", 1);
    checkpoint_note(derived, SUBJECT_SOURCE, "derived");
    CHECK(derived->tensors == origin->tensors && derived->sources[0] == weights);
    CHECK(derived->n_sources == 1 && derived->n_guides == 1 && origin->n_guides == 0);
    CHECK(number_in(derived) == 22 && number_in(origin) == 1);
    CHECK(derived->n_side_files == 1 && origin->n_side_files == 2 && derived->n_hidden == 1 && origin->n_hidden == 0);
    CHECK(gguf_kvs_find(&derived->metadata, "key")->type == GGUF_U32);
    CHECK(gguf_kvs_find(&origin->metadata, "key")->type == GGUF_STRING);
    CHECK(has_note(origin, "derived"));
    checkpoint_close(derived);
}

/* Weights come first, and only they count; those of a checkpoint that is used are guides, those of one that is kept are
 * not. A base of the origin is one of what is derived from it. */
static void test_sources(void)
{
    struct checkpoint *checkpoint = checkpoint_new("here"), *other = checkpoint_new("there"),
                      *target = checkpoint_new("elsewhere");
    struct source *guide = open_source("guide", "12345"), *first = open_source("first", "123"),
                  *second = open_source("second", "1234"), *used = open_source("used", "1");
    checkpoint_add_guide(checkpoint, guide);
    checkpoint_add_source(checkpoint, first);
    checkpoint_add_source(checkpoint, second);
    CHECK(checkpoint->n_sources == 2 && checkpoint->n_guides == 1);
    CHECK(checkpoint->sources[0] == first && checkpoint->sources[1] == second && checkpoint->sources[2] == guide);
    CHECK(checkpoint_bytes(checkpoint) == 7);
    checkpoint_add_source(other, used);
    checkpoint_use(checkpoint, BASE_ADAPTER, other);
    CHECK(checkpoint->n_sources == 2 && checkpoint->n_guides == 2 && checkpoint->sources[3] == used);
    CHECK(checkpoint_bytes(checkpoint) == 7 && checkpoint_bytes(other) == 1);
    checkpoint_add_source(target, open_source("target", "12"));
    struct checkpoint *derived = checkpoint_derive(checkpoint);
    checkpoint_keep(derived, BASE_TARGET, target);
    CHECK(derived->n_sources == 2 && derived->n_guides == 2);
    CHECK(checkpoint_base(derived, BASE_ADAPTER) == other && checkpoint_base(derived, BASE_TARGET) == target);
    CHECK(checkpoint_base(checkpoint, BASE_TARGET) == NULL && checkpoint_base(derived, BASE_FOLDER) == NULL);
    checkpoint_close(derived);
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

static void note_two(void *checkpoint)
{
    checkpoint_note(checkpoint, SUBJECT_SOURCE, "one");
    checkpoint_note(checkpoint, SUBJECT_SOURCE, "two");
}

/* A note that lacks memory ends the attempt, not the process, and the same thread may make it again. */
static void test_lacking_memory(void)
{
    bool failed = true;
    for (long n = 0; failed && n < 10; n++) {
        struct checkpoint *checkpoint = checkpoint_new("here");
        uint64_t n_before = checkpoint_notes_made();
        struct note note;
        allow_allocations(n);
        size_t lacking = attempt_lacking(note_two, checkpoint);
        failed = has_failed_allocation();
        allow_allocations(-1);
        CHECK((lacking > 0) == failed);
        CHECK(checkpoint_notes_made() - n_before == checkpoint_notes(checkpoint));
        note_two(checkpoint);
        CHECK(checkpoint_notes(checkpoint) == 2);
        CHECK(checkpoint_note_made(checkpoint, checkpoint_notes_made() - 1, &note));
        CHECK_TEXT(note.text, "two");
        checkpoint_close(checkpoint);
    }
    CHECK(!failed);
}

int main(void)
{
    files_begin();
    test_notes();
    test_once();
    test_try();
    test_side_files();
    test_derived();
    test_sources();
    test_metadata();
    test_lacking_memory();
    files_remove();
    return check_done();
}
