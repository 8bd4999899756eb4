#include "fs/kept/kept_files.h"

#include "base/lock.h"
#include "base/record_file.h"
#include "fs/kept/kept.h"
#include "fs/tree/content_options.h"
#include "fs/tree/identity.h"
#include "fs/tree/nodes.h"
#include "quant/views/finding.h"
#include "remote/store.h"

#include <stdlib.h>
#include <string.h>

enum { N_CHAINS = 1024 };

struct kept_file {
    struct kept_file *next;
    struct tree *tree;
    node_id id;
    struct kept *kept; /* NULL: nothing of the file is kept */
};

struct kept_files {
    struct lock lock;
    struct kept_file *chains[N_CHAINS]; /* guarded by the lock; a file is never removed */
};

struct kept_files *kept_files_new(void)
{
    struct kept_files *files = memory_alloc(sizeof *files);
    *files = (struct kept_files){.chains = {NULL}};
    lock_init(&files->lock);
    return files;
}

void kept_files_free(struct kept_files *files)
{
    if (files == NULL)
        return;
    for (size_t i = 0; i < N_CHAINS; i++)
        for (struct kept_file *file = files->chains[i], *next; file != NULL; file = next) {
            next = file->next;
            kept_free(file->kept);
            free(file);
        }
    lock_destroy(&files->lock);
    free(files);
}

static struct kept_file **chain_of(struct kept_files *files, node_id id)
{
    return &files->chains[(id * UINT64_C(0x9e3779b97f4a7c15)) >> 54];
}
_Static_assert(N_CHAINS == 1 << (64 - 54), "the hash of a node has as many values as there are chains");

static struct kept_file *find(struct kept_files *files, node_id id)
{
    lock_take(&files->lock);
    struct kept_file *file = *chain_of(files, id);
    while (file != NULL && file->id != id)
        file = file->next;
    lock_drop(&files->lock);
    return file;
}

/* The files of a collection share a name. */
static const char *name_of(struct tree *tree, node_id id, struct arena *arena)
{
    struct computed computed;
    if (computed_of(tree, id, &computed))
        id = tree->nodes[computed.owner->node]->number;
    return kept_name(tree->checkpoint->path, tree_path(tree, id, arena), arena);
}

/* Returns a stored node's file, whose spans live as long as the tree. */
static bool remake(void *context, struct vfile *ret_file)
{
    struct error unsaid;
    const struct kept_file *file = context;
    struct arena *unused = arena_new();
    bool made = tree_file(file->tree, file->id, unused, ret_file, &unsaid);
    arena_free(unused);
    return made;
}

/* The files of a collection are parts of a model, which nobody runs: they are not sealed. */
static struct kept *make(struct kept_file *kept_file, const struct vfile *file)
{
    char identity[SHA256_HEX + 1];
    struct tree *tree = kept_file->tree;
    node_id id = kept_file->id;
    const struct content_options *options = tree_options(tree);
    struct arena *arena = arena_new();
    file_identity(&file->origin, tree->checkpoint->model_name, options->file_request.text, tree_path(tree, id, arena),
                  identity);
    struct kept_request request = {options->keep, identity, name_of(tree, id, arena), options->file_request.newest};
    if (node_of(tree, id) != NULL) {
        request.remake = remake;
        request.context = kept_file;
    }
    struct kept *kept = kept_new(file, &request);
    arena_free(arena);
    return kept;
}

/* Adds a file, unless another thread has. Returns the file that is there. */
static struct kept_file *add(struct kept_files *files, struct kept_file *added)
{
    lock_take(&files->lock);
    struct kept_file **chain = chain_of(files, added->id), *file = *chain;
    while (file != NULL && file->id != added->id)
        file = file->next;
    if (file == NULL) {
        added->next = *chain;
        *chain = file = added;
    }
    lock_drop(&files->lock);
    return file;
}

struct kept *kept_files_get(struct kept_files *files, struct tree *tree, node_id id, const struct vfile *file)
{
    struct kept_file *found = find(files, id);
    if (found != NULL)
        return found->kept;
    struct kept_file *added = memory_alloc(sizeof *added);
    *added = (struct kept_file){.tree = tree, .id = id};
    added->kept = make(added, file);
    found = add(files, added);
    if (found == added) {
        kept_begin(found->kept);
        return found->kept;
    }
    kept_free(added->kept);
    free(added);
    return found->kept;
}

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

/* Reads a part of the second object of a finding, whole granules of it, whose CRCs are compared. */
static bool read_rest(const struct kept_findings *kept, uint32_t number, uint64_t size, uint64_t offset, size_t length,
                      unsigned char *out)
{
    struct store_object *object = open_object(kept, number, 1, size);
    unsigned char *granule = memory_alloc(STORE_GRANULE);
    bool read = true;
    for (size_t n; read && length > 0; offset += n, out += n, length -= n) {
        size_t from = offset % STORE_GRANULE;
        n = STORE_GRANULE - from < length ? STORE_GRANULE - from : length;
        read = store_take(object, offset / STORE_GRANULE, granule);
        if (read)
            memcpy(out, granule + from, n);
    }
    free(granule);
    store_close(object);
    return read;
}

static bool read(void *context, uint32_t number, uint64_t size, uint64_t offset, size_t length, void *out)
{
    const struct kept_findings *kept = context;
    struct page page;
    if (!read_object(kept, number, 0, PAGE, &page) || page.length != size)
        return false;
    uint64_t first = n_inline(size);
    size_t n = offset >= first ? 0 : first - offset < length ? (size_t)(first - offset) : length;
    memcpy(out, page.bytes + (n > 0 ? offset : 0), n);
    return n == length ||
           read_rest(kept, number, size - first, offset + n - first, length - n, (unsigned char *)out + n);
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
        .keeper = {is_short ? load_short : load, is_short ? save_short : save, kept, is_short ? NULL : read},
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
