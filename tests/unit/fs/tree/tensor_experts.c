/* tensors/NAME/experts/N/: the files of stored and packed experts are parts of the stacked tensor's; which tensors hold
 * experts; nodes, names and places. */
#include "fs/tree/content_options.h"
#include "fs/tree/tensor_views.h"
#include "fs/tree/tree.h"
#include "models/formats.h"
#include "quant/views/dependencies.h"

#include "tests/unit/check.h"
#include "tests/unit/write_safetensors.h"

#include <inttypes.h>
#include <stdlib.h>

enum { N_EXPERTS = 5, N_ROWS = 3, N_COLUMNS = 256, N_NUMBERS = N_EXPERTS * N_ROWS * N_COLUMNS };

static const struct open_options plain;

static struct tree *open_tree(const char *path, const struct content_options *options)
{
    struct error error = {""};
    const struct checkpoint *checkpoint = checkpoint_open(path, formats, &plain, &error);
    struct tree *tree = checkpoint != NULL ? tree_new(checkpoint, options, &error) : NULL;
    CHECK_NAMED(tree != NULL, tree != NULL ? path : error.message);
    return tree;
}

static void close_tree(struct tree *tree)
{
    const struct checkpoint *checkpoint = tree_checkpoint(tree);
    tree_free(tree);
    checkpoint_close(checkpoint);
}

static unsigned char *read_file(struct tree *tree, const char *path, uint64_t *ret_size)
{
    struct arena *arena = arena_new();
    struct node_attributes attributes;
    struct vfile file = {.size = 0};
    struct error error;
    unsigned char *bytes = NULL;
    *ret_size = 0;
    if (tree_walk(tree, path, &attributes, &error) && tree_file(tree, attributes.id, arena, &file, &error) &&
        file.size == attributes.size) {
        bytes = malloc((size_t)file.size + 1);
        if (!vfile_read(&file, 0, (size_t)file.size, bytes, &error)) {
            free(bytes);
            bytes = NULL;
        }
        *ret_size = file.size;
    }
    arena_free(arena);
    return bytes;
}

/* What is compared of one directory of an expert. */
struct parts {
    struct tree *tree;
    const char *tensor;
    uint64_t number, n_experts;
    size_t n_files, n_wrong;
};

static bool compare(void *context, uint64_t index, const char *name, const struct node_attributes *attributes)
{
    struct parts *parts = context;
    char whole_path[400], path[400];
    uint64_t whole_size, size;
    (void)index;
    (void)attributes;
    if (strstr(name, ".npy") != NULL || strcmp(name, "metadata.json") == 0)
        return true;
    snprintf(whole_path, sizeof whole_path, "tensors/%s/%s", parts->tensor, name);
    snprintf(path, sizeof path, "tensors/%s/experts/%" PRIu64 "/%s", parts->tensor, parts->number, name);
    unsigned char *whole = read_file(parts->tree, whole_path, &whole_size), *part = read_file(parts->tree, path, &size);
    bool good = part != NULL && size > 0;
    if (whole != NULL)
        good = good && whole_size == size * parts->n_experts && memcmp(whole + parts->number * size, part, size) == 0;
    parts->n_files++;
    parts->n_wrong += !good;
    if (!good)
        fprintf(stderr, "%s differs\n", path);
    free(whole);
    free(part);
    return true;
}

/* Compares all files of all experts with parts of the stacked tensor's files. */
static void check_parts(struct tree *tree, const char *tensor, uint64_t n_experts, size_t least)
{
    struct parts parts = {tree, tensor, 0, n_experts, 0, 0};
    struct node_attributes found;
    struct error error;
    char path[400];
    for (; parts.number < n_experts; parts.number++) {
        snprintf(path, sizeof path, "tensors/%s/experts/%" PRIu64, tensor, parts.number);
        if (CHECK_NAMED(tree_walk(tree, path, &found, &error), path))
            tree_list(tree, found.id, 0, compare, &parts);
    }
    CHECK_NAMED(parts.n_wrong == 0 && parts.n_files >= least * n_experts, tensor);
    snprintf(path, sizeof path, "tensors/%s/experts/%" PRIu64, tensor, n_experts);
    CHECK(!tree_walk(tree, path, &found, &error));
}

static void write_stacked(const char *path)
{
    struct safetensors file = {0};
    float *numbers = malloc(N_NUMBERS * sizeof *numbers);
    for (unsigned i = 0; i < N_NUMBERS; i++)
        numbers[i] = (float)((i * 7919) % 1009) / 64 - 7;
    safetensors_add(&file, "l.experts.down_proj", "F32", "5,3,256", numbers, N_NUMBERS * sizeof *numbers);
    safetensors_add(&file, "l.experts.down_proj_bias", "F32", "5,3", numbers, 15 * sizeof *numbers);
    safetensors_add(&file, "plain", "F32", "5,3,256", numbers, N_NUMBERS * sizeof *numbers);
    safetensors_write(&file, path);
    free(numbers);
}

