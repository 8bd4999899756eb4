/* Mamba: the output is left out of a GGUF where it is the embedding, by its values. */
#include "models/convert/model.h"
#include "models/formats.h"
#include "tests/unit/check.h"
#include "tests/unit/write_safetensors.h"

static void write_model(unsigned char last_byte)
{
    const unsigned char values[32] = {[31] = last_byte};
    struct safetensors file = {0};
    safetensors_add(&file, "backbone.embeddings.weight", "BF16", "8,2", NULL, sizeof values);
    safetensors_add(&file, "lm_head.weight", "BF16", "8,2", values, sizeof values);
    safetensors_write(&file, "model.safetensors");
}

static bool has_output(const struct checkpoint *checkpoint)
{
    struct error error = {""};
    struct gguf_model *model = checkpoint != NULL ? gguf_model_new(checkpoint, NULL, &error) : NULL;
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
    const struct checkpoint *checkpoint = checkpoint_open(".", formats, &options, &error);
    const off_t shorter = checkpoint != NULL ? (off_t)source_size(checkpoint->sources[0]) - 63 : 0;
    files_must(truncate("model.safetensors", shorter) == 0, "truncate");
    CHECK(checkpoint != NULL && gguf_model_new(checkpoint, NULL, &error) == NULL);
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
    CHECK_NAMED(has_output(checkpoint_open(".", formats, &options, &error)), "one number is another");
    write_model(0);
    CHECK_NAMED(!has_output(checkpoint_open(".", formats, &options, &error)), "the same numbers");
    check_unreadable();
    files_remove();
    return check_done();
}
