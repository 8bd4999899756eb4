/* Readers of source formats.
 *
 * Programs pass a table of formats, NULL at its end, to checkpoint_open() (models/formats.h).
 *
 * Each format probes an input and returns how sure it is; the surest format opens the input. If two formats are equally
 * sure, the error names both. Formats of single files also read one file into a checkpoint that another format is
 * opening (the shards of a directory). To add a format: `formats/x/read.c` exporting `const struct format x_format`,
 * its declaration in formats/format.h, and a row in the program's table. */
#pragma once

#include "formats/checkpoint.h"
#include "sources/location.h"

/* The names in a folder, in an arena. */
struct folder_names {
    struct location_list all;
    struct location_list known; /* those that may belong to a single weights file; none if no name marks the folder as a
                                   model's */
};

/* The input that the user named: a file, or a directory with its names. */
struct input {
    const struct format *const *formats; /* the program's table */
    const char *path;                    /* as given, without a URL's secrets, or the snapshot in a hub cache */
    struct location *location;           /* the directory, or the file's directory; NULL: a file without a directory */
    const char *file_name;               /* in that directory; NULL for a directory */
    struct source *file;                 /* the file, open; NULL for a directory */
    unsigned char head[64];              /* its first bytes */
    size_t head_length;
    struct location_list list;           /* of the directory; empty without a location */
    struct location_list known;          /* folder_names.known of it, for a file; else empty */
    const struct components *components; /* components.h; NULL: the directory has none */
    const struct companion *companions;  /* of the options */
};

enum probe { PROBE_NO, PROBE_MAYBE, PROBE_LIKELY, PROBE_SURE };

/* An ending of weights files' names. */
struct extension {
    const char *text; /* ".gguf" */
    bool shared;      /* files without weights have it, too */
    bool alone;       /* each such file is a checkpoint: a directory of them is not a checkpoint */
};

struct format {
    const char *name;    /* for -o format= and metadata.json: "safetensors" */
    const char *summary; /* for --help: "Hugging Face directory, sharded or not" */
    enum checkpoint_kind
        kind; /* of its checkpoints; weights become an adapter if their directory has adapter_config.json */
    const struct extension *extensions; /* of its files, up to one without text; NULL for formats of directories */
    bool needs_tensors;                 /* a file without tensors holds something else: nothing is made of it */
    const char *directory_name; /* a name that only directories with weights hold: "model_index.json"; may be NULL */

    enum probe (*probe)(const struct input *input);

    /* Fills in the checkpoint: sources, tensors, metadata, side files. A format of single files may leave this NULL:
     * the common code then calls read_file for input->file, and adds the directory's side files. */
    bool (*open)(struct checkpoint *checkpoint, const struct input *input, const struct open_options *options,
                 struct error *error);

    /* Adds the tensors of one file, which the checkpoint owns already, to `tensors`, which lives in the checkpoint's
     * arena; notes and metadata to the checkpoint. NULL for formats of directories. */
    bool (*read_file)(struct checkpoint *checkpoint, struct source *file, struct tensor_set *tensors,
                      const struct open_options *options, struct error *error);
};

/* Reports whether a name is in the directory. */
bool input_has(const struct input *input, const char *name);

/* Takes a list, whose memory must outlive the names. */
struct folder_names folder_names_of(const struct location_list *list, struct arena *arena);

/* Reports whether the directory has a file that only models have, such as config.json. */
bool input_is_model_directory(const struct input *input);

/* Returns the format of that name; else fails with an error that lists the formats. */
const struct format *format_of_name(const struct format *const *formats, const char *name, struct error *error);

/* Return the extension of a file's name, of one format or of any in the table; NULL: none. */
const struct extension *format_extension(const struct format *format, const char *name);
const struct extension *formats_extension(const struct format *const *formats, const char *name);

/* Returns the format of a single file, by its first bytes and, if these do not decide, its name. Returns NULL, with an
 * error, if no format fits, two fit, or the file cannot be read. */
const struct format *format_of_file(const struct format *const *formats, struct source *file, struct error *error);

/* Adds a weights file to the checkpoint, and its tensors to `tensors`, in the format that format_of_file() returns. For
 * formats of directories. Takes the file, even on failure. */
bool format_read_file(struct checkpoint *checkpoint, struct source *file, struct tensor_set *tensors,
                      const struct open_options *options, struct error *error);

/* Reports whether a GGUF belongs to another one in its directory, by its name: a projector, an adapter or a draft. It
 * is a side file there, unless the directory has no other GGUF. */
bool format_is_companion(const char *name);

/* Adds the files of the directory that are not weights as side files, sub-directories included (collect_side_files.c
 * states the rules), and lists the others as hidden. Files that cannot be shown become notes, never errors. */
void format_add_side_files(struct checkpoint *checkpoint, const struct input *input);

/* Formats whose readers need nothing from models/. A program's table lists the formats that it links. */

extern const struct format ctranslate2_format, dcp_format, deepspeed_format, flax_format, ggml_format, gguf_format,
    hdf5_format, huggingface_format, keras_format, mistral_format, nemo_format, numpy_format, onnx_format, orbax_format,
    paddle_format, pipeline_format, pt2_format, safetensors_format, parts_format, tensorflow_format,
    tensorflow_graph_format, tensorizer_format, tflite_format, torch_format;
