/* The tensors shown for a checkpoint: its stored tensors, and its packed weights dequantized.
 *
 * An unpacked tensor with a new name comes after all stored ones. One with the name of one of its parts, as in FP8,
 * takes the part's place: raw has the part's bytes, views have values. A weight that cannot be unpacked is a refused
 * tensor, with the reason. */
#pragma once

#include "formats/checkpoint.h"
#include "models/packings/packing.h"
#include "models/references/references.h"
#include "quant/blocks/dtype.h"

struct shown_tensors {
    const struct tensor_set *set;           /* sealed: as stored, or under other names */
    const struct tensor_set *added;         /* sealed: unpacked tensors with new names; NULL: none */
    const struct unpacked *const *unpacked; /* by tensor: its packed weight; NULL: as stored. NULL: nothing is packed */
    struct gguf_model *gguf;                /* owns the set's tensors for NAMES_GGUF; else NULL */
    const struct importance *importances;   /* by tensor, set by the owner of the importance matrix; NULL: none */
};

/* Whose names and arrangement the tensors have. */
enum shown_names { NAMES_OF_SOURCE, NAMES_HF, NAMES_GGUF };

/* Returns the tensors under the source's names, found on the first call, for all callers. If an unpacked tensor has the
 * name of a stored tensor that is not one of its parts, only the stored one is shown, with a note. A packing that only
 * an unreadable config.json describes is unknown; the readers of config.json report that. */
const struct shown_tensors *shown_tensors_of(const struct checkpoint *checkpoint);

/* Returns the tensors of model.safetensors (NAMES_HF) or of model.gguf (NAMES_GGUF), with their names and arrangement
 * and with packed weights dequantized; NAMES_GGUF of a GGUF are the source's. Tensors that the file cannot have are
 * left out, with a note; fails if the file cannot be made. */
bool shown_tensors_renamed(const struct checkpoint *checkpoint, enum shown_names names,
                           const struct references *references, struct arena *arena, struct shown_tensors *ret_shown,
                           struct error *error);

/* Returns the number of parameters of a checkpoint: for packed weights the number of their values, without scales;
 * those that cannot be unpacked do not count. */
uint64_t shown_tensors_parameters(const struct checkpoint *checkpoint);

size_t shown_tensors_count(const struct shown_tensors *shown);

/* Returns a shown tensor, by its index below shown_tensors_count(); it may be made in `room`. */
const struct tensor *shown_tensors_at(const struct shown_tensors *shown, size_t index, struct tensor *room);

/* Returns the stored tensor with that name, whose bytes raw shows; NULL: there is none. */
const struct tensor *shown_tensors_stored(const struct shown_tensors *shown, size_t index);

/* Returns the packed weight that a tensor is unpacked from; NULL: the tensor is shown as stored. */
const struct unpacked *shown_tensors_unpacked(const struct shown_tensors *shown, size_t index);

/* Finds the index of a tensor by name; false: there is none. */
bool shown_tensors_find(const struct shown_tensors *shown, const char *name, size_t name_length, size_t *ret_index);

/* Frees the owner of the set's tensors, if any; they must not be used afterwards. */
void shown_tensors_close(struct shown_tensors *shown);
