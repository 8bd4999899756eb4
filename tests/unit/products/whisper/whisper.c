/* A Whisper model of one layer, as a Hugging Face directory and as a file of whisper.cpp. Expected: what
 * convert-h5-to-ggml.py and whisper-quantize write of it, by their rules. */
#include "products/whisper/whisper.h"

#include "base/checked.h"
#include "models/formats.h"
#include "tests/unit/models/laid_out.h"
#include "tests/unit/write_safetensors.h"

enum {
    HEADER = 12 * 4,                      /* bytes of the magic and the hyperparameters */
    TOKENS = HEADER + 8 + 80 * 201 * 4,   /* where the tokens begin */
    FIRST = TOKENS + 4 + 2 * 4 + 1 + 2,   /* and the tensors: there are the tokens "a" and "bc" */
    CONV1 = FIRST + 6 * 4 + 20,           /* the values of encoder.conv1.weight, whose name has 20 bytes */
    CONV1_BIAS = CONV1 + 32 * 80 * 3 * 2, /* the record of the next tensor */
    BIG = 7675,                           /* a value there that F16 has not: it is rounded to 7676 */
};

static const char usual[] = ",\"max_length\":7,\"max_target_positions\":6";

static void write_config(const char *more)
{
    struct buffer text = {0};
    buffer_printf(&text,
                  "{\"model_type\":\"whisper\",\"vocab_size\":3,\"d_model\":32,\"encoder_layers\":1,"
                  "\"decoder_layers\":1,\"encoder_attention_heads\":2,\"decoder_attention_heads\":4,"
                  "\"max_source_positions\":5,\"num_mel_bins\":80,\"encoder_ffn_dim\":64%s}",
                  more);
    buffer_append(&text, "", 1);
    files_write_text("config.json", (const char *)text.bytes);
    buffer_free(&text);
}

static void add_attention(struct buffer *list, const char *module)
{
    static const char *const names[] = {"v_proj", "k_proj", "q_proj", "out_proj"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        buffer_printf(list, ", model.%s.%s.weight 32 32", module, names[i]);
        if (strcmp(names[i], "k_proj") != 0)
            buffer_printf(list, ", model.%s.%s.bias 0 32", module, names[i]);
    }
    buffer_printf(list, ", model.%s_layer_norm.weight 0 32, model.%s_layer_norm.bias 0 32", module, module);
}

static void add_rest(struct buffer *list, const char *side)
{
    buffer_printf(list, ", model.%s.layers.0.fc1.weight 64 32, model.%s.layers.0.fc1.bias 0 64", side, side);
    buffer_printf(list, ", model.%s.layers.0.fc2.weight 32 64, model.%s.layers.0.fc2.bias 0 32", side, side);
    for (int i = 0; i < 2; i++) {
        const char *norm = i == 0 ? "layers.0.final_layer_norm" : "layer_norm";
        buffer_printf(list, ", model.%s.%s.bias 0 32, model.%s.%s.weight 0 32", side, norm, side, norm);
    }
}

/* Writes the weights, in an order that no script keeps, with another tensor for "encoder.conv1.weight". */
static void write_weights(const char *conv1)
{
    struct buffer list = {0};
    buffer_printf(&list,
                  "proj_out.weight 3 32, model.decoder.embed_tokens.weight 3 32, "
                  "model.decoder.embed_positions.weight 6 32, model.encoder.conv1.bias 0 32, "
                  "model.encoder.conv2.bias 0 32, model.encoder.conv2.weight 32 3x32, "
                  "model.encoder.embed_positions.weight 5 32, %s",
                  conv1);
    add_rest(&list, "decoder");
    add_rest(&list, "encoder");
    add_attention(&list, "decoder.layers.0.encoder_attn");
    add_attention(&list, "decoder.layers.0.self_attn");
    add_attention(&list, "encoder.layers.0.self_attn");
    buffer_append(&list, "", 1);
    safetensors_write_ramps("model.safetensors", (const char *)list.bytes);
    buffer_free(&list);
}

