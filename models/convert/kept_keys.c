#include "models/convert/kept_keys.h"

#include "models/convert/long_keys.h"
#include "quant/views/finding.h"

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

static void set_notes(struct gguf_kvs *kvs, const struct checkpoint *checkpoint, size_t first)
{
    struct buffer texts = {0}, kinds = {0};
    size_t n = checkpoint_notes(checkpoint);
    for (size_t i = first; i < n; i++) {
        struct note note = checkpoint_note_at(checkpoint, i);
        gguf_append_string(&texts, note.text, strlen(note.text));
        buffer_append_le(&kinds, 2 * (uint64_t)note.subject + note.is_hint, 8);
    }
    gguf_set_array(kvs, notes, GGUF_STRING, n - first, &texts);
    gguf_set_array(kvs, subjects, GGUF_U64, n - first, &kinds);
}

static bool write_all(struct buffer *out, const struct gguf_kvs *kvs)
{
    struct error unused;
    for (size_t i = 0; i < kvs->n_kvs; i++)
        if (!gguf_write_kv(out, &kvs->kvs[i], &unused))
            return false;
    return true;
}

void kept_keys_save(const struct gguf_model *model, size_t first_note)
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
    set_notes(&kvs, model->checkpoint, first_note);
    if (values.length > 0 && write_all(&keys, &kvs)) {
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

static void repeat_notes(const struct checkpoint *checkpoint, const struct kept *kept)
{
    for (size_t i = 0; i < kept->n_subjects; i++) {
        size_t length;
        const char *text = gguf_array_string(&kept->notes, i, &length);
        (kept->subjects[i] % 2 == 1 ? checkpoint_hint : checkpoint_note)(
            checkpoint, (enum subject)(kept->subjects[i] / 2), "%.*s", (int)length, text);
    }
}

static bool load_values(const struct gguf_model *model, const struct absent_key *absent, size_t n_absent,
                        struct buffer *values)
{
    void *found = findings_load(model->checkpoint->findings, number_of_values(model));
    size_t at = 0, length = found != NULL ? finding_length(found) : 0;
    for (size_t i = 0; i < n_absent && absent[i].length <= length - at; at += absent[i].length, i++)
        buffer_append(&values[i], (const unsigned char *)found + at, absent[i].length);
    finding_discard(found);
    return found != NULL && at == length;
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
    long_keys_are_absent(model, kept->absent, kept->n_absent, load_values);
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
    repeat_notes(model->checkpoint, &kept);
    take_keys(model, &kept);
    return true;
}
