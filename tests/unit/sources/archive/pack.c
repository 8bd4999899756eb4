/* Tensors that have the values of another one in another order. */
#include "sources/archive/pack.h"

#include "base/buffer.h"
#include "base/checked.h"
#include "base/pool.h"
#include "sources/archive/lines.h"
#include "sources/archive/pack_writer.h"
#include "sources/source.h"
#include "tests/unit/check.h"

#include <stdlib.h>
#include <string.h>

/* Heads of halves of rows. */
enum { HEADS = 6, HALF = 20, ROW = 1000, ROWS = HEADS * 2 * HALF, N = ROWS * ROW };

static bool append(void *context, const void *bytes, size_t length, struct error *error)
{
    buffer_append(context, bytes, length);
    return true;
}

/* A blob that gives only what was named, once something is. */
struct watched {
    struct buffer bytes;
    struct {
        uint64_t from, to;
    } named[4];
    size_t n_named;
};

static bool watched_read(void *context, uint64_t offset, size_t length, void *out, struct error *error)
{
    const struct watched *watched = context;
    bool is_named = watched->n_named == 0;
    for (size_t i = 0; i < watched->n_named; i++)
        is_named |= offset >= watched->named[i].from && offset + length <= watched->named[i].to;
    memcpy(out, watched->bytes.bytes + offset, length);
    return is_named || error_set(error, "bytes that were not named");
}

static void watched_release(void *context)
{
    struct watched *watched = context;
    buffer_free(&watched->bytes);
    free(watched);
}

static struct watched *last[2]; /* that were made, the last one first */

static const struct source_ops watched_ops = {.read = watched_read, .release = watched_release};

static struct source *source_of(const struct buffer *bytes)
{
    struct watched *watched = calloc(1, sizeof *watched);
    const struct source_identity identity = {.size = bytes->length};
    buffer_append(&watched->bytes, bytes->bytes, bytes->length);
    last[1] = last[0];
    last[0] = watched;
    return source_new_file(&identity, "pack", &watched_ops, watched);
}

static bool name_range(void *context, struct source *blob, uint64_t offset, uint64_t length, struct error *error)
{
    struct watched *watched = last[source_context(blob, &watched_ops) == last[0] ? 0 : 1];
    size_t *n_bytes = context;
    *n_bytes += (size_t)length;
    watched->named[watched->n_named].from = offset;
    watched->named[watched->n_named++].to = offset + length;
    return true;
}

/* Makes a pack of one tensor. `find` gives the pack of its input. */
static struct pack *pack_of(struct pack_writer_tensor tensor, const void *bytes, pack_find *find, void *context)
{
    struct buffer out = {0};
    struct error error;
    struct pack_writer *writer = pack_writer_new(append, &out);
    tensor.digest = digest_of(bytes, (size_t)tensor.length);
    pack_writer_begin(writer, &tensor);
    bool good = true;
    for (size_t at = 0, n = 1; good && at < tensor.length; at += n) {
        n = n * 7 % 1000003 < tensor.length - at ? n * 7 % 1000003 : (size_t)tensor.length - at;
        good = pack_writer_add(writer, (const char *)bytes + at, n, &error);
    }
    CHECK(good && pack_writer_finish(writer, &error));
    pack_writer_free(writer);
    struct pack *pack = pack_open(source_of(&out), find, context, &error);
    CHECK(pack != NULL);
    buffer_free(&out);
    return pack;
}

static bool find(void *context, const struct digest *digest, struct pack **ret_pack, struct error *error)
{
    *ret_pack = context;
    return true;
}

static float *weights(void)
{
    float *values = malloc(N * sizeof *values);
    for (int i = 0; i < N; i++)
        values[i] = (float)(i * 7919 % 1000003) - 500000;
    return values;
}

/* Makes pairs of the halves of each head, as converters to GGUF do. */
static float *paired(const float *values)
{
    float *out = malloc(N * sizeof *out);
    for (int head = 0; head < HEADS; head++)
        for (int i = 0; i < HALF; i++)
            for (int half = 0; half < 2; half++)
                memcpy(out + ((head * HALF + i) * 2 + half) * ROW, values + ((head * 2 + half) * HALF + i) * ROW,
                       ROW * sizeof *out);
    return out;
}

static struct pack *base_of(const float *values)
{
    return pack_of((struct pack_writer_tensor){.length = N * sizeof *values,
                                               .coding = coding_by_name("rotated-32"),
                                               .dtype = &f32_dtype},
                   values, NULL, NULL);
}

