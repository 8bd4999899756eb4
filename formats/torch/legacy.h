/* Containers that are not zip archives.
 *
 * Legacy files are written before torch 1.6, or with _use_new_zipfile_serialization=False: five pickles one after the
 * other (a magic number, the protocol 1001, sizes of the machine, the object, the list of storage keys), then for each
 * key the number of its elements, 8 bytes, and the elements, little-endian on every machine. A storage may be a window
 * of another. Source: torch/serialization.py, _legacy_save.
 *
 * Plain pickles, as pickle.dump() writes them, may contain numpy arrays, those of JAX included, and torch tensors: each
 * storage of these is a legacy file of its own, in the bytes of a call of torch.storage._load_from_bytes.
 *
 * Refused by name: the tar container of torch before 0.1.10, and PYTORCH1 of the 1.0 preview. */
#pragma once

#include "formats/format.h"

/* Reports whether the first bytes are those of the legacy container. */
bool legacy_probe(const unsigned char *head, size_t length);

bool legacy_read(struct checkpoint *checkpoint, struct source *file, struct tensor_set *tensors,
                 const struct open_options *options, struct error *error);

/* A pickle in a file. */
struct plain_pickle {
    struct source *source;
    uint64_t offset, length;
    const char *place;  /* for messages */
    const char *prefix; /* names of tensors begin with it and '.'; NULL: with nothing */
};

/* Adds the tensors of a pickle, of which there may be none. Some may have been added even on failure. */
bool plain_pickle_add(struct checkpoint *checkpoint, const struct plain_pickle *pickle, struct tensor_set *tensors,
                      const struct open_options *options, struct error *error);

/* Adds the tensors of a file, which is a pickle; fails if there are none. */
bool plain_pickle_read(struct checkpoint *checkpoint, struct source *file, struct tensor_set *tensors,
                       const struct open_options *options, struct error *error);
