#include "models/convert/kept_keys.h"

#include "base/text.h"
#include "quant/views/finding.h"
#include "sources/source.h"
#include "sources/source_kinds.h"

#include <string.h>

/* Entries that follow the model's own among those that are kept; no key of a model begins with a dot. */
static const char long_places[] = ".long", template_place[] = ".template", notes[] = ".notes", subjects[] = ".subjects";

/* What a long array's entry has in place of its elements. */
enum { ELEMENT_TYPE, ELEMENTS, LENGTH, OUTLINE };

/* Numbers of the findings: a repacked model has other keys. */
static uint32_t number_of_keys(const struct gguf_model *model)
{
    return FINDINGS_OF_VIEWS + 2 * model->is_repacked;
}

static uint32_t number_of_values(const struct gguf_model *model)
{
    return number_of_keys(model) + 1;
}

static bool may_be_kept(const struct gguf_model *model)
{
    return !model->is_remade && findings_are_kept(model->checkpoint->findings) && long_keys_can_move(model);
}

/* Saving. */

static void set_numbers(struct gguf_kvs *kvs, const char *key, const uint64_t *numbers, size_t n)
{
    struct buffer elements = {0};
    for (size_t i = 0; i < n; i++)
        buffer_append_le(&elements, numbers[i], sizeof *numbers);
    gguf_set_array(kvs, key, GGUF_U64, n, &elements);
}

static void set_outline(struct gguf_kvs *kvs, const struct gguf_kv *kv)
{
    enum gguf_type type;
    uint64_t outline[OUTLINE] = {[LENGTH] = kv->value.length};
    gguf_array_outline(kv, &type, &outline[ELEMENTS]);
    outline[ELEMENT_TYPE] = type;
    set_numbers(kvs, kv->key, outline, OUTLINE);
}

/* Adds the notes that this thread has made since, also those that the checkpoint had before: a call that was stopped
 * may have made them. Returns false if they are not known. */
static bool set_notes(struct gguf_kvs *kvs, const struct checkpoint *checkpoint, uint64_t first)
{
    struct buffer texts = {0}, kinds = {0};
    uint64_t end = checkpoint_notes_made(), i = first;
    struct note note;
    for (; i < end && checkpoint_note_made(checkpoint, i, &note); i++) {
        gguf_append_string(&texts, note.text, strlen(note.text));
        buffer_append_le(&kinds, 2 * (uint64_t)note.subject + note.is_hint, 8);
    }
    gguf_set_array(kvs, notes, GGUF_STRING, i - first, &texts);
    gguf_set_array(kvs, subjects, GGUF_U64, i - first, &kinds);
    return i == end;
}

static bool write_all(struct buffer *out, const struct gguf_kvs *kvs)
{
    struct error unused;
    for (size_t i = 0; i < kvs->n_kvs; i++)
        if (!gguf_write_kv(out, &kvs->kvs[i], &unused))
            return false;
    return true;
}

void kept_keys_save(const struct gguf_model *model, uint64_t first_note)
{
    if (!may_be_kept(model))
        return;
    struct arena *scratch = arena_new();
    struct gguf_kvs kvs = gguf_kvs_copy(&model->kvs);
    uint64_t *places = arena_array(scratch, model->kvs.n_kvs, sizeof *places);
    size_t n_long = 0;
    struct buffer keys = {0}, values = {0};
    for (size_t i = 0; i < model->kvs.n_kvs; i++) {
        const struct gguf_kv *kv = &model->kvs.kvs[i];
        if (!is_long_key(kv))
            continue;
        places[n_long++] = i;
        buffer_append(&values, kv->value.bytes, kv->value.length);
        set_outline(&kvs, kv);
    }
    set_numbers(&kvs, long_places, places, n_long);
    set_numbers(&kvs, template_place, &(uint64_t){model->chat_template_place}, 1);
    bool are_known = set_notes(&kvs, model->checkpoint, first_note);
    if (are_known && values.length > 0 && write_all(&keys, &kvs)) {
        findings_save(model->checkpoint->findings, number_of_values(model), &values);
        findings_save(model->checkpoint->findings, number_of_keys(model), &keys);
    }
    buffer_free(&keys);
    buffer_free(&values);
    gguf_kvs_free(&kvs);
    arena_free(scratch);
}

/* Loading. */

static void close_source(void *source)
{
    source_close(source);
}

/* Reads the entries that are kept, which stay in a source that the model closes. */
static bool read_all(const struct gguf_model *model, struct gguf_kvs *ret_kvs)
{
    struct error unused;
    void *found = findings_load(model->checkpoint->findings, number_of_keys(model));
    if (found == NULL)
        return false;
    struct source *source = source_of_text(model->checkpoint->sources[0], "kept keys", found, finding_length(found));
    finding_discard(found);
    arena_on_free(model->arena, close_source, source);
    struct gguf_cursor cursor = gguf_cursor_at(source, 0, 3, GGUF_LITTLE_ENDIAN);
    bool read = true;
    while (read && gguf_remaining(&cursor) > 0)
        read = gguf_kvs_read(ret_kvs, &cursor, &unused);
    gguf_cursor_free(&cursor);
    return read;
}

