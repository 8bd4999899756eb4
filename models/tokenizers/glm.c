/* GLM's tokenizers and related ones: byte-level BPE with ids for the tokens that begin and end turns, whose role the
 * files do not state. conversion/base.py (_set_vocab_glm), glm.py. */
#include "models/tokenizers/hf_kind.h"

#include <string.h>

struct offer {
    const char *type, *text;
};

static bool write_with(struct gguf_kvs *kvs, const struct vocab_input *input, const struct hf_vocabulary *vocabulary,
                       const struct offer *offers, struct error *error)
{
    struct special_id ids[SPECIAL_IDS];
    size_t n_ids = 0;
    for (const struct offer *offer = offers; offer->type != NULL; offer++) {
        const struct added_token *token = hf_added_token(vocabulary, offer->text, strlen(offer->text));
        if (token == NULL)
            return error_set(error, "the tokenizer has no added token '%s'", offer->text);
        ids[n_ids++] = (struct special_id){offer->type, token->id};
    }
    return bpe_write(kvs, input, vocabulary, ids, n_ids, error);
}

static bool write_glm(struct gguf_kvs *kvs, const struct vocab_input *input, const struct hf_vocabulary *vocabulary,
                      struct error *error)
{
    static const struct offer offers[] = {
        {"bos", "[gMASK]"}, {"eot", "<|user|>"}, {"unk", "<|endoftext|>"}, {"eom", "<|observation|>"}, {0}};
    return write_with(kvs, input, vocabulary, offers, error);
}

static bool write_solar(struct gguf_kvs *kvs, const struct vocab_input *input, const struct hf_vocabulary *vocabulary,
                        struct error *error)
{
    static const struct offer offers[] = {
        {"eos", "<|endoftext|>"}, {"eot", "<|endoftext|>"}, {"unk", "<unk>"}, {"bos", "<|startoftext|>"}, {0}};
    return write_with(kvs, input, vocabulary, offers, error);
}

static bool write_glm4(struct gguf_kvs *kvs, const struct vocab_input *input, const struct hf_vocabulary *vocabulary,
                       struct error *error)
{
    static const struct offer offers[] = {
        {"eos", "<|endoftext|>"}, {"eot", "<|user|>"}, {"unk", "<|endoftext|>"}, {"bos", "<|endoftext|>"}, {0}};
    return write_with(kvs, input, vocabulary, offers, error);
}

static bool write_chatglm(struct gguf_kvs *kvs, const struct vocab_input *input, const struct hf_vocabulary *vocabulary,
                          struct error *error)
{
    static const struct offer offers[] = {{"eos", "<|endoftext|>"}, {"eot", "<|user|>"}, {"unk", "<|endoftext|>"}, {0}};
    return write_with(kvs, input, vocabulary, offers, error);
}

static bool write_dots3(struct gguf_kvs *kvs, const struct vocab_input *input, const struct hf_vocabulary *vocabulary,
                        struct error *error)
{
    static const struct offer offers[] = {{"eot", "<|endofassistant|>"}, {0}};
    return write_with(kvs, input, vocabulary, offers, error);
}

/* Recognizes GLM-ASR, whose text model declares itself a Llama. */
static bool is_glm_asr(const struct hparams *hparams)
{
    return json_string_is(json_first(json_get(hparams_raw(hparams), "architectures")), "GlmasrModel");
}

const struct vocab glm_vocab = {.name = "GLM's byte-level BPE", .file = "tokenizer.json", .write = write_glm};
const struct vocab solar_vocab = {
    .name = "Solar Open's byte-level BPE", .file = "tokenizer.json", .write = write_solar};
const struct vocab dots3_vocab = {
    .name = "dots3-note's byte-level BPE", .file = "tokenizer.json", .write = write_dots3};
const struct vocab glm4_vocab = {.name = "GLM-4's byte-level BPE", .file = "tokenizer.json", .write = write_glm4};
const struct vocab glm_asr_vocab = {
    .name = "GLM-ASR's byte-level BPE", .file = "tokenizer.json", .applies = is_glm_asr, .write = write_glm4};
const struct vocab chatglm_vocab = {
    .name = "ChatGLM's byte-level BPE", .file = "tokenizer.json", .write = write_chatglm};
