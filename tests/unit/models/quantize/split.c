/* GGUFs in shards, and shards joined: cut where llama-gguf-split cuts, with its keys in its order, and put together
 * again. */
#include "models/convert/model.h"
#include "models/formats.h"
#include "models/quantize/quantize.h"

#include "tests/unit/check.h"
#include "tests/unit/models/laid_out.h"
#include "tests/unit/write_gguf.h"

#include <stdlib.h>

enum { N_TENSORS = 5 };

/* Bytes, with padding: 64, 32, 96, 32, 32. */
static const uint64_t lengths[N_TENSORS] = {40, 1, 96, 32, 7};

static struct artifact make_whole(struct tensor_set *set, struct arena *arena)
{
    static const char zeros[96];
    static const char *const names[N_TENSORS] = {"a", "b", "c", "d", "e"};
    struct artifact whole = {.container = &ggml_container};
    artifact_reserve(&whole, N_TENSORS);
    for (size_t i = 0; i < N_TENSORS; i++) {
        const uint64_t shape[] = {1, lengths[i]};
        tensor_set_add_view(set, names[i], view_literal(arena, dtype_by_name("I8"), 2, shape, zeros));
    }
    for (size_t i = 0; i < N_TENSORS; i++)
        whole.tensors[i] = (struct artifact_tensor){&set->tensors[i], encoding_of(dtype_by_name("I8"))};
    gguf_set_u16(&whole.metadata, "split.count", 9);
    gguf_set_text(&whole.metadata, "general.architecture", "x");
    return whole;
}

