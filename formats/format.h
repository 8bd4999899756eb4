/* Readers of source formats, and the one table of them (models/formats.c).
 *
 * A format looks at an input and says how sure it is; the surest opens it. Two that are equally sure are an error
 * which names both. Formats of single files also read one file into a checkpoint that somebody else is opening (the
 * shards of a directory). To add one: `formats/x/read.c` exporting `const struct format x_format`, and a row in the
 * table. */
#pragma once

#include "formats/checkpoint.h"
#include "formats/location.h"

/* What the user named: a file, or a directory with the names in it. */
struct input {
    const char *path;          /* as given, or the snapshot in a hub cache that was meant */
    struct location *location; /* the directory itself, or the one that holds the file; NULL: a file that is nowhere */
    const char *file_name;     /* in that directory; NULL for a directory */
    struct source *file;       /* the file, open; NULL for a directory */
    unsigned char head[64];    /* its first bytes */
    size_t head_length;
    /* Sorted names in the directory, of any kind but "." and ".."; none of a file that is nowhere. */
    const char *const *names;
    size_t n_names;
    const struct components *components; /* components.h; NULL: the directory has none */
};

enum probe { PROBE_NO, PROBE_MAYBE, PROBE_LIKELY, PROBE_SURE };

struct format {
    const char *name;    /* for -o format= and metadata.json: "safetensors" */
    const char *summary; /* for --help: "Hugging Face directory, sharded or not" */

    enum probe (*probe)(const struct input *input);

    /* Fills the checkpoint in: sources, tensors, metadata, side files. A format of single files may leave this NULL:
     * the common code then calls read_file for input->file, and adds the side files of its directory. */
    bool (*open)(struct checkpoint *checkpoint, const struct input *input, const struct open_options *options,
                 struct error *error);

    /* Adds the tensors of one file, which the checkpoint owns already, to `tensors`, which lives in the checkpoint's
     * arena; notes and metadata to the checkpoint. NULL for formats of directories. */
    bool (*read_file)(struct checkpoint *checkpoint, struct source *file, struct tensor_set *tensors,
                      const struct open_options *options, struct error *error);
};

/* NULL at the end. */
extern const struct format *const formats[];

/* Whether a name is in the directory. */
bool input_has(const struct input *input, const char *name);

/* Whether the directory has a file that only models have, such as config.json. */
bool input_is_model_directory(const struct input *input);

/* The format of that name; an error that lists them where there is none. */
const struct format *format_of_name(const char *name, struct error *error);

/* The format of single files that `file` is, by its beginning and, where that leaves it open, its name. NULL with
 * an error where it is of none, could be of two, or cannot be read. */
const struct format *format_of_file(const struct source *file, struct error *error);

/* Adds the files of the directory that are not weights as side files, sub-directories included (see
 * collect_side_files.c for the rules), and hides the others. What cannot be shown is noted, never an error. */
void format_add_side_files(struct checkpoint *checkpoint, const struct input *input);
