/* The dense layer of LFM2-ColBERT, in a folder of its own: what conversion/lfm2.py makes of it is first. */
#include "models/derive/derive.h"
#include "models/formats.h"

#include "models/convert/model.h"
#include "tests/unit/check.h"
#include "tests/unit/notes.h"
#include "tests/unit/numbers.h"
#include "tests/unit/write_safetensors.h"

static const char config[] =
    "{\"architectures\":[\"Lfm2Model\"],\"model_type\":\"lfm2\",\"vocab_size\":2,\"hidden_size\":4,"
    "\"num_hidden_layers\":1,\"num_attention_heads\":2,\"num_key_value_heads\":2,\"block_ff_dim\":4,"
    "\"block_auto_adjust_ff_dim\":false,\"conv_L_cache\":3,\"norm_eps\":1e-5,\"layer_types\":[\"conv\"]}";

static const float values[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};

static struct gguf_model *open_model(const struct checkpoint **ret_checkpoint, struct error *error)
{
    static const struct open_options options = {0};
    *ret_checkpoint = checkpoint_open(".", formats, &options, error);
    CHECK(*ret_checkpoint != NULL);
    *ret_checkpoint = derive(*ret_checkpoint, &(struct derive_options){0}, error);
    CHECK(*ret_checkpoint != NULL);
    return gguf_model_new(*ret_checkpoint, NULL, error);
}

static void there(void)
{
    const struct checkpoint *checkpoint;
    struct error error = {""};
    float read[12];
    uint64_t width = 0;
    struct gguf_model *model = open_model(&checkpoint, &error);
    if (CHECK_NAMED(model != NULL, error.message)) {
        const struct tensor *first = &model->tensors->tensors[0];
        CHECK_TEXT(first->name, "dense_2.weight");
        CHECK(read_numbers(first->view, 0, 12, read, &error) && memcmp(read, values, sizeof read) == 0);
        CHECK(gguf_get_u64(&model->kvs, "lfm2.embedding_length_out", &width) && width == 3);
    }
    gguf_model_free(model);
    checkpoint_close(checkpoint);
}

static void damaged(void)
{
    const struct checkpoint *checkpoint;
    struct error error = {""};
    files_write_text("1_Dense/model.safetensors", "no");
    struct gguf_model *model = open_model(&checkpoint, &error);
    CHECK(model == NULL && has_note(checkpoint, "1_Dense: "));
    CHECK_TEXT(error.message, "1_Dense: no readable matrix linear.weight");
    checkpoint_close(checkpoint);
}

static void absent(void)
{
    const struct checkpoint *checkpoint;
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
    safetensors_write_one("model.safetensors", "embed_tokens.weight", "F32", "2,4", values, 8 * sizeof *values);
    safetensors_write_one("1_Dense/model.safetensors", "linear.weight", "F32", "3,4", values, sizeof values);
    there();
    damaged();
    absent();
    files_remove();
    return check_done();
}