/* The number of tensors up to the end of each shard, or the reason. */
static const char *cut_by(const struct artifact *whole, struct split_rule rule)
{
    static char text[1100];
    struct error error;
    size_t n_shards, length = 0, *ends = split_ends(whole, &rule, &n_shards, &error);
    if (ends == NULL) {
        snprintf(text, sizeof text, "%s", error.message);
        return text;
    }
    for (size_t i = 0; i < n_shards; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%zu", i ? " " : "", ends[i]);
    free(ends);
    return text;
}

static const char *cut(const struct artifact *whole, const char *rule_text)
{
    static struct error error;
    struct split_rule rule;
    return split_rule_parse(rule_text, &rule, &error) ? cut_by(whole, rule) : error.message;
}

static const char *cut_at(const struct artifact *whole, uint64_t max_bytes)
{
    return cut_by(whole, (struct split_rule){.max_bytes = max_bytes});
}

static void cuts(const struct artifact *whole)
{
    CHECK_TEXT(cut(whole, "1"), "1 2 3 4 5");
    CHECK_TEXT(cut(whole, "2"), "2 4 5");
    CHECK_TEXT(cut(whole, "5"), "5");
    CHECK_TEXT(cut(whole, "99999999999"), "5");
    CHECK_TEXT(cut(whole, "1M"), "5");
    CHECK_TEXT(cut_at(whole, 256), "5");
    CHECK_TEXT(cut_at(whole, 255), "4 5");
    CHECK_TEXT(cut_at(whole, 96), "2 3 5");
    CHECK_TEXT(cut_at(whole, 64), "1 2 3 5"); /* "c" is larger, and has a shard for itself */
    CHECK_TEXT(cut_at(whole, 63), "split: tensor 'a' exceeds the 63 bytes of a shard");
    static const char *const bad[] = {
        "", "0", "0M", "1K", "1MB", "-1", "1.5G", "m", "99999999999999999999G", "18446744074G"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_NAMED(strstr(cut(whole, bad[i]), "neither a size such as 500M or 2G nor a number of tensors") != NULL,
                    bad[i]);
}

static void check_part(const struct artifact *whole, size_t number, const struct assembly *expected)
{
    static const size_t ends[] = {2, 5};
    struct artifact shard;
    split_artifact(whole, SPLITTER_GGUF_SPLIT, ends, 2, number, &shard);
    struct buffer file = laid_out(&shard);
    CHECK(begins_with(&file, &expected->bytes) && file.length == expected->bytes.length + (number == 0 ? 96 : 160));
    buffer_free(&file);
    artifact_free(&shard);
}

static void put_split_keys(struct assembly *file, unsigned number)
{
    put_key(file, "split.no", 2), put(file, number, 2);
    put_key(file, "split.tensors.count", 5), put(file, N_TENSORS, 4);
    put_key(file, "split.count", 2), put(file, 2, 2);
}

static void shards(const struct artifact *whole)
{
    struct assembly file = {0};
    begin(&file, 3, 2, 4);
    put_key(&file, "general.architecture", 8), put_string(&file, "x");
    put_split_keys(&file, 0);
    put_tensor(&file, "a", DIMENSIONS(40), 24, 0), put_tensor(&file, "b", DIMENSIONS(1), 24, 64);
    pad(&file, 32);
    check_part(whole, 0, &file);
    begin(&file, 3, 3, 3);
    put_split_keys(&file, 1);
    put_tensor(&file, "c", DIMENSIONS(96), 24, 0), put_tensor(&file, "d", DIMENSIONS(32), 24, 96);
    put_tensor(&file, "e", DIMENSIONS(7), 24, 128);
    pad(&file, 32);
    check_part(whole, 1, &file);
    buffer_free(&file.bytes);
}

/* Two shards, the first with a key before those of the split and one after them. */
static void write_parts(struct assembly *file)
{
    begin(file, 3, 2, 5);
    put_key(file, "general.architecture", 8), put_string(file, "x");
    put_split_keys(file, 0);
    put_u32_key(file, "last", 1);
    put_tensor(file, "a", DIMENSIONS(40), 24, 0), put_tensor(file, "b", DIMENSIONS(1, 1, 1), 24, 64),
        put_data(file, 32, 96);
    write_file(file, "m-00001-of-00002.gguf");
    begin(file, 3, 3, 3), put_split_keys(file, 1);
    put_tensor(file, "c", DIMENSIONS(96), 24, 0), put_tensor(file, "d", DIMENSIONS(32), 24, 96);
    put_tensor(file, "e", DIMENSIONS(7), 24, 128), put_data(file, 32, 160);
    write_file(file, "m-00002-of-00002.gguf");
}

static void expect_merged(struct assembly *file)
{
    begin(file, 3, 5, 5);
    put_key(file, "general.architecture", 8), put_string(file, "x");
    put_key(file, "split.no", 2), put(file, 0, 2);
    put_key(file, "split.tensors.count", 5), put(file, N_TENSORS, 4);
    put_u32_key(file, "last", 1);
    put_key(file, "split.count", 2), put(file, 0, 2);
    put_tensor(file, "a", DIMENSIONS(40), 24, 0), put_tensor(file, "b", DIMENSIONS(1), 24, 64);
    put_tensor(file, "c", DIMENSIONS(96), 24, 96), put_tensor(file, "d", DIMENSIONS(32), 24, 192);
    put_tensor(file, "e", DIMENSIONS(7), 24, 224), pad(file, 32);
}

static void merge(void)
{
    struct assembly file = {0};
    struct error error;
    files_begin();
    write_parts(&file);
    expect_merged(&file);

    const struct checkpoint *checkpoint = checkpoint_open(".", formats, &(struct open_options){0}, &error);
    struct gguf_model *model = checkpoint != NULL ? gguf_model_new(checkpoint, NULL, &error) : NULL;
    if (CHECK(model != NULL)) {
        struct artifact artifact;
        gguf_whole_artifact(&(struct gguf_edition){.model = model}, &artifact);
        struct buffer whole = laid_out(&artifact);
        CHECK(begins_with(&whole, &file.bytes) && whole.length == file.bytes.length + 256);
        buffer_free(&whole);
        artifact_free(&artifact);
    }
    gguf_model_free(model);
    checkpoint_close(checkpoint);
    buffer_free(&file.bytes);
    files_remove();
}

int main(void)
{
    struct arena *arena = arena_new();
    struct artifact whole = make_whole(tensor_set_new(arena), arena);
    cuts(&whole);
    shards(&whole);
    artifact_free(&whole);
    arena_free(arena);
    merge();
    return check_done();
}
