/* Every block format at every level of this processor: encoding against ggml's blocks, decoding against gguf-py's
 * numbers and, where it has none, ggml's (tests/data/make_blocks.py). */
#include "quant/views/convert.h"

#include "tests/unit/check.h"
#include "tests/unit/quant/data.h"

#include <ctype.h>
#include <stdlib.h>

enum { ELEMENTS = 2560, COLUMNS = 1280, DECODED = 512 };

static void check_encode(struct encoding encoding, const char *name, const float *values)
{
    static unsigned char expected[ELEMENTS * 4], made[ELEMENTS * 4];
    size_t length = dtype_bytes(encoding.dtype, ELEMENTS);
    if (!CHECK_NAMED(read_data("quant", name, "blocks", expected, sizeof expected) == length, name))
        return;
    for (int level = CPU_PORTABLE; level < CPU_LEVELS; level++) {
        if (!cpu_runs((enum cpu_level)level))
            continue;
        char what[64];
        snprintf(what, sizeof what, "%s encodes as the reference, %s", name, cpu_level_name((enum cpu_level)level));
        memset(made, 0xa5, sizeof made);
        encoding_kernels_at(encoding, (enum cpu_level)level)
            .encode(values, made, ELEMENTS / encoding.dtype->block_elements);
        CHECK_NAMED(memcmp(made, expected, length) == 0, what);
    }
}

/* Rows by the importance of their columns, all at once and in parts, by the kernels of this processor. */
static void check_weighted(const struct dtype *dtype, const char *name, const float *values, const float *importance)
{
    static unsigned char expected[ELEMENTS * 4], made[ELEMENTS * 4];
    struct encoding encoding = {.dtype = dtype, .importance = importance};
    struct arena *arena = arena_new();
    struct error error;
    const struct view *view = view_numbers(arena, 2, (uint64_t[]){ELEMENTS / COLUMNS, COLUMNS}, values);
    uint64_t length = dtype_bytes(dtype, ELEMENTS), n_blocks = ELEMENTS / dtype->block_elements;
    if (CHECK_NAMED(read_data("quant", name, "weighted.blocks", expected, sizeof expected) == length, name)) {
        CHECK_NAMED(convert_read(view, encoding, 0, n_blocks, made, &error) && memcmp(made, expected, length) == 0,
                    name);
        memset(made, 0, sizeof made);
        bool read = true;
        for (uint64_t i = 0; i < n_blocks; i += 3)
            read &= convert_read(view, encoding, i, n_blocks - i < 3 ? n_blocks - i : 3, made + i * dtype->block_bytes,
                                 &error);
        CHECK_NAMED(read && memcmp(made, expected, length) == 0, name);
    }
    arena_free(arena);
}

/* The rows of each expert go by its own importance. */
static void check_experts(const struct dtype *dtype, const float *values)
{
    static unsigned char made[ELEMENTS * 4], expected[ELEMENTS * 4];
    static float columns[ELEMENTS];
    struct arena *arena = arena_new();
    struct error error;
    const struct view *experts = view_numbers(arena, 3, (uint64_t[]){2, 1, COLUMNS}, values);
    for (int i = 0; i < ELEMENTS; i++)
        columns[i] = (float)(i * 7 % 31 + i / COLUMNS);
    uint64_t n_blocks = COLUMNS / dtype->block_elements, row = n_blocks * dtype->block_bytes;
    CHECK(
        convert_read(experts, (struct encoding){.dtype = dtype, .importance = columns}, 0, 2 * n_blocks, made, &error));
    for (uint64_t i = 0; i < 2; i++) {
        const struct encoding one = {.dtype = dtype, .importance = columns + i * COLUMNS};
        const struct view *expert = view_numbers(arena, 2, (uint64_t[]){1, COLUMNS}, values + i * COLUMNS);
        CHECK(convert_read(expert, one, 0, n_blocks, expected + i * row, &error));
    }
    CHECK_NAMED(memcmp(made, expected, 2 * row) == 0, dtype->name);
    arena_free(arena);
}

/* Blocks of IQ1_M as llama.cpp encodes numbers made of a hash, with weights or not. Other versions search
 * otherwise. */
static const struct {
    uint64_t seed;
    bool weighted;
    const char *hex;
} iq1_m_vectors[] = {
    {1, false,
     "acacd1a319a8ce3153388319b5edea08421415f8ed667af8c205e2cc"
     "cdef7f37825eea03c96634412e880388cae23622bbb9a4672eb77715"},
    {2, false,
     "1ad7373c00000000ec06f0050dda3df2660dd07c2c781cb8d11b8ecf"
     "6605dfccdac30000e04084b1c485ddcac683cf3d2cf03559e6abee1b"},
    {3, false,
     "15568ea2295df13546f8a9a359d344b8a2d76974cb5a3a8094da670a"
     "dcb826d3e8a998bffedddd0e7d2cfdbbf89cc168f6adafed75fdbf1f"},
    {1, true,
     "ac85d1ff19a8ce03f4fc8339b5ed008cfe14c8f886667af8c20541f3"
     "cdf57f668a5eeabb38e634c12d8a0c88caebb6d272d7a47725b71f15"},
    {2, true,
     "dad7373c00000000ec302b050dda3df260eed07c2c781ca8a51b8fcf"
     "66e2dfccd1cb0000e84084b10d85ddcacf832f3d23e02c49a3abaf19"},
    {3, true,
     "155678a029772a3533f8a9a6c1d344b8b1d769a4fb6c3a8094dabec8"
     "dcb81dd3e8a988b4f6eddb0efe1c6ebbf802c168256b1de92d0b3d2b"},
};

