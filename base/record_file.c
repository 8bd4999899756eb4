#include "base/record_file.h"

#include "base/opener.h"

#include <nettle/sha2.h>
#include <string.h>
#include <unistd.h>

_Static_assert(sizeof(struct record) * RECORD_WAYS * RECORD_SETS == RECORDS_SIZE, "the places of the file");

static void bind_key(const struct record_file *file, const uint8_t key[RECORD_KEY], uint8_t bound[RECORD_KEY])
{
    struct sha256_ctx hash;
    sha256_init(&hash);
    sha256_update(&hash, RECORD_KEY, file->scope);
    sha256_update(&hash, RECORD_KEY, key);
    sha256_digest(&hash, RECORD_KEY, bound);
}

static void check_of(const struct record *record, uint8_t check[sizeof record->check])
{
    struct sha256_ctx hash;
    sha256_init(&hash);
    sha256_update(&hash, RECORD_KEY, record->key);
    sha256_update(&hash, sizeof record->length, (const uint8_t *)&record->length);
    sha256_update(&hash, RECORD_BYTES, record->bytes);
    sha256_digest(&hash, sizeof record->check, check);
}

static bool is_record(const struct record *record)
{
    uint8_t check[sizeof record->check];
    if (record->length == 0 || record->length > RECORD_BYTES)
        return false;
    check_of(record, check);
    return memcmp(check, record->check, sizeof check) == 0;
}

static off_t place_of(const uint8_t bound[RECORD_KEY], unsigned way)
{
    return (off_t)(bound[0] % (unsigned)RECORD_SETS * RECORD_WAYS + way) * (off_t)sizeof(struct record);
}

static bool read_place(const struct record_file *file, const uint8_t bound[RECORD_KEY], unsigned way,
                       struct record *record)
{
    return file->descriptor >= 0 &&
           pread(file->descriptor, record, sizeof *record, place_of(bound, way)) == (ssize_t)sizeof *record &&
           is_record(record);
}

/* Returns the place of a key's record, or RECORD_WAYS; *ret_free is one without a record, if there is any. */
static unsigned find_place(const struct record_file *file, const uint8_t bound[RECORD_KEY], struct record *record,
                           unsigned *ret_free)
{
    unsigned way = 0;
    *ret_free = RECORD_WAYS;
    for (; way < RECORD_WAYS; way++) {
        bool has_record = read_place(file, bound, way, record);
        if (has_record && memcmp(record->key, bound, RECORD_KEY) == 0)
            break;
        if (!has_record && *ret_free == RECORD_WAYS)
            *ret_free = way;
    }
    return way;
}

bool record_read(const struct record_file *file, struct record *record)
{
    uint8_t bound[RECORD_KEY], key[RECORD_KEY];
    unsigned unused;
    memcpy(key, record->key, RECORD_KEY);
    bind_key(file, key, bound);
    bool found = find_place(file, bound, record, &unused) < RECORD_WAYS;
    memcpy(record->key, key, RECORD_KEY);
    return found;
}

unsigned record_way(const struct record_file *file, const uint8_t key[RECORD_KEY])
{
    uint8_t bound[RECORD_KEY];
    struct record unused;
    unsigned empty;
    bind_key(file, key, bound);
    unsigned own = find_place(file, bound, &unused, &empty);
    return own < RECORD_WAYS ? own : empty < RECORD_WAYS ? empty : bound[1] % RECORD_WAYS;
}

bool record_write(const struct record_file *file, const struct record *record, unsigned way)
{
    struct record bound = *record;
    if (file->descriptor < 0 || way >= RECORD_WAYS || record->length > RECORD_BYTES)
        return false;
    bind_key(file, record->key, bound.key);
    memset(bound.bytes + bound.length, 0, RECORD_BYTES - bound.length);
    check_of(&bound, bound.check);
    return pwrite(file->descriptor, &bound, sizeof bound, place_of(bound.key, way)) == (ssize_t)sizeof bound;
}

static struct record_file own = {.descriptor = -1};
static bool writes_itself;

void records_use(const struct record_file *file, bool is_writable)
{
    own = *file;
    writes_itself = is_writable;
}

bool records_are_kept(void)
{
    return own.descriptor >= 0;
}

bool record_find(struct record *record)
{
    return record_read(&own, record);
}

void record_keep(const struct record *record)
{
    unsigned way = record_way(&own, record->key);
    if (writes_itself)
        record_write(&own, record, way);
    else
        opener_keep(record, way);
}