static const struct whisper_file *file_of(const char *path)
{
    const struct whisper_file *file = whisper_files;
    while (strcmp(file->path, path) != 0)
        file++;
    return file;
}

/* Returns the bytes of a file; none, and the error, if the model has no such file. */
static struct buffer make(const char *source, const char *path, struct error *error)
{
    struct buffer bytes = {0};
    struct artifact artifact;
    struct arena *arena = arena_new();
    const struct checkpoint *checkpoint = checkpoint_open(source, formats, &(struct open_options){0}, error);
    CHECK(checkpoint != NULL && whisper_is(checkpoint));
    struct whisper_model *model = whisper_model_new(checkpoint, error);
    if (model != NULL && whisper_artifact(model, file_of(path), arena, &artifact, error) == OK) {
        bytes = laid_out(&artifact);
        artifact_free(&artifact);
    }
    whisper_model_free(model);
    checkpoint_close(checkpoint);
    arena_free(arena);
    return bytes;
}

static uint32_t number_at(const struct buffer *file, size_t at)
{
    return at + 4 <= file->length ? (uint32_t)read_le(file->bytes + at, 4) : UINT32_MAX;
}

static bool has_numbers(const struct buffer *file, size_t at, size_t n, const uint32_t *expected)
{
    for (size_t i = 0; i < n; i++)
        if (number_at(file, at + 4 * i) != expected[i])
            return false;
    return true;
}

#define HAS_NUMBERS(file, at, ...)                                                                                     \
    has_numbers((file), (at), sizeof(uint32_t[]){__VA_ARGS__} / 4, (const uint32_t[]){__VA_ARGS__})

/* The place of a tensor's record, by its name; 0: there is none. */
static size_t record_of(const struct buffer *file, const char *name, unsigned rank)
{
    const unsigned char *found = memmem(file->bytes, file->length, name, strlen(name));
    return found != NULL ? (size_t)(found - file->bytes) - 4 * (3 + rank) : 0;
}

static void of_hugging_face(void)
{
    struct error error = {""};
    struct buffer half = make(".", "ggml-model.bin", &error), full = make(".", "ggml-model-f32.bin", &error);
    CHECK_TEXT(error.message, "");
    CHECK(HAS_NUMBERS(&half, 0, 0x67676d6c, 3, 5, 32, 2, 1, 7, 32, 4, 1, 80, 1, 80, 201));
    CHECK(HAS_NUMBERS(&full, HEADER - 4, 0));
    CHECK(HAS_NUMBERS(&half, TOKENS, 2, 1) && half.bytes[TOKENS + 8] == 'a');
    CHECK(HAS_NUMBERS(&half, FIRST, 3, 20, 1, 3, 80, 32));
    CHECK(memcmp(half.bytes + CONV1 - 20, "encoder.conv1.weight", 20) == 0);
    CHECK(HAS_NUMBERS(&half, CONV1_BIAS, 2, 18, 0, 1, 32));
    CHECK(HAS_NUMBERS(&half, record_of(&half, "encoder.positional_embedding", 2), 2, 28, 0, 32, 5));
    CHECK(HAS_NUMBERS(&half, record_of(&half, "decoder.token_embedding.weight", 2), 2, 30, 1, 32, 3));
    float rounded = 0;
    f32_dtype.kernels[CPU_PORTABLE].decode(full.bytes + CONV1 + BIG * sizeof rounded, &rounded, 1);
    CHECK(rounded == BIG + 1);
    size_t key = record_of(&half, "encoder.blocks.0.attn.key.weight", 2);
    CHECK(key != 0 && key < record_of(&half, "encoder.blocks.0.attn.value.weight", 2));
    CHECK(record_of(&half, "proj_out", 2) == 0);
    buffer_free(&half);
    buffer_free(&full);
}

