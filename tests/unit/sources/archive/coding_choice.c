/* The coding of tensors whose best one is known by how they were made. */
#include "sources/archive/coding_choice.h"

#include "base/arena.h"
#include "base/little_endian.h"
#include "quant/blocks/f16.h"
#include "tests/unit/check.h"

#include <stdlib.h>

enum { N = 3 * CODING_CHUNK + 256 };

static uint64_t state = 11;
static float weights[N];

static uint32_t random_bits(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 32);
}

static float bell(void)
{
    float sum = 0;
    for (int i = 0; i < 4; i++)
        sum += (float)(int32_t)random_bits() * 0x1p-31f;
    return sum * 0.02f;
}

static bool read_bytes(void *context, uint64_t offset, size_t length, void *out, struct error *error)
{
    memcpy(out, *(const unsigned char **)context + offset, length);
    return true;
}

static bool read_halves(void *context, uint64_t first, size_t count, void *out, struct error *error)
{
    memcpy(out, (const unsigned char *)context + 2 * first, 2 * count);
    return true;
}

static bool read_values(void *context, uint64_t first, size_t count, void *out, struct error *error)
{
    memcpy(out, (const float *)context + first, count * sizeof(float));
    return true;
}

static bool fail(void *context, uint64_t first, size_t count, void *out, struct error *error)
{
    return error_set(error, "no such tensor");
}

/* Returns the name of the coding that is chosen with these offers, and its input's context in *ret_context. */
static const char *chosen(const char *dtype, const void *bytes, uint64_t n_bytes, const struct coding_offer *offers,
                          size_t n, void **ret_context)
{
    static struct error error;
    struct coder *coder = coder_new();
    struct coding_offer choice;
    const unsigned char *from = bytes;
    const struct coding_tensor tensor = {dtype == NULL ? NULL : dtype_by_name(dtype), n_bytes, read_bytes, &from};
    bool done = coding_choose(coder, &tensor, offers, n, &choice, &error);
    coder_free(coder);
    if (ret_context != NULL)
        *ret_context = choice.input.context;
    return done ? choice.coding->name : error.message;
}

/* Encodes the weights, each times `factor`. */
static unsigned char *encoded(const char *dtype_name, float factor)
{
    const struct dtype *dtype = dtype_by_name(dtype_name);
    static float scaled[N];
    unsigned char *bytes = memory_alloc(dtype_bytes(dtype, N));
    for (size_t i = 0; i < N; i++)
        scaled[i] = weights[i] * (factor + (float)(i % 3) * (factor - 1));
    dtype_kernels(dtype).encode(scaled, bytes, N / dtype->block_elements);
    return bytes;
}

static void check_alone(void)
{
    static const struct {
        const char *dtype, *coding;
    } rows[] = {{"BF16", "rotated-16"}, {"F32", "rotated-32"}, {"Q4_0", "fields-Q4_0"}, {"Q8_0", "fields-Q8_0"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        unsigned char *bytes = encoded(rows[i].dtype, 1);
        CHECK_TEXT(chosen(rows[i].dtype, bytes, dtype_bytes(dtype_by_name(rows[i].dtype), N), NULL, 0, NULL),
                   rows[i].coding);
        free(bytes);
    }
    static unsigned char bytes[8 * 1000 + 1];
    for (size_t i = 0; i < sizeof bytes; i++) /* repeats itself */
        bytes[i] = i < 804 ? (unsigned char)(random_bits() >> 24) : bytes[i - 804];
    CHECK_TEXT(chosen("I64", bytes, 8000, NULL, 0, NULL), "zstd");
    CHECK_TEXT(chosen("F32", bytes, 8001, NULL, 0, NULL), "raw");
    CHECK_TEXT(chosen(NULL, bytes, 8001, NULL, 0, NULL), "zstd");
    CHECK_TEXT(chosen("F32", NULL, 0, NULL, 0, NULL), "raw");
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(random_bits() >> 24);
    CHECK_TEXT(chosen("F32", bytes, 8000, NULL, 0, NULL), "raw");
    CHECK_TEXT(chosen(NULL, bytes, 8001, NULL, 0, NULL), "raw");
}

/* Of two bases the nearer one; none if it is no base; and an unreadable one is no failure. */
static void check_difference(void)
{
    unsigned char *bytes = encoded("BF16", 1), *near = encoded("BF16", 1.002f), *far = encoded("BF16", 1.1f);
    unsigned char *other = memory_alloc(2 * N);
    void *context;
    for (size_t i = 0; i < 2 * N; i += 2)
        memcpy(other + i, bytes + 2 * N - 2 - i, 2);
    const struct coding *difference = coding_with(CODING_BASE, dtype_by_name("BF16"));
    const struct coding_offer offers[] = {
        {difference, {fail, NULL}}, {difference, {read_halves, far}}, {difference, {read_halves, near}}};
    const struct coding_offer unrelated = {difference, {read_halves, other}};
    CHECK_TEXT(chosen("BF16", bytes, 2 * N, offers, 3, &context), "difference-16");
    CHECK(context == near);
    CHECK_TEXT(chosen("BF16", bytes, 2 * N, &unrelated, 1, NULL), "rotated-16");
    CHECK_TEXT(chosen("F32", bytes, 2 * N, &offers[2], 1, NULL), "rotated-32");
    CHECK(coding_with(CODING_BASE, dtype_by_name("I16")) == NULL);
    free(bytes);
    free(near);
    free(far);
    free(other);
}

/* Of a tensor that was quantized from the weights as F16, and of one of other weights. */
static void check_codes(void)
{
    static float rounded[N], others[N];
    const struct dtype *dtype = dtype_by_name("Q4_K");
    unsigned char *bytes = memory_alloc(dtype_bytes(dtype, N));
    void *context;
    for (size_t i = 0; i < N; i++) {
        rounded[i] = f16_to_f32(f16_from_f32(weights[i]));
        others[i] = bell();
    }
    dtype_kernels(dtype).encode(rounded, bytes, N / dtype->block_elements);
    const struct coding *codes = coding_with(CODING_VALUES, dtype);
    const struct coding_offer offers[] = {
        {codes, {read_values, others}}, {codes, {read_values, weights}}, {codes, {read_values, rounded}}};
    CHECK_TEXT(chosen("Q4_K", bytes, dtype_bytes(dtype, N), offers, 3, &context), "codes-Q4_K");
    CHECK(context == rounded);
    CHECK_TEXT(chosen("Q4_K", bytes, dtype_bytes(dtype, N), offers, 1, NULL), "fields-Q4_K");
    CHECK(coding_with(CODING_VALUES, dtype_by_name("IQ2_S")) == NULL);
    free(bytes);
}

int main(void)
{
    for (size_t i = 0; i < N; i++)
        weights[i] = bell();
    check_alone();
    check_difference();
    check_codes();
    return check_done();
}
