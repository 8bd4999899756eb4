/* "llama" from the SentencePiece model of ChatGLM 3: its pieces, then the tokens that ChatGLM's code names, then unused
 * ones. conversion/chatglm.py; the tokenization_chatglm.py of these repositories. */
#include "models/tokenizers/vocab.h"

#include "models/tokenizers/sentencepiece.h"

#include <string.h>

static const char *const named_tokens[] = {"[MASK]",   "[gMASK]",       "[sMASK]",        "sop", "eop", "<|system|>",
                                           "<|user|>", "<|assistant|>", "<|observation|>"};
enum { N_NAMED_TOKENS = sizeof named_tokens / sizeof *named_tokens };

bool is_chatglm3(const struct hparams *hparams)
{
    const char *name = json_string(hparams_get(hparams, "_name_or_path"), NULL);
    return name != NULL && strstr(name, "THUDM/chatglm3-6b") != NULL;
}

/* Gives the first three pieces fixed texts, whatever they are; the BOS, EOS and unknown pieces after these have no
 * text. */
static void set_pieces(struct token_list *list, const sentencepiece_model *model)
{
    static const char *const first[] = {"<unk>", "<bos>", "<eos>"};
    static const enum sentencepiece_part nameless[] = {SENTENCEPIECE_BEGIN, SENTENCEPIECE_END, SENTENCEPIECE_UNKNOWN};
    for (uint64_t id = 0; id < sizeof first / sizeof *first && id < list->n_tokens && id < model->n_pieces; id++) {
        list->tokens[id].text = first[id];
        list->tokens[id].length = strlen(first[id]);
    }
    for (size_t i = 0; i < sizeof nameless / sizeof *nameless; i++) {
        uint64_t id = sentencepiece_id(model, nameless[i]);
        if (id >= sizeof first / sizeof *first && id < list->n_tokens)
            token_list_set(list, id, "", 0, 0, list->tokens[id].type);
    }
}

static bool make_list(const struct vocab_input *input, const sentencepiece_model *model, struct token_list *list,
                      struct error *error)
{
    uint64_t n_tokens = model->n_pieces + N_NAMED_TOKENS;
    json_u64(hparams_get(input->hparams, "padded_vocab_size"), &n_tokens);
    if (!sentencepiece_list(input, model, n_tokens, list, error))
        return false;
    set_pieces(list, model);
    for (uint64_t id = model->n_pieces; id < n_tokens; id++)
        list->tokens[id].score = 0;
    for (size_t i = 0; i < N_NAMED_TOKENS; i++)
        token_list_set(list, model->n_pieces + i, named_tokens[i], strlen(named_tokens[i]), 0, TOKEN_CONTROL);
    return true;
}

static bool write_pieces(struct gguf_kvs *kvs, const struct vocab_input *input, const struct sentencepiece *given,
                         struct error *error)
{
    struct token_list list;
    return make_list(input, given->model, &list, error) &&
           sentencepiece_write(kvs, input, "chatglm-spm", &list, given->files, error);
}

const struct vocab chatglm3_vocab = {.name = "SentencePiece of ChatGLM 3",
                                     .file = "tokenizer.model",
                                     .applies = is_chatglm3,
                                     .write_pieces = write_pieces};
