/* mmproj.gguf of every projector, to the last byte: small checkpoints described in lines. Expected values: SHA-256 of
 * what convert_hf_to_gguf.py --mmproj writes for the same files, by make_mmproj_files.py, which also has what it
 * changes for models that the converter fails for (docs/exceptions.md). */
#include "base/encodings.h"
#include "base/text.h"
#include "fs/tree/content_options.h"
#include "fs/tree/tree.h"
#include "models/derive/derive.h"
#include "models/formats.h"
#include "tests/unit/check.h"
#include "tests/unit/notes.h"
#include "tests/unit/write_safetensors.h"

/* Tensors, one a line: "NAME 32x48", a [0-3] in the name for every number from 0 to 3; a '*' at its end is for a
 * .weight of that shape and a .bias of its rows, a '+' after a shape for values above 0. All are BF16. */
struct tower_case {
    const char *name, *config, *preprocessor, *processor, *tokenizer, *tensors; /* files may be NULL */
    const char *codec, *codec_tensors;                                          /* of audio_tokenizer/, likewise */
    const char *as_stored, *f16, *q8_0;                                         /* NULL: not compared */
    const char *note; /* a part of one; NULL: nothing in particular */
};

#include "tests/unit/products/gguf/mmproj_files.inc"

struct tensor_line {
    struct safetensors *file;
    uint32_t *state; /* of the values */
    const char *suffix, *shape;
};

/* Values between 2^-7 and 2 of both signs, or of one. */
static struct buffer make_values(uint32_t *state, uint64_t count, bool is_positive)
{
    struct buffer values = {0};
    for (uint64_t i = 0; i < count; i++) {
        *state = *state * 1664525 + 1013904223;
        uint64_t sign = is_positive ? 0 : *state >> 6 & 0x8000;
        uint16_t bits = (uint16_t)((0x3c00 + (*state >> 22)) | sign);
        buffer_append(&values, &bits, sizeof bits);
    }
    return values;
}

static void add_tensor(void *context, const char *name)
{
    const struct tensor_line *line = context;
    char shape[64] = "", dimensions[64], whole[256];
    uint64_t count = 1;
    snprintf(whole, sizeof whole, "%s%s", name, line->suffix);
    snprintf(dimensions, sizeof dimensions, "%s", line->shape);
    if (strcmp(line->suffix, ".bias") == 0)
        dimensions[strspn(dimensions, "0123456789")] = '\0';
    if (strcmp(dimensions, "0") != 0)
        count = safetensors_shape(dimensions, shape);
    struct buffer values = make_values(line->state, count, strchr(line->shape, '+') != NULL);
    safetensors_add(line->file, whole, "BF16", shape, values.bytes, values.length);
    buffer_free(&values);
}

static void write_tensors(const char *path, const char *lines)
{
    struct safetensors file = {0};
    uint32_t state = 1;
    while (*lines != '\0') {
        char name[200], shape[50];
        CHECK(sscanf(lines, "%199s %49s", name, shape) == 2);
        char *star = strchr(name, '*');
        if (star != NULL)
            *star = '\0';
        each_name(name, add_tensor, &(struct tensor_line){&file, &state, star != NULL ? ".weight" : "", shape});
        if (star != NULL)
            each_name(name, add_tensor, &(struct tensor_line){&file, &state, ".bias", shape});
        lines = strchr(lines, '\n') + 1;
    }
    safetensors_write(&file, path);
}

static void write_or_remove(const char *path, const char *text)
{
    remove(path);
    if (text != NULL)
        files_write_text(path, text);
}

static void check_file(struct tree *tree, const char *path, const char *expected, const char *name)
{
    struct node_attributes attributes;
    struct error error = {""};
    char hex[SHA256_HEX + 1] = "";
    if (expected == NULL)
        return;
    if (CHECK_NAMED(tree_walk(tree, path, &attributes, &error), name)) {
        struct arena *arena = arena_new();
        struct vfile file;
        unsigned char *bytes = arena_alloc(arena, attributes.size + 1);
        if (CHECK_NAMED(tree_file(tree, attributes.id, arena, &file, &error) &&
                            vfile_read(&file, 0, attributes.size, bytes, &error),
                        name))
            sha256_hex(bytes, attributes.size, hex);
        arena_free(arena);
    }
    if (!CHECK_TEXT(hex, expected))
        fprintf(stderr, "  %s %s: %s\n", name, path, error.message);
}

/* A changed codec makes mmproj.gguf stale. */
static void check_codec(struct tree *tree, const char *name)
{
    struct error error;
    struct node_attributes attributes;
    struct vfile file;
    struct arena *arena = arena_new();
    if (CHECK_NAMED(tree_walk(tree, "mmproj.gguf", &attributes, &error) &&
                        tree_file(tree, attributes.id, arena, &file, &error),
                    name)) {
        CHECK_NAMED(!origin_verify(&file.origin), name);
        files_write_text("Model/audio_tokenizer/model.safetensors", "another");
        CHECK_NAMED(origin_verify(&file.origin), name);
    }
    arena_free(arena);
}

