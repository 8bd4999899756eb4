/* The tensors shown for a checkpoint: its stored tensors, and its packed weights dequantized.
 *
 * An unpacked tensor of a new name comes after all others. One that is called as one of its parts, as FP8 is, takes its
 * place, and has the part: raw is bytes, views are values. One that does not fit is there, too, refused, and says why.
 */
#pragma once

#include "formats/checkpoint.h"
#include "models/packings/packing.h"
#include "quant/encoding.h"

struct shown_tensors {
    const struct tensor_set *set;           /* sealed: as stored, or under other names */
    const struct tensor_set *added;         /* sealed: those that come after them; NULL: none */
    const struct unpacked *const *unpacked; /* of each tensor; NULL: it is as stored. NULL: nothing is packed */
    struct hf_model *canonical;             /* what the set is of, and freed with it; NULL: the checkpoint alone */
    struct gguf_model *gguf;
    const struct importance *importances; /* of each tensor, set by the owner of the matrix; NULL: there is none */
};

/* Whose names and layout. */
enum shown_names { NAMES_OF_SOURCE, NAMES_HF, NAMES_GGUF };

/* Everything is made in the arena. What a configuration that cannot be read would have said is not known then: others
 * say so. */
struct shown_tensors shown_tensors_of(const struct checkpoint *checkpoint, struct arena *arena);

/* Under other names and in the layout that goes with them: the tensors of model.safetensors, or of model.gguf. Packed
 * weights are plain there. What cannot be in that file is left out, which a note says; fails where it cannot be made at
 * all. */
bool shown_tensors_renamed(const struct checkpoint *checkpoint, enum shown_names names, struct arena *arena,
                           struct shown_tensors *ret_shown, struct error *error);

/* How many parameters a checkpoint has: packed weights count as what they stand for, without their scales, and those
 * that cannot be unpacked not at all. */
uint64_t shown_tensors_parameters(const struct checkpoint *checkpoint);

size_t shown_tensors_count(const struct shown_tensors *shown);

/* One of them: of the set where it is as stored, else a tensor that is made in `room`. */
const struct tensor *shown_tensors_at(const struct shown_tensors *shown, size_t index, struct tensor *room);

/* Of which there are bytes under that name; NULL: there are none. */
const struct tensor *shown_tensors_stored(const struct shown_tensors *shown, size_t index);

/* Returns the packed weight that a tensor is unpacked from; NULL: the tensor is shown as stored. */
const struct unpacked *shown_tensors_unpacked(const struct shown_tensors *shown, size_t index);

/* False where there is none of that name. */
bool shown_tensors_find(const struct shown_tensors *shown, const char *name, size_t name_length, size_t *ret_index);

/* Frees what the set is of: nothing of it may be used after that. */
void shown_tensors_close(struct shown_tensors *shown);