static struct pack *swapped_of(const float *pairs, struct pack *base, pack_find *find_base, void *context)
{
    return pack_of(
        (struct pack_writer_tensor){
            .length = N * sizeof *pairs,
            .coding = coding_by_name("cast-F32"),
            .input = {.pack = base, .dtype = &f32_dtype, .swap = {2, HALF, ROW}},
        },
        pairs, find_base, context);
}

static void reads_swapped_rows(void)
{
    struct error error;
    float *values = weights(), *pairs = paired(values), *got = malloc(N * sizeof *got);
    const uint64_t n_bytes = N * sizeof *values;
    struct pack *base = base_of(values), *pack = swapped_of(pairs, base, find, base);
    CHECK(source_size(pack_blob(pack)) < n_bytes / 1000);
    CHECK(pack_read(pack, 0, 0, n_bytes, got, &error) && memcmp(got, pairs, n_bytes) == 0);
    for (uint64_t at = 0, n = 1; at + n < n_bytes; at += n, n = n * 3 % 100003)
        if (!pack_read(pack, 0, at, n, got, &error) || memcmp(got, (const char *)pairs + at, n) != 0)
            CHECK_NAMED(false, "a part that is read alone");
    pack_close(pack);
    pack_close(base);
    free(values);
    free(pairs);
    free(got);
}

static bool find_held(void *context, const struct digest *digest, struct pack **ret_pack, struct error *error)
{
    *ret_pack = *(struct pack **)context;
    return true;
}

/* Reading takes no byte of a blob that pack_ranges() did not name, and it does not name all of them. */
static void names_what_it_reads(void)
{
    struct error error;
    float *values = weights(), *pairs = paired(values), *got = malloc(N * sizeof *got);
    const uint64_t n_bytes = N * sizeof *values;
    size_t least = SIZE_MAX;
    for (uint64_t at = 0, n = 1; at + n < n_bytes; at += n_bytes / 19, n = n * 5 % 100003) {
        struct pack *written = base_of(values), *base = written, *pack = swapped_of(pairs, base, find_held, &base);
        size_t n_named = 0;
        base = base_of(values); /* nothing of it is in the cache */
        CHECK(pack_ranges(pack, 0, at, n, name_range, &n_named, &error));
        CHECK(pack_read(pack, 0, at, n, got, &error) && memcmp(got, (const char *)pairs + at, n) == 0);
        least = n_named < least ? n_named : least;
        pack_close(pack);
        pack_close(base);
        pack_close(written);
    }
    CHECK(least < n_bytes / 2);
    free(values);
    free(pairs);
    free(got);
}

/* Opens a pack of the line for a tensor in one chunk of no bytes; the caller closes it. */
static bool opens(const char *line, struct error *error)
{
    struct buffer text = {0}, frame = {0}, out = {0};
    buffer_append_text(&text, line);
    lines_append_frame(&text, &frame);
    buffer_append_le(&out, PACK_SKIPPABLE, 4);
    buffer_append_le(&out, frame.length + 4 + PACK_FOOTER, 4);
    buffer_append(&out, frame.bytes, frame.length);
    buffer_append_le(&out, 0, 4);
    buffer_append_le(&out, frame.length, 8);
    buffer_append_le(&out, 1, 8);
    buffer_append(&out, PACK_MAGIC, 8);
    struct pack *pack = pack_open(source_of(&out), find, NULL, error);
    pack_close(pack);
    buffer_free(&text);
    buffer_free(&frame);
    buffer_free(&out);
    return pack != NULL;
}

static void refuses_other_orders(void)
{
    static const char *const wrong[] = {"[0,2,32]",   "[2,0,32]",    "[2,2,0]",
                                        "[2,2,31]",   "[2,2,33]",    "[2,3,32]",
                                        "[2,2]",      "[-2,2,32]",   "[2,9223372036854775808,64]",
                                        "\"2,2,32\"", "[1,1,1e300]", "[4294967296,4294967296,4294967296]"};
    static const char hash[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const char *form = "{\"length\":4096,\"sha256\":\"%s\",\"coding\":\"cast-F32\",\"input\":[\"%s\",0,\"F32\"],"
                       "\"swap\":%s}\n";
    char line[1000];
    struct error error = {""};
    snprintf(line, sizeof line, form, hash, hash, "[2,2,32]");
    CHECK(opens(line, &error));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(line, sizeof line, form, hash, hash, wrong[i]);
        CHECK(!opens(line, &error) && strstr(error.message, "swap") != NULL);
    }
}

int main(void)
{
    struct pool *pool = pool_new(4);
    pool_use(pool);
    reads_swapped_rows();
    names_what_it_reads();
    refuses_other_orders();
    pool_use(NULL);
    pool_free(pool);
    return check_done();
}
