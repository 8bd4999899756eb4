#include "sources/archive/codings.h"

#include "base/checked.h"
#include "base/little_endian.h"
#include "remote/crc.h"

#include <string.h>

static const struct coding *const codings[] = {
    planes_codings, fields_codings, codes_codings, computed_codings, scaled_codings, difference_codings,
};

const struct coding *coding_at(size_t i)
{
    for (size_t j = 0; j < sizeof codings / sizeof codings[0]; j++)
        for (const struct coding *coding = codings[j]; coding->name != NULL; coding++, i--)
            if (i == 0)
                return coding;
    return NULL;
}

const struct coding *coding_by_name(const char *name)
{
    const struct coding *coding;
    for (size_t i = 0; (coding = coding_at(i)) != NULL; i++)
        if (strcmp(coding->name, name) == 0)
            return coding;
    return NULL;
}

uint32_t coding_chunk(const struct coding *coding)
{
    const bool is_number = coding->unit_values == 1 && coding->unit_bytes > 1;
    return is_number ? CODING_CHUNK / 2 : CODING_CHUNK;
}

size_t coding_bytes(const struct coding *coding, uint32_t values)
{
    return (size_t)values / coding->unit_values * coding->unit_bytes;
}

/* Fails if the bytes are no chunk of that coding. */
static bool is_chunk(const struct coding *coding, const struct coding_chunk *chunk, struct error *error)
{
    const size_t most = coding_bytes(coding, CODING_CHUNK);
    if (chunk->n_bytes % coding->unit_bytes == 0 && chunk->n_bytes <= most)
        return true;
    return error_set(error, "a chunk of %s has at most %zu bytes, in units of %u; this one has %zu", coding->name, most,
                     coding->unit_bytes, chunk->n_bytes);
}

/* A skippable frame: magic number, length of what follows, CRC-32. */
enum { CHECK_MAGIC = 0x184D2A50, CHECK_AT = 8, CHECK_CRC = 4, CHECK_BYTES = CHECK_AT + CHECK_CRC };

static size_t check_bytes(const struct coding *coding)
{
    return coding->input == CODING_ALONE ? 0 : CHECK_BYTES;
}

size_t coding_bound(const struct coding *coding, size_t n_bytes)
{
    return coding->bound(coding, n_bytes) + check_bytes(coding);
}

bool coding_encode(const struct coding *coding, struct coder *coder, const struct coding_chunk *chunk,
                   const void *bytes, void *out, size_t *ret_length, struct error *error)
{
    size_t length;
    if (!is_chunk(coding, chunk, error) || !coding->encode(coding, coder, chunk, bytes, out, &length, error))
        return false;
    if (coding->input != CODING_ALONE) {
        const uint32_t check[] = {CHECK_MAGIC, CHECK_CRC, crc_of(bytes, chunk->n_bytes)};
        memcpy((unsigned char *)out + length, check, sizeof check);
        little_endian((unsigned char *)out + length, sizeof check / sizeof check[0], sizeof check[0]);
    }
    *ret_length = length + check_bytes(coding);
    return true;
}

bool coding_check(const struct coding *coding, struct coder *coder, const struct coding_chunk *chunk,
                  const void *frames, size_t length, const void *bytes, void *room, struct error *error)
{
    return coding->decode(coding, coder, chunk, frames, length - check_bytes(coding), room, error) &&
           (memcmp(room, bytes, chunk->n_bytes) == 0 ||
            error_set(error, "coding %s does not give back what it was given; this machine's memory may be damaged",
                      coding->name));
}

bool coding_decode(const struct coding *coding, struct coder *coder, const struct coding_chunk *chunk,
                   const void *frames, size_t length, void *bytes, struct error *error)
{
    const size_t n_check = check_bytes(coding);
    if (!is_chunk(coding, chunk, error))
        return false;
    if (length < n_check)
        return error_set(error, "it has %zu bytes, fewer than its checksum", length);
    const unsigned char *check = n_check != 0 ? (const unsigned char *)frames + length - n_check : NULL;
    if (n_check != 0 && (read_le(check, CHECK_CRC) != CHECK_MAGIC || read_le(check + CHECK_CRC, 4) != CHECK_CRC))
        return error_set(error, "it does not end with its checksum");
    if (!coding->decode(coding, coder, chunk, frames, length - n_check, bytes, error))
        return false;
    if (n_check != 0 && read_le(check + CHECK_AT, CHECK_CRC) != crc_of(bytes, chunk->n_bytes))
        return error_set(error, "its bytes have another CRC-32 than when it was packed: what it is computed from has "
                                "changed, or computes to other bytes here");
    return true;
}
