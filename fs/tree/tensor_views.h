/* Which files a tensor has in tensors/NAME/, and what is in them.
 *
 * Slots number the files: they are stable whatever the tensor is, so that inode numbers can be computed. A slot is a
 * dtype to show the tensor as, in a numpy container or not; the first three are metadata.json, raw and raw.npy. */
#pragma once

#include "fs/tree/tree.h"

enum { SLOT_METADATA, SLOT_RAW, SLOT_RAW_NPY, SLOT_FIRST_DTYPE };

/* How one file of a tensor is made. */
struct tensor_file {
    struct tensor tensor; /* what it shows: a packed one's raw file is that of what is stored under its name */
    const char *name;     /* "f32", without ".npy" */
    struct encoding encoding;
    bool numpy;
    bool stored; /* the very bytes of the source */
    uint64_t size;
};

/* The number of slots. */
unsigned tensor_slots(void);

/* The file of tensor number `index` of those shown in a slot from SLOT_RAW on; false where the view is not defined for
 * the tensor. */
bool tensor_file_at(const struct shown *shown, size_t index, const struct content_options *options, unsigned slot,
                    struct tensor_file *ret_file);

/* Why tensor number `index` has no file of that name; NULL where it has, or none of any tensor is called so. */
const char *tensor_file_refusal(const struct shown *shown, size_t index, const struct content_options *options,
                                const char *name);

/* How long lists of files are that were written before: those of tensors of one dtype and shape differ in the name of
 * their directory alone. Zeroed at first; whoever asks has one, for one tree. */
struct metadata_lengths {
    struct metadata_length {
        struct tensor tensor, stored; /* that were described so: stored without a dtype where there was none */
        size_t length, n_paths;       /* in bytes, without the directories in the paths */
    } known[16];
    size_t n_known;
    struct buffer text; /* the caller's to free */
};

/* The length of what tensor_metadata() appends. */
size_t tensor_metadata_length(const struct shown *shown, size_t index, const struct content_options *options,
                              struct metadata_lengths *lengths);

/* Appends the JSON object that describes tensor number `index` of those shown and its files: what is in its
 * metadata.json and, once for each tensor, in the one at the top. Without a newline. */
void tensor_metadata(const struct shown *shown, size_t index, const struct content_options *options,
                     struct buffer *out);
