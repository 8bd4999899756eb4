#include "formats/checkpoint.h"

#include "base/attempt.h"
#include "formats/components.h"
#include "formats/documents.h"
#include "formats/open.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* No more than that are kept: a note is for a person to read, and a file may have any number of oddities. */
enum { MAX_NOTES = 256 };

/* Notes come late and from any thread. */
struct notes {
    pthread_mutex_t lock;
    char *texts[MAX_NOTES];
    size_t n_texts;
};

struct made {
    checkpoint_maker *make;
    struct arena *arena; /* that it is in itself */
    const void *value;
    struct made *next;
};

struct once {
    pthread_mutex_t lock;
    struct made *first;
};

/* Room for one more element after `count` of them, in a heap array that doubles. */
static void *grow(void *array, size_t count, size_t element_bytes)
{
    bool full = (count & (count - 1)) == 0;
    return full ? memory_resize(array, (count ? count * 2 : 1) * element_bytes) : array;
}

struct checkpoint *checkpoint_new(const char *path)
{
    struct arena *arena = arena_new();
    struct checkpoint *checkpoint = arena_alloc(arena, sizeof *checkpoint);
    checkpoint->arena = arena;
    checkpoint->path = arena_strdup(arena, path);
    checkpoint->tensors = tensor_set_new(arena);
    checkpoint->documents = documents_new();
    checkpoint->notes = arena_alloc(arena, sizeof *checkpoint->notes);
    pthread_mutex_init(&checkpoint->notes->lock, NULL);
    checkpoint->once = arena_alloc(arena, sizeof *checkpoint->once);
    pthread_mutex_init(&checkpoint->once->lock, NULL);
    return checkpoint;
}

struct making {
    const struct checkpoint *checkpoint;
    checkpoint_maker *make;
    struct made *made;
};

static void run_maker(void *context)
{
    struct making *making = context;
    struct arena *arena = arena_new();
    struct made *made = arena_alloc(arena, sizeof *made);
    *made =
        (struct made){making->make, arena, making->make(making->checkpoint, arena), making->checkpoint->once->first};
    making->made = making->checkpoint->once->first = made;
}

const void *checkpoint_once(const struct checkpoint *checkpoint, checkpoint_maker *make)
{
    struct making making = {checkpoint, make, NULL};
    size_t lacking = 0;
    attempt_lock(&checkpoint->once->lock);
    for (struct made *made = checkpoint->once->first; made != NULL && making.made == NULL; made = made->next)
        making.made = made->make == make ? made : NULL;
    if (making.made == NULL)
        lacking = attempt_lacking(run_maker, &making);
    attempt_unlock(&checkpoint->once->lock);
    if (making.made == NULL)
        memory_exhausted(lacking);
    return making.made->value;
}

static void free_made(struct once *once)
{
    for (struct made *made = once->first, *next; made != NULL; made = next) {
        next = made->next;
        arena_free(made->arena);
    }
    pthread_mutex_destroy(&once->lock);
}

void checkpoint_close(struct checkpoint *checkpoint)
{
    if (checkpoint == NULL)
        return;
    free_made(checkpoint->once);
    documents_free(checkpoint->documents);
    if (checkpoint->components != NULL)
        location_close(checkpoint->components->location);
    for (size_t i = 0; i < checkpoint->n_side_files; i++)
        source_close(checkpoint->side_files[i].source);
    for (size_t i = checkpoint->n_sources + checkpoint->n_guides;
         i-- > 0;) /* a computed source comes after the file it reads */
        source_close(checkpoint->sources[i]);
    for (size_t i = 0; i < checkpoint->notes->n_texts; i++)
        free(checkpoint->notes->texts[i]);
    pthread_mutex_destroy(&checkpoint->notes->lock);
    free(checkpoint->sources);
    gguf_kvs_free(&checkpoint->metadata);
    gguf_kvs_free(&checkpoint->differing);
    free(checkpoint->side_files);
    free(checkpoint->hidden);
    struct checkpoint *kept = checkpoint->kept, *target = checkpoint->target;
    arena_free(checkpoint->arena);
    checkpoint_close(kept);
    checkpoint_close(target);
}