static void hashed_input(uint64_t seed, float *values, float *weights)
{
    for (uint64_t i = 0; i < 256; i++) {
        uint64_t h = ((seed << 32) + i + 1) * 0x9e3779b97f4a7c15;
        h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9;
        h = (h ^ h >> 27) * 0x94d049bb133111eb;
        h ^= h >> 31;
        int a = (int)(h & 0xffff) - 32768, b = (int)(h >> 16 & 0xffff) - 32768;
        values[i] = seed == 3 ? (float)(a >> 12) / 64 : (float)a * (float)b * 0x1p-34f;
        if (seed == 2 && i / 32 == 1)
            values[i] = 0;
        weights[i] = (float)((h >> 32 & 0xffff) + 1) * 0x1p-16f;
    }
}

static void check_iq1_m(const struct dtype *dtype)
{
    float values[256], weights[256];
    unsigned char made[64];
    for (size_t i = 0; i < sizeof iq1_m_vectors / sizeof *iq1_m_vectors; i++)
        for (int level = CPU_PORTABLE; level < CPU_LEVELS; level++) {
            if (!cpu_runs((enum cpu_level)level))
                continue;
            char hex[sizeof made * 2 + 1];
            struct kernels kernels = dtype_kernels_at(dtype, (enum cpu_level)level);
            hashed_input(iq1_m_vectors[i].seed, values, weights);
            if (iq1_m_vectors[i].weighted)
                kernels.encode_weighted(values, weights, NULL, made, 1);
            else
                kernels.encode(values, made, 1);
            for (size_t j = 0; j < dtype->block_bytes; j++)
                snprintf(hex + 2 * j, 3, "%02x", made[j]);
            CHECK_TEXT(hex, iq1_m_vectors[i].hex);
        }
}

/* Formats that are only encoded with an importance have no other blocks. */
static void check_decode(const struct dtype *dtype, const char *name)
{
    static unsigned char blocks[ELEMENTS * 4];
    static float expected[DECODED], decoded[DECODED];
    if (read_data("quant", name, "blocks", blocks, sizeof blocks) == 0)
        read_data("quant", name, "weighted.blocks", blocks, sizeof blocks);
    if (!CHECK_NAMED(read_data("quant", name, "f32", expected, sizeof expected) == sizeof expected, name))
        return;
    for (int level = CPU_PORTABLE; level < CPU_LEVELS; level++) {
        if (!cpu_runs((enum cpu_level)level))
            continue;
        char what[64];
        snprintf(what, sizeof what, "%s decodes as the reference, %s", dtype->name,
                 cpu_level_name((enum cpu_level)level));
        dtype_kernels_at(dtype, (enum cpu_level)level).decode(blocks, decoded, DECODED / dtype->block_elements);
        CHECK_NAMED(memcmp(decoded, expected, sizeof decoded) == 0, what);
    }
}

/* The name of the dtype's files. */
static void file_name(const struct dtype *dtype, char name[16])
{
    size_t i = 0;
    for (; dtype->name[i] != '\0' && i < 15; i++)
        name[i] = (char)tolower((unsigned char)dtype->name[i]);
    name[i] = '\0';
}

int main(void)
{
    static float values[ELEMENTS], columns[COLUMNS];
    CHECK(read_data("quant", "values", "f32", values, sizeof values) == sizeof values);
    CHECK(read_data("quant", "importance", "f32", columns, sizeof columns) == sizeof columns);
    for (size_t i = 0; dtypes[i] != NULL; i++) {
        char name[16];
        if (dtypes[i]->kind != DTYPE_BLOCK)
            continue;
        file_name(dtypes[i], name);
        check_decode(dtypes[i], name);
        if (strcmp(name, "iq1_m") == 0) {
            check_iq1_m(dtypes[i]);
            continue;
        }
        if (dtypes[i]->kernels[CPU_PORTABLE].encode != NULL)
            check_encode(encoding_of(dtypes[i]), name, values);
        if (dtypes[i]->kernels[CPU_PORTABLE].encode_weighted != NULL)
            check_weighted(dtypes[i], name, values, columns);
    }
    check_experts(&q4_0_dtype, values);
    check_experts(dtype_by_name("Q4_K"), values);
    check_encode((struct encoding){.dtype = &q4_0_dtype, .rule = &q4_0_absmax7_rule}, "q4_0_absmax7", values);
    return check_done();
}
