/* Every coding gives its chunks back, of all lengths and kinds of values; its frames are what libzstd and the plainest
 * loops say; and frames that were changed are refused. */
#include "sources/archive/coding.h"

#include "base/arena.h"
#include "base/checked.h"
#include "tests/unit/check.h"

#include <math.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

enum { ROOM = 64, GUARD = 0xA5 };

static uint64_t state = 1;

static uint32_t random_bits(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 32);
}

/* The kinds of bytes: byte `i` of a tensor. */

static unsigned char any_byte(size_t i)
{
    return (unsigned char)(random_bits() >> 24);
}

static unsigned char constant(size_t i)
{
    return 0x3F;
}

static unsigned char all_ones(size_t i)
{
    return 0xFF;
}

static unsigned char few_values(size_t i)
{
    return (unsigned char)(random_bits() % 4 * random_bits() % 5);
}

static unsigned char counts(size_t i)
{
    return (unsigned char)(i / 4 >> 8 * (i % 4));
}

/* BF16 and the upper halves of F32: noise below, few exponents above, now and then a NaN or an infinity. */
static unsigned char like_weights(size_t i)
{
    if (random_bits() % 100 == 0)
        return 0xFF;
    return (unsigned char)(i % 2 == 0 ? random_bits() >> 24 : 0x3C + random_bits() % 2 * 0x80 + random_bits() % 3);
}

static unsigned char (*const kinds[])(size_t i) = {any_byte, constant, all_ones, few_values, counts, like_weights};
static const char *const kind_names[] = {"any bytes",  "a constant",         "NaNs",
                                         "few values", "numbers that count", "weights"};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* A tensor that was coded, and its base. */
struct tensor {
    const struct coding *coding;
    struct coder *coder;
    struct coding_input input;
    unsigned char *bytes, *base, *frames, *decoded;
    size_t n_bytes;
};

/* The values that block types are made from are those of a base in F32. */
static float waves[2 * CODING_CHUNK];

static bool read_base(void *context, uint64_t first, size_t count, void *out, struct error *error)
{
    const struct tensor *tensor = context;
    if (tensor->coding->input == CODING_VALUES) {
        memcpy(out, waves + first, count * sizeof *waves);
        return true;
    }
    memcpy(out, tensor->base + first * tensor->coding->unit_bytes, count * tensor->coding->unit_bytes);
    return true;
}

static struct tensor tensor_new(const struct coding *coding, struct coder *coder, size_t n_units, size_t kind)
{
    size_t n = n_units * coding->unit_bytes, whole = coding_bytes(coding, CODING_CHUNK);
    struct tensor tensor = {.coding = coding, .coder = coder, .n_bytes = n};
    tensor.bytes = memory_alloc(n + 1);
    tensor.base = memory_alloc(n + 1);
    tensor.decoded = memory_alloc(n + ROOM);
    tensor.frames = memory_alloc(coding_bound(coding, whole) + ROOM);
    memset(tensor.decoded, GUARD, n + ROOM);
    for (size_t i = 0; i < n; i++) {
        tensor.bytes[i] = kinds[kind](i);
        tensor.base[i] = (unsigned char)(tensor.bytes[i] + (random_bits() % 8 == 0 ? random_bits() % 5 : 0));
    }
    return tensor;
}

static void tensor_free(const struct tensor *tensor)
{
    free(tensor->bytes);
    free(tensor->base);
    free(tensor->decoded);
    free(tensor->frames);
}

/* Reports whether frames pass as those of their chunk, and as no others'. */
static bool is_checked(const struct tensor *tensor, const struct coding_chunk *chunk, size_t length,
                       unsigned char *bytes, unsigned char *room)
{
    struct error unsaid;
    if (!coding_check(tensor->coding, tensor->coder, chunk, tensor->frames, length, bytes, room, &unsaid))
        return false;
    bytes[chunk->n_bytes - 1] ^= 1;
    bool passes = coding_check(tensor->coding, tensor->coder, chunk, tensor->frames, length, bytes, room, &unsaid);
    bytes[chunk->n_bytes - 1] ^= 1;
    return !passes;
}

