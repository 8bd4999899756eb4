#include "fs/cli/pack/packing_written.h"

#include "base/arena.h"
#include "base/lock.h"
#include "base/pool.h"

#include <nettle/sha2.h>
#include <stdlib.h>

enum { PIECE = 1 << 20 /* bytes of a tensor that are decoded at once */ };

struct checking {
    struct pack *pack;
    const char *archive;
    struct lock lock;
    bool failed;
    struct error error; /* of the first tensor that failed */
};

static bool check(const struct checking *checking, size_t index, struct error *error)
{
    const struct pack_tensor *tensor = pack_tensor(checking->pack, index);
    unsigned char *bytes = memory_alloc(PIECE);
    struct sha256_ctx hash;
    struct digest found;
    bool good = true;
    sha256_init(&hash);
    for (uint64_t at = 0, n; good && at < tensor->length; at += n) {
        n = tensor->length - at < PIECE ? tensor->length - at : PIECE;
        good = pack_read(checking->pack, index, at, (size_t)n, bytes, error);
        sha256_update(&hash, good ? (size_t)n : 0, bytes);
    }
    sha256_digest(&hash, sizeof found.bytes, found.bytes);
    free(bytes);
    return good &&
           (digest_same(&found, &tensor->digest) ||
            error_set(error, "%s: what was written is not what was read: a source changed, or the disk is damaged",
                      checking->archive));
}

static void check_tensor(void *context, size_t index)
{
    struct checking *checking = context;
    struct error error;
    if (check(checking, index, &error))
        return;
    lock_take(&checking->lock);
    if (!checking->failed)
        checking->error = error;
    checking->failed = true;
    lock_drop(&checking->lock);
}

bool packing_check(struct pack *pack, const char *archive, struct error *error)
{
    struct checking checking = {.pack = pack, .archive = archive, .failed = false};
    lock_init(&checking.lock);
    pool_run(pack_count(pack), check_tensor, &checking);
    lock_destroy(&checking.lock);
    if (checking.failed)
        *error = checking.error;
    return !checking.failed;
}

bool packing_check_blob(const struct source *blob, const struct digest *digest)
{
    unsigned char *bytes = memory_alloc(PIECE);
    struct sha256_ctx hash;
    struct digest found;
    struct error unsaid;
    bool good = true;
    sha256_init(&hash);
    for (uint64_t at = 0, n; good && at < source_size(blob); at += n) {
        n = source_size(blob) - at < PIECE ? source_size(blob) - at : PIECE;
        good = source_read(blob, at, (size_t)n, bytes, &unsaid);
        sha256_update(&hash, good ? (size_t)n : 0, bytes);
    }
    sha256_digest(&hash, sizeof found.bytes, found.bytes);
    free(bytes);
    return good && digest_same(&found, digest);
}