/* The values are those that were written, which the reader of the whole tensor has no part in. */
static void check_values(struct tree *tree)
{
    uint64_t size;
    float *values = (float *)(void *)read_file(tree, "tensors/l.experts.down_proj/experts/3/f32", &size);
    bool good = values != NULL && size == N_ROWS * N_COLUMNS * sizeof *values;
    if (good)
        little_endian(values, N_ROWS * N_COLUMNS, sizeof *values);
    for (unsigned i = 0; good && i < N_ROWS * N_COLUMNS; i++)
        good = values[i] == (float)(((3 * N_ROWS * N_COLUMNS + i) * 7919) % 1009) / 64 - 7;
    CHECK_NAMED(good, "an expert has its own values");
    free(values);
}

static void take(void *context, const struct extent *from, uint64_t n_bytes)
{
    uint64_t *limits = context;
    limits[0] = from->offset < limits[0] ? from->offset : limits[0];
    limits[1] = from->offset + n_bytes > limits[1] ? from->offset + n_bytes : limits[1];
}

static void check_dependencies(struct tree *tree)
{
    struct arena *arena = arena_new();
    struct node_attributes attributes;
    struct vfile file = {.size = 0};
    struct error error;
    uint64_t limits[2] = {UINT64_MAX, 0};
    struct dependencies to = {.take = take, .context = limits};
    if (CHECK(tree_walk(tree, "tensors/l.experts.down_proj/experts/4/q8_0", &attributes, &error) &&
              tree_file(tree, attributes.id, arena, &file, &error))) {
        vfile_depends(&file, 0, file.size, &to);
        dependencies_end(&to);
        CHECK_NAMED(limits[1] - limits[0] == N_ROWS * N_COLUMNS * sizeof(float), "only an expert's own bytes are read");
    }
    arena_free(arena);
}

static void check_nodes(struct tree *tree)
{
    static const char *const absent[] = {"00", "05", "5", "-1",         "+1",          " 1",
                                         "1 ", "",   "x", "4294967296", "999999999999"};
    struct arena *arena = arena_new();
    struct node_attributes tensor, experts, expert, file, found;
    struct error error;
    if (!CHECK(tree_walk(tree, "tensors/l.experts.down_proj", &tensor, &error) &&
               tree_lookup(tree, tensor.id, "experts", &experts) && tree_lookup(tree, experts.id, "4", &expert) &&
               tree_lookup(tree, expert.id, "f32", &file)))
        return;
    CHECK(tensor.n_links == 3 && experts.n_links == 2 + N_EXPERTS && expert.n_links == 2 && experts.directory);
    CHECK(tree_parent(tree, file.id) == expert.id && tree_parent(tree, expert.id) == experts.id);
    CHECK(tree_parent(tree, experts.id) == tensor.id);
    CHECK_TEXT(tree_path(tree, file.id, arena), "tensors/l.experts.down_proj/experts/4/f32");
    CHECK(tree_attributes(tree, file.id, &found) && found.size == file.size && !found.directory);
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        CHECK_NAMED(!tree_lookup(tree, experts.id, absent[i], &found), absent[i]);
    CHECK(!tree_lookup(tree, expert.id, "experts", &found) && !tree_lookup(tree, experts.id, "f32", &found));
    CHECK(!tree_walk(tree, "tensors/plain/experts", &found, &error) && strstr(error.message, "stacked") != NULL);
    arena_free(arena);
}

static void stored_experts(void)
{
    static const struct content_options options;
    write_stacked("stacked.safetensors");
    struct tree *tree = open_tree("stacked.safetensors", &options);
    if (tree == NULL)
        return;
    check_parts(tree, "l.experts.down_proj", N_EXPERTS, 12);
    check_parts(tree, "l.experts.down_proj_bias", N_EXPERTS, 4);
    check_values(tree);
    check_dependencies(tree);
    check_nodes(tree);
    close_tree(tree);
}

static void other_experts(const char *data)
{
    static const struct content_options options, gguf_names = {.names = NAMES_GGUF};
    char path[400];
    struct tree *tree;
    snprintf(path, sizeof path, "%s/packed/mxfp4-experts", data);
    if ((tree = open_tree(path, &options)) != NULL) {
        check_parts(tree, "model.layers.0.mlp.experts.gate_up_proj", 2, 3);
        check_parts(tree, "model.layers.0.mlp.experts.gate_up_proj_blocks", 2, 1);
        close_tree(tree);
    }
    snprintf(path, sizeof path, "%s/gguf/models/mixtral-tiny", data);
    if ((tree = open_tree(path, &gguf_names)) != NULL) {
        check_parts(tree, "blk.0.ffn_down_exps.weight", 3, 3);
        close_tree(tree);
    }
}

