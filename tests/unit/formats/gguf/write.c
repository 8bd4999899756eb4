/* What is read of any version, byte order and alignment is written as version 3, little-endian, of the same alignment.
 */
#include "models/convert/model.h"

#include "tests/unit/check.h"
#include "tests/unit/formats/readers_table.h"
#include "tests/unit/models/laid_out.h"
#include "tests/unit/write_gguf.h"

enum { N_TOKENS = 2000 };

static void put_file(struct assembly *file, unsigned version, unsigned truth, const char *text, size_t text_length)
{
    begin(file, version, 3, 4);
    put_u32_key(file, "general.alignment", 128);
    put_key(file, "tokens", 9), put_array(file, 8, N_TOKENS);
    for (unsigned i = 0; i < N_TOKENS; i++)
        put_string(file, i % 2 ? "odd" : "");
    put_key(file, "flags", 9), put_array(file, 7, N_TOKENS);
    for (unsigned i = 0; i < N_TOKENS; i++)
        put(file, i % 2 ? truth : 0, 1);
    put_key(file, "text", 8), put_text(file, text, text_length);
    put_tensor(file, "a", DIMENSIONS(3, 1), 0, 0);
    put_tensor(file, "b", DIMENSIONS(0, 2), 1, 128);
    put_tensor(file, "c", DIMENSIONS(1), 25, 128);
    pad(file, 128);
    for (unsigned i = 0; i < 3; i++)
        put(file, 0x3f800000 + i, 4);
    pad(file, 128);
    put(file, 0x1234, 2);
}

static void rewritten(unsigned version, bool big_endian, bool usual)
{
    struct assembly file = {.big_endian = big_endian}, expected = {0};
    struct error error = {""};
    struct artifact artifact;
    put_file(&file, version, usual ? 1 : 9, usual ? "text" : "text\0cut", usual ? 4 : 8);
    put_file(&expected, 3, 1, "text", 4);
    write_file(&file, "m.gguf");
    const struct checkpoint *checkpoint = checkpoint_open("m.gguf", readers, &(struct open_options){0}, &error);
    struct gguf_model *model = checkpoint != NULL ? gguf_model_new(checkpoint, NULL, &error) : NULL;
    CHECK_TEXT(error.message, "");
    if (model != NULL) {
        gguf_whole_artifact(&(struct gguf_edition){.model = model}, &artifact);
        struct buffer written = laid_out(&artifact);
        CHECK(written.length > 256);
        size_t data = written.length - 256;
        CHECK(data % 128 == 0 && memcmp(written.bytes, expected.bytes.bytes, data + 12) == 0);
        CHECK(written.bytes[data + 128] == 0x34 && written.bytes[data + 129] == 0x12);
        buffer_free(&written);
        artifact_free(&artifact);
    }
    gguf_model_free(model);
    checkpoint_close(checkpoint);
    buffer_free(&file.bytes);
    buffer_free(&expected.bytes);
}

/* Blocks of the other byte order are shown, but nothing is made of them. */
static void foreign_blocks(void)
{
    struct assembly file = {.big_endian = true};
    struct error error = {""};
    begin(&file, 3, 1, 0);
    put_tensor(&file, "q", DIMENSIONS(32), 8, 0), put_data(&file, 32, 34);
    write_file(&file, "m.gguf");
    const struct checkpoint *checkpoint = checkpoint_open("m.gguf", readers, &(struct open_options){0}, &error);
    CHECK(checkpoint != NULL && gguf_model_new(checkpoint, NULL, &error) == NULL);
    CHECK_TEXT(error.message, "tensor 'q': byte-swapped Q8_0 blocks cannot be written");
    checkpoint_close(checkpoint);
    buffer_free(&file.bytes);
}

int main(void)
{
    files_begin();
    for (unsigned version = 1; version <= 3; version++) {
        rewritten(version, false, true);
        rewritten(version, true, false);
    }
    rewritten(3, false, false);
    foreign_blocks();
    files_remove();
    return check_done();
}
