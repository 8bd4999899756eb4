#include "formats/hdf5/file.h"

#include "base/arena.h"
#include "base/checked.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const unsigned char signature[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};

enum { FIRST_USER_BLOCK = 512, SUPERBLOCK_2 = 48, SUPERBLOCK_0 = 104, CHECKSUM = 4 };

/* Sound files are read once; a hash table of links, say, is read with gaps and in pieces. */
enum { BUDGET_RATIO = 4, BUDGET_CONSTANT = 1024 * 1024 };

bool hdf5_refuse(const struct hdf5 *file, uint64_t address, const char *reason, struct error *error)
{
    return error_set(error, "%s: address %" PRIu64 ": %s", source_name(file->source), address, reason);
}

/* Reading. */

void hdf5_renew_budget(struct hdf5 *file)
{
    if (!checked_multiply(source_size(file->source), BUDGET_RATIO, &file->budget) ||
        !checked_add(file->budget, BUDGET_CONSTANT, &file->budget))
        file->budget = UINT64_MAX;
}

bool hdf5_holds(const struct hdf5 *file, uint64_t address, uint64_t length)
{
    uint64_t left = source_size(file->source) - file->base;
    return address <= left && length <= left - address;
}

static bool check_read(struct hdf5 *file, uint64_t address, uint64_t length, struct error *error)
{
    if (!hdf5_holds(file, address, length))
        return hdf5_refuse(file, address, "damaged: the address of a structure, or its end, is outside the file",
                           error);
    if (length > file->budget)
        return hdf5_refuse(file, address, "damaged: its structures refer to one another again and again", error);
    file->budget -= length;
    return true;
}

/* Some structures may be missing without harm; those that cannot be read must not look like that. */
static bool read_bytes(struct hdf5 *file, uint64_t address, size_t length, void *out, struct error *error)
{
    if (window_read(&file->window, file->base + address, length, out, error))
        return true;
    if (file->unread.message[0] == '\0')
        file->unread = *error;
    return false;
}

bool hdf5_read(struct hdf5 *file, uint64_t address, size_t length, void *out, struct error *error)
{
    return check_read(file, address, length, error) && read_bytes(file, address, length, out, error);
}

unsigned char *hdf5_block(struct hdf5 *file, uint64_t address, uint64_t length, struct error *error)
{
    if (!check_read(file, address, length, error))
        return NULL;
    unsigned char *block = memory_alloc((size_t)length + 1);
    if (read_bytes(file, address, (size_t)length, block, error))
        return block;
    free(block);
    return NULL;
}

unsigned char *hdf5_signed_block(struct hdf5 *file, uint64_t address, const char *wanted, uint64_t length,
                                 struct error *error)
{
    unsigned char *block = hdf5_block(file, address, length, error);
    if (block == NULL || (length >= strlen(wanted) && memcmp(block, wanted, strlen(wanted)) == 0))
        return block;
    error_set(error, "%s: address %" PRIu64 ": damaged: no %s there", source_name(file->source), address, wanted);
    free(block);
    return NULL;
}

bool hdf5_check_sum(const struct hdf5 *file, uint64_t address, const unsigned char *bytes, size_t length,
                    struct error *error)
{
    return (length >= CHECKSUM &&
            read_le(bytes + length - CHECKSUM, CHECKSUM) == hdf5_lookup3(bytes, length - CHECKSUM)) ||
           hdf5_refuse(file, address, "damaged: the checksum is wrong", error);
}

unsigned char *hdf5_checked_block(struct hdf5 *file, uint64_t address, const char *wanted, uint64_t length,
                                  struct error *error)
{
    unsigned char *block = hdf5_signed_block(file, address, wanted, length, error);
    if (block == NULL || hdf5_check_sum(file, address, block, (size_t)length, error))
        return block;
    free(block);
    return NULL;
}

/* The checksum. */

static uint32_t rotate(uint32_t value, unsigned bits)
{
    return value << bits | value >> (32 - bits);
}

static void mix(uint32_t *a, uint32_t *b, uint32_t *c)
{
    static const unsigned char bits[6] = {4, 6, 8, 16, 19, 4};
    uint32_t *first = a, *second = b, *third = c;
    for (int i = 0; i < 6; i++) {
        *first -= *third;
        *first ^= rotate(*third, bits[i]);
        *third += *second;
        uint32_t *next = second;
        second = third;
        third = first;
        first = next;
    }
}

static void finish(uint32_t *a, uint32_t *b, uint32_t *c)
{
    static const unsigned char bits[7] = {14, 11, 25, 16, 4, 14, 24};
    uint32_t *changed = c, *by = b, *other = a;
    for (int i = 0; i < 7; i++) {
        *changed ^= *by;
        *changed -= rotate(*by, bits[i]);
        uint32_t *next = other;
        other = by;
        by = changed;
        changed = next;
    }
}

