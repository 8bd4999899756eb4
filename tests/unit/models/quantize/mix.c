/* tests/data/gguf/mixes.txt holds models and the types that llama-quantize gives their tensors: see
 * tests/data/make_mixes.py. */
#include "models/quantize/mix.h"

#include "base/arena.h"
#include "tests/unit/check.h"

#include <stdlib.h>

enum { MAX_WORDS = 32, MAX_TENSORS = 1024, MAX_RANK = 4 };

static struct imatrix_entry some_entry = {.name = "blk.0.attn_q.weight", .finite = true};
static const struct imatrix some_imatrix = {.entries = &some_entry, .n_entries = 1};

/* "Q4_K_M,pure,tensor-type=attn_v=q8_0"; `tensor_types` has room for all of them. Returns the mix. */
static const struct mix *read_mix(char *text, struct quantize_options *options, const char **tensor_types)
{
    struct error error;
    const struct mix *mix = mix_find(strsep(&text, ","));
    *options = (struct quantize_options){.tensor_types = tensor_types};
    while (text != NULL) {
        char *value = strsep(&text, ","), *name = strsep(&value, "=");
        options->pure |= strcmp(name, "pure") == 0;
        options->leave_output_tensor |= strcmp(name, "leave-output-tensor") == 0;
        if (strcmp(name, "imatrix") == 0)
            options->imatrix = &some_imatrix;
        if (strcmp(name, "output-tensor-type") == 0)
            options->output_tensor_type = quantize_type(value, &error);
        if (strcmp(name, "token-embedding-type") == 0)
            options->token_embedding_type = quantize_type(value, &error);
        if (strcmp(name, "tensor-type") == 0)
            *tensor_types++ = value;
    }
    *tensor_types = NULL;
    return mix;
}

static size_t split(char *line, char **words)
{
    size_t n_words = 0;
    while (line != NULL && n_words < MAX_WORDS)
        words[n_words++] = strsep(&line, " \n");
    return n_words - (*words[n_words - 1] == 0);
}

/* "64x3" is GGUF's order: a row has 64 elements. */
static struct tensor *read_tensor(struct arena *arena, char *name, char *dims)
{
    struct tensor *tensor = arena_alloc(arena, sizeof *tensor);
    uint64_t *shape = arena_array(arena, MAX_RANK, sizeof *shape), *first = shape + MAX_RANK;
    for (char *dim = strsep(&dims, "x"); dim != NULL && first > shape; dim = strsep(&dims, "x"))
        *--first = strtoull(dim, NULL, 10);
    *tensor = (struct tensor){.name = name, .rank = (uint8_t)(shape + MAX_RANK - first), .shape = first};
    return tensor;
}

struct model {
    char line[256];
    struct mix_model model;
    char *mixes[MAX_WORDS];
    size_t n_mixes, n_tensors;
    const struct tensor *tensors[MAX_TENSORS];
    char *types[MAX_TENSORS][MAX_WORDS];
};

static void check_mix(struct model *m, size_t column)
{
    char name[512];
    snprintf(name, sizeof name, "%s %s", m->line, m->mixes[column]);
    const char *tensor_types[MAX_WORDS];
    struct quantize_options options;
    const struct mix *mix = read_mix(m->mixes[column], &options, tensor_types);
    const struct dtype *types[MAX_TENSORS];
    struct mix_traits traits[MAX_TENSORS];
    for (size_t i = 0; i < m->n_tensors; i++) {
        types[i] = &f32_dtype;
        traits[i] = mix_traits(m->tensors[i]);
    }
    struct error error;
    if (mix == NULL || !mix_choose_types(mix, &options, &m->model, m->tensors, traits, types, m->n_tensors, &error)) {
        CHECK_NAMED(false, name);
        return;
    }
    bool same = true;
    for (size_t i = 0; i < m->n_tensors; i++) {
        if (strcmp(types[i]->name, m->types[i][column]) != 0) {
            fprintf(stderr, "  %s is %s, expected %s\n", m->tensors[i]->name, types[i]->name, m->types[i][column]);
            same = false;
        }
    }
    CHECK_NAMED(same, name);
}

static void check_model(struct model *m)
{
    for (size_t i = 0; i < m->n_mixes; i++)
        check_mix(m, i);
}

/* Reads the file line by line; a model is checked when the next one begins. */
static void from_the_tool(struct arena *arena)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/gguf/mixes.txt", getenv("WFS_TEST_DATA"));
    FILE *file = fopen(path, "r");
    if (!CHECK(file != NULL))
        return;
    struct model *m = arena_alloc(arena, sizeof *m);
    char *line = NULL, *words[MAX_WORDS];
    size_t capacity = 0;
    while (getline(&line, &capacity, file) > 0) {
        size_t n_words = split(arena_strdup(arena, line), words);
        if (strcmp(words[0], "model") == 0) {
            check_model(m);
            *m = (struct model){.model = {words[1], strtoull(words[2], NULL, 10), strtoull(words[3], NULL, 10),
                                          strtoull(words[4], NULL, 10), strtoull(words[5], NULL, 10)}};
            snprintf(m->line, sizeof m->line, "%.*s", (int)strcspn(line, "\n"), line);
        } else if (strcmp(words[0], "mixes") == 0) {
            m->n_mixes = n_words - 1;
            memcpy(m->mixes, words + 1, (n_words - 1) * sizeof *words);
        } else {
            m->tensors[m->n_tensors] = read_tensor(arena, words[0], words[1]);
            memcpy(m->types[m->n_tensors++], words + 2, (n_words - 2) * sizeof *words);
        }
    }
    check_model(m);
    free(line);
    fclose(file);
}

