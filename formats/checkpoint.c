#include "formats/checkpoint_builder.h"

#include "base/attempt.h"
#include "base/lock.h"
#include "formats/components.h"
#include "formats/documents.h"
#include "formats/once.h"
#include "quant/views/finding.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* More are dropped: notes are for a person to read, and a file may have any number of oddities. */
enum { MAX_NOTES = 256 };

/* Notes, which any thread may add at any time. */
struct notes {
    struct lock lock;
    struct note *notes; /* from malloc(); most checkpoints have none */
    char **texts;       /* the same, and each of them is */
    size_t n_notes;
};

/* An object of checkpoint_once() or checkpoint_try(), whose maker is the other one's NULL. */
struct made {
    checkpoint_maker *make;
    checkpoint_trier *try_to;
    struct once once;
    struct made *next;
};

/* The last made first: each may use those that come after it. */
struct made_objects {
    struct lock lock;
    struct made *first;
};

/* Copies an array of the heap, with the room that memory_grow() expects. */
static void *copy_array(const void *array, size_t count, size_t element_bytes)
{
    size_t capacity = 1;
    while (capacity < count)
        capacity *= 2;
    return count > 0 ? memcpy(memory_alloc(capacity * element_bytes), array, count * element_bytes) : NULL;
}

/* Frees the parts that every checkpoint owns alone. */
static void release_own(void *context)
{
    struct checkpoint *checkpoint = context;
    free(checkpoint->sources);
    free(checkpoint->side_files);
    free(checkpoint->hidden);
    gguf_kvs_free(&checkpoint->metadata);
    gguf_kvs_free(&checkpoint->differing);
}

/* Frees the parts that a checkpoint shares with those derived from it. */
static void release_shared(void *context)
{
    struct checkpoint *checkpoint = context;
    if (checkpoint->components != NULL)
        location_close(checkpoint->components->location);
    for (size_t i = 0; i < checkpoint->notes->n_notes; i++)
        free(checkpoint->notes->texts[i]);
    free(checkpoint->notes->texts);
    free(checkpoint->notes->notes);
    lock_destroy(&checkpoint->notes->lock);
}

static struct made_objects *made_objects_new(struct arena *arena)
{
    struct made_objects *objects = arena_alloc(arena, sizeof *objects);
    lock_init(&objects->lock);
    return objects;
}

struct checkpoint *checkpoint_new(const char *path)
{
    struct arena *arena = arena_new();
    struct checkpoint *checkpoint = arena_alloc(arena, sizeof *checkpoint);
    checkpoint->arena = arena;
    checkpoint->path = arena_strdup(arena, path);
    checkpoint->tensors = checkpoint->unsealed = tensor_set_new(arena);
    checkpoint->documents = documents_new();
    checkpoint->notes = arena_alloc(arena, sizeof *checkpoint->notes);
    lock_init(&checkpoint->notes->lock);
    checkpoint->made = made_objects_new(arena);
    checkpoint->findings = findings_new(arena);
    arena_on_free(arena, release_shared, checkpoint);
    arena_on_free(arena, release_own, checkpoint);
    return checkpoint;
}

bool checkpoint_seal(struct checkpoint *checkpoint, struct error *error)
{
    if (checkpoint->unsealed != NULL && !tensor_set_seal(checkpoint->unsealed, error))
        return false;
    checkpoint->unsealed = NULL;
    return true;
}

struct checkpoint *checkpoint_derive(const struct checkpoint *origin)
{
    struct arena *arena = arena_new();
    struct checkpoint *derived = arena_copy(arena, origin, sizeof *origin);
    size_t n_sources = origin->n_sources + origin->n_guides;
    derived->arena = arena;
    derived->unsealed = NULL;
    derived->sources = copy_array(origin->sources, n_sources, sizeof *origin->sources);
    derived->side_files = copy_array(origin->side_files, origin->n_side_files, sizeof *origin->side_files);
    derived->hidden = copy_array(origin->hidden, origin->n_hidden, sizeof *origin->hidden);
    derived->metadata = gguf_kvs_copy(&origin->metadata);
    derived->differing = gguf_kvs_copy(&origin->differing);
    derived->documents = documents_new();
    derived->made = made_objects_new(arena);
    derived->bases = NULL;
    derived->n_bases = 0;
    arena_on_free(arena, release_own, derived);
    checkpoint_keep(derived, BASE_ORIGIN, origin);
    return derived;
}

struct making {
    const struct checkpoint *checkpoint;
    struct made *made;
};

/* Moves an object before those that it may use. */
static void move_to_front(struct made_objects *objects, struct made *made)
{
    struct made **place = &objects->first;
    lock_take(&objects->lock);
    while (*place != made)
        place = &(*place)->next;
    *place = made->next;
    made->next = objects->first;
    objects->first = made;
    lock_drop(&objects->lock);
}

