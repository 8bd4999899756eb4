/* The tensors that others may be coded against: of fine-tunes, those of the same name and length; of quantized tensors,
 * the weights whose codes are theirs, perhaps with the rows of each head in another order. Only tensors of finished
 * packs, which are coded without another, are bases. */
#pragma once

#include "sources/archive/pack_writer.h"

struct bases;

struct bases *bases_new(void);
void bases_free(struct bases *bases); /* NULL is allowed */

/* Adds the tensors of a pack, which must outlive the bases. */
void bases_add_pack(struct bases *bases, struct pack *pack, const struct digest *digest);

/* A tensor that is packed. */
struct base_query {
    const struct dtype *dtype; /* NULL: bytes of unknown meaning */
    uint64_t name;             /* pack_name_hash() */
    uint64_t length;
    uint64_t row; /* values of its innermost dimension; 0: unknown */
    bool (*read)(void *context, uint64_t offset, size_t length, void *out, struct error *error);
    void *context;
};

/* Chooses the coding of a tensor, and what it is coded against. Fails if the tensor cannot be read. */
bool bases_choose(struct bases *bases, const struct base_query *query, struct pack_writer_tensor *tensor,
                  struct error *error);