/* Puts a source at that place of the whole array. */
static void insert_source(struct checkpoint *checkpoint, size_t place, struct source *source)
{
    size_t count = checkpoint->n_sources + checkpoint->n_guides;
    checkpoint->sources = grow(checkpoint->sources, count, sizeof *checkpoint->sources);
    memmove(&checkpoint->sources[place + 1], &checkpoint->sources[place],
            (count - place) * sizeof *checkpoint->sources);
    checkpoint->sources[place] = source;
}

void checkpoint_add_source(struct checkpoint *checkpoint, struct source *source)
{
    insert_source(checkpoint, checkpoint->n_sources, source);
    checkpoint->n_sources++;
}

void checkpoint_keep(struct checkpoint *checkpoint, struct checkpoint *other)
{
    struct checkpoint **end = &checkpoint->kept;
    while (*end != NULL)
        end = &(*end)->kept;
    *end = other;
    for (size_t i = 0; i < other->n_sources + other->n_guides; i++)
        checkpoint_add_guide(checkpoint, other->sources[i]);
    other->n_sources = other->n_guides = 0;
}

void checkpoint_add_guide(struct checkpoint *checkpoint, struct source *source)
{
    insert_source(checkpoint, checkpoint->n_sources + checkpoint->n_guides, source);
    checkpoint->n_guides++;
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
    checkpoint->side_files = grow(checkpoint->side_files, checkpoint->n_side_files, sizeof *checkpoint->side_files);
    checkpoint->side_files[checkpoint->n_side_files++] =
        (struct side_file){arena_strdup(checkpoint->arena, name), source, false};
}

void checkpoint_hide_file(struct checkpoint *checkpoint, const char *name, const char *reason)
{
    checkpoint->hidden = grow(checkpoint->hidden, checkpoint->n_hidden, sizeof *checkpoint->hidden);
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

static struct side_file *find_side_file(const struct checkpoint *checkpoint, const char *name)
{
    for (size_t i = 0; i < checkpoint->n_side_files; i++)
        if (strcmp(checkpoint->side_files[i].name, name) == 0)
            return &checkpoint->side_files[i];
    return NULL;
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
    source_close(file->source);
    memmove(file, file + 1, after * sizeof *file);
    checkpoint->n_side_files--;
}

void checkpoint_change_side_file(struct checkpoint *checkpoint, const char *name, const char *text, size_t length)
{
    struct side_file *file = find_side_file(checkpoint, name);
    checkpoint_add_guide(checkpoint, file->source);
    file->source = source_of_text(file->source, source_name(file->source), text, length);
    documents_free(checkpoint->documents); /* which may have it parsed */
    checkpoint->documents = documents_new();
}

void checkpoint_note(const struct checkpoint *checkpoint, const char *format, ...)
{
    struct notes *notes = checkpoint->notes;
    char *text;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length < 0)
        return;
    pthread_mutex_lock(&notes->lock);
    bool known = notes->n_texts == MAX_NOTES;
    for (size_t i = 0; i < notes->n_texts && !known; i++)
        known = strcmp(notes->texts[i], text) == 0;
    if (known)
        free(text);
    else
        notes->texts[notes->n_texts++] = text;
    pthread_mutex_unlock(&notes->lock);
}

size_t checkpoint_notes(const struct checkpoint *checkpoint)
{
    pthread_mutex_lock(&checkpoint->notes->lock);
    size_t n_texts = checkpoint->notes->n_texts;
    pthread_mutex_unlock(&checkpoint->notes->lock);
    return n_texts;
}

const char *checkpoint_note_text(const struct checkpoint *checkpoint, size_t index)
{
    pthread_mutex_lock(&checkpoint->notes->lock);
    const char *text = checkpoint->notes->texts[index];
    pthread_mutex_unlock(&checkpoint->notes->lock);
    return text;
}
