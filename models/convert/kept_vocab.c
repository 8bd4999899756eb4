#include "models/convert/kept_vocab.h"

#include "base/text.h"
#include "quant/views/finding.h"
#include "sources/source.h"

#include <string.h>

enum {
    LEAST = 64 << 10,       /* bytes; a smaller tokenizer is parsed at once */
    MOST = GGUF_MAX_STRING, /* bytes that are believed */
};

/* A finding begins with the number of bytes. Each note follows: its kind, its text, a NUL. */
static const char kind_of_note = 'n', kind_of_hint = 'h';

/* The number of the finding, after those of kept_keys.c: a repacked model has notes of its own. */
static uint32_t number_of(bool is_repacked)
{
    return FINDINGS_OF_VIEWS + 4 + is_repacked;
}

static bool write_entries(struct buffer *out, const struct gguf_kvs *kvs, size_t n)
{
    struct error unused;
    for (size_t i = 0; i < n; i++)
        if (!gguf_write_kv(out, &kvs->kvs[i], &unused))
            return false;
    return true;
}

/* Saving. */

struct before_vocab before_vocab(const struct gguf_model *model)
{
    struct before_vocab before = {
        .is_wanted =
            findings_short_are_kept(model->checkpoint->findings) && model->part != PART_MTP && !source_any_remote(),
        .n_keys = model->kvs.n_kvs,
        .n_notes = checkpoint_notes_made(),
    };
    before.is_wanted = before.is_wanted && write_entries(&before.entries, &model->kvs, before.n_keys);
    return before;
}

/* Returns the bytes of the tokenizer's entries; 0: they are few, or more has changed. */
static uint64_t size_of_vocab(const struct gguf_model *model, const struct before_vocab *before)
{
    const struct gguf_kvs *kvs = &model->kvs;
    struct buffer entries = {0};
    bool is_added = write_entries(&entries, kvs, before->n_keys) && entries.length == before->entries.length &&
                    (entries.length == 0 || memcmp(entries.bytes, before->entries.bytes, entries.length) == 0);
    uint64_t n_bytes = 0;
    for (size_t i = before->n_keys; i < kvs->n_kvs; i++) {
        is_added &= text_starts_with(kvs->kvs[i].key, "tokenizer.");
        n_bytes += gguf_entry_bytes(&kvs->kvs[i]);
    }
    buffer_free(&entries);
    return is_added && n_bytes >= LEAST && n_bytes <= MOST ? n_bytes : 0;
}

/* Appends the notes that this thread has made since. Returns false if they are not known. */
static bool append_notes(struct buffer *out, const struct checkpoint *checkpoint, uint64_t first)
{
    for (uint64_t i = first, n = checkpoint_notes_made(); i < n; i++) {
        struct note note;
        if (!checkpoint_note_made(checkpoint, i, &note) || note.subject != SUBJECT_GGUF)
            return false;
        buffer_append(out, note.is_hint ? &kind_of_hint : &kind_of_note, 1);
        buffer_append(out, note.text, strlen(note.text) + 1);
    }
    return true;
}

void kept_vocab_end(const struct gguf_model *model, bool added, struct before_vocab *before)
{
    const struct checkpoint *checkpoint = model->checkpoint;
    struct buffer finding = {0};
    if (added && before->is_wanted) {
        uint64_t n_bytes = size_of_vocab(model, before);
        buffer_append(&finding, &n_bytes, sizeof n_bytes);
        if (n_bytes == 0 || !append_notes(&finding, checkpoint, before->n_notes))
            buffer_free(&finding);
        findings_save_short(checkpoint->findings, number_of(model->is_repacked), &finding);
    }
    buffer_free(&finding);
    buffer_free(&before->entries);
}

/* Loading. */

/* Repeats the notes of a finding. */
static void repeat_notes(const struct checkpoint *checkpoint, const char *at, size_t length)
{
    const char *end;
    for (; length > 0 && (end = memchr(at, '\0', length)) != NULL; at = end + 1) {
        length -= (size_t)(end + 1 - at);
        (*at == kind_of_hint ? checkpoint_hint : checkpoint_note)(checkpoint, SUBJECT_GGUF, "%s",
                                                                  end > at ? at + 1 : "");
    }
}

/* Returns the finding, for finding_discard(), or NULL. */
static char *load(const struct checkpoint *checkpoint, bool is_repacked, uint64_t *ret_n_bytes)
{
    char *found = findings_load_short(checkpoint->findings, number_of(is_repacked));
    *ret_n_bytes = 0;
    if (found != NULL && finding_length(found) >= sizeof *ret_n_bytes)
        memcpy(ret_n_bytes, found, sizeof *ret_n_bytes);
    if (*ret_n_bytes >= LEAST && *ret_n_bytes <= MOST)
        return found;
    finding_discard(found);
    return NULL;
}

bool kept_vocab_exists(const struct checkpoint *checkpoint, bool is_repacked)
{
    uint64_t unused;
    char *found = load(checkpoint, is_repacked, &unused);
    finding_discard(found);
    return found != NULL && !source_any_remote();
}

bool kept_vocab_load(struct gguf_model *model)
{
    uint64_t n_bytes;
    char *found = load(model->checkpoint, model->is_repacked, &n_bytes);
    if (found == NULL)
        return false;
    model->kvs.absent_bytes = n_bytes;
    repeat_notes(model->checkpoint, found + sizeof n_bytes, finding_length(found) - sizeof n_bytes);
    finding_discard(found);
    return true;
}
