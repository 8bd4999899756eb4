/* Checkpoints: the contents of an input, as its reader found them.
 *
 * A checkpoint owns its sources and one arena, which holds its tensor set and everything else. Readers fill it in
 * (checkpoint_builder.h). An open checkpoint is const, collects only notes, and is safe to read from any number of
 * threads. To change a model, models/derive/ derives another checkpoint, which keeps this one. */
#pragma once

#include "formats/gguf/kv.h"
#include "formats/tensor_set.h"
#include "remote/options.h"

/* A small file beside the weights, shown unchanged. */
struct side_file {
    const char *name; /* may hold '/': "1_Pooling/config.json" */
    struct source *source;
    bool hidden; /* not shown, and reading it fails: nothing may be made without it */
};

/* A file of the source that is not shown, and why: "weights", "hidden by the virtual file of that name". */
struct hidden_file {
    const char *name, *reason;
};

/* The subject of a note. Notes hold no paths of virtual files: fs/tree/contents.c knows the paths of each subject. */
enum subject {
    SUBJECT_SOURCE,    /* the input; the text names the file if that matters */
    SUBJECT_GGUF,      /* the model as a GGUF */
    SUBJECT_QUANTIZED, /* llama-quantize's files of that GGUF */
    SUBJECT_PROJECTOR, /* the vision and audio towers as a GGUF */
    SUBJECT_ADAPTER,   /* the LoRA adapter as a GGUF */
    SUBJECT_WEIGHTS,   /* the weights as safetensors */
    SUBJECT_DIRECTORY, /* the Hugging Face directory */
    SUBJECT_WHISPER,   /* the model as files of whisper.cpp */
    SUBJECT_PIPELINE,  /* the model as a directory of diffusers */
    SUBJECT_FREE_PTQ,  /* the model as llmcompressor's model_free_ptq quantizes it */
    SUBJECT_REPACKED,  /* the model for MLX with the codes of the source */
    N_SUBJECTS,
};

/* One line for the user about an assumption or an omission. */
struct note {
    enum subject subject;
    const char *text;
    bool is_hint;
};

enum checkpoint_kind {
    CHECKPOINT_WEIGHTS, /* tensors under the names of their model's class, in any format but GGUF */
    CHECKPOINT_GGUF,    /* tensors and keys of one GGUF, in one file or in splits */
    CHECKPOINT_ADAPTER, /* a LoRA adapter: adapter_config.json and adapter_model.* */
    CHECKPOINT_RECIPE,  /* a recipe of a merge, without tensors; models/derive/recipe.c makes a checkpoint of it */
};

/* The role of a checkpoint that another checkpoint keeps. */
enum base_role {
    BASE_ORIGIN,  /* the checkpoint that this one was derived from */
    BASE_ADAPTER, /* an adapter that is merged into the other one */
    BASE_NAMED,   /* the checkpoint under Hugging Face names, for adapters */
    BASE_FOLDER,  /* weights of the model in a folder of their own */
    BASE_DENSE_2, /* a dense layer after an embedding model, in the folder 2_Dense */
    BASE_DENSE_3, /* one in another folder */
    BASE_TARGET,  /* the model that an adapter or a draft model belongs to */
    BASE_MERGED,  /* a model that a recipe merges into the other one */
    BASE_MASK,    /* a row of a draft model, which replaces one of its target's embedding */
};

struct base {
    enum base_role role;
    const struct checkpoint *checkpoint;
};

struct findings;
struct format;
struct recipe_plan;

struct checkpoint {
    struct arena *arena;
    enum checkpoint_kind kind;
    const struct format *const *formats; /* the program's table; applies to bases opened for it, too */
    const char *format;                  /* "safetensors", "torch" ... */
    const struct format *file_format;    /* read the last weights file; NULL: a format of directories read them all */
    const char *path;                    /* as the user gave it */
    bool follows_links;                  /* open_options.follow_links; applies to bases opened for it, too */
    const char *model_name;              /* the name of the model's directory or repository, or of -o name= */

    /* the weights files, then the guides: small files such as an index, which list the weights files */
    struct source **sources;
    size_t n_sources, n_guides;
    const struct tensor_set *tensors; /* in the order of the format: see each reader */
    struct tensor_set *unsealed;      /* for readers: the same set while they fill it; NULL: sealed */

    struct gguf_kvs metadata;  /* the format's metadata, typed; strings if the format has no other types */
    struct gguf_kvs differing; /* keys with different values in several files: the first file's value stays */
    const char *extras;        /* JSON text of other contents (epoch, args ...), or NULL */
    const char *wrapper;       /* the key of the dict in a pickle that holds the tensors: "state_dict"; NULL: its top */

    struct side_file *side_files; /* sorted by name */
    size_t n_side_files;
    struct hidden_file *hidden;
    size_t n_hidden;
    struct components *components;  /* components.h; NULL: none */
    const struct recipe_plan *plan; /* models/derive/derive.h; NULL: it is no merge */
    struct findings *findings;      /* of its views and models (quant/views/finding.h) */
    /* why tensors of the model are missing, and the option that ignores it, or are not the model's; NULL: neither */
    const char *incomplete;
    const char *failure; /* if opened for side files alone: why there are no weights; NULL: they were not wanted */