static const void *run_maker(void *context, struct arena *arena, struct error *error)
{
    const struct making *making = context;
    const struct made *made = making->made;
    const void *value =
        made->make != NULL ? made->make(making->checkpoint, arena) : made->try_to(making->checkpoint, arena, error);
    move_to_front(making->checkpoint->made, making->made);
    return value;
}

static struct made *made_by(struct made_objects *objects, checkpoint_maker *make, checkpoint_trier *try_to)
{
    attempt_lock(&objects->lock);
    struct made *made = objects->first;
    while (made != NULL && (made->make != make || made->try_to != try_to))
        made = made->next;
    if (made == NULL) {
        made = memory_alloc(sizeof *made);
        *made = (struct made){.make = make, .try_to = try_to, .next = objects->first};
        once_init(&made->once);
        objects->first = made;
    }
    attempt_unlock(&objects->lock);
    return made;
}

const void *checkpoint_once(const struct checkpoint *checkpoint, checkpoint_maker *make)
{
    struct making making = {checkpoint, made_by(checkpoint->made, make, NULL)};
    return once_value(&making.made->once, run_maker, &making);
}

const void *checkpoint_try(const struct checkpoint *checkpoint, checkpoint_trier *make, struct error *error)
{
    struct making making = {checkpoint, made_by(checkpoint->made, NULL, make)};
    const void *value;
    once_get(&making.made->once, run_maker, &making, &value, error);
    return value;
}

static void free_made(struct made_objects *objects)
{
    for (struct made *made = objects->first, *next; made != NULL; made = next) {
        next = made->next;
        once_destroy(&made->once);
        free(made);
    }
    lock_destroy(&objects->lock);
}

void checkpoint_close(const struct checkpoint *checkpoint)
{
    if (checkpoint == NULL)
        return;
    struct base *bases = checkpoint->bases;
    size_t n_bases = checkpoint->n_bases;
    free_made(checkpoint->made);
    documents_free(checkpoint->documents);
    arena_free(checkpoint->arena);
    while (n_bases-- > 0)
        checkpoint_close(bases[n_bases].checkpoint);
    free(bases);
}

static const struct checkpoint *own_base(const struct checkpoint *checkpoint, enum base_role role)
{
    for (size_t i = 0; i < checkpoint->n_bases; i++)
        if (checkpoint->bases[i].role == role)
            return checkpoint->bases[i].checkpoint;
    return NULL;
}

const struct checkpoint *checkpoint_base(const struct checkpoint *checkpoint, enum base_role role)
{
    const struct checkpoint *found = NULL;
    for (; checkpoint != NULL && found == NULL; checkpoint = own_base(checkpoint, BASE_ORIGIN))
        found = own_base(checkpoint, role);
    return found;
}

static void close_source(void *source)
{
    source_close(source);
}

/* Takes a source. A computed source is added after the file that it reads, and closed before it. */
static void own_source(struct checkpoint *checkpoint, struct source *source)
{
    arena_on_free(checkpoint->arena, close_source, source);
}

/* Inserts a source at a place of the whole array, guides included. */
static void insert_source(struct checkpoint *checkpoint, size_t place, struct source *source)
{
    size_t count = checkpoint->n_sources + checkpoint->n_guides;
    checkpoint->sources = memory_grow(checkpoint->sources, count, sizeof *checkpoint->sources);
    memmove(&checkpoint->sources[place + 1], &checkpoint->sources[place],
            (count - place) * sizeof *checkpoint->sources);
    checkpoint->sources[place] = source;
}

void checkpoint_add_source(struct checkpoint *checkpoint, struct source *source)
{
    own_source(checkpoint, source);
    insert_source(checkpoint, checkpoint->n_sources, source);
    checkpoint->n_sources++;
}

void checkpoint_share_guide(struct checkpoint *checkpoint, struct source *source)
{
    insert_source(checkpoint, checkpoint->n_sources + checkpoint->n_guides, source);
    checkpoint->n_guides++;
}

void checkpoint_add_guide(struct checkpoint *checkpoint, struct source *source)
{
    own_source(checkpoint, source);
    checkpoint_share_guide(checkpoint, source);
}

void checkpoint_keep(struct checkpoint *checkpoint, enum base_role role, const struct checkpoint *other)
{
    checkpoint->bases = memory_grow(checkpoint->bases, checkpoint->n_bases, sizeof *checkpoint->bases);
    checkpoint->bases[checkpoint->n_bases++] = (struct base){role, other};
}

static void inherit_lack(struct checkpoint *checkpoint, const struct checkpoint *other)
{
    if (checkpoint->incomplete == NULL)
        checkpoint->incomplete = other->incomplete;
}

