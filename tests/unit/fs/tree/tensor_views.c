/* The length of a tensor's metadata, told without writing its list of files, against what is written: of tensors that
 * have the same files and of those that do not, more kinds than are remembered, stored, packed and refused. */
#include "fs/tree/tensor_views.h"
#include "fs/tree/content_options.h"

#include "base/buffer.h"
#include "tests/unit/check.h"
#include "tests/unit/files.h"

/* Of each dtype a few shapes, with names that JSON and file names escape. */
static void write_checkpoint(void)
{
    static const char *const dtypes_of[] = {"F32", "BF16", "F16", "I32", "U8", "F64"};
    static const unsigned bytes_of[] = {4, 2, 2, 4, 1, 8};
    static const char *const names[] = {"a", "b/c", "d\\\"e", "f\\u0001g", "h\xc3\xa9", "%i"};
    char header[65536], *end = header;
    unsigned at = 0;
    *end++ = '{';
    for (unsigned i = 0; i < 72; i++) {
        unsigned kind = i / 12, columns = 32 * (1 + i / 4 % 3), size = columns * bytes_of[kind];
        end += sprintf(end, "\"%s.%u\":{\"dtype\":\"%s\",\"shape\":[%u],\"data_offsets\":[%u,%u]},", names[i % 5], i,
                       dtypes_of[kind], columns, at, at + size);
        at += size;
    }
    for (unsigned i = 0; i < 20; i++) {
        bool fits = i != 7;
        end += sprintf(end,
                       "\"l.%u.weight\":{\"dtype\":\"F8_E4M3\",\"shape\":[2,2],\"data_offsets\":[%u,%u]},"
                       "\"l.%u.weight_scale_inv\":{\"dtype\":\"F32\",\"shape\":%s,\"data_offsets\":[%u,%u]},",
                       i, at, at + 4, i, fits ? "[1,1]" : "[5]", at + 4, at + (fits ? 8 : 24));
        at += fits ? 8 : 24;
    }
    end[-1] = '}';
    files_write_safetensors("model.safetensors", header, (size_t)(end - header), at);
}

int main(void)
{
    static const struct open_options options = {0};
    static const struct content_options content_options = {0};
    struct metadata_lengths lengths = {0};
    struct arena *arena = arena_new();
    struct error error = {""};
    files_begin();
    write_checkpoint();
    files_write_text("config.json",
                     "{\"quantization_config\":{\"quant_method\":\"fp8\",\"weight_block_size\":[128,128]}}");
    struct checkpoint *checkpoint = checkpoint_open(".", &options, &error);
    if (!CHECK(checkpoint != NULL))
        return check_done();
    const struct shown shown = shown_of(checkpoint, arena);
    size_t n_tensors = shown_count(&shown), n_packed = 0, n_refused = 0, n_right = 0;
    for (unsigned round = 0; round < 2; round++)
        for (size_t i = 0; i < n_tensors; i++) {
            struct tensor room;
            struct buffer text = {0};
            size_t index = round == 0 ? i : (i * 31) % n_tensors;
            tensor_metadata(&shown, index, &content_options, &text);
            n_right += tensor_metadata_length(&shown, index, &content_options, &lengths) == text.length;
            n_packed += shown_unpacked(&shown, index) != NULL;
            n_refused += shown_tensor(&shown, index, &room)->refusal != NULL;
            buffer_free(&text);
        }
    CHECK(n_right == 2 * n_tensors && n_tensors == 112);
    CHECK(n_packed == 40 && n_refused == 2);
    CHECK_NAMED(lengths.n_known < n_tensors, "most are remembered");
    buffer_free(&lengths.text);
    checkpoint_close(checkpoint);
    arena_free(arena);
    files_remove();
    return check_done();
}