static bool chunk_returns(struct tensor *tensor, size_t at)
{
    enum { LARGE = 1 << 14 };
    struct error error;
    size_t whole = coding_bytes(tensor->coding, CODING_CHUNK), left = tensor->n_bytes - at,
           n = left < whole ? left : whole;
    const struct coding_chunk chunk = {
        .first = at / tensor->coding->unit_bytes * tensor->coding->unit_values, .n_bytes = n, .input = &tensor->input};
    size_t length, bound = coding_bound(tensor->coding, n);
    memset(tensor->frames + bound, GUARD, ROOM);
    if (!coding_encode(tensor->coding, tensor->coder, &chunk, tensor->bytes + at, tensor->frames, &length, &error) ||
        !coding_decode(tensor->coding, tensor->coder, &chunk, tensor->frames, length, tensor->decoded + at, &error)) {
        fprintf(stderr, "%s\n", error.message);
        return false;
    }
    for (size_t i = 0; i < ROOM; i++)
        if (tensor->frames[bound + i] != GUARD || tensor->decoded[at + n + i] != GUARD)
            return false;
    return length <= bound && memcmp(tensor->decoded + at, tensor->bytes + at, n) == 0 &&
           (n == 0 || n > LARGE || is_checked(tensor, &chunk, length, tensor->bytes + at, tensor->decoded + at));
}

static bool tensor_returns(const struct coding *coding, struct coder *coder, size_t n_units, size_t kind)
{
    struct tensor tensor = tensor_new(coding, coder, n_units, kind);
    tensor.input = (struct coding_input){read_base, &tensor};
    bool returns = true;
    for (size_t at = 0; returns && (at == 0 || at < tensor.n_bytes); at += coding_bytes(coding, CODING_CHUNK))
        returns = chunk_returns(&tensor, at);
    tensor_free(&tensor);
    return returns;
}

static void check_type(const struct coding *coding)
{
    const struct dtype *dtype = coding->dtype;
    if (dtype == NULL)
        return;
    if (strchr(coding->name, '-') == strrchr(coding->name, '-')) {
        CHECK_TEXT(strchr(coding->name, '-') + 1, dtype->name);
        CHECK(coding->unit_bytes == dtype->block_bytes && coding->unit_values == dtype->block_elements);
    } else {
        CHECK(dtype->block_elements == 1 && coding->unit_bytes % dtype->block_bytes == 0);
        CHECK(CODING_CHUNK % coding->unit_values == 0);
    }
}

static void check_lengths(const struct coding *coding, struct coder *coder)
{
    size_t whole = coding_bytes(coding, CODING_CHUNK) / coding->unit_bytes;
    const size_t lengths[] = {0, 1, 2, 33, whole - 1, whole, whole + 1};
    char name[128];
    const size_t first_kind = coding->form == NULL ? 0 : KINDS - 1; /* codings of groups share all their code */
    for (size_t kind = first_kind; kind < KINDS; kind++) {
        bool returns = true;
        for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
            returns &= tensor_returns(coding, coder, lengths[i], kind);
        snprintf(name, sizeof name, "%s: %s come back", coding->name, kind_names[kind]);
        CHECK_NAMED(returns, name);
    }
}

/* Chunks that were changed: cut, longer, or with a bit that is another one. None may be taken for other bytes. */
static void check_damage(const struct coding *coding, struct coder *coder)
{
    struct error error;
    char name[128];
    struct tensor tensor = tensor_new(coding, coder, 1024 / coding->unit_values, KINDS - 1);
    tensor.input = (struct coding_input){read_base, &tensor};
    const struct coding_chunk chunk = {.n_bytes = tensor.n_bytes, .input = &tensor.input};
    size_t length;
    coding_encode(coding, coder, &chunk, tensor.bytes, tensor.frames, &length, &error);
    bool refused = true;
    for (size_t cut = 0; cut < length; cut += 1 + length / 64)
        refused &= !coding_decode(coding, coder, &chunk, tensor.frames, cut, tensor.decoded, &error);
    tensor.frames[length] = 0;
    refused &= !coding_decode(coding, coder, &chunk, tensor.frames, length + 1, tensor.decoded, &error);
    for (size_t i = 0; i < 8 * length; i += 1 + random_bits() % (length / 16)) {
        tensor.frames[i / 8] ^= (unsigned char)(1 << i % 8);
        if (coding_decode(coding, coder, &chunk, tensor.frames, length, tensor.decoded, &error))
            refused &= memcmp(tensor.decoded, tensor.bytes, tensor.n_bytes) == 0;
        tensor.frames[i / 8] ^= (unsigned char)(1 << i % 8);
    }
    const struct coding_chunk shorter = {.n_bytes = tensor.n_bytes - coding->unit_bytes, .input = &tensor.input};
    refused &= !coding_decode(coding, coder, &shorter, tensor.frames, length, tensor.decoded, &error);
    const struct coding_chunk longer = {.n_bytes = coding_bytes(coding, CODING_CHUNK) + coding->unit_bytes};
    refused &= !coding_decode(coding, coder, &longer, tensor.frames, length, tensor.decoded, &error);
    for (size_t i = 0; i < ROOM; i++)
        refused &= tensor.decoded[tensor.n_bytes + i] == GUARD;
    snprintf(name, sizeof name, "%s: damage is refused", coding->name);
    CHECK_NAMED(refused, name);
    tensor_free(&tensor);
}