void checkpoint_use(struct checkpoint *checkpoint, enum base_role role, const struct checkpoint *other)
{
    checkpoint_keep(checkpoint, role, other);
    inherit_lack(checkpoint, other);
    for (size_t i = 0; i < other->n_sources + other->n_guides; i++)
        checkpoint_share_guide(checkpoint, other->sources[i]);
}

static bool has_weights(const struct checkpoint *checkpoint, const struct source *source)
{
    for (size_t i = 0; i < checkpoint->n_sources; i++)
        if (source_same_file(checkpoint->sources[i], source))
            return true;
    return false;
}

void checkpoint_join(struct checkpoint *checkpoint, enum base_role role, const struct checkpoint *other)
{
    checkpoint_keep(checkpoint, role, other);
    inherit_lack(checkpoint, other);
    for (size_t i = 0; i < other->n_sources + other->n_guides; i++) {
        bool is_guide = i >= other->n_sources || has_weights(checkpoint, other->sources[i]);
        insert_source(checkpoint, checkpoint->n_sources + (is_guide ? checkpoint->n_guides : 0), other->sources[i]);
        checkpoint->n_guides += is_guide;
        checkpoint->n_sources += !is_guide;
    }
}

static struct side_file *find_side_file(const struct checkpoint *checkpoint, const char *name)
{
    for (size_t i = 0; i < checkpoint->n_side_files; i++)
        if (strcmp(checkpoint->side_files[i].name, name) == 0)
            return &checkpoint->side_files[i];
    return NULL;
}

static void append_side_file(struct checkpoint *checkpoint, const struct side_file *file)
{
    checkpoint->side_files =
        memory_grow(checkpoint->side_files, checkpoint->n_side_files, sizeof *checkpoint->side_files);
    checkpoint->side_files[checkpoint->n_side_files++] = *file;
}

void checkpoint_share_side_file(struct checkpoint *checkpoint, const struct side_file *file)
{
    struct side_file *own = find_side_file(checkpoint, file->name);
    if (own != NULL)
        *own = *file;
    else
        append_side_file(checkpoint, file);
}

void checkpoint_add_metadata(struct checkpoint *checkpoint, const char *key, const char *value)
{
    struct gguf_kv kv = {.key = memory_strdup(key), .type = GGUF_STRING};
    gguf_append_string(&kv.value, value, strlen(value));
    if (gguf_kvs_add(&checkpoint->metadata, &kv))
        return;
    const struct gguf_kv *first = gguf_kvs_find(&checkpoint->metadata, key);
    if (first->value.length != kv.value.length || memcmp(first->value.bytes, kv.value.bytes, kv.value.length) != 0)
        gguf_set_bool(&checkpoint->differing, key, true);
    free(kv.key);
    buffer_free(&kv.value);
}

void checkpoint_add_side_file(struct checkpoint *checkpoint, const char *name, struct source *source)
{
    own_source(checkpoint, source);
    append_side_file(checkpoint, &(struct side_file){arena_strdup(checkpoint->arena, name), source, false});
}

void checkpoint_hide_file(struct checkpoint *checkpoint, const char *name, const char *reason)
{
    checkpoint->hidden = memory_grow(checkpoint->hidden, checkpoint->n_hidden, sizeof *checkpoint->hidden);
    checkpoint->hidden[checkpoint->n_hidden++] = (struct hidden_file){arena_strdup(checkpoint->arena, name), reason};
}

void checkpoint_add_hidden_side_file(struct checkpoint *checkpoint, const char *name, struct source *source,
                                     const char *reason)
{
    checkpoint_add_side_file(checkpoint, name, source);
    checkpoint->side_files[checkpoint->n_side_files - 1].hidden = true;
    checkpoint_hide_file(checkpoint, name, reason);
}

uint64_t checkpoint_bytes(const struct checkpoint *checkpoint)
{
    uint64_t n_bytes = 0;
    for (size_t i = 0; i < checkpoint->n_sources; i++)
        n_bytes += source_size(checkpoint->sources[i]);
    for (size_t i = 0; checkpoint->components != NULL && i < checkpoint->components->count; i++)
        n_bytes += checkpoint->components->items[i].bytes;
    return n_bytes;
}

bool checkpoint_cached(const struct checkpoint *checkpoint, uint64_t *ret_cached, uint64_t *ret_bytes)
{
    bool any_remote = false;
    *ret_cached = *ret_bytes = 0;
    for (size_t i = 0; i < checkpoint->n_sources; i++) {
        any_remote |= source_is_remote(checkpoint->sources[i]);
        *ret_cached += source_cached(checkpoint->sources[i]);
        *ret_bytes += source_size(checkpoint->sources[i]);
    }
    return any_remote;
}

const struct side_file *checkpoint_side_file(const struct checkpoint *checkpoint, const char *name)
{
    return find_side_file(checkpoint, name);
}

