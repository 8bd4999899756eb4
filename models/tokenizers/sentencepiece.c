#include "models/tokenizers/sentencepiece.h"

#include <stdlib.h>
#include <string.h>

/* Memory for protobuf-c, limited in proportion to the file. */
struct allowance {
    size_t left;
    bool exceeded;
    size_t lacking; /* bytes that could not be had: the work ends once protobuf-c has returned */
};

static void *allocate(void *context, size_t size)
{
    struct allowance *allowance = context;
    allowance->exceeded |= size > allowance->left;
    if (allowance->exceeded)
        return NULL;
    allowance->left -= size;
    void *memory = memory_try(NULL, size);
    if (memory == NULL)
        allowance->lacking = size;
    return memory;
}

static void release(void *context, void *memory)
{
    free(memory);
}

enum vocab_result sentencepiece_load(const struct checkpoint *checkpoint, const char *name,
                                     sentencepiece_model **ret_model, struct error *error)
{
    size_t length;
    bool absent;
    char *bytes = document_text(checkpoint, name, &length, &absent, error);
    if (bytes == NULL)
        return absent ? VOCAB_ABSENT : VOCAB_FAILED;
    struct allowance allowance = {SENTENCEPIECE_MEMORY * length, false, 0};
    ProtobufCAllocator allocator = {allocate, release, &allowance};
    sentencepiece_model *model = wfs__sentencepiece__model__unpack(&allocator, length, (const uint8_t *)bytes);
    free(bytes);
    if (model == NULL && allowance.lacking > 0)
        memory_exhausted(allowance.lacking);
    if (model == NULL || model->n_pieces == 0) {
        sentencepiece_free(model);
        if (allowance.exceeded)
            error_set(error, "%s: takes more than %d bytes of memory for each of its own", name, SENTENCEPIECE_MEMORY);
        else
            error_set(error, "%s: not a SentencePiece model", name);
        return VOCAB_FAILED;
    }
    *ret_model = model;
    return VOCAB_ADDED;
}

void sentencepiece_free(sentencepiece_model *model)
{
    if (model != NULL)
        wfs__sentencepiece__model__free_unpacked(model, NULL);
}

enum vocab_result sentencepiece_add(struct gguf_kvs *kvs, const struct vocab_input *input, const struct vocab *vocab,
                                    struct error *error)
{
    sentencepiece_model *model;
    struct tokenizer_files files;
    enum vocab_result result = sentencepiece_load(input->checkpoint, vocab->file, &model, error);
    if (result != VOCAB_ADDED)
        return result;
    result = VOCAB_FAILED;
    if (tokenizer_files_load(input->checkpoint, &files, error)) {
        const struct sentencepiece given = {model, &files};
        if (vocab->write_pieces(kvs, input, &given, error))
            result = VOCAB_ADDED;
        tokenizer_files_free(&files);
    }
    sentencepiece_free(model);
    return result;
}

enum { UNKNOWN_PIECE = 2, CONTROL_PIECE, USER_DEFINED_PIECE, UNUSED_PIECE, BYTE_PIECE };

/* SentencePiece (0.2.3) treats a piece of one NUL as unused if the model has byte fallback. */
static bool is_nul(const sentencepiece_model *model, const Wfs__Sentencepiece__Model__Piece *piece)
{
    return model->trainer != NULL && model->trainer->byte_fallback && piece->piece.len == 1 &&
           piece->piece.data[0] == '\0';
}

static enum token_type piece_type(const Wfs__Sentencepiece__Model__Piece *piece)
{
    switch (piece->type) {
    case UNKNOWN_PIECE:
        return TOKEN_UNKNOWN;
    case CONTROL_PIECE:
        return TOKEN_CONTROL;
    case UNUSED_PIECE:
        return TOKEN_UNUSED;
    case BYTE_PIECE:
        return TOKEN_BYTE;
    default:
        return TOKEN_NORMAL; /* also for user-defined pieces */
    }
}