/* One tensor of a dense model of one layer, under one mix. */
static const struct {
    const char *what, *mix, *name;
    unsigned rank;
    uint64_t row_elements;
    const char *input;
    uint64_t n_experts;
    const char *type, *error; /* the type, or what the message says */
    unsigned build;           /* of llama.cpp; 0: the newest */
} singles[] = {
    {"no fallback for blocks of 32", "Q4_0", "blk.0.attn_q.weight", 2, 100, "F32", 0, NULL,
     "100 elements is not a multiple of 32", 10644},
    {"nor for IQ4_NL", "IQ4_NL", "blk.0.attn_q.weight", 2, 100, "F32", 0, NULL, "IQ4_NL", 10644},
    {"nor for what takes the place of Q6_K in the output", "Q4_K_M", "output.weight", 2, 260, "F32", 0, NULL, "Q8_0",
     10644},
    {"blocks of 32 become F16", "Q4_0", "blk.0.attn_q.weight", 2, 100, "F32", 0, "F16", NULL, 10662},
    {"and of IQ4_NL", "IQ4_NL", "blk.0.attn_q.weight", 2, 100, "F32", 0, "F16"},
    {"and what takes the place of Q6_K", "Q4_K_M", "output.weight", 2, 260, "F32", 0, "F16"},
    {"rows that fit the fallback of Q6_K", "Q4_K_M", "output.weight", 2, 288, "F32", 0, "Q8_0"},
    {"the second fallback is F16", "Q4_K_M", "blk.0.attn_q.weight", 2, 100, "F32", 0, "F16", NULL},
    {"rows of a vector do not matter", "Q4_0", "blk.0.attn_q.weight", 1, 100, "F32", 0, "F32", NULL},
    {"a bias stays", "Q4_0", "blk.0.attn_q.bias", 2, 256, "F32", 0, "F32", NULL},
    {"a norm stays", "Q4_0", "blk.0.attn_norm.weight", 2, 256, "F32", 0, "F32", NULL},
    {"a router stays", "Q4_0", "blk.0.ffn_gate_inp.weight", 2, 256, "F32", 8, "F32", NULL},
    {"positions stay", "Q4_0", "position_embd.weight", 2, 256, "F32", 0, "F32", NULL},
    {"a convolution stays", "Q4_0", "blk.0.ssm_conv1d.weight", 2, 256, "F32", 0, "F32", NULL},
    {"what is in the type already stays", "MXFP4_MOE", "blk.0.ffn_up_exps.weight", 3, 256, "MXFP4", 32, "MXFP4", NULL},
    {"what is quantized is not quantized again", "Q4_0", "blk.0.ffn_up_exps.weight", 3, 256, "MXFP4", 32, NULL,
     "is already MXFP4"},
    {"an expert of no layer", "Q4_K_M", "ffn_down_exps.weight", 3, 256, "F32", 8, NULL, "outside the 1 layers"},
    {"an expert of a layer that is not there", "Q4_K_M", "blk.1.ffn_up_exps.weight", 3, 256, "F32", 8, NULL,
     "outside the 1"},
    {"without experts nobody asks", "Q4_K_M", "enc.ffn_down.weight", 2, 256, "F32", 0, "Q6_K", NULL},
};

static void single_tensors(void)
{
    for (size_t i = 0; i < sizeof singles / sizeof *singles; i++) {
        struct mix_model model = {"llama", 1, 4, 4, singles[i].n_experts, &(const struct references){singles[i].build}};
        const uint64_t shape[] = {8, 2, singles[i].row_elements};
        const struct tensor tensor = {
            .name = singles[i].name, .rank = (uint8_t)singles[i].rank, .shape = shape + 3 - singles[i].rank};
        const struct mix_traits traits = mix_traits(&tensor);
        const struct dtype *type = dtype_by_name(singles[i].input);
        struct error error = {""};
        bool chosen = mix_choose_types(mix_find(singles[i].mix), &(struct quantize_options){0}, &model,
                                       (const struct tensor *const[]){&tensor}, &traits, &type, 1, &error);
        bool passed = singles[i].error != NULL ? !chosen && strstr(error.message, singles[i].error) != NULL
                                               : chosen && strcmp(type->name, singles[i].type) == 0;
        if (!CHECK_NAMED(passed, singles[i].what))
            fprintf(stderr, "  %s\n", error.message);
    }
}

static void options(void)
{
    static const struct {
        const char *option;
        bool valid;
    } rows[] = {
        {"attn_v=q8_0", true}, {"blk\\.(1|2)\\.=Q6_K", true},
        {"x=bf16", true},      {"attn_v", false},
        {"=q8_0", false},      {"x=", false},
        {"x=q9_k", false},     {"(x=q8_0", false},
        {"x=i32", false},      {"[z-a]=q4_0", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *const types[] = {rows[i].option, NULL};
        struct error error;
        bool valid = quantize_options_check(&(struct quantize_options){.tensor_types = types}, &error);
        CHECK_NAMED(valid == rows[i].valid, rows[i].option);
    }
}

static void table(void)
{
    for (const struct mix *mix = mixes; mix->name != NULL; mix++) {
        const struct dtype *type = dtype_by_name(mix->default_type);
        CHECK_NAMED(type != NULL && type->kind == DTYPE_BLOCK && mix_find(mix->name) == mix, mix->name);
    }
}

int main(void)
{
    struct arena *arena = arena_new();
    table();
    options();
    single_tensors();
    from_the_tool(arena);
    arena_free(arena);
    return check_done();
}