/* Gets an array of numbers; of none if the key is missing. */
static bool get_numbers(const struct gguf_kvs *kvs, const char *key, struct arena *arena, uint64_t **ret_numbers,
                        size_t *ret_n)
{
    struct error unused;
    struct gguf_array array = {0};
    if (gguf_kvs_find(kvs, key) != NULL && !gguf_get_array(kvs, key, arena, &array, &unused))
        return false;
    *ret_n = (size_t)array.count;
    *ret_numbers = arena_array(arena, *ret_n, sizeof **ret_numbers);
    for (size_t i = 0; i < *ret_n; i++)
        if (!gguf_array_u64(&array, i, &(*ret_numbers)[i]))
            return false;
    return true;
}

/* What is kept of a model. */
struct kept {
    struct gguf_kvs kvs;
    struct absent_key *absent;
    uint64_t *places, *template_place, *subjects;
    size_t n_absent, n_templates, n_subjects;
    struct gguf_array notes;
};

static bool take_outline(struct kept *kept, size_t i, struct arena *arena)
{
    uint64_t *outline;
    size_t n;
    const struct gguf_kvs *kvs = &kept->kvs;
    if (kept->places[i] >= kvs->n_kvs || !get_numbers(kvs, kvs->kvs[kept->places[i]].key, arena, &outline, &n) ||
        n != OUTLINE)
        return false;
    kept->absent[i] = (struct absent_key){(size_t)kept->places[i], (enum gguf_type)outline[ELEMENT_TYPE],
                                          outline[ELEMENTS], outline[LENGTH]};
    return true;
}

static bool take_kept(struct kept *kept, struct arena *arena)
{
    struct error unused;
    const struct gguf_kvs *kvs = &kept->kvs;
    if (!get_numbers(kvs, long_places, arena, &kept->places, &kept->n_absent) ||
        !get_numbers(kvs, template_place, arena, &kept->template_place, &kept->n_templates) || kept->n_templates != 1 ||
        !get_numbers(kvs, subjects, arena, &kept->subjects, &kept->n_subjects) ||
        (kept->n_subjects > 0 && !gguf_get_array(kvs, notes, arena, &kept->notes, &unused)))
        return false;
    kept->absent = arena_array(arena, kept->n_absent, sizeof *kept->absent);
    bool taken = kept->notes.count == kept->n_subjects && (kept->n_subjects == 0 || kept->notes.type == GGUF_STRING);
    for (size_t i = 0; taken && i < kept->n_subjects; i++)
        taken = kept->subjects[i] / 2 < N_SUBJECTS;
    for (size_t i = 0; taken && i < kept->n_absent; i++)
        taken = take_outline(kept, i, arena);
    return taken;
}

static void kept_keys_repeat_notes(const struct checkpoint *checkpoint, const struct kept *kept)
{
    for (size_t i = 0; i < kept->n_subjects; i++) {
        size_t length;
        const char *text = gguf_array_string(&kept->notes, i, &length);
        (kept->subjects[i] % 2 == 1 ? checkpoint_hint : checkpoint_note)(
            checkpoint, (enum subject)(kept->subjects[i] / 2), "%.*s", (int)length, text);
    }
}

/* Makes the keys of the model those that are kept. */
static void take_keys(struct gguf_model *model, struct kept *kept)
{
    static const char *const own[] = {subjects, notes, template_place, long_places};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        gguf_kvs_remove(&kept->kvs, own[i]);
    for (size_t i = 0; i < kept->n_absent; i++)
        buffer_free(&kept->kvs.kvs[kept->absent[i].place].value);
    gguf_kvs_free(&model->kvs);
    model->kvs = kept->kvs;
    model->chat_template_place = (size_t)*kept->template_place;
    long_keys_are_absent(model, kept->absent, kept->n_absent);
}

bool kept_keys_load(struct gguf_model *model)
{
    struct kept kept = {0};
    if (!may_be_kept(model))
        return false;
    if (!read_all(model, &kept.kvs) || !take_kept(&kept, model->arena)) {
        gguf_kvs_free(&kept.kvs);
        return false;
    }
    kept_keys_repeat_notes(model->checkpoint, &kept);
    take_keys(model, &kept);
    return true;
}

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
static void kept_vocab_repeat_notes(const struct checkpoint *checkpoint, const char *at, size_t length)
{
    const char *end;
    for (; length > 0 && (end = memchr(at, '\0', length)) != NULL; at = end + 1) {
        length -= (size_t)(end + 1 - at);
        (*at == kind_of_hint ? checkpoint_hint : checkpoint_note)(checkpoint, SUBJECT_GGUF, "%s",
                                                                  end > at ? at + 1 : "");
    }
}

/* Returns the finding, for finding_discard(), or NULL. */
static char *kept_vocab_read(const struct checkpoint *checkpoint, bool is_repacked, uint64_t *ret_n_bytes)
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
    char *found = kept_vocab_read(checkpoint, is_repacked, &unused);
    finding_discard(found);
    return found != NULL && !source_any_remote();
}

