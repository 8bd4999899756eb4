/* Sources whose bytes are dropped for others, and made again. */
#include "sources/source_kinds.h"

#include "base/arena.h"
#include "tests/unit/check.h"

#include <string.h>

enum { N_SOURCES = 3, N_PARTS = 2, LARGE = REMADE_KEPT / 2, SMALL = 5 };

static struct made {
    unsigned char first;
    unsigned n_times;
    bool fails, grows, is_copied;
} made[N_SOURCES];

static void fill(const struct made *which, struct buffer *parts)
{
    buffer_append_zeros(&parts[0], LARGE);
    buffer_append_zeros(&parts[1], SMALL + which->grows);
    memset(parts[0].bytes, which->first, LARGE);
    memset(parts[1].bytes, which->first + 1, SMALL);
}

static bool make(void *context, struct buffer *parts, size_t n_parts, struct error *error)
{
    struct made *which = context;
    which->n_times++;
    CHECK(n_parts == N_PARTS && parts[0].bytes == NULL);
    if (which->fails)
        return error_set(error, "no bytes");
    fill(which, parts);
    return true;
}

static bool read_copy(void *context, uint64_t offset, size_t length, void *out)
{
    const struct made *which = context;
    for (size_t i = 0; i < length; i++)
        ((unsigned char *)out)[i] = (unsigned char)(which->first + (offset + i >= LARGE));
    return which->is_copied;
}

static void check_read(struct source *source, const struct made *which, unsigned n_times)
{
    struct error error = {""};
    unsigned char bytes[4] = {0};
    CHECK(source_read(source, LARGE - 2, 4, bytes, &error));
    CHECK(bytes[0] == which->first && bytes[1] == which->first && bytes[2] == which->first + 1 &&
          bytes[3] == which->first + 1);
    CHECK(source_read(source, LARGE + SMALL - 1, 1, bytes, &error) && bytes[0] == which->first + 1);
    CHECK(source_read(source, 0, 1, bytes, &error) && bytes[0] == which->first);
    CHECK(which->n_times == n_times);
}

static void check_failure(struct source *source, const char *message)
{
    struct error error = {""};
    unsigned char byte;
    CHECK(!source_read(source, 0, 1, &byte, &error));
    CHECK_TEXT(error.message, message);
}

int main(void)
{
    const struct source_identity identity = {.size = 1};
    struct source *file = source_unopened(&identity, "file", "not read"), *sources[N_SOURCES];
    for (size_t i = 0; i < N_SOURCES; i++) {
        struct buffer parts[N_PARTS] = {0};
        made[i].first = (unsigned char)(10 * i);
        fill(&made[i], parts);
        sources[i] = source_remade_new(file, "parts", parts, N_PARTS, make, read_copy, &made[i]);
        CHECK(parts[0].bytes == NULL && source_size(sources[i]) == LARGE + SMALL);
    }
    check_read(sources[2], &made[2], 0); /* the last is kept, and two do not fit */
    check_read(sources[0], &made[0], 1);
    check_read(sources[0], &made[0], 1);
    check_read(sources[1], &made[1], 1);
    check_read(sources[0], &made[0], 2);
    made[1].fails = true;
    check_failure(sources[1], "no bytes");
    made[1].fails = false;
    made[1].grows = true;
    check_failure(sources[1], "parts would have 6 bytes, and had 5: a source has changed; mount again");
    check_read(sources[0], &made[0], 2); /* a failure drops nothing */
    made[1].grows = false;
    check_read(sources[1], &made[1], 4);
    check_read(sources[2], &made[2], 1);
    check_read(sources[0], &made[0], 3);
    made[2].is_copied = true;
    check_read(sources[2], &made[2], 1); /* dropped, and not made again while there is a copy */
    made[2].is_copied = false;
    check_read(sources[2], &made[2], 2);
    for (size_t i = 0; i < N_SOURCES; i++)
        source_close(sources[i]);
    source_close(file);
    return check_done();
}
