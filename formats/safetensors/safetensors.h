/* Writing safetensors: a length, a JSON header padded with spaces to a multiple of 8, the elements of all tensors
 * without gaps; to the byte what the safetensors library writes (0.4 to 0.8; safetensors/src/tensor.rs). Laying a file
 * out reads no values.
 *
 * The container sorts tensors as the library does, by dtype and then by name; metadata are texts. It fails if it cannot
 * hold a tensor (safetensors_refusal()), sizes overflow, or the header is longer than readers accept. */
#pragma once

#include "formats/artifact.h"
#include "formats/checkpoint.h"

#include <stddef.h>
#include <stdint.h>

extern const struct container safetensors_container;

/* Writes as mlx does: a header sorted by name, without padding, and the elements of all tensors without gaps, in the
 * order in which a hash table of C++ (hash_order()) gives back names that were put into it in the order of the
 * artifact. Source: mlx, mlx/io/safetensors.cpp, save_safetensors(). */
extern const struct container mlx_container;

/* Compares the places of two tensors in a file by their dtypes and names: less than, equal to or greater than 0. */
int safetensors_compare(const struct artifact_tensor *a, const struct artifact_tensor *b);

/* Returns the reason why a file cannot have a tensor of that name and dtype, or NULL. Refuses a tensor "__metadata__":
 * the library writes it, but no reader accepts the file. */
const char *safetensors_refusal(const char *name, size_t name_length, const struct dtype *type);

/* The order in which a hash table of C++ gives back the names that were put into it: mlx writes the tensors of a file
 * in that order.
 *
 * Source: libstdc++, std::unordered_map with the defaults on 64-bit little-endian machines: bits/hashtable.h,
 * _M_insert_bucket_begin() and _M_rehash(); hashtable_c++0x.cc, _Prime_rehash_policy; hash_bytes.cc, _Hash_bytes(). The
 * libc++ of macOS has another order. */

struct hash_name {
    const char *name; /* need not end with a NUL */
    size_t length;
};

/* Writes the indices of `n` different names, put one by one into an empty table that has no room reserved, in the
 * order of a walk through the table. `ret_order` has room for n of them; n is at most HASH_ORDER_MAX. */
enum { HASH_ORDER_MAX = 12 * 1024 * 1024 };
void hash_order(const struct hash_name *names, size_t n, uint32_t *ret_order);

/* safetensors files, for formats that consist of them. */

/* Adds the tensors of a file that one of several processes saved: parts of tensors, whose places *ret_places tells, in
 * the checkpoint's arena: the text of DCP_SHARDING_INFO; NULL if the file has none. The checkpoint owns the file. */
bool safetensors_read_parts(struct checkpoint *checkpoint, struct source *file, struct tensor_set *tensors,
                            const struct open_options *options, const char **ret_places, struct error *error);

/* Sets firsts[i], from i = `start` on, to where the part tensors[i] begins in the whole tensor, a number for each
 * dimension, by the text of DCP_SHARDING_INFO. `places` NULL: at the first element. */
bool safetensors_part_firsts(const struct tensor_set *parts, size_t start, const char *places, struct arena *arena,
                             const uint64_t **firsts, struct error *error);
