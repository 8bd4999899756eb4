/* Draft models: what of their GGUF is the target's. The tokens that d2t leads to are what prepare_tensors() of
 * conversion/llama.py says of them: each is as much further on as is stored. */
#include "models/derive/derive.h"
#include "models/formats.h"

#include "models/convert/model.h"
#include "tests/unit/check.h"
#include "tests/unit/notes.h"
#include "tests/unit/numbers.h"
#include "tests/unit/write_safetensors.h"

#define EAGLE                                                                                                          \
    "\"architectures\":[\"LlamaForCausalLMEagle3\"],\"num_attention_heads\":2,\"num_key_value_heads\":2,"              \
    "\"hidden_size\":4,\"vocab_size\":9,"
#define ONE_LAYER EAGLE "\"num_hidden_layers\":1,\"draft_vocab_size\":4"

static const struct {
    const char *config, *target; /* config.json of both; NULL: there is no target */
    int64_t steps[4], tokens[4]; /* d2t as stored, and as written */
    const char *error;
} rows[] = {
    {ONE_LAYER, "\"num_hidden_layers\":9,\"hidden_size\":8,\"vocab_size\":9", {0, 2, 2, 5}, {0, 3, 4, 8}, NULL},
    {ONE_LAYER,
     "\"hidden_size\":1,\"text_config\":{\"num_hidden_layers\":9,\"hidden_size\":8,\"vocab_size\":9}",
     {3, 3, 3, 3},
     {3, 4, 5, 6},
     NULL},
    {ONE_LAYER,
     "\"num_hidden_layers\":9,\"hidden_size\":8,\"vocab_size\":8",
     {0, 2, 2, 5},
     {0},
     "tensor 'd2t' leads to tokens 0 to 8, where the base has 8"},
    {ONE_LAYER,
     "\"num_hidden_layers\":9,\"hidden_size\":8,\"vocab_size\":9",
     {-1, 2, 2, 5},
     {0},
     "tensor 'd2t' leads to tokens -1 to 8, where the base has 9"},
    {ONE_LAYER,
     "\"num_hidden_layers\":9,\"hidden_size\":8,\"vocab_size\":9",
     {0, 2, 1, 0},
     {0},
     "tensor 'd2t' leads to token 3 twice"},
    {ONE_LAYER,
     "\"num_hidden_layers\":9,\"hidden_size\":8,\"vocab_size\":9",
     {INT64_MAX, 2, 1, 0},
     {0},
     "tensor 'd2t' has a value that is not a 32-bit integer"},
    {ONE_LAYER,
     "\"num_hidden_layers\":9,\"hidden_size\":8",
     {0},
     {0},
     "config.json of the base: vocab_size is not a number of tokens"},
    {ONE_LAYER,
     "\"hidden_size\":8,\"vocab_size\":9",
     {0},
     {0},
     "config.json of the base: num_hidden_layers is not a number of layers"},
    {ONE_LAYER,
     "\"num_hidden_layers\":9,\"vocab_size\":9",
     {0},
     {0},
     "the width of its hidden states is in neither config.json nor the base's config.json"},
    {ONE_LAYER, NULL, {0}, {0}, "a draft model needs the tokenizer of the model it drafts for; use -o base=DIR"},
    {EAGLE "\"num_hidden_layers\":2,\"draft_vocab_size\":4",
     NULL,
     {0},
     {0},
     "config.json: an EAGLE-3 model has draft_vocab_size, and num_hidden_layers is 1"},
};

static void write_config(const char *name, const char *lines)
{
    char text[1024];
    snprintf(text, sizeof text, "{%s}", lines);
    files_write_text(name, text);
}

static void check_tokens(const struct gguf_model *model, const int64_t *tokens)
{
    struct error error;
    int64_t written[4] = {0};
    const struct tensor_set *set = model->tensors;
    const struct tensor *last = &set->tensors[set->n_tensors - 1];
    CHECK_TEXT(last->name, "d2t");
    CHECK_TEXT(last->view->dtype->name, "I64");
    CHECK(last->view->n_elements == 4 && read_numbers(last->view, 0, 4, written, &error));
    CHECK(memcmp(written, tokens, sizeof written) == 0);
}

static void check(size_t i)
{
    static const struct open_options options = {0};
    struct error error = {""};
    write_config("draft/config.json", rows[i].config);
    if (rows[i].target != NULL)
        write_config("target/config.json", rows[i].target);
    safetensors_write_one("draft/model.safetensors", "d2t", "I64", "4", rows[i].steps, sizeof rows[i].steps);
    const struct checkpoint *checkpoint = checkpoint_open("draft", formats, &options, &error);
    CHECK(checkpoint != NULL);
    const struct derive_options wanted = {.base = rows[i].target != NULL ? "target" : NULL};
    checkpoint = derive(checkpoint, &wanted, &error);
    CHECK_NAMED(checkpoint != NULL, error.message);
    struct gguf_model *model = gguf_model_new(checkpoint, NULL, &error);
    if (rows[i].error != NULL)
        CHECK(model == NULL && error.message[0] != '\0');
    if (rows[i].error != NULL)
        CHECK_TEXT(error.message, rows[i].error);
    else if (CHECK_NAMED(model != NULL, error.message))
        check_tokens(model, rows[i].tokens);
    gguf_model_free(model);
    checkpoint_close(checkpoint);
}

int main(void)
{
    static const struct open_options options = {0};
    struct error error = {""};
    files_begin();
    files_write_text("target/tokenizer.json", "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]},"
                                              "\"pre_tokenizer\":{\"type\":\"ByteLevel\"}}");
    files_write_text("draft/config.json", "{}");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check(i);
    const struct checkpoint *checkpoint = checkpoint_open("draft", formats, &options, &error);
    CHECK(checkpoint != NULL && derive(checkpoint, &(struct derive_options){.base = "absent"}, &error) == NULL);
    CHECK_NAMED(strncmp(error.message, "option base: absent: ", strlen("option base: absent: ")) == 0, error.message);
    files_remove();
    return check_done();
}
