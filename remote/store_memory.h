/* Granules in memory, for store.c where the disk is full or cannot be written: the last STORE_MEMORY of all objects.
 * Safe from any thread. */
#pragma once

#include "remote/store.h"

void store_memory_write(const struct store_object *object, uint64_t granule, const void *bytes, size_t length);

/* Copies [offset, offset + length) of a granule, if it is here. */
bool store_memory_read(const struct store_object *object, uint64_t granule, size_t offset, size_t length, void *out);

/* Drops all granules of an object. */
void store_memory_forget(const struct store_object *object);
