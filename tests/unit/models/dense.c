/* The dense layer of LFM2-ColBERT, in a folder of its own: what conversion/lfm2.py makes of it is first. */
#include "models/dense.h"

#include "models/model.h"
#include "tests/unit/check.h"
#include "tests/unit/files.h"
#include "tests/unit/notes.h"

static const char config[] =
    "{\"architectures\":[\"Lfm2Model\"],\"model_type\":\"lfm2\",\"vocab_size\":2,\"hidden_size\":4,"
    "\"num_hidden_layers\":1,\"num_attention_heads\":2,\"num_key_value_heads\":2,\"block_ff_dim\":4,"
    "\"block_auto_adjust_ff_dim\":false,\"conv_L_cache\":3,\"norm_eps\":1e-5,\"layer_types\":[\"conv\"]}";

static void write_tensor(const char *path, const char *name, unsigned rows, const float *values)
{
    char header[256];
    int length =
        snprintf(header, sizeof header, "{\"%s\":{\"dtype\":\"F32\",\"shape\":[%u,4],\"data_offsets\":[0,%u]}}", name,
                 rows, rows * 16);
    struct buffer file = {0};
    buffer_append_le(&file, (uint64_t)length, 8);
    buffer_append_text(&file, header);
    buffer_append(&file, values, rows * 4 * sizeof *values);
    files_write(path, file.bytes, file.length);
    buffer_free(&file);
}

static const float values[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};

static struct gguf_model *open_model(struct checkpoint **ret_checkpoint, struct error *error)
{
    static const struct open_options options = {0};
    *ret_checkpoint = checkpoint_open(".", &options, error);
    CHECK(*ret_checkpoint != NULL);
    dense_open(*ret_checkpoint);
    return gguf_model_new(*ret_checkpoint, error);
}

static void there(void)
{
    struct checkpoint *checkpoint;
    struct error error = {""};
    float read[12];
    uint64_t width = 0;
    struct gguf_model *model = open_model(&checkpoint, &error);
    if (CHECK_NAMED(model != NULL, error.message)) {
        const struct tensor *first = &model->tensors->tensors[0];
        CHECK_TEXT(first->name, "dense_2.weight");
        CHECK(view_read(first->view, 0, 12, read, &error) && memcmp(read, values, sizeof read) == 0);
        CHECK(gguf_get_u64(&model->kvs, "lfm2.embedding_length_out", &width) && width == 3);
    }
    gguf_model_free(model);
    checkpoint_close(checkpoint);
}

static void damaged(void)
{
    struct checkpoint *checkpoint;
    struct error error = {""};
    files_write_text("1_Dense/model.safetensors", "no");
    struct gguf_model *model = open_model(&checkpoint, &error);
    CHECK(model == NULL && has_note(checkpoint, "1_Dense: "));
    CHECK_TEXT(error.message, "1_Dense: there is no matrix linear.weight that can be read");
    checkpoint_close(checkpoint);
}

static void absent(void)
{
    struct checkpoint *checkpoint;
    struct error error = {""};
    files_write_text("modules.json", "[]");
    struct gguf_model *model = open_model(&checkpoint, &error);
    CHECK_NAMED(model != NULL && model->tensors->n_tensors == 1, error.message);
    gguf_model_free(model);
    checkpoint_close(checkpoint);
}

int main(void)
{
    files_begin();
    files_write_text("config.json", config);
    files_write_text("tokenizer.json", "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]},"
                                       "\"pre_tokenizer\":{\"type\":\"ByteLevel\"}}");
    files_write_text("modules.json",
                     "[{\"idx\":0,\"name\":\"0\",\"path\":\"\",\"type\":\"pylate.models.Transformer\"},"
                     "{\"idx\":1,\"name\":\"1\",\"path\":\"1_Dense\",\"type\":\"pylate.models.Dense.Dense\"}]");
    write_tensor("model.safetensors", "embed_tokens.weight", 2, values);
    write_tensor("1_Dense/model.safetensors", "linear.weight", 3, values);
    there();
    damaged();
    absent();
    files_remove();
    return check_done();
}
