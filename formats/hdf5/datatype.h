/* The datatype of an HDF5 dataset: what its elements are in wfs. */
#pragma once

#include "formats/hdf5/object.h"
#include "quant/blocks/dtype.h"

struct hdf5_type {
    const struct dtype *dtype; /* of the elements; U8 if there is a refusal */
    bool swap;                 /* stored with the other byte order */
    bool is_opaque;            /* of 2 bytes: bfloat16 if an attribute names it so */
    uint64_t size;             /* bytes of a stored element */
    const char *refusal;       /* why elements have no values: "strings have no values"; else NULL */
    bool is_no_number;         /* refused elements are texts, times, references or bytes without a type */
};

/* Reads a datatype. Types that wfs has no dtype for get a refusal; only damage fails. */
bool hdf5_type_read(const struct hdf5 *file, const struct hdf5_message *message, struct hdf5_type *type,
                    struct error *error);