bool kept_vocab_load(struct gguf_model *model)
{
    uint64_t n_bytes;
    char *found = kept_vocab_read(model->checkpoint, model->is_repacked, &n_bytes);
    if (found == NULL)
        return false;
    model->kvs.absent_bytes = n_bytes;
    kept_vocab_repeat_notes(model->checkpoint, found + sizeof n_bytes, finding_length(found) - sizeof n_bytes);
    finding_discard(found);
    return true;
}

enum { LONG_ARRAY = 64 << 10 /* bytes */ };

/* How the arrays that were moved are made again. */
struct moved_keys {
    const struct gguf_model *model;
    uint64_t n_kept; /* bytes; 0: they were not kept */
};

bool is_long_key(const struct gguf_kv *kv)
{
    return kv->type == GGUF_ARRAY && kv->stored.source == NULL && !kv->is_borrowed && kv->value.length >= LONG_ARRAY;
}

bool long_keys_can_move(const struct gguf_model *model)
{
    return model->checkpoint->n_sources > 0 && !source_any_remote();
}

/* Takes the values of the long arrays, at most `most`; returns their number. */
static size_t take(struct gguf_kvs *kvs, struct buffer *parts, size_t most)
{
    size_t n = 0;
    for (size_t i = 0; i < kvs->n_kvs && n < most; i++) {
        if (!is_long_key(&kvs->kvs[i]))
            continue;
        parts[n++] = kvs->kvs[i].value;
        kvs->kvs[i].value = (struct buffer){0};
    }
    return n;
}

static bool make_again(void *context, struct buffer *parts, size_t n_parts, struct error *error)
{
    const struct moved_keys *moved = context;
    struct gguf_model *model = moved->model->make_again(moved->model, error);
    if (model != NULL)
        take(&model->kvs, parts, n_parts);
    gguf_model_free(model);
    return model != NULL;
}

static bool read_kept(void *context, uint64_t offset, size_t length, void *out)
{
    const struct moved_keys *moved = context;
    const struct gguf_model *model = moved->model;
    return findings_read(model->checkpoint->findings, number_of_values(model), moved->n_kept, offset, length, out);
}

/* Makes the source of the model's long arrays, of which `parts` has the values or, without bytes, their lengths. */
static struct source *source_of_keys(const struct moved_keys *moved, struct buffer *parts, size_t n)
{
    struct arena *arena = moved->model->arena;
    struct source *source =
        source_remade_new(moved->model->checkpoint->sources[0], "the vocabulary", parts, n, make_again,
                          moved->n_kept != 0 ? read_kept : NULL, arena_copy(arena, moved, sizeof *moved));
    arena_on_free(arena, close_source, source);
    return source;
}

/* Lets an entry have its value in a source, as one that was read from a file of version 3. Returns the value. */
static struct buffer move(struct gguf_kv *kv, uint64_t offset)
{
    struct buffer value = kv->value;
    struct gguf_stored stored = {.offset = offset, .length = value.length, .version = 3, .canonical = true};
    gguf_array_outline(kv, &stored.array_type, &stored.array_count);
    kv->value = (struct buffer){0};
    kv->stored = stored;
    return value;
}

void long_keys_move(struct gguf_model *model)
{
    struct gguf_kvs *kvs = &model->kvs;
    uint64_t offset = 0;
    size_t n = 0;
    struct buffer *parts = arena_array(model->arena, kvs->n_kvs, sizeof *parts);
    struct gguf_kv **entries = arena_array(model->arena, kvs->n_kvs, sizeof *entries);
    for (size_t i = 0; i < kvs->n_kvs; i++)
        if (is_long_key(&kvs->kvs[i]))
            entries[n++] = &kvs->kvs[i];
    if (n == 0 || !long_keys_can_move(model))
        return;
    for (size_t i = 0; i < n; offset += parts[i].length, i++)
        parts[i] = move(entries[i], offset);
    struct source *source = source_of_keys(&(struct moved_keys){.model = model}, parts, n);
    for (size_t i = 0; i < n; i++)
        entries[i]->stored.source = source;
}

void long_keys_are_absent(struct gguf_model *model, const struct absent_key *absent, size_t n_absent)
{
    uint64_t offset = 0, n_bytes = 0;
    struct buffer *parts = arena_array(model->arena, n_absent, sizeof *parts);
    if (n_absent == 0)
        return;
    for (size_t i = 0; i < n_absent; n_bytes += absent[i].length, i++)
        parts[i].length = absent[i].length;
    struct source *source = source_of_keys(&(struct moved_keys){model, n_bytes}, parts, n_absent);
    for (size_t i = 0; i < n_absent; offset += absent[i].length, i++)
        model->kvs.kvs[absent[i].place].stored = (struct gguf_stored){
            source, offset, absent[i].length, 3, GGUF_LITTLE_ENDIAN, true, absent[i].element_type, absent[i].n_elements,
        };
}
