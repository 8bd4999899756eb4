/* The files of a tensor in tensors/NAME/ and their contents.
 *
 * Slots number the files. They are the same for every tensor, so that inode numbers can be computed. A slot is a dtype
 * for the tensor, with or without a numpy container; the first three are metadata.json, raw and raw.npy. */
#pragma once

#include "fs/tree/tree.h"
#include "models/quantize/imatrix.h"
#include "models/shown_tensors.h"

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

/* tensors/NAME/experts/N/: one expert of a tensor that holds all experts of a layer, stacked along its first axis.
 *
 * Some checkpoints and all GGUF files store a layer's experts so; programs that load experts on demand want them one by
 * one. An expert has the files of any other tensor, of the same types. Their bytes are those of its part of the stacked
 * tensor's files, and reading them reads nothing of other experts.
 *
 * A tensor holds stacked experts if its values can be shown, a section of its name says so ("experts", "switch_mlp",
 * "ffn_up_exps", "input_linear" ...) and no number follows the section, and if it has three dimensions or more, or two
 * and a name that ends in "bias". So the flattened matrices of DBRX are not divided. */

enum { EXPERTS_MAX = 8192 /* in a tensor; no model that is known has more than 512 */ };

/* Returns the number of experts stacked in the shown tensor number `index`; 0 if it holds no stacked experts. */
uint64_t tensor_experts(const struct shown_tensors *shown, size_t index);

/* The stacked tensors of a tree, in their order. Items of tensors/ beyond the tensors are the directory experts/ of
 * each stacked tensor, followed by its experts. */
struct expert_stack {
    size_t tensor;
    uint64_t first; /* the item of experts/ */
    uint64_t n_experts;
};
struct expert_stacks {
    uint64_t first, n_items; /* the number of tensors; of all items */
    const struct expert_stack *stacks;
    size_t n_stacks;
};

/* Finds them, in the arena. Returns false if that were more items than a tree can number: then those that exceed the
 * limit are left out. */
bool expert_stacks_find(const struct shown_tensors *shown, struct arena *arena, struct expert_stacks *ret_stacks);

/* Return the stack of a tensor, and of an item beyond the tensors; NULL: none. */
const struct expert_stack *expert_stack_of_tensor(const struct expert_stacks *stacks, size_t tensor);
const struct expert_stack *expert_stack_of_item(const struct expert_stacks *stacks, uint64_t item);

/* One expert as the only shown tensor, number 0. Must not move. */
struct shown_expert {
    struct shown_tensors shown;
    struct tensor_set set;
    struct tensor tensor;
    struct view unread; /* its type and shape, for an expert without views */
    struct unpacked unpacked;
    const struct unpacked *unpacked_of[1];
    struct importance importance;
};

/* Fills in an expert of the shown tensor number `index`, which has more experts than that. It borrows from `shown`.
 * Views are made in `arena`; if that is NULL, the expert tells types, shapes and places, and cannot be read. */
void shown_expert_init(struct shown_expert *expert, const struct shown_tensors *shown, size_t index, uint64_t number,
                       struct arena *arena);
