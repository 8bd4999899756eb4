/* The length of a tensor's metadata, told without writing its list of files, against what is written: of tensors that
 * have the same files and of those that do not, more kinds than are remembered, stored, packed and refused. */
#include "fs/tree/tensor_views.h"
#include "fs/tree/content_options.h"
#include "models/formats.h"

#include "base/buffer.h"
#include "tests/unit/check.h"
#include "tests/unit/write_safetensors.h"

/* Of each dtype a few shapes, with names that JSON and file names escape. */
static void write_checkpoint(void)
{
    static const char *const dtypes_of[] = {"F32", "BF16", "F16", "I32", "U8", "F64"};
    static const unsigned bytes_of[] = {4, 2, 2, 4, 1, 8};
    static const char *const names[] = {"a", "b/c", "d\\\"e", "f\\u0001g", "h\xc3\xa9", "%i"};
    struct safetensors file = {0};
    char name[64], shape[16];
    for (unsigned i = 0; i < 72; i++) {
        unsigned kind = i / 12, columns = 32 * (1 + i / 4 % 3);
        snprintf(name, sizeof name, "%s.%u", names[i % 5], i);
        snprintf(shape, sizeof shape, "%u", columns);
        safetensors_add(&file, name, dtypes_of[kind], shape, NULL, columns * bytes_of[kind]);
    }
    for (unsigned i = 0; i < 20; i++) {
        bool fits = i != 7;
        snprintf(name, sizeof name, "l.%u.weight", i);
        safetensors_add(&file, name, "F8_E4M3", "2,2", NULL, 4);
        snprintf(name, sizeof name, "l.%u.weight_scale_inv", i);
        safetensors_add(&file, name, "F32", fits ? "1,1" : "5", NULL, fits ? 4 : 20);
    }
    safetensors_write(&file, "model.safetensors");
}

/* Asks every tensor, of which many are passed over. */
static void check_firsts(const struct shown_tensors *shown, const struct content_options *options)
{
    size_t firsts[512], n_right = 0, n_found = 0;
    struct tensor_file file;
    tensor_first_files(shown, options, firsts);
    for (unsigned slot = SLOT_RAW; slot < tensor_slots(); slot++) {
        size_t i = 0;
        while (i < shown_tensors_count(shown) && !tensor_file_at(shown, i, options, slot, &file))
            i++;
        n_right += firsts[slot] == (i < shown_tensors_count(shown) ? i : SIZE_MAX);
        n_found += i > 0 && i < shown_tensors_count(shown);
    }
    CHECK(n_right == tensor_slots() - SLOT_RAW && n_found > 0);
}

int main(void)
{
    static const struct open_options options = {0};
    static const struct content_options content_options = {0};
    struct metadata_lengths lengths = {0};
    struct error error = {""};
    files_begin();
    write_checkpoint();
    files_write_text("config.json",
                     "{\"quantization_config\":{\"quant_method\":\"fp8\",\"weight_block_size\":[128,128]}}");
    const struct checkpoint *checkpoint = checkpoint_open(".", formats, &options, &error);
    if (!CHECK(checkpoint != NULL))
        return check_done();
    const struct shown_tensors shown = *shown_tensors_of(checkpoint);
    size_t n_tensors = shown_tensors_count(&shown), n_packed = 0, n_refused = 0, n_right = 0;
    for (unsigned round = 0; round < 2; round++)
        for (size_t i = 0; i < n_tensors; i++) {
            struct tensor room;
            struct buffer text = {0};
            size_t index = round == 0 ? i : (i * 31) % n_tensors;
            tensor_metadata(&shown, index, &content_options, &text);
            n_right += tensor_metadata_length(&shown, index, &content_options, &lengths) == text.length;
            n_packed += shown_tensors_unpacked(&shown, index) != NULL;
            n_refused += shown_tensors_at(&shown, index, &room)->refusal != NULL;
            buffer_free(&text);
        }
    CHECK(n_right == 2 * n_tensors && n_tensors == 112);
    CHECK(n_packed == 40 && n_refused == 2);
    CHECK_NAMED(lengths.n_known < n_tensors, "most are remembered");
    check_firsts(&shown, &content_options);
    buffer_free(&lengths.text);
    checkpoint_close(checkpoint);
    files_remove();
    return check_done();
}
