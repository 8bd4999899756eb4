#include "fs/tree/identity.h"

#include <nettle/sha2.h>
#include <string.h>

/* Must change whenever wfs hashes inputs and requests otherwise; the build changes with the bytes that are made of
 * them.
 */
static const char format_version[] = "wfs identity 3 " WFS_VERSION;

void file_identity(const struct origin *origin, const char *model, const char *request, const char *path,
                   char identity[SHA256_HEX + 1])
{
    struct buffer hashed = {0};
    buffer_append(&hashed, format_version, sizeof format_version);
    buffer_append(&hashed, wfs_build, strlen(wfs_build) + 1);
    buffer_append_le(&hashed, origin->n_sources, 8);
    for (size_t i = 0; i < origin->n_sources; i++)
        source_append_identity(origin->sources[i], &hashed);
    buffer_append(&hashed, model, strlen(model) + 1);
    if (request != NULL)
        buffer_append_text(&hashed, request);
    buffer_append(&hashed, "", 1);
    buffer_append(&hashed, path, strlen(path) + 1);
    sha256_hex(hashed.bytes, hashed.length, identity);
    buffer_free(&hashed);
}

/* Times. */

enum { NANOSECONDS = 1000000000 };

struct made_from {
    struct sha256_ctx identity;
    struct timespec newest;
};

struct timespec file_time_later(struct timespec a, struct timespec b)
{
    return a.tv_sec > b.tv_sec || (a.tv_sec == b.tv_sec && a.tv_nsec > b.tv_nsec) ? a : b;
}

static void add_text(struct made_from *made_from, const char *text)
{
    sha256_update(&made_from->identity, strlen(text) + 1, (const uint8_t *)text);
}

static void add_number(struct made_from *made_from, uint64_t number)
{
    uint8_t bytes[8];
    for (unsigned i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(number >> 8 * i);
    sha256_update(&made_from->identity, sizeof bytes, bytes);
}

static void add_source(struct made_from *made_from, const struct source *source)
{
    struct timespec time = source_mtime(source);
    made_from->newest = file_time_later(made_from->newest, time);
    add_text(made_from, source_name(source));
    add_number(made_from, source_size(source));
    add_number(made_from, (uint64_t)time.tv_sec);
    add_number(made_from, (uint64_t)time.tv_nsec);
}

/* Returns a time that is moved by an amount derived from the identity. */
static struct timespec moved(struct timespec newest, const uint8_t identity[SHA256_DIGEST_SIZE])
{
    uint64_t number = 0;
    for (unsigned i = 0; i < sizeof number; i++)
        number = number << 8 | identity[i];
    time_t seconds = 1 + (time_t)(number % (FILE_TIME_RANGE - 1));
    bool is_early = newest.tv_sec < 2 * FILE_TIME_RANGE;
    return (struct timespec){
        .tv_sec = is_early ? newest.tv_sec + seconds : newest.tv_sec - seconds,
        .tv_nsec = (long)(number / FILE_TIME_RANGE % NANOSECONDS),
    };
}

struct timespec file_time(struct source *const *inputs, size_t n_inputs, const struct file_request *request)
{
    struct made_from made_from = {.newest = request->newest};
    uint8_t identity[SHA256_DIGEST_SIZE];
    sha256_init(&made_from.identity);
    for (size_t i = 0; i < n_inputs; i++)
        add_source(&made_from, inputs[i]);
    if (request->text == NULL)
        return made_from.newest;
    add_text(&made_from, WFS_VERSION);
    add_text(&made_from, wfs_build);
    add_text(&made_from, request->text);
    sha256_digest(&made_from.identity, sizeof identity, identity);
    return moved(made_from.newest, identity);
}