void checkpoint_hide_side_file(struct checkpoint *checkpoint, const char *name, const char *reason)
{
    struct side_file *file = find_side_file(checkpoint, name);
    size_t after = checkpoint->n_side_files - (size_t)(file - checkpoint->side_files) - 1;
    checkpoint_hide_file(checkpoint, name, reason);
    memmove(file, file + 1, after * sizeof *file);
    checkpoint->n_side_files--;
}

void checkpoint_change_side_file(struct checkpoint *checkpoint, const char *name, const char *text, size_t length)
{
    struct side_file *file = find_side_file(checkpoint, name);
    checkpoint_share_guide(checkpoint, file->source);
    file->source = source_of_text(file->source, source_name(file->source), text, length);
    own_source(checkpoint, file->source);
}

/* The notes that this thread made last, by their number. */
enum { NOTES_REMEMBERED = 16 };
static _Thread_local uint64_t n_notes_made;
static _Thread_local struct made_note {
    const struct checkpoint *checkpoint;
    size_t index;
} notes_made[NOTES_REMEMBERED];

/* Adds a note, except on files that are not made of an incomplete checkpoint. */
static void add_note(const struct checkpoint *checkpoint, enum subject subject, bool is_hint, const char *format,
                     va_list arguments)
{
    struct notes *notes = checkpoint->notes;
    char *text;
    if (checkpoint->incomplete != NULL && subject != SUBJECT_SOURCE)
        return;
    attempt_lock(&notes->lock);
    if (notes->n_notes < MAX_NOTES) { /* room first: a text would leak */
        notes->texts = memory_grow(notes->texts, notes->n_notes, sizeof *notes->texts);
        notes->notes = memory_grow(notes->notes, notes->n_notes, sizeof *notes->notes);
    }
    if (vasprintf(&text, format, arguments) < 0)
        memory_exhausted(strlen(format));
    size_t index = 0;
    while (index < notes->n_notes &&
           (notes->notes[index].subject != subject || strcmp(notes->notes[index].text, text) != 0))
        index++;
    if (index < notes->n_notes || index == MAX_NOTES) {
        free(text);
    } else {
        notes->texts[notes->n_notes] = text;
        notes->notes[notes->n_notes++] = (struct note){subject, text, is_hint};
    }
    notes_made[n_notes_made++ % NOTES_REMEMBERED] = (struct made_note){checkpoint, index};
    attempt_unlock(&notes->lock);
}

void checkpoint_note(const struct checkpoint *checkpoint, enum subject subject, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    add_note(checkpoint, subject, false, format, arguments);
    va_end(arguments);
}

void checkpoint_hint(const struct checkpoint *checkpoint, enum subject subject, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    add_note(checkpoint, subject, true, format, arguments);
    va_end(arguments);
}

void checkpoint_lacks(struct checkpoint *checkpoint, const struct open_options *options, const char *format, ...)
{
    char *reason;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&reason, format, arguments) < 0)
        memory_exhausted(strlen(format));
    va_end(arguments);
    checkpoint_note(checkpoint, SUBJECT_SOURCE, "%s%s", reason,
                    options->partial ? "" : "; -o partial makes files of the tensors that are there");
    if (!options->partial && checkpoint->incomplete == NULL)
        checkpoint->incomplete =
            arena_printf(checkpoint->arena, "%s; -o partial makes it of the tensors that are there", reason);
    free(reason);
}

void checkpoint_withhold(struct checkpoint *checkpoint, const char *reason)
{
    checkpoint->incomplete = arena_strdup(checkpoint->arena, reason);
    checkpoint_note(checkpoint, SUBJECT_SOURCE, "%s, so only tensors are shown", reason);
}

size_t checkpoint_notes(const struct checkpoint *checkpoint)
{
    lock_take(&checkpoint->notes->lock);
    size_t n_notes = checkpoint->notes->n_notes;
    lock_drop(&checkpoint->notes->lock);
    return n_notes;
}

uint64_t checkpoint_notes_made(void)
{
    return n_notes_made;
}

bool checkpoint_note_made(const struct checkpoint *checkpoint, uint64_t number, struct note *ret_note)
{
    struct made_note made = notes_made[number % NOTES_REMEMBERED];
    if (n_notes_made - number > NOTES_REMEMBERED || made.checkpoint != checkpoint ||
        made.index >= checkpoint_notes(checkpoint))
        return false;
    *ret_note = checkpoint_note_at(checkpoint, made.index);
    return true;
}

struct note checkpoint_note_at(const struct checkpoint *checkpoint, size_t index)
{
    lock_take(&checkpoint->notes->lock);
    struct note note = checkpoint->notes->notes[index];
    lock_drop(&checkpoint->notes->lock);
    return note;
}