/* libzstd finds the planes in the frames, one after the other. */
static void check_planes(const char *coding_name, unsigned width, unsigned rotation)
{
    enum { N = 5000 };
    static unsigned char bytes[8 * N], frames[16 * N], content[8 * N];
    const struct coding *coding = coding_by_name(coding_name);
    struct coder *coder = coder_new();
    struct error error;
    const struct coding_chunk chunk = {.n_bytes = (size_t)N * width};
    size_t length = 0;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = like_weights(i);
    coding_encode(coding, coder, &chunk, bytes, frames, &length, &error);
    bool equal = ZSTD_decompress(content, sizeof content, frames, length) == (size_t)N * width;
    for (size_t i = 0; i < N; i++) {
        uint64_t value = read_le(bytes + i * width, width), top = value >> (8 * width - 1) & 1;
        value = rotation == 0 ? value : value << 1 | top;
        for (unsigned j = 0; j < width; j++)
            equal &= content[i + (size_t)j * N] == (unsigned char)(value >> 8 * j);
    }
    CHECK_NAMED(equal, coding_name);
    coder_free(coder);
}

/* Frames of zstd that the format does not allow. */
static void check_frames(void)
{
    enum { N = 100 };
    unsigned char bytes[N] = {1, 2, 3}, decoded[N + 1];
    struct error error;
    struct coder *coder = coder_new();
    const struct coding *raw = coding_by_name("raw");
    const struct coding_chunk chunk = {.n_bytes = N}, huge = {.n_bytes = CODING_CHUNK};
    unsigned char frames[512];
    size_t length = ZSTD_compress(frames, sizeof frames, bytes, N, 1);
    CHECK(!coding_decode(raw, coder, &chunk, frames, length, decoded, &error));
    CHECK_TEXT(error.message, "a frame has no checksum");
    ZSTD_CCtx *compressor = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(compressor, ZSTD_c_checksumFlag, 1);
    ZSTD_CCtx_setParameter(compressor, ZSTD_c_contentSizeFlag, 0);
    length = ZSTD_compress2(compressor, frames, sizeof frames, bytes, N);
    CHECK(!coding_decode(raw, coder, &chunk, frames, length, decoded, &error));
    CHECK_TEXT(error.message, "a frame does not contain the 100 bytes that belong there");
    ZSTD_CCtx_setParameter(compressor, ZSTD_c_contentSizeFlag, 1);
    length = ZSTD_compress2(compressor, frames, sizeof frames, bytes, N);
    CHECK(coding_decode(raw, coder, &chunk, frames, length, decoded, &error));
    CHECK(!coding_decode(raw, coder, &huge, frames, length, decoded, &error));
    const unsigned char skipped[] = {0x50, 0x2A, 0x4D, 0x18, 0, 0, 0, 0};
    CHECK(!coding_decode(raw, coder, &chunk, skipped, sizeof skipped, decoded, &error));
    CHECK_TEXT(error.message, "no zstd frame begins where one should");
    CHECK(!coding_decode(raw, coder, &chunk, NULL, 0, decoded, &error));
    CHECK_TEXT(error.message, "a frame is missing");
    ZSTD_freeCCtx(compressor);
    coder_free(coder);
}

int main(void)
{
    struct coder *coder = coder_new();
    const struct coding *coding;
    for (size_t i = 0; i < sizeof waves / sizeof *waves; i++)
        waves[i] = sinf((float)i) * 0.1f;
    for (size_t i = 0; (coding = coding_at(i)) != NULL; i++) {
        CHECK(coding_by_name(coding->name) == coding);
        check_type(coding);
        check_lengths(coding, coder);
        check_damage(coding, coder);
    }
    CHECK(coding_by_name("planes-24") == NULL);
    coder_free(coder);
    check_planes("planes-16", 2, 0);
    check_planes("planes-64", 8, 0);
    check_planes("rotated-16", 2, 1);
    check_planes("rotated-32", 4, 1);
    check_planes("rotated-64", 8, 1);
    check_frames();
    return check_done();
}
