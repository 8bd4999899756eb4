/* What stable-diffusion.cpp's conversion makes of a small checkpoint: names, types, shapes, and the values of integers.
 * tests/interop/test_media.py compares whole files. */
#include "models/formats.h"
#include "products/product.h"

#include "tests/unit/check.h"
#include "tests/unit/numbers.h"
#include "tests/unit/write_safetensors.h"

/* Makes the file of a type; not OK, with the reason. */
static enum outcome make(const struct checkpoint *checkpoint, const char *type, struct arena *arena,
                         struct artifact *ret_artifact, struct error *error)
{
    const struct product_input input = {.checkpoint = checkpoint};
    struct product_list list = {.arena = arena, .scratch = arena};
    const struct product_file *file = NULL;
    const char *path = arena_printf(arena, "model-%s.gguf", type);
    files_must(sdcpp_product.files(&input, NULL, NULL, &list, error), "files");
    for (size_t i = 0; i < list.n_files; i++)
        file = strcmp(list.files[i].path, path) == 0 ? &list.files[i] : file;
    files_must(file != NULL, path);
    return file->make(&input, NULL, file->what, arena, ret_artifact, error);
}

static void describe(const struct checkpoint *checkpoint, const char *type, struct buffer *out)
{
    struct artifact artifact = {0};
    struct error error;
    struct arena *arena = arena_new();
    if (make(checkpoint, type, arena, &artifact, &error) != OK)
        buffer_append_text(out, error.message);
    for (size_t i = 0; i < artifact.n_tensors; i++) {
        const struct tensor *tensor = artifact.tensors[i].tensor;
        buffer_printf(out, "%s%s %s", i > 0 ? ", " : "", tensor->name, artifact.tensors[i].encoding.dtype->name);
        for (unsigned axis = 0; axis < tensor->rank; axis++)
            buffer_printf(out, " %d", (int)tensor->shape[axis]);
    }
    buffer_append(out, "", 1);
    artifact_free(&artifact);
    arena_free(arena);
}

static const struct checkpoint *open(struct safetensors *file)
{
    static const struct open_options options = {0};
    struct error error;
    safetensors_write(file, "x.safetensors");
    const struct checkpoint *checkpoint = checkpoint_open("x.safetensors", formats, &options, &error);
    files_must(checkpoint != NULL, error.message);
    return checkpoint;
}

static void check_types(void)
{
    static const int64_t ids[] = {3, 70000, -2};
    struct safetensors file = {0};
    struct buffer found = {0};
    safetensors_add(&file, "z.weight", "F64", "2,64", NULL, 1024);
    safetensors_add(&file, "norm.weight", "F32", "64", NULL, 256);
    safetensors_add(&file, "a.bias", "F32", "64", NULL, 256);
    safetensors_add(&file, "b.weight", "F8_E4M3", "1,2,48", NULL, 96);
    safetensors_add(&file, "c.weight", "BF16", "2,3,1,1,32", NULL, 384);
    safetensors_add(&file, "betas", "F32", "32", NULL, 128);
    safetensors_add(&file, "d.u8", "U8", "32", NULL, 32);
    safetensors_add(&file, "embeddings.ids", "I64", "3", ids, sizeof ids);
    safetensors_add(&file, "embeddings.none", "I64", "2,0", NULL, 0);
    safetensors_add(&file, "scalar", "F32", "", NULL, 4);
    const struct checkpoint *checkpoint = open(&file);
    describe(checkpoint, "q8_0", &found);
    CHECK_TEXT((const char *)found.bytes,
               "a.bias F32 64, b.weight F16 1 2 48, c.weight Q8_0 6 1 1 32, "
               "embeddings.ids I32 3, embeddings.none I32 2 0, norm.weight Q8_0 64, scalar F32 1, z.weight Q8_0 2 64");
    found.length = 0;
    describe(checkpoint, "f16", &found);
    CHECK_TEXT((const char *)found.bytes,
               "a.bias F32 64, b.weight F16 1 2 48, c.weight F16 6 1 1 32, "
               "embeddings.ids I32 3, embeddings.none I32 2 0, norm.weight F16 64, scalar F16 1, z.weight F16 2 64");
    buffer_free(&found);
    checkpoint_close(checkpoint);
}

static void check_integers(void)
{
    static const int64_t ids[] = {3, 70000, -2};
    struct safetensors file = {0};
    struct artifact artifact;
    struct error error;
    struct arena *arena = arena_new();
    int32_t values[3];
    safetensors_add(&file, "embeddings.ids", "I64", "3", ids, sizeof ids);
    const struct checkpoint *checkpoint = open(&file);
    if (CHECK(make(checkpoint, "f32", arena, &artifact, &error) == OK)) {
        CHECK(read_numbers(artifact.tensors[0].tensor->view, 0, 3, values, &error));
        CHECK(values[0] == 3 && values[1] == 70000 && values[2] == -2);
        artifact_free(&artifact);
    }
    arena_free(arena);
    checkpoint_close(checkpoint);
}

/* Integers that would be converted stop the tool, and so do types that it does not read. */
static void check_refusals(void)
{
    struct safetensors file = {0};
    struct buffer found = {0};
    safetensors_add(&file, "ids", "I64", "3", NULL, 24);
    const struct checkpoint *checkpoint = open(&file);
    describe(checkpoint, "f16", &found);
    CHECK_TEXT((const char *)found.bytes, "tensor 'ids' is I64, which stable-diffusion.cpp does not convert");
    found.length = 0;
    describe(checkpoint, "q8_0", &found);
    CHECK_TEXT((const char *)found.bytes, "ids I32 3");
    checkpoint_close(checkpoint);
    found.length = 0;
    safetensors_add(&file, "flag", "BOOL", "3", NULL, 3);
    checkpoint = open(&file);
    describe(checkpoint, "f16", &found);
    CHECK_TEXT((const char *)found.bytes, "tensor 'flag' (BOOL, 1 dimensions): stable-diffusion.cpp does not read it");
    buffer_free(&found);
    checkpoint_close(checkpoint);
}

int main(void)
{
    files_begin();
    check_types();
    check_integers();
    check_refusals();
    files_remove();
    return check_done();
}
