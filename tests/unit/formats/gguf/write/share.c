/* Where tensors that can share disk blocks with their source come to lie. */

#include "formats/checkpoint.h"
#include "formats/gguf/write.h"
#include "sources/source.h"
#include "tests/unit/formats/readers_table.h"
#include "tests/unit/models/laid_out.h"
#include "tests/unit/write_safetensors.h"

#include <unistd.h>

enum { BLOCK = GGUF_SHARED_BLOCK, N_TENSORS = 7 };

/* Rows of 1024 BF16 numbers: the second vector moves what follows it by half a block, the third back again. */
static const struct {
    const char *name, *shape;
    size_t n_bytes;
} stored[N_TENSORS] = {
    {"a.matrix", "8,1024", 4 * BLOCK},  {"b.vector", "1024", BLOCK / 2}, {"c.matrix", "16,1024", 8 * BLOCK},
    {"d.matrix", "2,1024", BLOCK},      {"e.vector", "1024", BLOCK / 2}, {"f.matrix", "6,1024", 3 * BLOCK},
    {"g.odd", "3,1024", BLOCK * 3 / 2},
};

/* Writes the tensors so that their data begins at a multiple of `alignment`, and not of twice as much. */
static void write_source(size_t alignment)
{
    struct buffer header = {0};
    size_t offset = 0;
    buffer_append_text(&header, "{");
    for (size_t i = 0; i < N_TENSORS; offset += stored[i++].n_bytes)
        buffer_printf(&header, "%s\"%s\":{\"dtype\":\"BF16\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}",
                      i > 0 ? "," : "", stored[i].name, stored[i].shape, offset, offset + stored[i].n_bytes);
    buffer_append_text(&header, "}");
    while ((8 + header.length) % (2 * alignment) != alignment)
        buffer_append_text(&header, " ");
    files_write_safetensors("model.safetensors", (const char *)header.bytes, header.length, offset);
    buffer_free(&header);
}

/* An artifact of the tensors in their order, the vectors as F32, as a GGUF has them. */
static struct artifact artifact_of(const struct checkpoint *checkpoint)
{
    struct artifact artifact = {.container = &gguf_sharing_container};
    artifact_reserve(&artifact, N_TENSORS);
    for (size_t i = 0; i < N_TENSORS; i++) {
        const struct tensor *tensor = &checkpoint->tensors->tensors[i];
        const struct dtype *type = tensor->rank == 1 ? &f32_dtype : tensor->dtype;
        artifact.tensors[i] = (struct artifact_tensor){tensor, encoding_of(type)};
    }
    gguf_set_text(&artifact.metadata, "general.architecture", "test");
    return artifact;
}

/* Lays the artifact out; counts the bytes of tensors that lie as in the source, and the bytes before the first one. */
static uint64_t count_shared(const struct artifact *artifact, size_t *ret_data)
{
    struct span_list spans = {.arena = arena_new()};
    struct error error = {""};
    uint64_t n_shared = 0;
    *ret_data = 0;
    CHECK(artifact->container->lay_out(artifact, &spans, &error));
    for (size_t i = 0; i < spans.n_spans; i++) {
        const struct span *span = &spans.spans[i];
        struct extent from;
        if (span->kind != SPAN_VIEW)
            continue;
        *ret_data = *ret_data == 0 ? (size_t)span->offset : *ret_data;
        if (span->view->dtype == span->encoding.dtype && view_stored(span->view, 0, &from) > 0 &&
            from.offset % BLOCK == span->offset % BLOCK)
            n_shared += span->length;
    }
    arena_free(spans.arena);
    return n_shared;
}

/* Returns what the container shares of a source, after checks of the file. */
static uint64_t shared(size_t alignment, bool *ret_is_padded)
{
    struct error error = {""};
    size_t data, usual_data;
    write_source(alignment);
    const struct checkpoint *checkpoint =
        checkpoint_open("model.safetensors", readers, &(struct open_options){0}, &error);
    files_must(checkpoint != NULL, "model.safetensors");
    struct artifact artifact = artifact_of(checkpoint);
    struct buffer sharing = laid_out(&artifact);
    uint64_t n_shared = count_shared(&artifact, &data);
    artifact.container = &gguf_container;
    struct buffer usual = laid_out(&artifact);
    count_shared(&artifact, &usual_data);
    *ret_is_padded = memmem(sharing.bytes, data, GGUF_PADDING_KEY, strlen(GGUF_PADDING_KEY)) != NULL;
    CHECK(data % 32 == 0 && sharing.length - data == usual.length - usual_data);
    CHECK(*ret_is_padded || (sharing.length == usual.length && memcmp(sharing.bytes, usual.bytes, usual.length) == 0));
    buffer_free(&sharing);
    buffer_free(&usual);
    artifact_free(&artifact);
    checkpoint_close(checkpoint);
    return n_shared;
}

/* The same tensors and values, whatever their order. */
static void read_back(void)
{
    struct error error = {""};
    write_source(32);
    const struct checkpoint *source = checkpoint_open("model.safetensors", readers, &(struct open_options){0}, &error);
    struct artifact artifact = artifact_of(source);
    struct buffer sharing = laid_out(&artifact);
    files_write("model.gguf", sharing.bytes, sharing.length);
    const struct checkpoint *written = checkpoint_open("model.gguf", readers, &(struct open_options){0}, &error);
    CHECK_TEXT(error.message, "");
    files_must(written != NULL && written->tensors->n_tensors == N_TENSORS, "model.gguf");
    for (size_t i = 0; i < N_TENSORS; i++) {
        const struct tensor *tensor = &source->tensors->tensors[i];
        const struct tensor *again = tensor_set_find(written->tensors, tensor->name, tensor->name_length);
        unsigned char a[8 * BLOCK], b[8 * BLOCK];
        CHECK_NAMED(again != NULL && (again->dtype == tensor->dtype) == (tensor->rank == 2), tensor->name);
        if (again == NULL || again->dtype != tensor->dtype)
            continue;
        CHECK(source_read(tensor->source, tensor->offset, tensor->length, a, &error) &&
              source_read(again->source, again->offset, again->length, b, &error) && memcmp(a, b, tensor->length) == 0);
    }
    buffer_free(&sharing);
    artifact_free(&artifact);
    checkpoint_close(written);
    checkpoint_close(source);
}

int main(void)
{
    const uint64_t all = (4 + 8 + 1 + 3) * BLOCK + BLOCK * 3 / 2;
    bool is_padded;
    files_begin();
    CHECK_NAMED(shared(32, &is_padded) >= 8 * BLOCK + BLOCK && is_padded, "at least the largest remainder is shared");
    CHECK_NAMED(shared(2048, &is_padded) <= all && is_padded, "data at any multiple of 32");
    CHECK_NAMED(shared(4096, &is_padded) >= 8 * BLOCK + BLOCK && is_padded, "and at a whole block");
    shared(16, &is_padded);
    CHECK_NAMED(!is_padded, "data that cannot be mapped from there is not shared");
    shared(8, &is_padded);
    CHECK_NAMED(!is_padded, "nor what follows a header of the usual length");
    read_back();
    files_remove();
    return check_done();
}