static void check_tower(const struct tower_case *tower)
{
    const struct content_options content_options = {0};
    struct error error = {""};
    struct node_attributes attributes;
    write_or_remove("Model/config.json", tower->config);
    write_or_remove("Model/preprocessor_config.json", tower->preprocessor);
    write_or_remove("Model/processor_config.json", tower->processor);
    write_or_remove("Model/tokenizer_config.json", tower->tokenizer);
    write_tensors("Model/model.safetensors", tower->tensors);
    write_or_remove("Model/audio_tokenizer/config.json", tower->codec);
    remove("Model/audio_tokenizer/model.safetensors");
    if (tower->codec_tensors != NULL)
        write_tensors("Model/audio_tokenizer/model.safetensors", tower->codec_tensors);
    rmdir("Model/audio_tokenizer");
    const struct checkpoint *checkpoint = checkpoint_open("Model", formats, &(struct open_options){0}, &error);
    if (checkpoint != NULL)
        checkpoint = derive(checkpoint, &(struct derive_options){0}, &error);
    struct tree *tree = checkpoint == NULL ? NULL : tree_new(checkpoint, &content_options, &error);
    if (CHECK_NAMED(tree != NULL, tower->name)) {
        check_file(tree, "mmproj.gguf", tower->as_stored, tower->name);
        check_file(tree, "gguf/mmproj-F16.gguf", tower->f16, tower->name);
        check_file(tree, "gguf/mmproj-Q8_0.gguf", tower->q8_0, tower->name);
        bool is_absent = tower->as_stored == NULL && tower->f16 == NULL && tower->q8_0 == NULL;
        CHECK_NAMED(!is_absent || !tree_walk(tree, "mmproj.gguf", &attributes, &error), tower->name);
        CHECK_NAMED(tower->note == NULL || has_note(checkpoint, tower->note), tower->name);
        CHECK_NAMED(!is_absent || (!tree_walk(tree, "gguf/mmproj-F16.gguf", &attributes, &error) &&
                                   strstr(error.message, tower->note) != NULL),
                    tower->name);
        if (!is_absent && tower->codec_tensors != NULL)
            check_codec(tree, tower->name);
    }
    tree_free(tree);
    if (checkpoint != NULL)
        checkpoint_close(checkpoint);
}

/* transformers 5 saves a SigLIP without the vision_model in its names: the files are the same. */
static void check_short_names(const struct tower_case *tower)
{
    static const char part[] = "vision_model.", shortened[] = "cohere2v gemma3 granite4_vision lfm2vl lfm2-vl";
    struct tower_case shorter = *tower;
    struct buffer lines = {0};
    const char *rest = tower->tensors, *found;
    if (!text_has_word(shortened, tower->name, strlen(tower->name)))
        return;
    for (; (found = strstr(rest, part)) != NULL; rest = found + strlen(part))
        buffer_append(&lines, rest, (size_t)(found - rest));
    buffer_append(&lines, rest, strlen(rest) + 1);
    shorter.tensors = (const char *)lines.bytes;
    check_tower(&shorter);
    buffer_free(&lines);
}

static bool holds(const unsigned char *bytes, size_t size, const char *text)
{
    return memmem(bytes, size, text, strlen(text)) != NULL;
}

/* Overrides of keys are for a projector where they are about all files or about it. */
static void check_overrides(void)
{
    const char *const overrides[] = {"general.url=str:there", "clip.use_gelu=bool:false", "qwen2vl.x=int:3", NULL};
    const struct content_options options = {.request.edits.override_kvs = overrides};
    struct error error = {""};
    struct node_attributes attributes;
    const struct checkpoint *checkpoint = checkpoint_open("Model", formats, &(struct open_options){0}, &error);
    struct tree *tree = checkpoint == NULL ? NULL : tree_new(checkpoint, &options, &error);
    if (CHECK(tree != NULL && tree_walk(tree, "mmproj.gguf", &attributes, &error))) {
        struct arena *arena = arena_new();
        struct vfile file;
        unsigned char *bytes = arena_alloc(arena, attributes.size + 1);
        CHECK(tree_file(tree, attributes.id, arena, &file, &error) &&
              vfile_read(&file, 0, attributes.size, bytes, &error));
        CHECK(holds(bytes, attributes.size, "general.url") && holds(bytes, attributes.size, "clip.use_gelu"));
        CHECK(!holds(bytes, attributes.size, "qwen2vl.x"));
        arena_free(arena);
    }
    tree_free(tree);
    if (checkpoint != NULL)
        checkpoint_close(checkpoint);
}

/* In a library, the projector lies beside the model. */
static void check_library(void)
{
    const struct content_options options = {.name_in_library = "Named"};
    struct error error = {""};
    struct node_attributes attributes, same;
    const struct checkpoint *checkpoint = checkpoint_open("Model", formats, &(struct open_options){0}, &error);
    struct tree *tree = checkpoint == NULL ? NULL : tree_new(checkpoint, &options, &error);
    CHECK(tree != NULL && tree_walk(tree, "mmproj-Named-F16.gguf", &attributes, &error) &&
          tree_walk(tree, "gguf/mmproj-F16.gguf", &same, &error) && attributes.size == same.size);
    check_file(tree, "mmproj-Named-F16.gguf", towers[0].f16, towers[0].name);
    tree_free(tree);
    if (checkpoint != NULL)
        checkpoint_close(checkpoint);
}

int main(void)
{
    files_begin();
    check_tower(&towers[0]);
    check_overrides();
    check_library();
    for (size_t i = 0; i < sizeof towers / sizeof *towers; i++)
        check_tower(&towers[i]), check_short_names(&towers[i]);
    files_remove();
    return check_done();
}
