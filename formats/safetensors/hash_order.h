/* The order in which a hash table of C++ gives back the names that were put into it: mlx writes the tensors of a file
 * in that order.
 *
 * Source: libstdc++, std::unordered_map with the defaults on 64-bit little-endian machines: bits/hashtable.h,
 * _M_insert_bucket_begin() and _M_rehash(); hashtable_c++0x.cc, _Prime_rehash_policy; hash_bytes.cc, _Hash_bytes(). The
 * libc++ of macOS has another order. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct hash_name {
    const char *name; /* need not end with a NUL */
    size_t length;
};

/* Writes the indices of `n` different names, put one by one into an empty table that has no room reserved, in the
 * order of a walk through the table. `ret_order` has room for n of them; n is at most HASH_ORDER_MAX. */
enum { HASH_ORDER_MAX = 12 * 1024 * 1024 };
void hash_order(const struct hash_name *names, size_t n, uint32_t *ret_order);
