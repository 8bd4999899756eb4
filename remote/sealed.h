/* Sealed files: all bytes of an object of the store (store.h) in one file, which does not change any more.
 *
 *     objects/KK/KEY/sealed        the bytes
 *     objects/KK/KEY/sealed.crc    the CRC-32 of each granule, little-endian
 *
 * Both files are written under other names and synced before they get theirs. So a sealed file is whole, also after a
 * process was killed or the power was lost, and the kernel may read it for a mount by itself (fs/mount/passthrough.h).
 * Two processes that seal one object write the same files. A sealed file is evicted as a whole, by unlinking. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SEALED_NAME "sealed"

/* Opens the sealed file of an object, whose directory and size are given, and marks it as used. NULL: there is none. */
struct sealed *sealed_open(const char *directory, uint64_t size);
void sealed_close(struct sealed *sealed);

/* Returns the descriptor of the file, which is valid until sealed_close(). */
int sealed_descriptor(const struct sealed *sealed);

/* Removes the file, which counts as damaged from then on. */
void sealed_remove(struct sealed *sealed);

/* Reports whether sealed_take() has found a wrong CRC, or the file was removed. */
bool sealed_is_damaged(const struct sealed *sealed);

/* Reads [offset, offset + length) of the file. */
bool sealed_read(const struct sealed *sealed, uint64_t offset, size_t length, void *out);

/* Reads a whole granule and compares it with its CRC. A file with a wrong CRC is removed. */
bool sealed_take(struct sealed *sealed, uint64_t granule, size_t length, void *out);

/* A sealed file that is being written, granule after granule. */
struct sealing;

/* Begins a sealed file in an object's directory. NULL: it cannot be written. */
struct sealing *sealing_begin(const char *directory);
bool sealing_add(struct sealing *sealing, const void *granule, size_t length);

/* Syncs the file and gives it its name if it is `complete`, else removes it. Frees `sealing` in any case. Returns true
 * if the file has its name. */
bool sealing_end(struct sealing *sealing, bool complete);