    struct documents *documents; /* documents.h */
    struct notes *notes;
    struct made_objects *made; /* checkpoint_once() */
    struct base *bases;        /* checkpoints that it is made from or needs; closed after it */
    size_t n_bases;
};

/* A file that belongs to a GGUF wherever it lies, such as its projector; `name` is its name as a side file. */
struct companion {
    const char *name, *path;
};

struct open_options {
    /* a format's name if several are possible; NULL: the default choice. For a directory or its files */
    const char *format;
    const char *name;             /* overrides model_name; may be NULL */
    bool partial;                 /* make files of checkpoints that are known to be incomplete */
    bool allow_trailing;          /* ignore bytes after the last tensor instead of refusing them */
    bool follow_links;            /* to files anywhere; otherwise links that leave the model's directory are refused */
    struct remote_options remote; /* how sources on the network are reached */
    bool optimizer;               /* show the state of an optimizer, too */
    bool components;              /* open inputs that have tensors only in components, instead of refusing them */
    const struct companion *companions; /* of a single file, up to one without a name; NULL: none */
    const struct folder_names *names;   /* in the folder of a single file (format.h), for callers that open many of its
                                           files; NULL: the folder is listed. Not for its components */
};

/* Opens a file, a directory, a hub cache folder, or ORG/NAME in the local hub cache, in one of the formats of a table
 * (formats/format.h), which must outlive the checkpoint. Returns NULL on failure. */
const struct checkpoint *checkpoint_open(const char *path, const struct format *const *formats,
                                         const struct open_options *options, struct error *error);

/* Opens a directory, a folder on a server, or ORG/NAME in the hub cache for its side files alone, without tensors. */
const struct checkpoint *checkpoint_open_side_files(const char *path, const struct format *const *formats,
                                                    bool follow_links, struct error *error);

/* Opens a component of another checkpoint, which must outlive it, as if `path` named its folder. If `failure` is not
 * NULL, it is why the weights cannot be used: opens the side files alone. Safe from any thread. */
struct component;
const struct checkpoint *checkpoint_open_component(const struct checkpoint *whole, const struct component *component,
                                                   const struct error *failure, struct error *error);

/* Opens one source, on disk or not, by its contents, without side files. Takes the source, even on failure. */
const struct checkpoint *checkpoint_of_source(struct source *file, const struct format *const *formats,
                                              struct error *error);

/* Reports whether a file beside the checkpoint's GGUF is a projector, an adapter or a draft for it, by its name. */
bool checkpoint_is_companion(const struct checkpoint *checkpoint, const char *name);

void checkpoint_close(const struct checkpoint *checkpoint); /* NULL is allowed */

/* Returns the first base of that role, of the checkpoint or of one that it was derived from; NULL: none. */
const struct checkpoint *checkpoint_base(const struct checkpoint *checkpoint, enum base_role role);

/* Returns the size of its weights files and of what is inflated from them, components included. */
uint64_t checkpoint_bytes(const struct checkpoint *checkpoint);

/* Gets the size of the weights files and how many of these bytes can be read without a network, components left out;
 * returns false if none of the files is remote. */
bool checkpoint_cached(const struct checkpoint *checkpoint, uint64_t *ret_cached, uint64_t *ret_bytes);

/* Returns the side file of that name, or NULL. */
const struct side_file *checkpoint_side_file(const struct checkpoint *checkpoint, const char *name);

/* Adds a note ("no config.json, so ..."). metadata.json and `wfs info` show notes, and `wfs mount` prints them once.
 * Safe from any thread. Repeated notes, and notes and hints after the 256th, are dropped. */
void checkpoint_note(const struct checkpoint *checkpoint, enum subject subject, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Adds a hint: a note with details, such as files that an option would add. `wfs mount` and the first page of `wfs
 * info` do not show it. */
void checkpoint_hint(const struct checkpoint *checkpoint, enum subject subject, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Return the number of notes so far, hints included, and each note; texts live as long as the checkpoint. */
size_t checkpoint_notes(const struct checkpoint *checkpoint);
struct note checkpoint_note_at(const struct checkpoint *checkpoint, size_t index);

/* Return how many notes this thread has made so far, also those that were there already, and the one with that number,
 * from 0. False: it is not among the last, or on another checkpoint. */
uint64_t checkpoint_notes_made(void);
bool checkpoint_note_made(const struct checkpoint *checkpoint, uint64_t number, struct note *ret_note);

/* Return an object made from a checkpoint once (once.h), for all callers: by make(checkpoint, arena), in an arena that
 * is freed with the checkpoint. Safe from any thread; makers may ask for other objects. checkpoint_try() returns NULL,
 * with the reason, if make() does, and keeps nothing that was made without a source. */
typedef const void *checkpoint_maker(const struct checkpoint *checkpoint, struct arena *arena);
typedef const void *checkpoint_trier(const struct checkpoint *checkpoint, struct arena *arena, struct error *error);
const void *checkpoint_once(const struct checkpoint *checkpoint, checkpoint_maker *make);
const void *checkpoint_try(const struct checkpoint *checkpoint, checkpoint_trier *make, struct error *error);
