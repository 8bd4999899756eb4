#include "fs/tree/kept_files.h"

#include "base/record_file.h"
#include "fs/tree/identity.h"
#include "fs/tree/kept.h"
#include "quant/views/finding.h"
#include "remote/store.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096, INLINE_BYTES = PAGE - sizeof(uint64_t) };

struct kept_findings {
    struct arena *arena;
    struct findings *findings;
    struct finding_keeper keeper;
    bool is_short;
    struct origin origin;
    time_t newest;
    struct sha256_ctx key; /* what all keys begin with */
    const char *name;
};

/* The first object of a finding: its length, and its first bytes. */
struct page {
    uint64_t length;
    unsigned char bytes[INLINE_BYTES];
};
_Static_assert(sizeof(struct page) == PAGE, "an object is a page");

/* Opens one of the two objects of a finding. */
static struct store_object *open_object(const struct kept_findings *kept, uint32_t number, uint32_t which,
                                        uint64_t size)
{
    char key[sizeof STORE_COMPUTED + SHA256_HEX] = STORE_COMPUTED;
    const uint32_t place[] = {number, which};
    struct sha256_ctx hash = kept->key;
    sha256_update(&hash, sizeof place, (const uint8_t *)place);
    kept_key_end(&hash, key + sizeof STORE_COMPUTED - 1);
    return store_open_computed(key, size, kept->name);
}

static bool read_object(const struct kept_findings *kept, uint32_t number, uint32_t which, uint64_t size, void *out)
{
    struct store_object *object = open_object(kept, number, which, size);
    bool read = true;
    for (uint64_t at = 0; read && at < size; at += STORE_GRANULE)
        read = store_take(object, at / STORE_GRANULE, (unsigned char *)out + at);
    store_close(object);
    return read;
}

static void write_object(const struct kept_findings *kept, uint32_t number, uint32_t which, uint64_t size,
                         const void *bytes)
{
    struct store_object *object = open_object(kept, number, which, size);
    for (uint64_t at = 0; at < size; at += STORE_GRANULE)
        store_write(object, at / STORE_GRANULE, (const unsigned char *)bytes + at);
    store_close(object);
}

static uint64_t n_inline(uint64_t length)
{
    return length < INLINE_BYTES ? length : INLINE_BYTES;
}

static void *load(void *context, uint32_t number)
{
    const struct kept_findings *kept = context;
    struct page page;
    if (!read_object(kept, number, 0, PAGE, &page))
        return NULL;
    uint64_t first = n_inline(page.length);
    unsigned char *finding = finding_alloc(page.length);
    memcpy(finding, page.bytes, first);
    if (page.length == first || read_object(kept, number, 1, page.length - first, finding + first))
        return finding;
    finding_discard(finding);
    return NULL;
}

static void save(void *context, uint32_t number, const void *bytes, size_t length)
{
    const struct kept_findings *kept = context;
    uint64_t first = n_inline(length);
    struct page page = {.length = length};
    if (!kept_is_settled(kept->newest) || origin_verify(&kept->origin))
        return;
    memcpy(page.bytes, bytes, first);
    if (length > first)
        write_object(kept, number, 1, length - first, (const unsigned char *)bytes + first);
    write_object(kept, number, 0, PAGE, &page);
}

/* Short findings. */

static struct record record_of(const struct kept_findings *kept, uint32_t number)
{
    struct record record = {.length = 0};
    struct sha256_ctx hash = kept->key;
    sha256_update(&hash, sizeof number, (const uint8_t *)&number);
    sha256_digest(&hash, sizeof record.key, record.key);
    return record;
}

static void *load_short(void *context, uint32_t number)
{
    const struct kept_findings *kept = context;
    struct record record = record_of(kept, number);
    return kept_is_settled(kept->newest) && record_find(&record) ? finding_of(record.bytes, record.length, NULL) : NULL;
}

/* Saves nothing in place of a longer finding. */
static void save_short(void *context, uint32_t number, const void *bytes, size_t length)
{
    const struct kept_findings *kept = context;
    struct record record = record_of(kept, number), before = record;
    size_t n_before = record_find(&before) ? before.length : 0;
    record.length = length <= RECORD_BYTES ? (uint32_t)length : 0;
    if (record.length > 0)
        memcpy(record.bytes, bytes, record.length);
    bool is_kept = n_before == record.length && memcmp(before.bytes, record.bytes, n_before) == 0;
    if (!is_kept && kept_is_settled(kept->newest) && !origin_verify(&kept->origin))
        record_keep(&record);
}

struct kept_findings *kept_findings_new(const struct checkpoint *checkpoint, const struct content_options *options)
{
    char identity[SHA256_HEX + 1];
    bool is_short = options->keep == KEEP_SIZES && records_are_kept();
    if (options->keep <= KEEP_NONE && !is_short)
        return NULL;
    struct kept_findings *kept = memory_alloc(sizeof *kept);
    struct arena *arena = arena_new();
    *kept = (struct kept_findings){
        .arena = arena,
        .findings = checkpoint->findings,
        .keeper = {is_short ? load_short : load, is_short ? save_short : save, kept},
        .is_short = is_short,
        .origin = origin_of_model(checkpoint, arena),
        .name = kept_name(checkpoint->path, "findings", arena),
    };
    kept->newest = kept_newest(&kept->origin, options->file_request.newest);
    file_identity(&kept->origin, checkpoint->model_name, options->file_request.text, "findings", identity);
    kept_key_begin(&kept->key, &kept->origin, identity);
    (is_short ? findings_keep_short : findings_keep)(kept->findings, &kept->keeper);
    return kept;
}

void kept_findings_free(struct kept_findings *kept)
{
    if (kept == NULL)
        return;
    (kept->is_short ? findings_keep_short : findings_keep)(kept->findings, NULL);
    arena_free(kept->arena);
    free(kept);
}
