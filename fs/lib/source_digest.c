#include "fs/lib/source_digest.h"

#include "base/arena.h"

#include <nettle/base16.h>
#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>

static void add_number(struct sha256_ctx *hash, uint64_t number)
{
    uint8_t bytes[8];
    for (unsigned i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(number >> 8 * i);
    sha256_update(hash, sizeof bytes, bytes);
}

static void add_name(struct sha256_ctx *hash, const struct source *source)
{
    sha256_update(hash, strlen(source_name(source)) + 1, (const uint8_t *)source_name(source));
    add_number(hash, source_size(source));
}

static void end(struct sha256_ctx *hash, char hex[SHA256_HEX + 1])
{
    uint8_t digest[SHA256_DIGEST_SIZE];
    sha256_digest(hash, sizeof digest, digest);
    base16_encode_update(hex, sizeof digest, digest);
    hex[SHA256_HEX] = '\0';
}

/* Orders hashes of single sources, which are hashed together in this order. */
static int compare_hashes(const void *a, const void *b)
{
    return memcmp(a, b, SHA256_HEX + 1);
}

struct hashes {
    char (*hex)[SHA256_HEX + 1]; /* one of each source */
    size_t count;
};

static void end_all(struct hashes *hashes, char hex[SHA256_HEX + 1])
{
    struct sha256_ctx hash;
    sha256_init(&hash);
    qsort(hashes->hex, hashes->count, sizeof *hashes->hex, compare_hashes);
    for (size_t i = 0; i < hashes->count; i++)
        sha256_update(&hash, SHA256_HEX, (const uint8_t *)hashes->hex[i]);
    end(&hash, hex);
    free(hashes->hex);
}

static struct hashes new_hashes(size_t count)
{
    return (struct hashes){memory_alloc((count + 1) * sizeof(char[SHA256_HEX + 1])), count};
}

/* Adds what a server says of a source: the identity is made of that. */
static void add_version(struct sha256_ctx *hash, const struct source *source)
{
    struct buffer identity = {0};
    source_append_identity(source, &identity);
    sha256_update(hash, identity.length, identity.bytes);
    buffer_free(&identity);
}

static void add_times(struct sha256_ctx *hash, const struct source *source)
{
    struct timespec written = source_mtime(source);
    struct buffer change = {0};
    add_number(hash, (uint64_t)written.tv_sec);
    add_number(hash, (uint64_t)written.tv_nsec);
    source_append_change(source, &change);
    sha256_update(hash, change.length, change.bytes);
    buffer_free(&change);
}

void source_stamp(struct source *const *sources, size_t n_sources, char hex[SHA256_HEX + 1])
{
    struct hashes hashes = new_hashes(n_sources);
    for (size_t i = 0; i < n_sources; i++) {
        struct sha256_ctx hash;
        sha256_init(&hash);
        add_name(&hash, sources[i]);
        if (source_is_remote(sources[i]))
            add_version(&hash, sources[i]);
        else
            add_times(&hash, sources[i]);
        end(&hash, hashes.hex[i]);
    }
    end_all(&hashes, hex);
}

static void add_bytes(struct sha256_ctx *hash, const struct source *source, uint64_t offset, uint64_t length)
{
    unsigned char bytes[DIGEST_SAMPLE];
    struct error unsaid;
    for (uint64_t done = 0, part; done < length; done += part) {
        part = length - done < sizeof bytes ? length - done : sizeof bytes;
        if (!source_read(source, offset + done, (size_t)part, bytes, &unsaid))
            return;
        sha256_update(hash, (size_t)part, bytes);
    }
}

/* Adds `n` samples of a source at equal distances; the first begins it, and the last ends it. */
static void add_samples(struct sha256_ctx *hash, const struct source *source, uint64_t n)
{
    uint64_t last = source_size(source) - DIGEST_SAMPLE;
    for (uint64_t i = 0; i < n; i++)
        add_bytes(hash, source, n > 1 ? last / (n - 1) * i : last / 2, DIGEST_SAMPLE);
}

static void hash_source(const struct source *source, uint64_t all_bytes, char hex[SHA256_HEX + 1])
{
    struct sha256_ctx hash;
    uint64_t size = source_size(source);
    uint64_t n = all_bytes > 0 ? (uint64_t)((double)size / (double)all_bytes * (DIGEST_SAMPLED / DIGEST_SAMPLE)) : 0;
    sha256_init(&hash);
    add_name(&hash, source);
    if (source_is_remote(source))
        add_version(&hash, source);
    else if (all_bytes <= DIGEST_WHOLE || size <= DIGEST_SAMPLE)
        add_bytes(&hash, source, 0, size);
    else
        add_samples(&hash, source, n > 0 ? n : 1);
    end(&hash, hex);
}

void source_digest(struct source *const *sources, size_t n_sources, char hex[SHA256_HEX + 1])
{
    struct hashes hashes = new_hashes(n_sources);
    uint64_t all_bytes = 0;
    for (size_t i = 0; i < n_sources; i++)
        all_bytes += source_is_remote(sources[i]) ? 0 : source_size(sources[i]);
    for (size_t i = 0; i < n_sources; i++)
        hash_source(sources[i], all_bytes, hashes.hex[i]);
    end_all(&hashes, hex);
}