bool sentencepiece_list(const struct vocab_input *input, const sentencepiece_model *model, uint64_t n_tokens,
                        struct token_list *ret_list, struct error *error)
{
    if (!token_count_fits(input, n_tokens, model->n_pieces, error) ||
        !token_list_init(ret_list, n_tokens, -10000.f, error))
        return false;
    for (size_t i = 0; i < model->n_pieces; i++) {
        const Wfs__Sentencepiece__Model__Piece *piece = model->pieces[i];
        const char *text = piece->piece.data != NULL ? (const char *)piece->piece.data : "";
        token_list_set(ret_list, i, text, piece->piece.len, piece->score,
                       is_nul(model, piece) ? TOKEN_UNUSED : piece_type(piece));
    }
    return true;
}

uint64_t sentencepiece_id(const sentencepiece_model *model, enum sentencepiece_part part)
{
    static const char *const usual[] = {"<s>", "</s>", "<unk>", "<pad>"};
    static const int types[] = {CONTROL_PIECE, CONTROL_PIECE, UNKNOWN_PIECE, CONTROL_PIECE};
    static const Wfs__Sentencepiece__Model__Trainer untrained = WFS__SENTENCEPIECE__MODEL__TRAINER__INIT;
    const Wfs__Sentencepiece__Model__Trainer *trainer = model->trainer != NULL ? model->trainer : &untrained;
    const ProtobufCBinaryData *named[] = {&trainer->bos_piece, &trainer->eos_piece, &trainer->unk_piece,
                                          &trainer->pad_piece};
    bool is_named = named[part]->len > 0;
    const void *text = is_named ? (const void *)named[part]->data : usual[part];
    size_t length = is_named ? named[part]->len : strlen(usual[part]);
    for (size_t i = 0; i < model->n_pieces; i++) {
        const Wfs__Sentencepiece__Model__Piece *piece = model->pieces[i];
        if (piece->type == types[part] && piece->piece.len == length && memcmp(piece->piece.data, text, length) == 0)
            return i;
    }
    return UINT64_MAX;
}

bool sentencepiece_write(struct gguf_kvs *kvs, const struct vocab_input *input, const char *pre,
                         struct token_list *list, const struct tokenizer_files *files, struct error *error)
{
    const struct special_vocab_options options = {.n_vocab = list->n_tokens};
    token_list_write(list, "llama", pre, true, kvs);
    token_list_free(list);
    return special_vocab_write(kvs, input, files, &options, error);
}

void sentencepiece_add_file(struct token_list *list, const struct json *added_tokens)
{
    for (struct json_member token = {0}; json_next_member(added_tokens, &token);) {
        uint64_t id;
        if (json_u64(token.value, &id))
            token_list_set(list, id, token.key, token.key_length, -1000.f, TOKEN_USER_DEFINED);
    }
}

uint64_t sentencepiece_vocab_size(const struct vocab_input *input, const sentencepiece_model *model)
{
    uint64_t n_tokens = 0;
    json_u64(hparams_find(input->hparams, "vocab_size_per_layer_input|vocab_size"), &n_tokens);
    return n_tokens != 0 ? n_tokens : model->n_pieces;
}

void sentencepiece_add_decoder(struct token_list *list, const struct json *config, bool by_looks)
{
    const struct json *decoder = json_get(config, "added_tokens_decoder");
    for (struct json_member token = {0}; json_next_member(decoder, &token);) {
        size_t length;
        const char *text = json_string(json_get(token.value, "content"), &length);
        uint64_t id = strtoull(token.key, NULL, 10);
        if (text == NULL)
            continue;
        bool control =
            json_bool(json_get(token.value, "special"), false) || (by_looks && token_looks_special(text, length));
        if (!control && by_looks)
            text = token_plain_spaces(list, text, &length);
        token_list_set(list, id, text, length, -1000.f, control ? TOKEN_CONTROL : TOKEN_USER_DEFINED);
    }
}
