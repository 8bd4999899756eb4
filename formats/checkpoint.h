/* Checkpoints: what a reader makes of its input, before anything is computed from it.
 *
 * A checkpoint owns its sources and one arena; its tensor set and all that belongs to it live in the arena. After
 * checkpoint_open() it does not change, but for the notes, and may be read from any number of threads. */
#pragma once

#include "formats/gguf/kv.h"
#include "formats/tensor_set.h"

/* A small file beside the weights, shown as it is. */
struct side_file {
    const char *name; /* may hold '/': "1_Pooling/config.json" */
    struct source *source;
    bool hidden; /* not shown, and reading it fails: what would be made of it is not made without it */
};

/* A file of the source that is not shown, and why: "weights", "hidden by the virtual file of that name". */
struct hidden_file {
    const char *name, *reason;
};

struct checkpoint {
    struct arena *arena;
    const char *format;     /* "safetensors", "torch" ... */
    const char *path;       /* as the user gave it */
    const char *model_name; /* the name of the model's directory or repository, or what -o name= says */

    /* the files of weights, and after them the small ones that said what belongs together: an index */
    struct source **sources;
    size_t n_sources, n_guides;
    struct tensor_set *tensors; /* as stored, in the order of the format: see each reader */

    struct gguf_kvs metadata;  /* what the format says of the whole, typed; strings where it knows no other types */
    struct gguf_kvs differing; /* its keys that files give different values: that of the first stays */
    const char *extras;        /* JSON text of what else the checkpoint holds (epoch, args ...), or NULL */

    struct side_file *side_files; /* sorted by name */
    size_t n_side_files;
    struct hidden_file *hidden;
    size_t n_hidden;
    struct components *components; /* components.h; NULL: it has none */
    const char *failure;           /* of its side files alone: why there are no weights; NULL: they were not wanted */

    struct documents *documents; /* documents.h */
    struct notes *notes;
    struct once *once;       /* checkpoint_once() */
    struct checkpoint *kept; /* what it holds views of (checkpoint_keep()); NULL: nothing */
    /* of a draft model, the side files of what it drafts for, where that was said (models/target.h); else NULL */
    struct checkpoint *target;
};

struct open_options {
    /* the name of a format, when several would do; NULL: the usual choice. Of a directory, or of its files */
    const char *format;
    const char *name;    /* overrides model_name; may be NULL */
    bool allow_trailing; /* bytes after the last tensor are ignored instead of refused */
    bool components;     /* what has no tensors but those of its components is opened instead of refused */
};

/* Opens what `path` names: a file, a directory, a hub cache folder, or ORG/NAME in the local hub cache. NULL on
 * failure. */
struct checkpoint *checkpoint_open(const char *path, const struct open_options *options, struct error *error);

/* Opens a directory, or what stands for one, for its side files alone: there are no tensors then. */
struct checkpoint *checkpoint_open_side_files(const char *path, struct error *error);

/* Opens a component of another checkpoint, which lives longer, as if its folder had been named; with a reason why
 * nothing can be made of its weights, its side files alone. Safe from any thread. */
struct component;
struct checkpoint *checkpoint_open_component(const struct checkpoint *whole, const struct component *component,
                                             const struct error *failure, struct error *error);

/* Opens one source, which may be nowhere on disk, by what is in it: without side files. Takes the source, also where it
 * fails. */
struct checkpoint *checkpoint_of_source(struct source *file, struct error *error);

void checkpoint_close(struct checkpoint *checkpoint); /* NULL is allowed */

/* The size of its files of weights, and of those of its components. */
uint64_t checkpoint_bytes(const struct checkpoint *checkpoint);

/* The side file of that name, or NULL. */
const struct side_file *checkpoint_side_file(const struct checkpoint *checkpoint, const char *name);

/* A note: one line for the user about what is missing or was assumed ("model.gguf: no config.json, so ..."). Notes are
 * shown in metadata.json and by `wfs info`, and once on stderr when something is mounted. Safe from any thread; the
 * same line twice counts once, and of more than 256 the others are dropped. */
void checkpoint_note(const struct checkpoint *checkpoint, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The number of notes so far, and each of them. */
size_t checkpoint_notes(const struct checkpoint *checkpoint);
const char *checkpoint_note_text(const struct checkpoint *checkpoint, size_t index);

/* What is made of a checkpoint once, for all who ask: by make(checkpoint, arena), in an arena that is freed with the
 * checkpoint. Who asks meanwhile waits. Safe from any thread. */
typedef const void *checkpoint_maker(const struct checkpoint *checkpoint, struct arena *arena);
const void *checkpoint_once(const struct checkpoint *checkpoint, checkpoint_maker *make);

/* For readers, while a checkpoint is being opened. */

void checkpoint_add_source(struct checkpoint *checkpoint, struct source *source); /* takes the source */

/* Takes the source of a small file that the tensors or the side files were made by, other than weights and side files.
 */
void checkpoint_add_guide(struct checkpoint *checkpoint, struct source *source);

/* Takes another checkpoint, which lives as long as this one; its files of weights are guides here. */
void checkpoint_keep(struct checkpoint *checkpoint, struct checkpoint *other);

/* A text of the metadata; of a key that is there already the first value stays. */
void checkpoint_add_metadata(struct checkpoint *checkpoint, const char *key, const char *value);
/* takes the source */
void checkpoint_add_side_file(struct checkpoint *checkpoint, const char *name, struct source *source);
void checkpoint_hide_file(struct checkpoint *checkpoint, const char *name, const char *reason);
/* Both: a side file that is not shown. Takes the source. */
void checkpoint_add_hidden_side_file(struct checkpoint *checkpoint, const char *name, struct source *source,
                                     const char *reason);

/* For who changes a checkpoint that nobody uses yet. A side file that is there is not shown any more, or has another
 * text: what it was made of is a guide then. */
void checkpoint_hide_side_file(struct checkpoint *checkpoint, const char *name, const char *reason);
void checkpoint_change_side_file(struct checkpoint *checkpoint, const char *name, const char *text, size_t length);