/* Which tensors hold experts, by name and shape. */
static void rules(void)
{
    static const struct {
        const char *name;
        uint64_t shape[4];
        uint8_t rank;
        uint64_t n_experts;
    } rows[] = {
        {"blk.0.ffn_gate_exps.weight", {8, 4, 32}, 3, 8},
        {"blk.0.ffn_gate_up_exps.weight", {8, 4, 32}, 3, 8},
        {"blk.0.ffn_up_chexps.weight", {8, 4, 32}, 3, 8},
        {"blk.0.ffn_gate_exps.bias", {8, 4}, 2, 8},
        {"blk.0.ffn_gate_shexp.weight", {8, 4, 32}, 3, 0},
        {"blk.0.exp_probs_b.bias", {8, 4}, 2, 0},
        {"model.layers.1.mlp.experts.down_proj", {8, 4, 32}, 3, 8},
        {"model.layers.1.mlp.experts.down_proj", {8, 4}, 2, 0},
        {"model.layers.1.mlp.experts.7.down_proj.weight", {8, 4, 32}, 3, 0},
        {"model.layers.1.mlp.shared_experts.down_proj.weight", {8, 4, 32}, 3, 0},
        {"model.layers.1.mlp.switch_mlp.gate_proj.weight", {8, 4, 32}, 3, 8},
        {"model.layers.1.block_sparse_moe.input_linear.weight", {8, 4, 32}, 3, 8},
        {"experts", {EXPERTS_MAX, 1, 1}, 3, EXPERTS_MAX},
        {"experts", {EXPERTS_MAX + 1, 1, 1}, 3, 0},
        {"experts", {8, 0, 1}, 3, 0},
        {"experts", {8}, 1, 0},
        {"experts", {1, 2, 2, 2}, 4, 1},
        {"..experts..", {8, 4, 32}, 3, 8},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tensor tensor = {
            .name = rows[i].name,
            .name_length = (uint32_t)strlen(rows[i].name),
            .dtype = &f32_dtype,
            .rank = rows[i].rank,
            .shape = rows[i].shape,
        };
        struct tensor_set set = {.tensors = &tensor, .n_tensors = 1};
        struct shown_tensors shown = {.set = &set};
        CHECK_NAMED(tensor_experts(&shown, 0) == rows[i].n_experts, rows[i].name);
        tensor.refusal = "it cannot be shown";
        CHECK(tensor_experts(&shown, 0) == 0);
    }
}

/* Forged shapes without bytes: not more items than a tree can number. */
static void limit(void)
{
    static const uint64_t shape[] = {EXPERTS_MAX, 1, 1};
    enum { N_TENSORS = 4096 };
    struct tensor *tensors = malloc(N_TENSORS * sizeof *tensors);
    struct arena *arena = arena_new();
    struct expert_stacks stacks;
    for (size_t i = 0; i < N_TENSORS; i++)
        tensors[i] =
            (struct tensor){.name = "experts", .name_length = 7, .dtype = &f32_dtype, .rank = 3, .shape = shape};
    struct tensor_set set = {.tensors = tensors, .n_tensors = N_TENSORS};
    struct shown_tensors shown = {.set = &set};
    CHECK(!expert_stacks_find(&shown, arena, &stacks) && stacks.n_stacks == 2047);
    CHECK(expert_stack_of_tensor(&stacks, 2046) != NULL && expert_stack_of_tensor(&stacks, 2047) == NULL);
    CHECK(expert_stack_of_item(&stacks, N_TENSORS - 1) == NULL &&
          expert_stack_of_item(&stacks, stacks.n_items) == NULL);
    CHECK(expert_stack_of_item(&stacks, stacks.n_items - 1)->tensor == 2046);
    arena_free(arena);
    free(tensors);
}

/* Each expert's columns have importances of their own. */
static void importances(void)
{
    static const uint64_t shape[] = {3, 2, 4};
    static const float columns[12];
    struct tensor tensor = {.name = "experts", .name_length = 7, .dtype = &f32_dtype, .rank = 3, .shape = shape};
    struct tensor_set set = {.tensors = &tensor, .n_tensors = 1};
    struct importance importance = {columns, 4, 3};
    struct shown_tensors shown = {.set = &set, .importances = &importance};
    struct shown_expert expert;
    shown_expert_init(&expert, &shown, 0, 2, NULL);
    CHECK(expert.shown.importances[0].columns == columns + 8 && expert.shown.importances[0].n_columns == 4);
}

int main(void)
{
    const char *data = getenv("WFS_TEST_DATA");
    rules();
    limit();
    importances();
    if (CHECK(data != NULL))
        other_experts(data);
    files_begin();
    stored_experts();
    files_remove();
    return check_done();
}
