/* The files of a tensor in tensors/NAME/ and their contents.
 *
 * Slots number the files. They are the same for every tensor, so that inode numbers can be computed. A slot is a dtype
 * for the tensor, with or without a numpy container; the first three are metadata.json, raw and raw.npy. */
#pragma once

#include "fs/tree/tree.h"

enum { SLOT_METADATA, SLOT_RAW, SLOT_RAW_NPY, SLOT_FIRST_DTYPE };

/* How one file of a tensor is made. */
struct tensor_file {
    struct tensor tensor; /* the tensor it shows; for raw of a packed weight, the stored tensor of that name */
    const char *name;     /* "f32", without ".npy" */
    struct encoding encoding;
    bool numpy;
    bool stored; /* the source's own bytes */
    uint64_t size;
};

/* Returns the number of slots. */
unsigned tensor_slots(void);

/* Gets the file in a slot from SLOT_RAW on of the shown tensor number `index`; returns false if the tensor has no such
 * view. */
bool tensor_file_at(const struct shown_tensors *shown, size_t index, const struct content_options *options,
                    unsigned slot, struct tensor_file *ret_file);

/* Like tensor_file_at(), for the file of that name ("f32", "raw.npy"); the error is the reason why there is none. */
bool tensor_file_named(const struct shown_tensors *shown, size_t index, const struct content_options *options,
                       const char *name, struct tensor_file *ret_file, struct error *error);

/* Returns the reason why tensor number `index` has no file of that name; NULL if it has, or if no tensor can have. */
const char *tensor_file_refusal(const struct shown_tensors *shown, size_t index, const struct content_options *options,
                                const char *name);

/* Gets, for each slot from SLOT_RAW on, the first tensor that has a file there; SIZE_MAX: none has. `firsts` has room
 * for tensor_slots(). */
void tensor_first_files(const struct shown_tensors *shown, const struct content_options *options, size_t *firsts);

/* A cache of the lengths of file lists: lists of tensors with one dtype and shape differ only in the names of their
 * directories. Zeroed at first; one for each caller and tree. */
struct metadata_lengths {
    struct metadata_length {
        struct tensor tensor, stored; /* `stored` has no dtype if no tensor is stored under the name */
        size_t length, n_paths;       /* in bytes, without the directories in the paths */
    } known[16];
    size_t n_known;
    struct buffer text; /* the caller's to free */
};

/* Returns the length of the text that tensor_metadata() appends. */
size_t tensor_metadata_length(const struct shown_tensors *shown, size_t index, const struct content_options *options,
                              struct metadata_lengths *lengths);

/* Appends the JSON object of the shown tensor number `index` and its files, without a newline: the text of its
 * metadata.json, and its entry in the top metadata.json. */
void tensor_metadata(const struct shown_tensors *shown, size_t index, const struct content_options *options,
                     struct buffer *out);

/* Like tensor_metadata(), for the metadata.json of the expert of that number, which is shown alone. */
void expert_metadata(const struct shown_tensors *expert, uint64_t number, const struct content_options *options,
                     struct buffer *out);