/* whisper-quantize reads ggml-model.bin: both give the same file, which has the tool's types. */
static void quantized(void)
{
    struct error error = {""};
    struct buffer half = make(".", "ggml-model.bin", &error), blocks = make(".", "ggml/ggml-model-q8_0.bin", &error);
    files_write("whisper.bin", half.bytes, half.length);
    struct buffer again = make("whisper.bin", "ggml/ggml-model-q8_0.bin", &error);
    CHECK_TEXT(error.message, "");
    CHECK(blocks.length == again.length && memcmp(blocks.bytes, again.bytes, blocks.length) == 0);
    CHECK(HAS_NUMBERS(&blocks, HEADER - 4, 2007) && memcmp(half.bytes, blocks.bytes, HEADER - 4) == 0);
    CHECK(memcmp(half.bytes + HEADER, blocks.bytes + HEADER, CONV1_BIAS - HEADER) == 0);
    CHECK(HAS_NUMBERS(&blocks, record_of(&blocks, "decoder.token_embedding.weight", 2), 2, 30, 8, 32, 3));
    CHECK(HAS_NUMBERS(&blocks, record_of(&blocks, "decoder.positional_embedding", 2), 2, 28, 0, 32, 6));
    files_write("blocks.bin", blocks.bytes, blocks.length);
    struct buffer none = make("blocks.bin", "ggml/ggml-model-q5_0.bin", &error);
    CHECK(none.length == 0);
    CHECK_TEXT(error.message, "the source is quantized already; whisper-quantize needs F16 or F32");
    none = make("whisper.bin", "ggml-model-f32.bin", &error);
    CHECK(none.length == 0 && strstr(error.message, "which has no tool to change its type to F32") != NULL);
    none = make(".", "ggml/ggml-model-q5_k.bin", &error);
    CHECK(none.length == 0 && strstr(error.message, "rows of 32 elements; Q5_K needs multiples of 256") != NULL);
    buffer_free(&half);
    buffer_free(&blocks);
    buffer_free(&again);
}

static void is_itself(void)
{
    struct error error = {""};
    const struct checkpoint *file = checkpoint_open("whisper.bin", formats, &(struct open_options){0}, &error);
    if (CHECK_NAMED(file != NULL, error.message)) {
        CHECK(whisper_is_source(file, file_of("ggml-model.bin")));
        CHECK(!whisper_is_source(file, file_of("ggml-model-f32.bin")));
    }
    checkpoint_close(file);
}

/* n_text_ctx of a config.json with that in it, or the error. */
static void text_context(const char *more, uint32_t expected, const char *message)
{
    struct error error = {""};
    write_config(more);
    struct buffer file = make(".", "ggml-model.bin", &error);
    CHECK(number_at(&file, 6 * 4) == expected);
    CHECK_TEXT(error.message, message);
    buffer_free(&file);
}

static void refused(const char *conv1, const char *message)
{
    struct error error = {""};
    write_weights(conv1);
    struct buffer file = make(".", "ggml-model.bin", &error);
    CHECK(file.length == 0);
    CHECK_TEXT(error.message, message);
}

int main(void)
{
    static const char conv1[] = "model.encoder.conv1.weight 80 3x32";
    files_begin();
    write_config(usual);
    write_weights(conv1);
    files_write_text("vocab.json", "{\"bc\":1,\"a\":0}");
    of_hugging_face();
    quantized();
    is_itself();
    text_context(",\"max_length\":null,\"max_target_positions\":6", 6, "");
    text_context("", 448, "");
    text_context(",\"max_length\":\" 12 \"", 12, "");
    text_context(",\"max_length\":\"12.5\",\"max_target_positions\":6", 448, "");
    text_context(",\"max_length\":12.5", UINT32_MAX, "config.json: max_length is no whole number of 31 bits");
    text_context(",\"max_length\":2147483648", UINT32_MAX, "config.json: max_length is no whole number of 31 bits");
    text_context(",\"max_target_positions\":7", UINT32_MAX,
                 "model.decoder.embed_positions.weight: dimension 1 is 6, and config.json makes it 7");
    write_config(usual);
    refused("x 0 1", "model.encoder.conv1.weight is missing");
    refused("model.encoder.conv1.weight 80 3x16",
            "model.encoder.conv1.weight: dimension 1 is 16, and config.json makes it 32");
    refused("model.encoder.conv1.weight 32 240", "model.encoder.conv1.weight has 2 dimensions instead of 3");
    files_remove();
    return check_done();
}
