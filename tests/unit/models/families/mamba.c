/* Mamba: the output is left out of a GGUF where it is the embedding, by its values. */
#include "models/model.h"
#include "tests/unit/check.h"
#include "tests/unit/files.h"

static const char header[] =
    "{\"backbone.embeddings.weight\":{\"dtype\":\"BF16\",\"shape\":[8,2],\"data_offsets\":[0,32]},"
    "\"lm_head.weight\":{\"dtype\":\"BF16\",\"shape\":[8,2],\"data_offsets\":[32,64]}}";

static void write_model(unsigned last_byte)
{
    struct buffer file = {0};
    buffer_append_le(&file, sizeof header - 1, 8);
    buffer_append_text(&file, header);
    buffer_append_zeros(&file, 63);
    buffer_append_le(&file, last_byte, 1);
    files_write("model.safetensors", file.bytes, file.length);
    buffer_free(&file);
}

static bool has_output(struct checkpoint *checkpoint)
{
    struct error error = {""};
    struct gguf_model *model = checkpoint != NULL ? gguf_model_new(checkpoint, &error) : NULL;
    CHECK(model != NULL);
    bool has = model != NULL && tensor_set_find_text(model->tensors, "output.weight") != NULL;
    gguf_model_free(model);
    checkpoint_close(checkpoint);
    return has;
}

static void check_unreadable(void)
{
    static const struct open_options options = {0};
    struct error error = {""};
    struct checkpoint *checkpoint = checkpoint_open(".", &options, &error);
    files_must(truncate("model.safetensors", 8 + sizeof header) == 0, "truncate");
    CHECK(checkpoint != NULL && gguf_model_new(checkpoint, &error) == NULL);
    CHECK_NAMED(strstr(error.message, "model.safetensors: ") != NULL, error.message);
    checkpoint_close(checkpoint);
}

int main(void)
{
    static const struct open_options options = {0};
    struct error error;
    files_begin();
    files_write_text("config.json",
                     "{\"architectures\":[\"MambaForCausalLM\"],\"model_type\":\"mamba\",\"vocab_size\":4,"
                     "\"hidden_size\":2,\"num_hidden_layers\":0}");
    files_write_text("tokenizer.json",
                     "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"c\":2,\"d\":3},\"merges\":[]},"
                     "\"pre_tokenizer\":{\"type\":\"ByteLevel\"}}");
    write_model(1);
    CHECK_NAMED(has_output(checkpoint_open(".", &options, &error)), "one number is another");
    write_model(0);
    CHECK_NAMED(!has_output(checkpoint_open(".", &options, &error)), "the same numbers");
    check_unreadable();
    files_remove();
    return check_done();
}
