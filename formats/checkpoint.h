/* Checkpoints: what a reader makes of its input, before anything is computed from it.
 *
 * A checkpoint owns its sources and one arena; tensors, names and views live in the arena and are freed with it. After
 * checkpoint_open() it does not change, but for the notes, and may be read from any number of threads.
 *
 * Memory is counted: 100,000 tensors are ordinary. A plain stored tensor costs its record, its name and its shape; a view
 * is made for it when somebody asks. */
#pragma once

#include "base/arena.h"
#include "formats/source.h"
#include "quant/view.h"

enum { CHECKPOINT_MAX_TENSORS = 4 * 1024 * 1024, CHECKPOINT_MAX_NAME = 64 * 1024 };

struct tensor {
    const char *name; /* any bytes but for the NUL that ends it in memory; may hold NULs itself */
    uint32_t name_length;
    uint16_t source; /* index into the sources */
    uint8_t rank;
    const struct dtype *dtype;
    const uint64_t *shape;   /* elements */
    const uint64_t *strides; /* elements; NULL: row-major without gaps */
    uint64_t offset, length; /* the bytes of the source that hold it */

    /* Its values, where they are not simply the elements at offset, shape and strides: byte-swapped, merged from
     * several places, computed. NULL for all others; tensor_view() makes what is wanted. */
    const struct view *view;

    /* Where values cannot be shown, why: "sparse tensors are not supported". It is listed, without files of values. */
    const char *refusal;
};

/* A small file beside the weights, shown as it is. */
struct side_file {
    const char *name; /* may hold '/': "1_Pooling/config.json" */
    struct source *source;
};

/* A file of the source that is not shown, and why: "weights", "hidden by the virtual file of that name". */
struct hidden_file {
    const char *name, *reason;
};

struct metadata_entry {
    const char *key, *value; /* strings as the format stores them */
};

struct checkpoint {
    struct arena *arena;
    const char *format;     /* "safetensors", "torch" ... */
    const char *path;       /* as the user gave it */
    const char *model_name; /* the name of the model's directory or repository, or what -o name= says */

    struct source **sources;
    size_t n_sources;
    struct tensor *tensors; /* in the order of the format: see each reader */
    size_t n_tensors;
    uint32_t *by_name; /* indices of the tensors sorted by name, as bytes */

    struct metadata_entry *metadata;
    size_t n_metadata;
    const char *extras; /* JSON text of what else the checkpoint holds (epoch, args ...), or NULL */

    struct side_file *side_files; /* sorted by name */
    size_t n_side_files;
    struct hidden_file *hidden;
    size_t n_hidden;

    struct notes *notes;
};

struct open_options {
    const char *format; /* the name of a format, when several would do; NULL: the usual choice. Of a directory, or of its files */
    const char *name;   /* overrides model_name; may be NULL */
    bool allow_trailing; /* bytes behind the last tensor are ignored instead of refused */
};

/* Opens what `path` names: a file, a directory, a hub cache folder, or ORG/NAME in the local hub cache. NULL on failure. */
struct checkpoint *checkpoint_open(const char *path, const struct open_options *options, struct error *error);
void checkpoint_close(struct checkpoint *checkpoint); /* NULL is allowed */

/* The tensor of that name, or NULL. */
const struct tensor *checkpoint_find(const struct checkpoint *checkpoint, const char *name, size_t name_length);

/* The side file of that name, or NULL. */
const struct side_file *checkpoint_side_file(const struct checkpoint *checkpoint, const char *name);

/* The values of a tensor as a view made in `arena`: row-major, of the tensor's dtype and shape. Not for a tensor that has a
 * refusal. */
const struct view *tensor_view(const struct checkpoint *checkpoint, const struct tensor *tensor, struct arena *arena);

/* A leaf: row-major elements at `offset` of a source, which has them all. For readers that build views themselves. */
const struct view *view_of_source(struct arena *arena, struct source *source, uint64_t offset, const struct dtype *dtype,
                                  unsigned rank, const uint64_t *shape);

/* Whether the elements lie one after the other in the source, in row-major order, needing no computation. */
bool tensor_is_stored(const struct tensor *tensor);

uint64_t tensor_elements(const struct tensor *tensor);

/* A note: one line for the user about what is missing or was assumed ("model.gguf: no config.json, so ..."). Notes are shown in
 * metadata.json and by `wfs info`, and once on stderr when something is mounted. Safe from any thread; the same line
 * twice counts once, and of more than 256 the others are dropped. */
void checkpoint_note(const struct checkpoint *checkpoint, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The number of notes so far, and each of them. */
size_t checkpoint_notes(const struct checkpoint *checkpoint);
const char *checkpoint_note_text(const struct checkpoint *checkpoint, size_t index);

/* For readers, while a checkpoint is being opened. */

/* Takes ownership of `source`; returns its index. */
uint16_t checkpoint_add_source(struct checkpoint *checkpoint, struct source *source);

/* Adds a copy of `*tensor`; its name, shape and strides must live in the arena already. */
void checkpoint_add_tensor(struct checkpoint *checkpoint, const struct tensor *tensor);
void checkpoint_add_metadata(struct checkpoint *checkpoint, const char *key, const char *value);
void checkpoint_add_side_file(struct checkpoint *checkpoint, const char *name, struct source *source); /* takes the source */
void checkpoint_hide_file(struct checkpoint *checkpoint, const char *name, const char *reason);