uint32_t hdf5_lookup3(const unsigned char *bytes, size_t length)
{
    static const uint32_t start = 0xdeadbeef;
    enum { BLOCK = 12, WORD = 4 };
    uint32_t state[3];
    unsigned char last[BLOCK] = {0};
    for (int i = 0; i < 3; i++)
        state[i] = start + (uint32_t)length;
    if (length == 0)
        return state[2];
    for (; length > BLOCK; bytes += BLOCK, length -= BLOCK) {
        for (int i = 0; i < 3; i++)
            state[i] += (uint32_t)read_le(bytes + WORD * i, WORD);
        mix(&state[0], &state[1], &state[2]);
    }
    memcpy(last, bytes, length);
    for (int i = 0; i < 3; i++)
        state[i] += (uint32_t)read_le(last + WORD * i, WORD);
    finish(&state[0], &state[1], &state[2]);
    return state[2];
}

/* The superblock. */

bool hdf5_is_superblock(const unsigned char *bytes, size_t length)
{
    return length >= sizeof signature && memcmp(bytes, signature, sizeof signature) == 0;
}

/* Returns the offset of the superblock in a file; HDF5_UNDEFINED on failure. */
static uint64_t find_superblock(const struct source *source, struct error *error)
{
    unsigned char found[sizeof signature];
    for (uint64_t offset = 0; offset <= source_size(source) && source_size(source) - offset >= sizeof found;
         offset = offset == 0 ? FIRST_USER_BLOCK : 2 * offset) {
        if (!source_read(source, offset, sizeof found, found, error))
            return HDF5_UNDEFINED;
        if (hdf5_is_superblock(found, sizeof found))
            return offset;
        if (offset > UINT64_MAX / 2)
            break;
    }
    error_set(error, "%s: not an HDF5 file: the signature is missing", source_name(source));
    return HDF5_UNDEFINED;
}

static bool check_sizes(const struct hdf5 *file, const unsigned char sizes[2], struct error *error)
{
    return (sizes[0] == 8 && sizes[1] == 8) ||
           error_set(error, "%s: an HDF5 file with addresses of %u bytes and lengths of %u; wfs reads those with 8",
                     source_name(file->source), sizes[0], sizes[1]);
}

/* The superblock's end counts from the beginning of the file. */
static bool check_end(const struct hdf5 *file, uint64_t end, struct error *error)
{
    return end <= source_size(file->source) ||
           error_set(error, "%s: truncated: the superblock gives %" PRIu64 " bytes, but the file has %" PRIu64,
                     source_name(file->source), end, source_size(file->source));
}

/* Versions 0 and 1 have the root group's entry in a symbol table; version 1 also a number of 4 bytes more. */
static bool read_superblock_0(struct hdf5 *file, unsigned version, struct error *error)
{
    enum { SIZES = 13, NUMBERS = 24, END = 16, ROOT = 40 };
    unsigned char block[SUPERBLOCK_0];
    const unsigned char *numbers = block + NUMBERS + (version == 1 ? 4 : 0);
    if (!hdf5_read(file, 0, sizeof block, block, error) || !check_sizes(file, block + SIZES, error))
        return false;
    file->root = read_le(numbers + ROOT, 8);
    return check_end(file, read_le(numbers + END, 8), error);
}

static bool read_superblock_2(struct hdf5 *file, struct error *error)
{
    enum { SIZES = 9, END = 28, ROOT = 36 };
    unsigned char block[SUPERBLOCK_2];
    if (!hdf5_read(file, 0, sizeof block, block, error) || !check_sizes(file, block + SIZES, error) ||
        !hdf5_check_sum(file, 0, block, sizeof block, error))
        return false;
    file->root = read_le(block + ROOT, 8);
    return check_end(file, read_le(block + END, 8), error);
}

static bool read_superblock(struct hdf5 *file, struct error *error)
{
    unsigned char version;
    if (!hdf5_read(file, sizeof signature, 1, &version, error))
        return false;
    if (version > 3)
        return error_set(error, "%s: an HDF5 file with a superblock of version %u; wfs reads versions 0 to 3",
                         source_name(file->source), version);
    return version < 2 ? read_superblock_0(file, version, error) : read_superblock_2(file, error);
}

struct hdf5 *hdf5_open(const struct source *source, struct error *error)
{
    uint64_t base = find_superblock(source, error);
    if (base == HDF5_UNDEFINED)
        return NULL;
    struct hdf5 *file = memory_alloc(sizeof *file);
    *file = (struct hdf5){.source = source, .base = base, .window = {.source = source}};
    hdf5_renew_budget(file);
    if (read_superblock(file, error))
        return file;
    free(file);
    return NULL;
}

struct hdf5 *hdf5_reopen(const struct hdf5 *file)
{
    struct hdf5 *again = memory_alloc(sizeof *again);
    *again = (struct hdf5){
        .source = file->source, .base = file->base, .root = file->root, .window = {.source = file->source}};
    hdf5_renew_budget(again);
    return again;
}
