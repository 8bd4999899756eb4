/* InternLM 3: the order of its tokenizer's keys, and that no rope_freqs.weight is among its tensors. Expected values:
 * what convert_hf_to_gguf.py writes for such a checkpoint. */
#include "models/convert/model.h"
#include "models/formats.h"
#include "tests/unit/check.h"
#include "tests/unit/write_safetensors.h"

static const char config[] =
    "{\"architectures\":[\"InternLM3ForCausalLM\"],\"model_type\":\"internlm3\",\"vocab_size\":5,\"hidden_size\":4,"
    "\"num_hidden_layers\":1,\"num_attention_heads\":2,\"num_key_value_heads\":2,\"intermediate_size\":4,"
    "\"head_dim\":2,\"rms_norm_eps\":1e-6,\"rope_theta\":1e4,\"max_position_embeddings\":8,\"bos_token_id\":1,"
    "\"eos_token_id\":2,\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8.0,\"low_freq_factor\":1.0,"
    "\"high_freq_factor\":4.0,\"original_max_position_embeddings\":4}}";

static const char tokenizer_config[] =
    "{\"add_prefix_space\":false,\"added_tokens_decoder\":{\"9\":{\"content\":\"<|im_end|>\",\"special\":true}}}";

static void write_checkpoint(void)
{
    static const char piece[] = "\x0a\x09\x0a\x02zz\x15\x00\x00\x80\x3f";
    struct buffer pieces = {0};
    safetensors_write_one("model.safetensors", "model.embed_tokens.weight", "BF16", "5,4", NULL, 40);
    for (int i = 0; i < 4; i++)
        buffer_append(&pieces, piece, sizeof piece - 1);
    files_write("tokenizer.model", pieces.bytes, pieces.length);
    files_write_text("config.json", config);
    files_write_text("tokenizer_config.json", tokenizer_config);
    buffer_free(&pieces);
}

static void check_model(const struct gguf_model *model)
{
    struct buffer text = {0};
    uint64_t end;
    for (size_t i = 0; i < model->kvs.n_kvs; i++)
        if (strncmp(model->kvs.kvs[i].key, "tokenizer.ggml.", 15) == 0)
            buffer_printf(&text, " %s", model->kvs.kvs[i].key + 15);
    buffer_append_le(&text, 0, 1);
    CHECK_TEXT((const char *)text.bytes,
               " model pre tokens scores token_type add_space_prefix bos_token_id eos_token_id");
    CHECK(gguf_get_u64(&model->kvs, "tokenizer.ggml.eos_token_id", &end) && end == 9); /* in the list or not */
    CHECK(model->tensors->n_tensors == 1);
    buffer_free(&text);
}

int main(void)
{
    const struct open_options options = {0};
    struct error error = {""};
    files_begin();
    write_checkpoint();
    const struct checkpoint *checkpoint = checkpoint_open(".", formats, &options, &error);
    struct gguf_model *model = checkpoint ? gguf_model_new(checkpoint, NULL, &error) : NULL;
    CHECK_TEXT(error.message, "");
    if (CHECK(model != NULL))
        check_model(model);
    gguf_model_free(model);
    checkpoint_close(checkpoint);
    files_remove();
    return check_done();
}
