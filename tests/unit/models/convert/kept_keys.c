/* Keys that are kept, and what of them is not believed: the process that wrote them may have been taken over. */
#include "models/convert/kept_keys.h"

#include "models/formats.h"
#include "quant/views/finding.h"
#include "tests/unit/check.h"
#include "tests/unit/notes.h"

#include <stdlib.h>

enum { MOST_KEPT = 2, LONG = 64 << 10 /* bytes of an array that is kept apart */, LAST_BUT_ONE = 7 };

struct kept {
    struct {
        uint32_t number;
        struct buffer bytes;
    } items[MOST_KEPT];
    size_t n;
};

static void *load(void *context, uint32_t number)
{
    const struct kept *kept = context;
    for (size_t i = 0; i < kept->n; i++)
        if (kept->items[i].number == number) {
            void *found = finding_alloc(kept->items[i].bytes.length);
            memcpy(found, kept->items[i].bytes.bytes, kept->items[i].bytes.length);
            return found;
        }
    return NULL;
}

static void save(void *context, uint32_t number, const void *bytes, size_t length)
{
    struct kept *kept = context;
    CHECK(kept->n < MOST_KEPT);
    kept->items[kept->n].number = number;
    buffer_append(&kept->items[kept->n++].bytes, bytes, length);
}

static bool read(void *context, uint32_t number, uint64_t size, uint64_t offset, size_t length, void *out)
{
    const struct kept *kept = context;
    for (size_t i = 0; i < kept->n; i++)
        if (kept->items[i].number == number && kept->items[i].bytes.length == size)
            return memcpy(out, kept->items[i].bytes.bytes + offset, length) != NULL;
    return false;
}

static const struct checkpoint *open_model(const struct finding_keeper *keeper)
{
    static char path[4096];
    struct error error;
    snprintf(path, sizeof path, "%s/gguf/models/llama-tiny", getenv("WFS_TEST_DATA"));
    const struct checkpoint *checkpoint = checkpoint_open(path, formats, &(struct open_options){0}, &error);
    CHECK(checkpoint != NULL);
    findings_keep(checkpoint->findings, keeper);
    return checkpoint;
}

static void save_a_key_and_a_note(const struct finding_keeper *keeper)
{
    const struct checkpoint *checkpoint = open_model(keeper);
    struct gguf_model model = {.checkpoint = checkpoint, .arena = arena_new()};
    struct buffer elements = {0};
    checkpoint_note(checkpoint, SUBJECT_REPACKED, "the tokenizer is odd"); /* by a call that was stopped */
    uint64_t first = checkpoint_notes_made();
    buffer_append_zeros(&elements, LONG);
    elements.bytes[LONG - 2] = LAST_BUT_ONE;
    gguf_set_array(&model.kvs, "tokenizer.ggml.scores", GGUF_U8, LONG, &elements);
    checkpoint_note(checkpoint, SUBJECT_REPACKED, "the tokenizer is odd");
    kept_keys_save(&model, first);
    gguf_kvs_free(&model.kvs);
    arena_free(model.arena);
    checkpoint_close(checkpoint);
}

/* Reports whether another process takes the keys and the note. */
static bool is_taken(const struct finding_keeper *keeper)
{
    const struct checkpoint *checkpoint = open_model(keeper);
    struct gguf_model model = {.checkpoint = checkpoint, .arena = arena_new()};
    bool taken = kept_keys_load(&model);
    CHECK(has_note(checkpoint, "the tokenizer is odd") == taken);
    const struct gguf_kv *scores = gguf_kvs_find(&model.kvs, "tokenizer.ggml.scores");
    unsigned char bytes[2] = {0};
    struct error error;
    if (CHECK((scores != NULL) == taken) && taken)
        CHECK(source_read(scores->stored.source, scores->stored.offset + scores->stored.length - 2, 2, bytes, &error) &&
              bytes[0] == LAST_BUT_ONE);
    gguf_kvs_free(&model.kvs);
    arena_free(model.arena);
    checkpoint_close(checkpoint);
    return taken;
}

int main(void)
{
    struct kept kept = {.n = 0};
    const struct finding_keeper keeper = {load, save, &kept, read};
    save_a_key_and_a_note(&keeper);
    CHECK(kept.n == MOST_KEPT && is_taken(&keeper));
    struct buffer *keys = &kept.items[1].bytes;
    unsigned char *subject =
        keys->bytes + keys->length - sizeof(uint64_t); /* the last number, and whether it is a hint */
    CHECK(*subject == 2 * SUBJECT_REPACKED);
    *subject += 2;
    CHECK(!is_taken(&keeper));
    subject[7] = 0x80;
    CHECK(!is_taken(&keeper));
    for (size_t i = 0; i < kept.n; i++)
        buffer_free(&kept.items[i].bytes);
    return check_done();
}
