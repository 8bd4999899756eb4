/* Qwen 3 that ranks: which checkpoints do, and what convert_hf_to_gguf.py of llama.cpp writes of them. */
#include "models/families/qwen/qwen.h"
#include "models/convert/model.h"
#include "models/formats.h"
#include "quant/views/convert.h"
#include "tests/unit/check.h"
#include "tests/unit/write_safetensors.h"

#define QWEN3                                                                                                          \
    "{\"architectures\":[\"Qwen3ForCausalLM\"],\"vocab_size\":4,\"hidden_size\":4,\"num_hidden_layers\":0,"            \
    "\"num_attention_heads\":2,\"num_key_value_heads\":2,\"intermediate_size\":4,\"head_dim\":2,"                      \
    "\"rms_norm_eps\":1e-6,\"rope_theta\":1e4,\"max_position_embeddings\":8,"

static const struct {
    const char *config, *name, *card, *tensors;
    float yes, no; /* the first numbers of the rows of cls.output.weight */
} rows[] = {
    {QWEN3 "\"tie_word_embeddings\":true}", "Qwen3-Reranker-0.6B", NULL,
     "output.weight cls.output.weight token_embd.weight", 1, 3},
    {QWEN3 "\"tie_word_embeddings\":false}", "Qwen3-Reranker-8B", NULL, "cls.output.weight token_embd.weight", 11, 13},
    {QWEN3 "\"rope_scaling\":null}", "Qwen3-VL-Reranker-2B", NULL, "cls.output.weight token_embd.weight", 11, 13},
    {QWEN3 "\"tie_word_embeddings\":false}", "mine", "Text\n\n# Qwen3-Reranker, mine\n",
     "cls.output.weight token_embd.weight", 11, 13},
    {QWEN3 "\"tie_word_embeddings\":false}", "mine", "Of Qwen3-Reranker.\n", "output.weight token_embd.weight", 0, 0},
    {QWEN3 "\"tie_word_embeddings\":false}", "Qwen3-8B", NULL, "output.weight token_embd.weight", 0, 0},
    {QWEN3 "\"model_type\":\"qwen3-reranker\"}", "mine", NULL, "cls.output.weight token_embd.weight", 11, 13},
};

/* The names of the tensors in their order, a space after each. */
static void list_names(const struct gguf_model *model, struct buffer *out)
{
    for (size_t i = 0; i < model->tensors->n_tensors; i++)
        buffer_printf(out, "%s ", model->tensors->tensors[i].name);
}

static void check_model(const struct gguf_model *model, size_t i)
{
    uint64_t pooling;
    float row[8];
    struct error error;
    struct buffer names = {0};
    list_names(model, &names);
    const struct tensor *tensor = tensor_set_find_text(model->tensors, "cls.output.weight");
    bool ranks = rows[i].yes != 0;
    CHECK_NAMED(names.length == strlen(rows[i].tensors) + 1 &&
                    memcmp(names.bytes, rows[i].tensors, strlen(rows[i].tensors)) == 0,
                rows[i].tensors);
    CHECK((gguf_get_u64(&model->kvs, "qwen3.pooling_type", &pooling) && pooling == 4) == ranks);
    CHECK((gguf_kvs_find(&model->kvs, "qwen3.classifier.output_labels") != NULL) == ranks);
    CHECK((gguf_kvs_find(&model->kvs, "tokenizer.chat_template.rerank") != NULL) == ranks);
    if (ranks && CHECK(tensor != NULL && tensor->view->shape[0] == 2 && tensor->view->shape[1] == 4))
        CHECK(convert_values(tensor->view, 0, 8, row, &error) && row[0] == rows[i].yes && row[4] == rows[i].no);
    buffer_free(&names);
}

static void check(size_t i)
{
    const struct open_options options = {.name = rows[i].name};
    struct error error = {""};
    files_write_text("config.json", rows[i].config);
    if (rows[i].card != NULL)
        files_write_text("README.md", rows[i].card);
    const struct checkpoint *checkpoint = checkpoint_open(".", formats, &options, &error);
    struct gguf_model *model = checkpoint ? gguf_model_new(checkpoint, NULL, &error) : NULL;
    if (CHECK_NAMED(model != NULL, error.message))
        check_model(model, i);
    gguf_model_free(model);
    checkpoint_close(checkpoint);
    unlink("README.md");
}

/* A tokenizer that has no such token cannot be that of a model that ranks. */
static void check_without_answer(void)
{
    const struct open_options options = {.name = "Qwen3-Reranker-0.6B"};
    struct error error = {""};
    files_write_text("config.json", QWEN3 "\"tie_word_embeddings\":true}");
    files_write_text("tokenizer.json", "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"yes\":1},\"merges\":[]},"
                                       "\"pre_tokenizer\":{\"type\":\"ByteLevel\"}}");
    const struct checkpoint *checkpoint = checkpoint_open(".", formats, &options, &error);
    CHECK(checkpoint != NULL && gguf_model_new(checkpoint, NULL, &error) == NULL);
    CHECK_TEXT(error.message, "the model's name says reranker, but its tokenizer has no token 'no'");
    checkpoint_close(checkpoint);
}

int main(void)
{
    /* the first number of each row: 0, 1, 2, 3 of the embedding, 10, 11, 12, 13 of the head */
    static const uint16_t embedding[4][4] = {{0}, {0x3f80}, {0x4000}, {0x4040}},
                          head[4][4] = {{0x4120}, {0x4130}, {0x4140}, {0x4150}};
    struct safetensors file = {0};
    files_begin();
    safetensors_add(&file, "model.embed_tokens.weight", "BF16", "4,4", embedding, sizeof embedding);
    safetensors_add(&file, "lm_head.weight", "BF16", "4,4", head, sizeof head);
    safetensors_write(&file, "model.safetensors");
    files_write_text("tokenizer.json",
                     "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"yes\":1,\"b\":2,\"no\":3},\"merges\":[]},"
                     "\"pre_tokenizer\":{\"type\":\"ByteLevel\"}}");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check(i);
    check_without_answer();
    files_remove();
    return check_done();
}
